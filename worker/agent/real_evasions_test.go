//go:build agents

package agent_test

import (
	"maps"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// geminiBlocks is what Gemini CLI says of commands that it runs for nobody.
const geminiBlocks = "Blocked: command substitution detected"

// opencodeOverlooks reports whether opencode finds no command in a line, and so asks about none
// (docs/agents.md).
func opencodeOverlooks(line string, d denied) bool {
	for _, start := range []string{"{" + d.program + ",", "declare -i n='a[", "[[ 'a[", "a=(1); unset 'a["} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// A rule that refuses a command holds for the real programs however the command is written.
// They are allowed all else, so that nothing but the rules is in the way.
func TestReal_RulesHoldHoweverAnActIsWritten(t *testing.T) {
	t.Parallel()
	all := maps.Clone(programs)
	all["opencode"] = program{command: opencodeRuns, run: realOpencode, adapter: agent.ACP{}}
	all["gemini"] = program{command: geminiRuns, run: realGemini, adapter: agent.ACP{}}
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gemini := name == "gemini" // a refused call ends those beside it, so they come one by one; it blocks some by itself
			steps, tried := []agenttest.Step{p.command(control)}, 0
			if gemini {
				steps[0] = p.command("echo " + controlSays)
			}
			for i, d := range deniedActs {
				var calls []agenttest.Call
				for _, line := range once(i, d) {
					if name == "opencode" && opencodeOverlooks(line, d) {
						continue
					}
					calls = append(calls, p.command(line))
				}
				tried += len(calls)
				if gemini {
					for _, call := range calls {
						steps = append(steps, call)
					}
					continue
				}
				calls[0].Also = calls[1:]
				steps = append(steps, calls[0])
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
			if got := len(seen.Denied) + strings.Count(seen.Transcript(), geminiBlocks); got != tried || len(m.Asked()) < len(steps)+1 {
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
