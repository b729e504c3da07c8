//go:build agents

package agent_test

import (
	"slices"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// In an owner's sandbox that leaves them their network and their state, both programs run
// commands, in their own sandboxes too.
func TestReal_CommandsRunWithinABubblewrap(t *testing.T) {
	t.Parallel()
	for name, p := range programs {
		for fence, options := range map[string][]string{
			"plain":           nil,
			"processes apart": {"--unshare-pid", "--new-session"},
		} {
			t.Run(name+", "+fence, func(t *testing.T) {
				t.Parallel()
				host := &agenttest.Host{}
				job, m, r, err := p.run(t, func(j *agent.Job) {
					home := variable(j.Env, "HOME")
					j.Executable = slices.Concat([]string{
						"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
						"--bind", home, home, "--bind", j.Dir, j.Dir, "--die-with-parent",
					}, options, j.Executable)
					j.Policy = agent.Policy{Unattended: true, Otherwise: agent.Deny}
				}, host, p.command("touch made; echo $((41+1))control"), agenttest.Say("end"))
				fine(t, r, err)
				asked := m.Asked()
				if !strings.Contains(asked[len(asked)-1].Body, controlSays) || !exists(job.Dir+"/made") {
					t.Errorf("no command runs; transcript\n%s", host.Seen().Transcript())
				}
			})
		}
	}
}
