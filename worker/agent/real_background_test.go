//go:build agents

package agent_test

import (
	"strings"
	"testing"

	"stint/worker/agent/agenttest"
)

// Claude Code puts nothing into the background, even if the model asks for it: the turn is
// over when the work is.
func TestRealClaude_NothingGoesOnInTheBackground(t *testing.T) {
	t.Parallel()
	call := agenttest.Call{Tool: "Bash", Input: obj{"command": "sleep 2; echo finished", "description": "a command", "run_in_background": true}}
	host := &agenttest.Host{}
	_, m, r, err := realClaude(t, nil, host, call, agenttest.Say("end"))
	fine(t, r, err)
	asked := m.Asked()
	if last := asked[len(asked)-1].Body; !strings.Contains(last, "finished") || len(r.Running) > 0 {
		t.Errorf("the model was not told how it ended; transcript\n%s", host.Seen().Transcript())
	}
}

// Codex hands a long command back to the model and may end its turn meanwhile: what is still
// running then is reported.
func TestRealCodex_WhatStillRunsIsTold(t *testing.T) {
	t.Parallel()
	call := agenttest.Call{Tool: "exec_command", Input: obj{"cmd": "sleep 300", "yield_time_ms": 250}}
	host := &agenttest.Host{}
	_, _, r, err := realCodex(t, nil, host, call, agenttest.Say("end"))
	fine(t, r, err)
	if len(r.Running) != 1 || !strings.Contains(r.Running[0], "sleep 300") {
		t.Errorf("still running %q; transcript\n%s", r.Running, host.Seen().Transcript())
	}
}
