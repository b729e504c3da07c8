package agent_test

import (
	"os"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent"
)

// The page and the doctor must say the same.
func TestHeld_IsWhatTheDocsSay(t *testing.T) {
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range api.AgentTypes {
		held := agent.Held(kind.Type)
		if len(held) != len(api.Areas) {
			t.Errorf("%s: %d areas", kind.Type, len(held))
		}
		for _, h := range held {
			if !strings.Contains(string(page), "| `"+string(h.Area)+"` | "+h.Sentence+" |") {
				t.Errorf("docs/agents.md doesn't say for %s: | `%s` | %s |", kind.Type, h.Area, h.Sentence)
			}
		}
	}
	for _, p := range api.Presets() {
		if !strings.Contains(string(page), "| **"+p.Title+"** | "+p.Sentence+" |") {
			t.Errorf("docs/agents.md doesn't have the preset %s: %s", p.Title, p.Sentence)
		}
	}
}
