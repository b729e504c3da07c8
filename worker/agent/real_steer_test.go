//go:build agents

package agent_test

import (
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// steered lets people say something while the first command of a turn runs, and checks that the
// same turn's next request to the model has it, once, and that it is known where.
func steered(t *testing.T, m *agenttest.Model, host *agenttest.Host, said string) {
	t.Helper()
	asked := m.Asked()
	if len(asked) != 2 || strings.Contains(asked[0].Body, said) || strings.Count(asked[1].Body, said) != 1 {
		t.Fatalf("the model was asked %d times; the last by %s", len(asked), asked[len(asked)-1].Body)
	}
	seen := host.Seen()
	if got := seen.Transcript(api.ItemToolResult, api.ItemStatus, api.ItemText, api.ItemTurnEnd); len(seen.Took) != 1 || !strings.HasSuffix(got, "status: took m1\ntext: done\nturn_end\n") {
		t.Errorf("it took %q; transcript\n%s", seen.Took, got)
	}
}

// urges says something as soon as a tool runs.
func urges(host *agenttest.Host, m *agenttest.Model, said string) {
	<-m.Waiting()
	host.Urge(agent.Said{ID: "m1", Text: said})
}

func TestRealClaude_SteersARunningTurn(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{Answer: agenttest.Approves}
	m := agenttest.NewModel(t, bash("sleep 1"), agenttest.Say("done"))
	job := agenttest.RealClaude(t, m)
	go urges(host, m, "STEEREDTEXT")
	r, err := agenttest.Run(t.Context(), t, agent.Claude{}, job, host)
	fine(t, r, err)
	steered(t, m, host, "STEEREDTEXT")
}

// A message that comes after the turn's last call of a tool is taken in by a turn that Claude Code
// begins itself.
func TestRealClaude_SteersTooLate(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{}
	m := agenttest.NewModel(t, agenttest.Say("first"), agenttest.Say("done"))
	job := agenttest.RealClaude(t, m)
	host.Urge(agent.Said{ID: "m1", Text: "STEEREDTEXT"})
	r, err := agenttest.Run(t.Context(), t, agent.Claude{}, job, host)
	fine(t, r, err)
	asked := m.Asked()
	if body := asked[len(asked)-1].Body; strings.Count(body, "STEEREDTEXT") != 1 || len(host.Seen().Took) != 1 {
		t.Errorf("asked %d times; it took %q; the last by %s", len(asked), host.Seen().Took, body)
	}
}

func TestRealCodex_SteersARunningTurn(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{Answer: agenttest.Approves}
	m := agenttest.NewModel(t, sh("sleep 1"), agenttest.Say("done"))
	job := agenttest.RealCodex(t, m)
	go urges(host, m, "STEEREDTEXT")
	r, err := agenttest.Run(t.Context(), t, agent.Codex{}, job, host)
	fine(t, r, err)
	steered(t, m, host, "STEEREDTEXT")
}
