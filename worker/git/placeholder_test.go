package git

import (
	"os"
	"path/filepath"
	"testing"
)

// What a sandbox left in a tree is no change of it.
func TestState_WhatASandboxLeftIsNoChange(t *testing.T) {
	repo := repository(t)
	state := func() string {
		t.Helper()
		s, err := State(t.Context(), repo, caller(t))
		must(t, err)
		return s
	}
	was := state()
	put(t, filepath.Join(repo, ".bashrc"), "", 0o444)
	put(t, filepath.Join(repo, ".claude", "commands"), "", 0o444)
	must(t, os.MkdirAll(filepath.Join(repo, ".codex"), 0o755))
	if state() != was {
		t.Error("it counts as a change")
	}
	put(t, filepath.Join(repo, "made"), "", 0o644)
	if state() == was {
		t.Error("an empty file of somebody's is no change")
	}
}
