//go:build agents

package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"stint/worker/agent/agenttest"
)

// TestReal_Script plays testdata/real with the real Claude Code, which runs for the
// real binary, worker and all. Each script has a model of its own, which has the
// command `echo before` run, then says nothing, and after that says "after".
func TestReal_Script(t *testing.T) {
	files, err := os.ReadDir("testdata/real")
	if err != nil || len(files) != 1 {
		t.Fatalf("%d scripts, %v: the model plays one", len(files), err)
	}
	m := agenttest.NewModel(t, agenttest.Call{Tool: "Bash", Input: map[string]any{"command": "touch begun", "description": "begin"}}, agenttest.Hang{}, agenttest.Say("after"))
	testscript.Run(t, scripts("testdata/real", append(agenttest.ClaudeEnv(m), "CLAUDE="+os.Getenv(agenttest.ClaudeVar))))
}
