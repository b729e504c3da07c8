package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// plainly runs git as a person would, with everything that the repository names.
func plainly(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), mode))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// repository is one with a commit on main.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	repo := filepath.Join(dir, "repo")
	must(t, os.Mkdir(repo, 0o755))
	plainly(t, repo, "init", "-q", "-b", "main")
	put(t, filepath.Join(repo, "file"), "text\n", 0o644)
	put(t, filepath.Join(repo, ".gitignore"), "*.log\nbuilt/\n", 0o644)
	put(t, filepath.Join(repo, "sub", "file"), "text\n", 0o644)
	plainly(t, repo, "add", ".")
	plainly(t, repo, "commit", "-qm", "one")
	return repo
}

func open(t *testing.T, folder string) Repo {
	t.Helper()
	r, err := Open(t.Context(), folder, caller(t))
	must(t, err)
	return r
}

// plant makes a repository in which everything that git can be made to execute leaves a file
// in the folder of witnesses.
func plant(t *testing.T, repo string) (witnesses string) {
	witnesses = filepath.Join(filepath.Dir(repo), "witnesses")
	must(t, os.Mkdir(witnesses, 0o755))
	script := func(name string) string { // a filter that also passes its input on
		path := filepath.Join(filepath.Dir(repo), "evil-"+name)
		put(t, path, fmt.Sprintf("#!/bin/sh\ntouch %s/%s\ncat\n", witnesses, name), 0o755)
		return path
	}
	config := func(args ...string) { plainly(t, repo, append([]string{"config"}, args...)...) }
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "post-commit", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman", "pre-commit"} {
		path := filepath.Join(repo, ".git", "hooks", hook)
		put(t, path, fmt.Sprintf("#!/bin/sh\ntouch %s/hook-%s\n", witnesses, hook), 0o755)
	}
	put(t, filepath.Join(repo, ".gitattributes"), "file filter=one diff=one\nsub/* filter=two\nlong filter=three\nother filter=with.dot=and=equals\nincluded filter=inc\nscoped filter=scoped\n", 0o644)
	for _, name := range []string{"long", "other", "included", "scoped"} {
		put(t, filepath.Join(repo, name), "text\n", 0o644)
	}
	put(t, filepath.Join(repo, ".git", "info", "attributes"), "* filter=one\nsub/* filter=two\nlong filter=three\nother filter=with.dot=and=equals\nincluded filter=inc\nscoped filter=scoped\n", 0o644)
	plainly(t, repo, "-c", "core.hooksPath=/dev/null", "add", ".")
	plainly(t, repo, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "two")
	config("core.fsmonitor", script("fsmonitor"))
	config("filter.one.smudge", script("smudge"))
	config("filter.one.clean", script("clean"))
	config("filter.two.process", script("process"))
	config("filter.two.required", "true")
	config("filter.three.smudge", script("smudge-required"))
	config("filter.three.required", "true")
	config("filter.with.dot=and=equals.smudge", script("smudge-odd"))
	put(t, filepath.Join(repo, ".git", "more"), "[filter \"inc\"]\n\tsmudge = "+script("smudge-included")+"\n\tclean = "+script("clean-included")+"\n", 0o644)
	config("include.path", "more")
	config("extensions.worktreeConfig", "true")
	plainly(t, repo, "config", "--worktree", "filter.scoped.smudge", script("smudge-scoped"))
	plainly(t, repo, "config", "--worktree", "filter.scoped.clean", script("clean-scoped"))
	config("diff.one.textconv", script("textconv"))
	config("diff.one.command", script("diff-command"))
	config("diff.external", script("diff-external"))
	config("core.sshCommand", script("ssh"))
	config("core.alternateRefsCommand", script("alternate"))
	config("core.pager", script("pager"))
	config("core.editor", script("editor"))
	config("core.askPass", script("askpass"))
	config("credential.helper", "!"+script("credential"))
	config("gpg.program", script("gpg"))
	config("log.showSignature", "true")
	config("status.submoduleSummary", "true")
	config("alias.status", "!"+script("alias"))
	config("alias.worktree", "!"+script("alias"))
	config("remote.origin.url", "ext::"+script("ext")+" %S")
	config("remote.origin.promisor", "true")
	config("remote.origin.partialCloneFilter", "blob:none")
	config("uploadpack.packObjectsHook", script("pack"))
	config("gc.auto", "1")
	for _, event := range hookEvents { // run by git from 2.54 on
		config("--add", "hook.planted.event", event)
		config("--add", "hook.with.dot=and=equals.event", event)
	}
	config("hook.planted.command", script("configured-hook"))
	config("hook.with.dot=and=equals.command", script("configured-hook-odd"))
	return witnesses
}

func seen(t *testing.T, witnesses string) []string {
	t.Helper()
	entries, err := os.ReadDir(witnesses)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// all makes every call that this package offers, in a repository and a tree of it.
func all(t *testing.T, repo string) {
	r := open(t, repo)
	ctx := t.Context()
	head, err := r.Commit(ctx, "main")
	must(t, err)
	path := filepath.Join(filepath.Dir(repo), "tree")
	tree, err := r.Add(ctx, path, "work", head)
	must(t, err)
	// Files with other times, so that git has to read their contents.
	for _, name := range []string{"file", "sub/file", "long", "other", "included", "scoped"} {
		must(t, os.Chtimes(filepath.Join(path, name), time.Unix(1e9, 0), time.Unix(1e9, 0)))
	}
	w, err := tree.Work(ctx, "work")
	must(t, err)
	if w.Unsaved != "" || w.Unshared != "" {
		t.Errorf("a new tree isn't clean: %+v", w)
	}
	_, err = r.Worktrees(ctx)
	must(t, err)
	_, err = r.Branch(ctx, "work")
	must(t, err)
	must(t, os.RemoveAll(path))
	must(t, r.Forget(ctx, path))
	must(t, r.DeleteBranch(ctx, "work", head))
	if _, err := Version(ctx, os.Environ()); err != nil {
		t.Error(err)
	}
}

func TestCalls_ExecuteNothingOfARepository(t *testing.T) {
	repo := repository(t)
	witnesses := plant(t, repo)
	all(t, repo)
	if got := seen(t, witnesses); len(got) > 0 {
		t.Errorf("executed: %q", got)
	}
	// The plants work: git by hand, without this package's settings, runs them.
	plainly(t, repo, "-c", "filter.two.required=false", "-c", "filter.three.required=false", "worktree", "add", "-q", "-b", "control", filepath.Join(filepath.Dir(repo), "control"))
	control := filepath.Join(filepath.Dir(repo), "control")
	must(t, os.Chtimes(filepath.Join(control, "file"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
	plainly(t, control, "-c", "filter.two.required=false", "-c", "filter.three.required=false", "status")
	plainly(t, control, "-c", "filter.two.required=false", "-c", "filter.three.required=false", "log", "-p", "--ext-diff", "--textconv", "-1")
	got := strings.Join(seen(t, witnesses), " ")
	for _, want := range []string{"hook-post-checkout", "hook-reference-transaction", "fsmonitor", "smudge", "clean", "process", "smudge-required", "smudge-odd", "smudge-included", "smudge-scoped"} {
		if !strings.Contains(" "+got+" ", " "+want+" ") {
			t.Errorf("the plant %s never grew: only %s", want, got)
		}
	}
}

func TestCalls_LookIntoNoSubmodule(t *testing.T) {
	repo := repository(t)
	inner := repository(t)
	plainly(t, repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "inner")
	plainly(t, repo, "commit", "-qm", "submodule")
	r := open(t, repo)
	path := filepath.Join(filepath.Dir(repo), "tree")
	tree, err := r.Add(t.Context(), path, "work", "main")
	must(t, err)
	if w, err := tree.Work(t.Context(), "work"); err != nil || w.Modules != "" || w.Unsaved != "" {
		t.Fatalf("an empty submodule: %+v, %v", w, err)
	}
	plainly(t, path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	witness := filepath.Join(filepath.Dir(repo), "witness")
	put(t, filepath.Join(filepath.Dir(repo), "evil"), "#!/bin/sh\ntouch "+witness+"\n", 0o755)
	plainly(t, filepath.Join(path, "inner"), "config", "core.fsmonitor", filepath.Join(filepath.Dir(repo), "evil"))
	w, err := tree.Work(t.Context(), "work")
	if err != nil || w.Modules != "inner" {
		t.Errorf("a filled submodule: %+v, %v", w, err)
	}
	if _, err := os.Stat(witness); err == nil {
		t.Error("a submodule's monitor was executed")
	}
	plainly(t, path, "status")
	if _, err := os.Stat(witness); err != nil {
		t.Error("the plant never grew")
	}
}

func TestCalls_AreNotLedElsewhere(t *testing.T) {
	repo, other := repository(t), repository(t)
	r := open(t, repo)
	path := filepath.Join(filepath.Dir(repo), "tree")
	tree, err := r.Add(t.Context(), path, "work", "main")
	must(t, err)
	put(t, filepath.Join(path, "unsaved"), "x", 0o644)
	// A .git file that points to a repository in which everything is clean.
	must(t, os.Remove(filepath.Join(path, ".git")))
	put(t, filepath.Join(path, ".git"), "gitdir: "+filepath.Join(other, ".git")+"\n", 0o644)
	must(t, os.WriteFile(filepath.Join(other, ".git", "info", "exclude"), []byte("*"), 0o644))
	w, err := tree.Work(t.Context(), "work")
	if err != nil || w.Unsaved != "unsaved" || w.Branch != "work" {
		t.Errorf("%+v, %v", w, err)
	}
	// A setting that says where the files are.
	plainly(t, repo, "config", "core.worktree", other)
	if _, err := Open(t.Context(), repo, caller(t)); !errors.Is(err, ErrNoRepository) {
		t.Errorf("opened although its files are elsewhere: %v", err)
	}
	if w, err := tree.Work(t.Context(), "work"); err != nil || w.Unsaved != "unsaved" {
		t.Errorf("with core.worktree: %+v, %v", w, err)
	}
}

func TestNames_AreNeverOptions(t *testing.T) {
	repo := repository(t)
	r := open(t, repo)
	witness := filepath.Join(filepath.Dir(repo), "pwn")
	for _, name := range []string{"--help", "-x", "--output=" + witness, "$(touch " + witness + ")", "`touch " + witness + "`", "x\"; touch " + witness + "; \"", "--upload-pack=touch " + witness, "a\nb", "HEAD:file", ""} {
		if id, err := r.Commit(t.Context(), name); (err == nil) != (name == "") {
			t.Errorf("%q is the commit %q (%v)", name, id, err)
		}
		if name == "" {
			continue
		}
		if _, err := r.Add(t.Context(), filepath.Join(filepath.Dir(repo), "tree"), name, "main"); err == nil {
			t.Errorf("a branch %q was made", name)
		}
	}
	if _, err := os.Stat(witness); err == nil {
		t.Error("a name was executed")
	}
}

func TestOpen(t *testing.T) {
	repo := repository(t)
	r := open(t, filepath.Join(repo, "sub"))
	if r.Top != repo || r.Prefix != "sub" || r.Common != filepath.Join(repo, ".git") {
		t.Errorf("%+v", r)
	}
	link := filepath.Join(filepath.Dir(repo), "link")
	must(t, os.Symlink(repo, link))
	if r := open(t, link); r.Top != repo {
		t.Errorf("by a link: %+v", r)
	}
	for _, folder := range []string{t.TempDir(), filepath.Join(repo, ".git")} {
		if _, err := Open(t.Context(), folder, caller(t)); !errors.Is(err, ErrNoRepository) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	if _, err := Open(t.Context(), repo, Caller{Env: []string{"PATH=" + t.TempDir()}}); !errors.Is(err, ErrNoGit) {
		t.Errorf("without git: %v", err)
	}
}

func TestWork_FindsAllThatWouldBeMissed(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, tree string)
		want func(Work) bool
	}{
		"nothing":  {func(*testing.T, string) {}, func(w Work) bool { return w.Unsaved+w.Unshared+w.Stash+w.Under+w.Modules == "" && len(w.Ignored) == 0 }},
		"new file": {func(t *testing.T, d string) { put(t, d+"/new", "x", 0o644) }, func(w Work) bool { return w.Unsaved == "new" }},
		"changed":  {func(t *testing.T, d string) { put(t, d+"/file", "y", 0o644) }, func(w Work) bool { return w.Unsaved == "file" }},
		"deleted":  {func(t *testing.T, d string) { must(t, os.Remove(d+"/file")) }, func(w Work) bool { return w.Unsaved == "file" }},
		"staged":   {func(t *testing.T, d string) { put(t, d+"/new", "x", 0o644); plainly(t, d, "add", "new") }, func(w Work) bool { return w.Unsaved == "new" }},
		"hidden": {func(t *testing.T, d string) {
			put(t, d+"/file", "y", 0o644)
			plainly(t, d, "update-index", "--assume-unchanged", "file")
		}, func(w Work) bool { return strings.HasPrefix(w.Unsaved, "file,") }},
		"skipped": {func(t *testing.T, d string) { plainly(t, d, "update-index", "--skip-worktree", "sub/file") }, func(w Work) bool { return strings.HasPrefix(w.Unsaved, "sub/file,") }},
		"ignored": {func(t *testing.T, d string) { put(t, d+"/a.log", "x", 0o644); put(t, d+"/built/x", "x", 0o644) }, func(w Work) bool { return w.Unsaved == "" && len(w.Ignored) == 2 }},
		"commit":  {func(t *testing.T, d string) { plainly(t, d, "commit", "-qm", "x", "--allow-empty") }, func(w Work) bool { return w.Unshared == w.Head && w.Head != "" }},
		"pushed": {func(t *testing.T, d string) {
			plainly(t, d, "commit", "-qm", "x", "--allow-empty")
			plainly(t, d, "update-ref", "refs/remotes/origin/work", "HEAD")
		}, func(w Work) bool { return w.Unshared == "" }},
		"merged": {func(t *testing.T, d string) {
			plainly(t, d, "commit", "-qm", "x", "--allow-empty")
			plainly(t, d, "update-ref", "refs/heads/main", "HEAD")
		}, func(w Work) bool { return w.Unshared == "" }},
		"detached": {func(t *testing.T, d string) {
			plainly(t, d, "checkout", "-q", "--detach")
			plainly(t, d, "commit", "-qm", "x", "--allow-empty")
		}, func(w Work) bool { return w.Unshared == w.Head && w.Branch == "" }},
		"left": {func(t *testing.T, d string) {
			plainly(t, d, "commit", "-qm", "x", "--allow-empty")
			plainly(t, d, "checkout", "-q", "--detach", "main")
		}, func(w Work) bool { return w.Unshared != "" && w.Unshared != w.Head }},
		"stash": {func(t *testing.T, d string) { put(t, d+"/file", "y", 0o644); plainly(t, d, "stash", "-q") }, func(w Work) bool { return w.Unsaved == "" && w.Stash != "" }},
		"named": {func(t *testing.T, d string) {
			put(t, d+"/file", "y", 0o644)
			plainly(t, d, "stash", "push", "-qm", "mine")
		}, func(w Work) bool { return w.Stash == "On work: mine" }},
		"elsewhere": {func(t *testing.T, d string) {
			main := filepath.Dir(d) + "/repo"
			put(t, main+"/file", "y", 0o644)
			plainly(t, main, "stash", "-q")
		}, func(w Work) bool { return w.Stash == "" }},
		"merging": {func(t *testing.T, d string) {
			put(t, filepath.Join(plainly(t, d, "rev-parse", "--absolute-git-dir"), "MERGE_HEAD"), plainly(t, d, "rev-parse", "HEAD")+"\n", 0o644)
		}, func(w Work) bool { return w.Under == "a merge" }},
	} {
		repo := repository(t)
		path := filepath.Join(filepath.Dir(repo), "tree")
		tree, err := open(t, repo).Add(t.Context(), path, "work", "main")
		must(t, err)
		c.do(t, path)
		w, err := tree.Work(t.Context(), "work")
		if err != nil || !c.want(w) {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
}

func TestTree_Unregistered(t *testing.T) {
	repo := repository(t)
	r := open(t, repo)
	path := filepath.Join(filepath.Dir(repo), "tree")
	if _, err := r.Tree(path); !errors.Is(err, ErrUnregistered) {
		t.Fatal(err)
	}
	_, err := r.Add(t.Context(), path, "work", "main")
	must(t, err)
	if err := r.Forget(t.Context(), path); err == nil {
		t.Error("a tree was forgotten whose folder is there")
	}
	if trees, err := r.Worktrees(t.Context()); err != nil || len(trees) != 2 || trees[1] != (Worktree{path, "work"}) {
		t.Errorf("%+v, %v", trees, err)
	}
	if err := r.DeleteBranch(t.Context(), "work", strings.Repeat("0", 39)+"1"); err == nil {
		t.Error("a branch was deleted that has moved")
	}
}

func TestCall_HasATimeLimitAndLeavesNothing(t *testing.T) {
	repo := repository(t)
	fifo := filepath.Join(filepath.Dir(repo), "pipe")
	must(t, exec.Command("mkfifo", fifo).Run())
	plainly(t, repo, "config", "include.path", fifo)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := Open(ctx, repo, caller(t)); err == nil || time.Since(begun) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

// Trees that several processes add at once don't get in each other's way: git alone fails
// on the half-written entry of another.
func TestAdd_ManyAtOnce(t *testing.T) {
	repo := repository(t)
	dir := filepath.Dir(repo)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			r, err := Open(t.Context(), repo, caller(t))
			if err == nil {
				_, err = r.Add(t.Context(), filepath.Join(dir, fmt.Sprintf("tree-%d", i)), fmt.Sprintf("branch-%d", i), "main")
			}
			if err == nil {
				_, err = r.Worktrees(t.Context())
			}
			if err != nil {
				t.Errorf("tree %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	all, err := open(t, repo).Worktrees(t.Context())
	if err != nil || len(all) != 13 {
		t.Errorf("%d trees are registered, want 13 (%v)", len(all), err)
	}
}
