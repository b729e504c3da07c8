package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"stint/worker/git"
	"stint/worker/workflow"
)

// made is a workspace that a session has left, with a commit of its own.
func made(b bench, key string) (path, tip string) {
	b.Helper()
	w, err := Prepare(b.Context(), b.spec(key))
	b.must(err)
	b.must(os.WriteFile(w.Path+"/new", []byte("x\n"), 0o644))
	b.git(w.Path, "add", ".")
	b.git(w.Path, "commit", "-qm", "mine, for "+key)
	b.must(w.Close(true))
	return w.Path, b.git(w.Path, "rev-parse", "HEAD")
}

func TestHold_KnowsHowTheWorktreeBegan(t *testing.T) {
	b := newBench(t)
	b.git(b.repo, "remote", "add", "origin", "https://example.org/x")
	b.git(b.repo, "branch", "side")
	path, _ := made(b, "key")
	h, err := Hold(b.root, "key")
	b.must(err)
	if h.Path != path || h.Mode != workflow.ModeWorktree || h.Repository != b.repo || h.Branch != "stint/key" || h.BaseBranch != "main" || h.Landed != "" {
		t.Errorf("%+v", h)
	}
	repo, err := git.Open(t.Context(), b.repo, git.Caller{Env: os.Environ(), Room: t.TempDir()})
	b.must(err)
	remotes, err := repo.Here().Remotes(t.Context())
	b.must(err)
	if len(h.Routes.Remotes) != 1 || h.Routes.Remotes["origin"] != remotes[0].Mark() {
		t.Errorf("remotes %v", h.Routes)
	}
	if _, err := Hold(b.root, "key"); !errors.Is(err, ErrBusy) {
		t.Errorf("held twice: %v", err)
	}
	if _, err := Prepare(t.Context(), b.spec("key")); !errors.Is(err, ErrBusy) {
		t.Errorf("prepared while held: %v", err)
	}
	b.must(h.Close())
	for base, want := range map[string]string{"side": "side", "origin/later": "later", "HEAD~0": ""} {
		spec := b.spec("for " + base)
		spec.BaseBranch = base
		if base == "origin/later" {
			b.git(b.repo, "update-ref", "refs/remotes/origin/later", "main")
		}
		w, err := Prepare(t.Context(), spec)
		b.must(err)
		b.must(w.Close(true))
		h, err := Hold(b.root, "for "+base)
		b.must(err)
		if h.BaseBranch != want {
			t.Errorf("from %s it goes to %q, want %q", base, h.BaseBranch, want)
		}
		b.must(h.Close())
	}
}

func TestHold_OfWhatIsGoneOrWasReplaced(t *testing.T) {
	b := newBench(t)
	if _, err := Hold(b.root, "key"); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
	path, _ := made(b, "key")
	if _, err := Hold(b.root, "other"); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
	b.must(os.Rename(path, path+"-moved"))
	b.must(os.Mkdir(path, 0o755))
	if _, err := Hold(b.root, "key"); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
}

func TestDiscard_RemovesEverythingOfTheWorkspace(t *testing.T) {
	b := newBench(t)
	path, tip := made(b, "key")
	h, err := Hold(b.root, "key")
	b.must(err)
	hooks := b.spec("key").Hooks
	hooks.Scripts = map[string]string{BeforeRemove: "echo $STINT_BRANCH > " + b.dir + "/hook"}
	not := errors.New("not so")
	if err := h.Discard(t.Context(), tip, hooks, os.Environ(), func() error { return not }); !errors.Is(err, not) {
		t.Errorf("%v", err)
	}
	if b.git(path, "rev-parse", "HEAD") != tip {
		t.Error("removed all the same")
	}
	b.must(h.Discard(t.Context(), tip, hooks, os.Environ(), func() error { return nil }))
	b.must(h.Close())
	if b.text("hook") != "stint/key\n" {
		t.Error("the hook was not run")
	}
	if out := b.git(b.repo, "branch", "--list", "stint/*") + b.git(b.repo, "worktree", "list", "--porcelain"); out != "worktree "+b.repo+"\nHEAD "+b.git(b.repo, "rev-parse", "HEAD")+"\nbranch refs/heads/main" {
		t.Errorf("git still knows %s", out)
	}
	left, err := filepath.Glob(b.root + "/*")
	b.must(err)
	hiddenLeft, err := filepath.Glob(b.root + "/" + hidden + "/*")
	b.must(err)
	if len(left) != 1 || len(hiddenLeft) > 0 { // the folder of records itself
		t.Errorf("left %v %v", left, hiddenLeft)
	}
}

func TestDiscard_KeepsABranchThatMoved(t *testing.T) {
	b := newBench(t)
	path, tip := made(b, "key")
	b.git(path, "commit", "-q", "--allow-empty", "-m", "later")
	h, err := Hold(b.root, "key")
	b.must(err)
	if err := h.Discard(t.Context(), tip, Hooks{}, os.Environ(), func() error { return nil }); err == nil {
		t.Error("no error")
	}
	b.must(h.Close())
	if b.git(b.repo, "log", "-1", "--format=%s", "stint/key") != "later" {
		t.Error("the branch is gone")
	}
}

func TestCollect_RemovesWhatWasLandedAsAnotherCommit(t *testing.T) {
	b := newBench(t)
	rules := func() Rules {
		return Rules{OlderThan: 1, Env: os.Environ(), Goes: func(context.Context, string) (bool, error) { return false, nil }}
	}
	path, tip := made(b, "key")
	after, _ := made(b, "after")
	for _, key := range []string{"key", "after"} {
		h, err := Hold(b.root, key)
		b.must(err)
		b.must(h.Land(b.git(h.Path, "rev-parse", "HEAD")))
		if key == "key" && h.Landed != tip {
			t.Errorf("landed %s", h.Landed)
		}
		b.must(h.Close())
	}
	b.git(after, "commit", "-q", "--allow-empty", "-m", "after it was landed")
	made(b, "never")
	report, err := Collect(t.Context(), b.root, rules())
	b.must(err)
	if len(report.Removed) != 1 || report.Removed[0].Path != path || len(report.Retained) != 2 {
		t.Errorf("%+v", report)
	}
	if out := b.git(b.repo, "branch", "--list", "stint/key"); out != "" {
		t.Errorf("the branch %s is left", out)
	}
}
