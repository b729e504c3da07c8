//go:build agents

package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// Hidden paths stay hidden from the commands that follow one which moved a folder above them,
// and that folder can still be written to.
func TestReal_NothingHiddenIsReadAfterAMove(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]agent.Rule{
		"the work folder":     nil,
		"all files":           {{Area: agent.Filesystem, Ruling: agent.Allow}},
		"everything":          {{Area: agent.Filesystem, Ruling: agent.Allow}, {Area: agent.Network, Ruling: agent.Allow}, {Area: agent.Shell, Ruling: agent.Allow}},
		"nothing is writable": {{Area: agent.Filesystem, Ruling: agent.Deny}},
	} {
		for program, p := range programs {
			if program == "claude" && len(rules) == 3 {
				continue // then it has no sandbox, and the session says so
			}
			t.Run(name+", "+program, func(t *testing.T) {
				t.Parallel()
				dir := agenttest.Folder(t)
				hidden := filepath.Join(dir, "local", "share", "stint")
				token := filepath.Join(hidden, "owner.token")
				if err := os.MkdirAll(hidden, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(token, []byte(agenttest.Private), 0o600); err != nil {
					t.Fatal(err)
				}
				host := &agenttest.Host{}
				_, m, r, err := p.run(t, func(j *agent.Job) {
					j.Dir, j.Hidden = dir, []string{hidden}
					j.Policy = agent.Policy{Rules: rules, Unattended: true, Otherwise: agent.Deny}
				}, host,
					p.command("mv local/share local/elsewhere; mv local moved; true"),
					p.command("touch local/beside; cat local/share/stint/owner.token moved/*/stint/owner.token local/elsewhere/stint/owner.token; true"),
					p.command("echo $((41+1))control"),
					agenttest.Say("end"))
				fine(t, r, err)
				asked := m.Asked()
				told := asked[len(asked)-1].Body
				if strings.Contains(told, agenttest.Private) || !strings.Contains(told, controlSays) || !exists(token) {
					t.Errorf("the file is read, or moved; transcript\n%s", host.Seen().Transcript())
				}
				if writes := name != "nothing is writable"; exists(dir+"/local/beside") != writes {
					t.Errorf("a file beside what is hidden is made: %v; transcript\n%s", !writes, host.Seen().Transcript())
				}
			})
		}
	}
}
