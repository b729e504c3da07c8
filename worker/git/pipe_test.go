package git

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whoever works in a tree can have git wait for ever, and with it whoever waits for git.
func TestPipes_KeepNobodyWaiting(t *testing.T) {
	for _, name := range []string{
		".gitignore", ".gitattributes", ".gitmodules", "sub/.gitignore", "sub/.gitattributes", "new/inner/.git/HEAD",
		".git/config", ".git/config.worktree", ".git/index", ".git/HEAD", ".git/packed-refs", ".git/shallow", ".git/refs/heads/main", ".git/info/exclude", ".git/info/attributes", ".git/info/sparse-checkout",
		".git/objects/info/alternates", ".git/objects/pack/pack-1.idx", "ignored by a setting", "settings that are included",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := repository(t)
			r := open(t, repo)
			r.program.brief, r.program.look = 200*time.Millisecond, 20*time.Millisecond
			pipe := filepath.Join(repo, name)
			switch name {
			case "ignored by a setting":
				plainly(t, repo, "config", "core.excludesFile", pipe)
			case "settings that are included":
				plainly(t, repo, "config", "include.path", pipe)
			case ".git/config.worktree":
				plainly(t, repo, "config", "extensions.worktreeConfig", "true")
			case "new/inner/.git/HEAD":
				must(t, os.MkdirAll(filepath.Dir(pipe), 0o755))
				plainly(t, filepath.Join(repo, "new", "inner"), "init", "-q")
			case ".git/objects/pack/pack-1.idx":
				put(t, strings.TrimSuffix(pipe, "idx")+"pack", "", 0o644)
			}
			must(t, os.RemoveAll(pipe))
			must(t, exec.Command("mkfifo", pipe).Run())
			begun := time.Now()
			_, err := r.Here().Work(t.Context(), "")
			if err == nil && strings.HasPrefix(name, ".git/") { // that is not read for this
				_, err = r.Here().Do(t.Context(), Call{Args: []string{"cat-file", "-p", strings.Repeat("1", 40)}})
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if name == "settings that are included" {
				if !errors.Is(err, errSlow) {
					t.Error(err)
				}
			} else if !errors.Is(err, ErrPipe) || !strings.Contains(err.Error(), filepath.Base(name)+" is a named pipe") {
				t.Error(err)
			}
		})
	}
}

// Other odd files are no reason to give up, however long git takes.
func TestPipes_OthersAreFine(t *testing.T) {
	repo := repository(t)
	must(t, exec.Command("mkfifo", filepath.Join(repo, "pipe"), filepath.Join(repo, "sub", "pipe")).Run())
	l, err := net.Listen("unix", filepath.Join(repo, ".git", "fsmonitor--daemon.ipc"))
	must(t, err)
	defer func() { _ = l.Close() }()
	must(t, os.Symlink("/dev/null", filepath.Join(repo, ".mailmap")))
	must(t, os.RemoveAll(filepath.Join(repo, ".git", "info")))
	must(t, os.Mkdir(filepath.Join(repo, ".git", "info"), 0o755))
	must(t, os.Symlink("/dev/null", filepath.Join(repo, ".git", "info", "exclude")))
	r := open(t, repo)
	if _, err := r.Here().Work(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if err := waiting(t.Context(), r.at); err != nil {
		t.Error(err)
	}
}

// Whoever works in a repository can take the lock on its list of trees.
func TestLock_IsNotWaitedForForEver(t *testing.T) {
	repo := repository(t)
	dir, err := os.Open(filepath.Join(repo, ".git"))
	must(t, err)
	defer func() { _ = dir.Close() }()
	must(t, syscall.Flock(int(dir.Fd()), syscall.LOCK_EX))
	r := open(t, repo)
	r.program.brief = 200 * time.Millisecond
	if _, err := r.Add(t.Context(), filepath.Join(filepath.Dir(repo), "tree"), "work", "main"); err != nil {
		t.Error(err)
	}
}
