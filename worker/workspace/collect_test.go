package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/worker/proc"
	"stint/worker/workflow"
)

// quick starts with short graces.
func quick(ctx context.Context, s proc.Spec, sink proc.Sink) (*proc.Process, error) {
	s.Stages = proc.Stages{Interrupt: 100 * time.Millisecond, Term: 100 * time.Millisecond, Kill: 2 * time.Second}
	return proc.Start(ctx, s, sink)
}

// age moves the last use of a workspace into the past.
func (b bench) age(name string, by time.Duration) {
	b.Helper()
	r, err := openRoot(b.root, false)
	b.must(err)
	defer r.close()
	rec, _, err := r.read(name)
	b.must(err)
	rec.UsedAt = rec.UsedAt.Add(-by)
	b.must(r.write(name, rec))
}

func (b bench) collect(rules Rules) Report {
	b.Helper()
	rules.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}
	r, err := Collect(b.Context(), b.root, rules)
	b.must(err)
	return r
}

const month = 30 * 24 * time.Hour

func TestCollect_NeverWhatWouldBeMissed(t *testing.T) {
	b := newBench(t)
	want := map[string]string{"stranger": "nothing is known", "young": "it was used"}
	for name, c := range map[string]struct {
		do   func(w *Workspace)
		done bool
		why  string // a part of it
	}{
		"uncommitted": {func(w *Workspace) { b.put("root/uncommitted/new", "x") }, true, "not committed: new"},
		"changed":     {func(w *Workspace) { b.put("root/changed/file", "x") }, true, "not committed: file"},
		"unpushed":    {func(w *Workspace) { b.git(w.Path, "commit", "-qm", "x", "--allow-empty") }, true, "not pushed"},
		"stashed":     {func(w *Workspace) { b.put("root/stashed/file", "x"); b.git(w.Path, "stash", "-q") }, true, "stashed"},
		"wanted":      {func(w *Workspace) { b.put("root/wanted/a.log", "x") }, true, "ignored file is to be kept: a.log"},
		"within":      {func(w *Workspace) { b.put("root/within/built/deep/b.log", "x") }, true, "ignored file is to be kept: built/deep/b.log"},
		"resumable":   {func(w *Workspace) {}, false, "may go on"},
		"live":        {nil, true, "in use"},
		"nested":      {func(w *Workspace) { b.git(w.Path, "init", "-q", "--template=", "built/inner") }, true, "another repository is in it: built/inner"},
		"swapped": {func(w *Workspace) {
			b.must(os.Rename(w.Path, filepath.Join(b.dir, "away")))
			b.must(os.Mkdir(w.Path, 0o755))
		}, true, "another folder"},
		"linked": {func(w *Workspace) {
			b.must(os.Rename(w.Path, filepath.Join(b.dir, "away2")))
			b.must(os.Symlink(b.dir, w.Path))
		}, true, "not a folder"},
		"unlisted": {func(w *Workspace) { b.must(os.RemoveAll(b.git(w.Path, "rev-parse", "--absolute-git-dir"))) }, true, "does not know it"},
		"led away": {func(w *Workspace) { // a .git that points to where everything is clean
			b.put("root/"+w.name+"/unsaved", "x")
			b.must(os.Remove(filepath.Join(w.Path, ".git")))
			b.must(os.Symlink(filepath.Join(b.repo, ".git"), filepath.Join(w.Path, ".git")))
		}, true, "not committed"},
	} {
		w := b.prepare(b.spec(name))
		want[w.name] = c.why
		if c.do == nil { // live: this process uses it
			defer b.done(w)
		} else {
			c.do(w)
			b.must(w.Close(c.done))
		}
		b.age(w.name, month)
	}
	b.put("root/stranger/file", "x")
	clean := b.done(b.prepare(b.spec("clean")))
	b.age("clean", month)
	young := b.done(b.prepare(b.spec("young")))
	rules := Rules{OlderThan: 24 * time.Hour, KeepIgnored: []string{"*.log"}, DryRun: true}
	for _, dry := range []bool{true, false} {
		rules.DryRun = dry
		r := b.collect(rules)
		if len(r.Removed) != 1 || r.Removed[0].Name != "clean" || !strings.Contains(r.Removed[0].Why, "unused") || r.Freed == 0 {
			t.Errorf("dry run %v removes %+v", dry, r.Removed)
		}
		retained := map[string]string{}
		for _, i := range r.Retained {
			retained[i.Name] = i.Why
		}
		for name, why := range want {
			if !strings.Contains(retained[name], why) {
				t.Errorf("dry run %v: %s is kept because %q, want %q", dry, name, retained[name], why)
			}
		}
		if len(retained) != len(want) {
			t.Errorf("dry run %v keeps %v", dry, retained)
		}
		if _, err := os.Stat(clean.Path); (err == nil) != dry {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
	for _, path := range []string{"root/uncommitted/new", "root/stranger/file", "root/wanted/a.log"} {
		if b.text(path) == "" {
			t.Errorf("%s is gone", path)
		}
	}
	if _, err := os.Stat(young.Path); err != nil {
		t.Error(err)
	}
	if got := b.git(b.repo, "branch", "--list", "stint/clean"); got != "" {
		t.Errorf("the branch %s is left", got)
	}
	if got := b.git(b.repo, "worktree", "list"); strings.Contains(got, "/clean ") {
		t.Errorf("the registration is left:\n%s", got)
	}
	if w := b.prepare(b.spec("clean")); !w.Created || w.Path != clean.Path {
		t.Errorf("afterwards it is %+v", w)
	}
}

func TestCollect_SizeTakesTheOldestFirst(t *testing.T) {
	b := newBench(t)
	for i, name := range []string{"oldest", "older", "newest"} {
		w := b.prepare(b.spec(name))
		b.put("root/"+name+"/big.log", strings.Repeat("x", 1<<20))
		b.done(w)
		b.age(name, time.Duration(3-i)*time.Hour)
	}
	r := b.collect(Rules{KeepSize: 5 << 19}) // two and a half
	if len(r.Removed) != 1 || r.Removed[0].Name != "oldest" || r.Freed < 1<<20 {
		t.Errorf("%+v", r)
	}
	if r := b.collect(Rules{}); len(r.Removed) != 0 || len(r.Retained) != 2 {
		t.Errorf("without a rule: %+v", r)
	}
	if r := b.collect(Rules{KeepSize: 1}); len(r.Removed) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestCollect_AsksWhetherASessionGoesOn(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"over", "open", "unsure"} {
		spec := b.spec(name)
		spec.Session = "ses_" + name
		b.must(b.prepare(spec).Close(false))
		b.age(name, month)
	}
	r := b.collect(Rules{OlderThan: time.Hour, Goes: func(_ context.Context, session string) (bool, error) {
		if session == "ses_unsure" {
			return false, errors.New("no answer")
		}
		return session == "ses_open", nil
	}})
	if len(r.Removed) != 1 || r.Removed[0].Name != "over" || len(r.Retained) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestCollect_WhatIsGoneAlready(t *testing.T) {
	b := newBench(t)
	if r, err := Collect(t.Context(), filepath.Join(b.dir, "none"), Rules{OlderThan: 1}); err != nil || len(r.Removed)+len(r.Retained) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	w := b.done(b.prepare(b.spec("a")))
	b.git(w.Path, "commit", "-qm", "work", "--allow-empty")
	b.must(os.RemoveAll(w.Path))
	b.done(b.prepare(b.spec("b")))
	if r := b.collect(Rules{OlderThan: 1}); len(r.Removed) != 2 {
		t.Fatalf("%+v", r)
	}
	if got := b.git(b.repo, "branch", "--list", "stint/*"); got != "stint/a" {
		t.Errorf("branches %q are left, want the one with a commit of its own", got)
	}
	w = b.done(b.prepare(b.spec("c")))
	b.must(os.RemoveAll(b.repo))
	if r := b.collect(Rules{OlderThan: 1}); len(r.Removed) != 0 || !strings.Contains(r.Retained[0].Why, "repository") {
		t.Errorf("%+v", r)
	}
	b.must(os.RemoveAll(w.Path))
	if r := b.collect(Rules{OlderThan: 1}); len(r.Removed) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestCollect_EmptyModeIsJudgedByItsOwnRepository(t *testing.T) {
	b := newBench(t)
	for name, fill := range map[string]string{
		"nothing": "true",
		"files":   "echo x > file",
		"cloned":  "git clone -q " + b.repo + " .",
		"ahead":   "git clone -q " + b.repo + " . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
		"linked":  "git -C " + b.repo + " worktree add -q -b linked \"$PWD\"",
		"dirty":   "git clone -q " + b.repo + " . && echo x > new",
	} {
		spec := b.spec(name)
		spec.Mode, spec.Repository = workflow.ModeEmpty, ""
		spec.Hooks.Scripts = map[string]string{AfterCreate: fill}
		b.done(b.prepare(spec))
	}
	r := b.collect(Rules{OlderThan: 1})
	retained := map[string]string{}
	for _, i := range r.Retained {
		retained[i.Name] = i.Why
	}
	if len(r.Removed) != 3 || !strings.Contains(retained["files"], "no repository") || !strings.Contains(retained["ahead"], "not pushed") || !strings.Contains(retained["dirty"], "not committed") {
		t.Errorf("removed %+v, kept %v", r.Removed, retained)
	}
}

func TestCollect_FailingHookAndReadOnlyFolders(t *testing.T) {
	b := newBench(t)
	w := b.prepare(b.spec("k"))
	b.put("root/k/built/deep/file", "x")
	b.must(os.Chmod(filepath.Join(w.Path, "built", "deep"), 0o500))
	b.done(w)
	hooks := w.spec.Hooks
	hooks.Scripts = map[string]string{BeforeRemove: "touch " + b.dir + "/ran; exit 3"}
	r := b.collect(Rules{OlderThan: 1, Hooks: func(string) Hooks { return hooks }})
	if len(r.Removed) != 1 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err != nil {
		t.Error("the hook did not run")
	}
	// A hook that saves something at the last moment.
	b.done(b.prepare(b.spec("k")))
	hooks.Scripts = map[string]string{BeforeRemove: "echo x > saved"}
	if r := b.collect(Rules{OlderThan: 1, Hooks: func(string) Hooks { return hooks }}); len(r.Removed) != 0 || b.text("root/k/saved") == "" {
		t.Errorf("%+v", r)
	}
}

func TestDiscard_LooksAtWhatItRemoves(t *testing.T) {
	b := newBench(t)
	w := b.done(b.prepare(b.spec("k")))
	b.must(os.Rename(w.Path, filepath.Join(b.dir, "away")))
	b.put("root/k/precious", "x")
	r, err := openRoot(b.root, false)
	b.must(err)
	defer r.close()
	if err := r.discard("k", w.id); !errors.Is(err, ErrMoved) || b.text("root/k/precious") != "x" {
		t.Errorf("%v", err)
	}
	// What a killed clean-up left is removed by the next one; links in it are left alone.
	b.must(os.Rename(filepath.Join(b.root, "k"), filepath.Join(b.root, hidden, trash+"x")))
	b.must(os.Symlink(b.repo, filepath.Join(b.root, hidden, trash+"x", "out")))
	b.collect(Rules{OlderThan: 1})
	if _, err := os.Lstat(filepath.Join(b.root, hidden, trash+"x")); err == nil || b.text("repo/file") == "" {
		t.Error("left behind, or too much removed")
	}
}

// Somebody swaps the folder for another one while it is removed: the other one is never lost.
func TestDiscard_BearsARaceForTheName(t *testing.T) {
	dir := t.TempDir()
	r, err := openRoot(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("precious/deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	precious, err := r.folder("precious")
	if err != nil {
		t.Fatal(err)
	}
	swapped := 0
	for range 1000 {
		if err := os.Mkdir(at("k"), 0o700); err != nil {
			t.Fatal(err)
		}
		id, err := r.folder("k")
		if err != nil {
			t.Fatal(err)
		}
		raced := make(chan struct{})
		go func() {
			defer close(raced)
			_ = os.Rename(at("k"), at("old"))
			_ = os.Rename(at("precious"), at("k"))
		}()
		if errors.Is(r.discard("k", id), ErrMoved) {
			swapped++
		}
		<-raced
		found := ""
		for _, pattern := range []string{"*", hidden + "/*"} {
			names, err := filepath.Glob(at(pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if info, err := os.Lstat(name); err == nil && identityOf(info) == precious {
					found = name
				}
			}
		}
		if found == "" {
			t.Fatal("the other folder is gone")
		}
		if err := os.Rename(found, at("precious")); err != nil && found != at("precious") {
			t.Fatal(err)
		}
		for _, name := range []string{"k", "old"} {
			if err := os.RemoveAll(at(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(at("precious/deep")); err != nil {
		t.Fatal(err)
	}
	t.Logf("swapped before the look %d times", swapped)
}
