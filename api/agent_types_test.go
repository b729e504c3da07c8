package api

import (
	"slices"
	"testing"
)

// Every type is described; only those whose settings name the program have none of their own.
func TestAgentTypes_AreDescribed(t *testing.T) {
	for _, p := range AgentTypes {
		if got, known := p.Type.Describe(); !known || got.Word == "" || p.Type.Word() != got.Word {
			t.Errorf("%s is described as %+v", p.Type, got)
		}
		converses := p.Program != "" && len(p.SignedIn) > 0 && p.SignIn != "" && p.Resume != "" && p.State != ""
		if converses == p.Type.NamesProgram() || p.Type.NamesProgram() != (p.Type == TypeCommand || p.Type == TypeACP) {
			t.Errorf("%s lacks a part: %+v", p.Type, p)
		}
	}
	if _, known := AgentType("robot").Describe(); known || AgentType("robot").Word() != "robot" {
		t.Error("a robot is known")
	}
	if got := AgentTypeNames(); got != "command, claude_code, codex or acp" {
		t.Errorf("the types are %q", got)
	}
}

// A program that is known gets what makes it speak the protocol; one that has arguments, or that
// nobody knows, is started as it is written.
func TestACPCommand_NamesAndPaths(t *testing.T) {
	for _, c := range [][2][]string{
		{{"opencode"}, {"opencode", "acp"}},
		{{"/opt/bin/gemini"}, {"/opt/bin/gemini", "--acp"}},
		{{"cursor"}, {"cursor-agent", "acp"}},
		{{"/opt/cursor-agent"}, {"/opt/cursor-agent", "acp"}},
		{{"/opt/cursor"}, {"/opt/cursor"}},
		{{"opencode", "acp", "--print-logs"}, {"opencode", "acp", "--print-logs"}},
		{{"my-agent"}, {"my-agent"}},
		{nil, nil},
	} {
		if got := ACPCommand(c[0]); !slices.Equal(got, c[1]) {
			t.Errorf("%q starts %q, not %q", c[0], got, c[1])
		}
	}
	if p, known := ACPProgramOf([]string{"/opt/bin/opencode", "acp"}); !known || p.Name != "opencode" {
		t.Errorf("the program is %+v", p)
	}
}
