//go:build agents

package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// The command line that people are given goes on with the agent session that Stint held. Without
// a terminal each is asked for one answer only, by the same option.
func TestReal_GoneOnWithByHand(t *testing.T) {
	t.Parallel()
	acp := func(name string) string {
		p, _ := api.ACPProgramOf([]string{name})
		return p.Resume
	}
	kind := func(k api.AgentType) string {
		p, _ := k.Describe()
		return p.Resume
	}
	for name, c := range map[string]struct {
		resume string
		args   []string // of the same option without a terminal; ID is the session's
		job    func(testing.TB, *agenttest.Model) agent.Job
		by     agent.Agent
	}{
		"claude":   {kind(api.TypeClaudeCode), []string{"--resume", "ID", "-p", "BYHAND"}, agenttest.RealClaude, agent.Claude{}},
		"codex":    {kind(api.TypeCodex), []string{"exec", "--skip-git-repo-check", "resume", "ID", "BYHAND"}, agenttest.RealCodex, agent.Codex{}},
		"opencode": {acp("opencode"), []string{"run", "--session", "ID", "BYHAND"}, agenttest.RealOpencode, agent.ACP{}},
		"gemini":   {acp("gemini"), []string{"--resume", "ID", "-p", "BYHAND", "--skip-trust"}, agenttest.RealGemini, agent.ACP{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, word := range strings.Fields(c.resume)[1:] {
				if !strings.Contains(" "+strings.Join(c.args, " ")+" ", " "+word+" ") {
					t.Fatalf("people are given %q", c.resume)
				}
			}
			m := agenttest.NewModel(t, agenttest.Say("one"))
			job := c.job(t, m)
			job.Turn = "TURNTEXT"
			host := &agenttest.Host{}
			r, err := agenttest.Run(t.Context(), t, c.by, job, host)
			fine(t, r, err)
			before := len(m.Asked())
			m.Then(agenttest.Say("two"))
			words := strings.Split(strings.ReplaceAll(strings.Join(c.args, "\x00"), "ID", host.Seen().Began[0]), "\x00")
			cmd := exec.CommandContext(t.Context(), job.Executable[0], append(job.Executable[1:], words...)...)
			cmd.Dir, cmd.Env = job.Dir, append(job.Env, "CODEX_HOME="+job.StateDir) // which the line that people get has, too
			if name == "gemini" {
				chosen(t, variableOf(job.Env, "HOME"))
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			asked := m.Asked()[before:]
			if len(asked) == 0 || !strings.Contains(asked[len(asked)-1].Body, "TURNTEXT") || !strings.Contains(asked[len(asked)-1].Body, "BYHAND") {
				t.Errorf("it was another conversation: %d requests, it says %s", len(asked), out)
			}
		})
	}
}

// chosen gives a home what its user has once they signed in to Gemini CLI by a key.
func chosen(t *testing.T, home string) {
	t.Helper()
	anotherMinute(t, home)
	settings := `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`
	if err := os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}
