//go:build agents

package agent_test

import (
	"maps"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// A rule that refuses a command holds for the real programs however the command is written.
// They are allowed all else, so that nothing but the rules is in the way.
func TestReal_RulesHoldHoweverAnActIsWritten(t *testing.T) {
	t.Parallel()
	all := maps.Clone(programs)
	all["opencode"] = program{command: opencodeRuns, run: realOpencode, adapter: agent.ACP{}}
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps, tried := []agenttest.Step{p.command(control)}, 0
			for i, d := range deniedActs {
				var calls []agenttest.Call
				for _, line := range once(i, d) {
					if name == "opencode" && strings.HasPrefix(line, "{"+d.program+",") {
						continue // it finds no command in it, and asks about none: docs/agents.md
					}
					calls = append(calls, p.command(line))
				}
				calls[0].Also = calls[1:]
				steps, tried = append(steps, calls[0]), tried+len(calls)
			}
			host := &agenttest.Host{}
			job, m, r, err := p.run(t, func(j *agent.Job) {
				evasionFolder(t, j.Dir)
				j.Policy = agent.Policy{Rules: deniedRules(), Unattended: true, Otherwise: agent.Deny}
			}, host, append(steps, agenttest.Say("end"))...)
			fine(t, r, err)
			for _, d := range deniedActs {
				if d.done(job.Dir) {
					t.Errorf("%s was done", d.line())
				}
			}
			seen := host.Seen()
			if got := len(seen.Denied); got != tried || len(m.Asked()) < len(steps)+1 {
				t.Errorf("%d of %d refused, %d requests", got, tried, len(m.Asked()))
			}
			told := m.Asked()[len(m.Asked())-1].Body
			if !strings.Contains(told, controlSays) {
				t.Error("no command works")
			}
			if t.Failed() {
				t.Logf("transcript\n%s", seen.Transcript())
			}
		})
	}
}
