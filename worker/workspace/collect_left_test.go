package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/worker/workflow"
)

// What a sandbox left where it had mounted something is nobody's work; anything more is.
func TestCollect_WhatASandboxLeftKeepsNothing(t *testing.T) {
	b := newBench(t)
	leave := func(name string, mode os.FileMode, text string) {
		b.put("root/"+name, text)
		b.must(os.Chmod(filepath.Join(b.root, name), mode))
	}
	for name, fill := range map[string]func(){
		"files": func() { leave("files/.bashrc", 0o444, ""); leave("files/HEAD", 0o400, "") },
		"folders": func() {
			leave("folders/.claude/x/settings.json", 0o444, "")
			b.must(os.MkdirAll(filepath.Join(b.root, "folders/.codex"), 0o755))
		},
		"ignored": func() { leave("ignored/built/.env", 0o444, ""); leave("ignored/.env.log", 0o444, "") },
		"pointer": func() { leave("pointer/built/.git", 0o444, "") },
		"pointed": func() { b.must(os.MkdirAll(filepath.Join(b.root, "pointed/built/.git"), 0o755)) },
		"written": func() { leave("written/.bashrc", 0o444, "x") },
		"made":    func() { leave("made/empty", 0o644, "") },
		"beside": func() {
			leave("beside/.claude/commands", 0o444, "")
			leave("beside/.claude/settings.json", 0o644, "{}")
		},
		"secret":  func() { leave("secret/built/.env", 0o444, "KEY=1") },
		"tracked": func() { leave("tracked/file", 0o444, "") },
	} {
		w := b.prepare(b.spec(name))
		fill()
		b.done(w)
	}
	spec := b.spec("hollow")
	spec.Mode, spec.Repository = workflow.ModeEmpty, ""
	w := b.prepare(spec)
	leave("hollow/objects", 0o444, "")
	b.done(w)
	kept := map[string]string{}
	for _, i := range b.collect(Rules{OlderThan: 1}).Retained {
		kept[i.Name] = i.Why
	}
	want := map[string]string{"written": "not committed", "made": "not committed", "beside": "not committed", "secret": "to be kept", "tracked": "not committed: file"}
	for name, why := range want {
		if !strings.Contains(kept[name], why) {
			t.Errorf("%s is kept because %q, want %q", name, kept[name], why)
		}
	}
	if len(kept) != len(want) {
		t.Errorf("kept are %v", kept)
	}
}

// Whoever wants only what happened doesn't look at every file of what stays.
func TestCollect_BriefMeasuresWhatItRemoves(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"old", "young"} {
		w := b.prepare(b.spec(name))
		b.put("root/"+name+"/built/big", strings.Repeat("x", 1<<20))
		b.done(w)
	}
	b.age("old", month)
	r := b.collect(Rules{OlderThan: month, Brief: true})
	if len(r.Removed) != 1 || r.Freed < 1<<20 || r.Removed[0].Bytes != r.Freed || len(r.Retained) != 1 || r.Retained[0].Bytes != 0 {
		t.Errorf("%+v", r)
	}
	if r := b.collect(Rules{KeepSize: 1 << 30, Brief: true}); len(r.Retained) != 1 || r.Retained[0].Bytes < 1<<20 {
		t.Errorf("where the size decides: %+v", r)
	}
}

// A removal that failed is told from a workspace that is kept, and is done the next time.
func TestCollect_SaysWhatFailed(t *testing.T) {
	b := newBench(t)
	b.done(b.prepare(b.spec("k")))
	lock := filepath.Join(b.repo, ".git/refs/heads/stint/k.lock")
	hooks := Hooks{Env: os.Environ(), Start: quick, Scripts: map[string]string{BeforeRemove: "touch saved"}}
	rules := Rules{OlderThan: 1, Hooks: func(string) Hooks { return hooks }}
	if r := b.collect(rules); len(r.Retained) != 1 || r.Retained[0].Failed || !strings.Contains(r.Retained[0].Why, "saved") {
		t.Errorf("what its hook saved speaks against it, and nothing failed: %+v", r)
	}
	b.must(os.Remove(filepath.Join(b.root, "k", "saved")))
	hooks.Scripts[BeforeRemove] = "touch '" + lock + "'"
	if r := b.collect(rules); len(r.Retained) != 1 || !r.Retained[0].Failed {
		t.Errorf("its branch could not be removed: %+v", r)
	}
	b.must(os.Remove(lock))
	hooks.Scripts = nil
	if r := b.collect(rules); len(r.Removed) != 1 {
		t.Errorf("%+v", r)
	}
	if got := b.git(b.repo, "branch", "--list", "stint/k"); got != "" {
		t.Errorf("the branch %s is left", got)
	}
}

// One that is to end stops, and the next one goes on where it was.
func TestCollect_EndsBetweenTwoFiles(t *testing.T) {
	b := newBench(t)
	b.done(b.prepare(b.spec("k")))
	b.put("root/k/built/deep/file", "x")
	ctx, stop := context.WithCancelCause(t.Context())
	ended := errors.New("the worker ends")
	b.must(os.MkdirAll(filepath.Join(b.root, hidden, trash+"x", "deep"), 0o700))
	stop(ended)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}
	if _, err := Collect(ctx, b.root, Rules{OlderThan: 1, Env: env}); !errors.Is(err, ended) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.root, hidden, trash+"x", "deep")); err != nil {
		t.Errorf("it went on: %v", err)
	}
	if r := b.collect(Rules{OlderThan: 1}); len(r.Removed) != 1 {
		t.Errorf("%+v", r)
	}
	if left, err := os.ReadDir(filepath.Join(b.root, hidden)); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
