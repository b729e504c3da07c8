package api

import "testing"

// Every type is described, and only a command has no program of its own.
func TestAgentTypes_AreDescribed(t *testing.T) {
	for _, p := range AgentTypes {
		if got, known := p.Type.Describe(); !known || got.Word == "" || p.Type.Word() != got.Word {
			t.Errorf("%s is described as %+v", p.Type, got)
		}
		converses := p.Program != "" && len(p.SignedIn) > 0 && p.SignIn != "" && p.Resume != "" && p.State != ""
		if converses == (p.Type == TypeCommand) {
			t.Errorf("%s lacks a part: %+v", p.Type, p)
		}
	}
	if _, known := AgentType("robot").Describe(); known || AgentType("robot").Word() != "robot" {
		t.Error("a robot is known")
	}
	if got := AgentTypeNames(); got != "command, claude_code or codex" {
		t.Errorf("the types are %q", got)
	}
}
