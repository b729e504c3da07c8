package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func caller(t *testing.T) Caller {
	t.Helper()
	return Caller{Env: os.Environ(), Room: filepath.Join(t.TempDir(), "room")}
}

// meanwhile is a caller whose git is preceded, each time that it does more than read settings, by a
// script: as if somebody had waited for that very moment.
func meanwhile(t *testing.T, script string) Caller {
	t.Helper()
	real, err := exec.LookPath("git")
	must(t, err)
	bin := t.TempDir()
	put(t, filepath.Join(bin, "git"), fmt.Sprintf("#!/bin/sh\ncase \" $* \" in\n*' config '*|*--show-toplevel*) ;;\n*) (unset GIT_DIR GIT_COMMON_DIR GIT_WORK_TREE GIT_INDEX_FILE; %s) ;;\nesac\nexec %s \"$@\"\n", script, real), 0o755)
	c := caller(t)
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return c
}

func TestView_WhatIsPlantedMeanwhileIsNotExecuted(t *testing.T) {
	repo := repository(t)
	dir := filepath.Dir(repo)
	witness, path := filepath.Join(dir, "witness"), filepath.Join(dir, "tree")
	put(t, filepath.Join(dir, "evil"), "#!/bin/sh\ntouch "+witness+"\ncat\n", 0o755)
	put(t, filepath.Join(dir, "hostile"), fmt.Sprintf(`[filter "late"]
	clean = %[1]s
	smudge = %[1]s
[core]
	repositoryformatversion = 0
	fsmonitor = %[1]s
	protectNTFS = false
[diff]
	external = %[1]s
[extensions]
	worktreeConfig = true
[hook "late"]
	command = %[1]s
	event = reference-transaction
`, filepath.Join(dir, "evil")), 0o644)
	// Also by the folder of another repository to which a linked tree's own file leads.
	plainly(t, dir, "clone", "-q", "--bare", repo, "other")
	must(t, os.WriteFile(filepath.Join(dir, "other", "config"), []byte(read(t, filepath.Join(dir, "hostile"))), 0o644))
	plant := fmt.Sprintf(`cd %[1]s; cp hostile repo/.git/config; cp hostile repo/.git/config.worktree; mkdir -p repo/.git/info; echo '* filter=late' > repo/.git/info/attributes
		for t in repo/.git/worktrees/*; do test -d $t && cp hostile $t/config.worktree; done; :`, dir)
	r, err := Open(t.Context(), repo, meanwhile(t, plant))
	must(t, err)
	tree, err := r.Add(t.Context(), path, "work", "main")
	must(t, err)
	touch := func() {
		for _, name := range []string{"file", "sub/file"} { // so that git has to read their contents
			must(t, os.Chtimes(filepath.Join(path, name), time.Unix(1e9, 0), time.Unix(1e9, 0)))
		}
	}
	touch()
	w, err := tree.Work(t.Context(), "work")
	if err != nil || w.Unsaved != "" || w.Branch != "work" {
		t.Errorf("%+v, %v", w, err)
	}
	put(t, filepath.Join(path, "file"), "new\n", 0o644)
	if _, err := tree.Do(t.Context(), Call{Args: []string{"update-index", "-z", "--stdin"}, Input: "file\x00"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(witness); err == nil {
		t.Error("what was planted was executed")
	}
	touch()
	_, _ = exec.Command("git", "-C", path, "status").CombinedOutput()
	if _, err := os.Stat(witness); err != nil {
		t.Error("the plant never grew")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// A linked tree's own file says where its repository is: branches would be written into another.
func TestView_IsNotLedToAnotherRepository(t *testing.T) {
	repo, other := repository(t), repository(t)
	path := filepath.Join(filepath.Dir(repo), "tree")
	r := open(t, repo)
	tree, err := r.Add(t.Context(), path, "work", "main")
	must(t, err)
	put(t, filepath.Join(tree.at.dir, "commondir"), filepath.Join(other, ".git")+"\n", 0o644)
	if _, err := tree.Do(t.Context(), Call{Args: []string{"update-ref", "refs/heads/made", "HEAD"}}); err != nil {
		t.Error(err)
	}
	if got := plainly(t, other, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		t.Errorf("the other repository has %s", got)
	}
	if got := plainly(t, repo, "for-each-ref", "--format=%(refname)", "refs/heads/made"); got != "refs/heads/made" {
		t.Errorf("the repository has %q", got)
	}
}

// What people and agents chose, such as the name of a branch, would be added to a file of the owner's.
func TestView_LogsAreNobodysLinks(t *testing.T) {
	for how, plant := range map[string]func(log, target string) error{
		"a link":      func(log, target string) error { return os.Symlink(target, log) },
		"a hard link": func(log, target string) error { return os.Link(target, log) },
		"a pipe":      func(log, _ string) error { return exec.Command("mkfifo", log).Run() },
		"a folder's link": func(log, target string) error {
			must(t, os.RemoveAll(filepath.Dir(log)))
			return os.Symlink(filepath.Dir(target), filepath.Dir(log))
		},
	} {
		repo := repository(t)
		target := filepath.Join(filepath.Dir(repo), "precious", "main")
		put(t, target, "precious\n", 0o644)
		r := open(t, repo)
		for _, name := range []string{".git/logs/refs/heads/main", ".git/logs/HEAD"} {
			log := filepath.Join(repo, name)
			must(t, os.Remove(log))
			if strings.HasSuffix(name, "main") || how != "a folder's link" {
				must(t, plant(log, target))
			}
		}
		id := plainly(t, repo, "commit-tree", "-m", "two", "HEAD^{tree}")
		if _, err := r.Here().Do(t.Context(), Call{Args: []string{"update-ref", "-m", "$(reboot)", "refs/heads/main", id}, Env: []string{"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=b"}}); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		if got := read(t, target); got != "precious\n" {
			t.Errorf("%s: the file is now %q", how, got)
		}
	}
	repo := repository(t)
	id := plainly(t, repo, "commit-tree", "-m", "two", "HEAD^{tree}")
	if _, err := open(t, repo).Here().Do(t.Context(), Call{Args: []string{"update-ref", "-m", "why", "refs/heads/main", id}, Env: []string{"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=b"}}); err != nil {
		t.Error(err)
	}
	for _, ref := range []string{"main", "HEAD"} {
		if got := plainly(t, repo, "log", "-g", "-1", "--format=%gs", ref); got != "why" {
			t.Errorf("the log of %s says %q", ref, got)
		}
	}
}

func TestView_KeepsHowFilesAreStored(t *testing.T) {
	repo := repository(t)
	plainly(t, repo, "config", "core.autocrlf", "true")
	plainly(t, repo, "config", "core.fileMode", "false")
	ignored := filepath.Join(filepath.Dir(repo), "ignored \"files\"")
	put(t, ignored, "by-setting\n", 0o644)
	plainly(t, repo, "config", "core.excludesFile", ignored)
	put(t, filepath.Join(repo, ".git", "info", "exclude"), "by-list\n", 0o644)
	put(t, filepath.Join(repo, ".git", "info", "attributes"), "raw -text\n", 0o644)
	must(t, os.Chmod(filepath.Join(repo, "sub", "file"), 0o755))
	put(t, filepath.Join(repo, "file"), "text\r\n", 0o644)
	plainly(t, repo, "add", "file")
	put(t, filepath.Join(repo, "by-setting"), "", 0o644)
	put(t, filepath.Join(repo, "by-list"), "", 0o644)
	w, err := open(t, repo).Here().Work(t.Context(), "")
	if err != nil || w.Unsaved != "" || len(w.Ignored) != 2 {
		t.Errorf("%+v, %v", w, err)
	}
	put(t, filepath.Join(repo, "raw"), "text\r\n", 0o644)
	r := open(t, repo)
	if _, err := r.Here().Do(t.Context(), Call{Args: []string{"update-index", "--add", "raw", "file"}}); err != nil {
		t.Error(err)
	}
	if got := plainly(t, repo, "ls-files", "--eol", "raw", "file"); !strings.Contains(got, "i/crlf  w/crlf  attr/-text") || !strings.Contains(got, "i/lf    w/crlf") {
		t.Error(got)
	}
	left, err := os.ReadDir(r.program.source.Room)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A repository of which parts are checked out, in trees with settings of their own.
func TestView_KeepsATreesOwnSettings(t *testing.T) {
	repo := repository(t)
	plainly(t, repo, "sparse-checkout", "set", "--no-cone", "/file", "/.gitignore")
	path := filepath.Join(filepath.Dir(repo), "tree")
	tree, err := open(t, repo).Add(t.Context(), path, "work", "main")
	must(t, err)
	if _, err := os.Stat(filepath.Join(path, "sub")); err == nil {
		t.Error("all was checked out")
	}
	if got := plainly(t, path, "config", "core.sparseCheckout"); got != "true" {
		t.Errorf("the tree's own setting is %q", got)
	}
	if got := plainly(t, path, "rev-parse", "--path-format=absolute", "--git-common-dir"); got != filepath.Join(repo, ".git") {
		t.Errorf("the tree belongs to %s", got)
	}
	if got := plainly(t, path, "status", "--porcelain"); got != "" {
		t.Errorf("the tree has %s", got)
	}
	if w, err := tree.Work(t.Context(), "work"); err != nil || !strings.HasPrefix(w.Unsaved, "sub/file,") {
		t.Errorf("%+v, %v", w, err)
	}
}

// An index that is a link would be written where that leads.
func TestView_AnIndexThatIsALinkIsNotWritten(t *testing.T) {
	repo := repository(t)
	target := filepath.Join(filepath.Dir(repo), "made")
	index := filepath.Join(repo, ".git", "index")
	must(t, os.Remove(index))
	must(t, os.Symlink(target, index))
	_, err := open(t, repo).Here().Do(t.Context(), Call{Args: []string{"update-index", "--add", "file"}})
	if _, made := os.Lstat(target); err == nil || made == nil {
		t.Errorf("%v, and the file is made: %t", err, made == nil)
	}
}
