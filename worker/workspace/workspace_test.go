package workspace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"stint/worker/git"
	"stint/worker/proc"
	"stint/worker/workflow"
)

// scratch is a folder for what all tests share.
var scratch string

func TestMain(m *testing.M) {
	proc.GuardianMain()
	var err error
	if scratch, err = os.MkdirTemp("", "workspace"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// bench is a repository and a folder for workspaces beside it.
type bench struct {
	*testing.T
	dir, repo, root string
}

func newBench(t *testing.T) bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	b := bench{t, dir, filepath.Join(dir, "repo"), filepath.Join(dir, "root")}
	b.must(err)
	b.must(os.CopyFS(b.repo, os.DirFS(template(b)))) // each call of git takes a while
	return b
}

var template = func() func(b bench) string {
	var once sync.Once
	var dir string
	return func(b bench) string {
		once.Do(func() {
			var err error
			dir, err = os.MkdirTemp(scratch, "repo")
			b.must(err)
			b.git(dir, "init", "-q", "--template=", "-b", "main")
			for _, name := range []string{"file", "sub/file"} {
				b.must(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
				b.must(os.WriteFile(filepath.Join(dir, name), []byte("text\n"), 0o644))
			}
			b.must(os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.log\nbuilt/\n"), 0o644))
			b.git(dir, "add", ".")
			b.git(dir, "commit", "-qm", "one")
		})
		return dir
	}
}()

func (b bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b bench) git(dir string, args ...string) string {
	b.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// put writes a file below the bench.
func (b bench) put(name, text string) {
	b.Helper()
	b.must(os.MkdirAll(filepath.Dir(filepath.Join(b.dir, name)), 0o755))
	b.must(os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644))
}

func (b bench) text(name string) string {
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	b.must(err)
	return string(text)
}

func (b bench) spec(key string) Spec {
	return Spec{
		Mode: workflow.ModeWorktree, Repository: b.repo, Root: b.root, Key: key, Agent: "robot", Session: "ses_1",
		Hooks: Hooks{Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}},
	}
}

// prepare makes or finds the workspace and checks what must always hold.
func (b bench) prepare(spec Spec) *Workspace {
	b.Helper()
	w, err := Prepare(b.Context(), spec)
	b.must(err)
	b.must(w.Check())
	if rel, err := filepath.Rel(b.root, w.Path); err != nil || !filepath.IsLocal(rel) || strings.Contains(rel, "/") {
		b.Fatalf("%s is not right below %s", w.Path, b.root)
	}
	return w
}

func (b bench) done(w *Workspace) *Workspace {
	b.Helper()
	b.must(w.Close(true))
	return w
}

func TestName(t *testing.T) {
	for key, want := range map[string]string{
		"T-42": "T-42", "ses_01abc": "ses_01abc", "a.b": "a.b",
	} {
		if got := Name(key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
	seen := map[string]string{}
	odd := []string{
		"", ".", "..", "../../etc", "/etc", "a/b", "a\\b", "-rf", "--upload-pack=x", ".git", "a..b", "a.lock", "A.LOCK", "a.", "x\"; touch /tmp/pwn; \"", "$(touch /tmp/pwn)",
		"`touch`", "a\nb", "a\x00b", "ü", strings.Repeat("x", 65), strings.Repeat("x", 300), "con ", "a:b", "~", "@{-1}", "a_b", "a b", "\u202eabc", ".stint",
	}
	for _, key := range odd {
		name := Name(key)
		if was, ok := seen[strings.ToLower(name)]; ok {
			t.Errorf("%q and %q are both %q", was, key, name)
		}
		seen[strings.ToLower(name)] = key
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-./a-z]{0,70}(\.lock)?`), rapid.SampledFrom(odd)).Draw(t, "key")
		name := Name(key)
		if name == "" || len(name) > 64 || name[0] == '.' || name[0] == '-' || strings.Contains(name, "..") || strings.HasSuffix(strings.ToLower(name), ".lock") ||
			strings.HasSuffix(name, ".") || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
			t.Fatalf("%q is %q", key, name)
		}
		if name != key && len(name) < 20 {
			t.Fatalf("%q became %q, with less than 64 bits of its hash", key, name)
		}
	})
}

func TestPrepare_WorktreeAndBranchPerKey(t *testing.T) {
	b := newBench(t)
	w := b.prepare(b.spec("T-1"))
	if !w.Created || w.Branch != "stint/T-1" || w.Base != b.git(b.repo, "rev-parse", "HEAD") || w.Dir != w.Path || b.text("root/T-1/file") != "text\n" {
		t.Errorf("%+v", w)
	}
	if got := b.git(w.Path, "symbolic-ref", "HEAD"); got != "refs/heads/stint/T-1" {
		t.Error(got)
	}
	b.put("root/T-1/mine", "kept")
	b.done(w)
	again := b.prepare(b.spec("T-1"))
	if again.Created || again.Path != w.Path || again.Branch != w.Branch || again.Base != w.Base || b.text("root/T-1/mine") != "kept" {
		t.Errorf("%+v", again)
	}
	other := b.prepare(b.spec("T-2"))
	if other.Path == w.Path || other.Branch == w.Branch {
		t.Errorf("two keys share %+v", other)
	}
}

func TestPrepare_BaseBranchAndDirectory(t *testing.T) {
	b := newBench(t)
	b.git(b.repo, "branch", "old")
	b.put("repo/newer", "x")
	b.git(b.repo, "add", ".")
	b.git(b.repo, "commit", "-qm", "two")
	spec := b.spec("a")
	spec.BaseBranch, spec.Repository, spec.Directory = "old", filepath.Join(b.repo, "sub"), "."
	w := b.prepare(spec)
	if b.text("root/a/newer") != "" || w.Dir != filepath.Join(w.Path, "sub") {
		t.Errorf("%+v", w)
	}
	spec = b.spec("b")
	spec.BaseBranch = "none"
	if _, err := Prepare(t.Context(), spec); !errors.Is(err, git.ErrNoCommit) || Failure(err).Code != CodeFolderNotFound {
		t.Error(err)
	}
	b.must(os.Symlink("/etc", filepath.Join(b.repo, "link")))
	b.git(b.repo, "add", ".")
	b.git(b.repo, "commit", "-qm", "three")
	for key, directory := range map[string]string{"c": "none", "d": "file", "e": "link"} {
		spec := b.spec(key)
		spec.Directory = directory
		if w, err := Prepare(t.Context(), spec); err == nil {
			t.Errorf("%s is entered as %s", directory, w.Dir)
		}
	}
}

func TestPrepare_MendsWhatIsOutOfStep(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b bench, w *Workspace)
		path  string // relative to the root, after
	}{
		"folder removed": {func(b bench, w *Workspace) { b.must(os.RemoveAll(w.Path)) }, "k"},
		"registration removed": {func(b bench, w *Workspace) {
			b.put("root/k/mine", "x")
			b.must(os.RemoveAll(filepath.Join(b.repo, ".git", "worktrees")))
		}, "k"},
		"forgotten, its branch elsewhere": {func(b bench, w *Workspace) {
			b.put("root/k/mine", "x")
			b.must(os.RemoveAll(filepath.Join(b.repo, ".git", "worktrees")))
			b.git(b.repo, "checkout", "-q", w.Branch)
		}, "k-2"},
		"forgotten, a repository of its own": {func(b bench, w *Workspace) {
			b.put("root/k/mine", "x")
			b.must(os.RemoveAll(filepath.Join(b.repo, ".git", "worktrees")))
			b.must(os.Remove(filepath.Join(w.Path, ".git")))
			b.git(w.Path, "init", "-q", "--template=")
		}, "k-2"},
		"both removed": {func(b bench, w *Workspace) { b.git(b.repo, "worktree", "remove", "--force", w.Path) }, "k"},
		"branch removed": {func(b bench, w *Workspace) {
			b.git(b.repo, "worktree", "remove", w.Path)
			b.git(b.repo, "branch", "-D", w.Branch)
		}, "k"},
		"branch is elsewhere": {func(b bench, w *Workspace) {
			b.git(b.repo, "worktree", "remove", w.Path)
			b.git(b.repo, "checkout", "-q", w.Branch)
		}, "k-2"},
		"record removed": {func(b bench, w *Workspace) { b.must(os.RemoveAll(filepath.Join(b.root, hidden))) }, "k-2"},
		"record broken":  {func(b bench, w *Workspace) { b.put("root/.stint/k.json", "{") }, "k-2"},
		"replaced by a link": {func(b bench, w *Workspace) {
			b.must(os.Rename(w.Path, w.Path+"-real"))
			b.must(os.Symlink("/etc", w.Path))
		}, "k-2"},
		"replaced by a folder": {func(b bench, w *Workspace) {
			b.must(os.Rename(w.Path, w.Path+"-real"))
			b.must(os.Mkdir(w.Path, 0o755))
		}, "k-2"},
		"locked by git": {func(b bench, w *Workspace) {
			b.git(b.repo, "worktree", "lock", w.Path)
			b.must(os.RemoveAll(w.Path))
		}, "k"},
		"a branch of the prefix": {func(b bench, w *Workspace) {
			b.git(b.repo, "worktree", "remove", w.Path)
			b.git(b.repo, "branch", "-D", w.Branch)
			b.git(b.repo, "branch", "stint")
		}, "k"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			first := b.done(b.prepare(b.spec("k")))
			if name != "branch removed" && name != "a branch of the prefix" {
				b.git(first.Path, "commit", "-q", "--allow-empty", "-m", "work")
			}
			tip := b.git(b.repo, "rev-parse", first.Branch)
			c.spoil(b, first)
			w := b.prepare(b.spec("k"))
			if w.Path != filepath.Join(b.root, c.path) || b.text("root/"+c.path+"/file") != "text\n" {
				t.Errorf("%+v, want %s", w, c.path)
			}
			if c.path == "k" {
				if got := b.git(w.Path, "rev-parse", "HEAD"); got != tip {
					t.Errorf("the branch's work is gone: at %s, was %s", got, tip)
				}
			}
			if (name == "registration removed" || strings.HasPrefix(name, "forgotten")) && b.text("root/k/mine") != "x" {
				t.Error("the files of the old folder are gone")
			}
			if name == "registration removed" {
				if got := b.git(w.Path, "status", "--porcelain"); got != "?? mine" || w.Created || !strings.Contains(w.Said, "forgotten") {
					t.Errorf("git says %q of it, and the session gets %q", got, w.Said)
				}
			}
			if c.path == "k-2" && name != "record removed" && name != "record broken" && w.Said == "" {
				t.Error("nobody is told that it is another folder")
			}
			b.done(w)
			if again := b.prepare(b.spec("k")); again.Path != w.Path || again.Created {
				t.Errorf("the next time it is %+v", again)
			}
		})
	}
}

func TestPrepare_OneWorkerAtATime(t *testing.T) {
	b := newBench(t)
	w := b.prepare(b.spec("k"))
	if _, err := Prepare(t.Context(), b.spec("k")); !errors.Is(err, ErrBusy) {
		t.Errorf("a second one got it: %v", err)
	}
	b.done(w)
	b.done(b.prepare(b.spec("k")))
	b.must(w.Close(true)) // again does nothing
}

func TestPrepare_UnfitRoots(t *testing.T) {
	b := newBench(t)
	b.must(os.MkdirAll(filepath.Join(b.dir, "open"), 0o777))
	b.must(os.Chmod(filepath.Join(b.dir, "open"), 0o777))
	for _, root := range []string{"relative", "", filepath.Join(b.dir, "open"), filepath.Join(b.repo, "file"), filepath.Join(b.repo, "trees")} {
		spec := b.spec("k")
		spec.Root = root
		if _, err := Prepare(t.Context(), spec); !errors.Is(err, ErrRoot) {
			t.Errorf("%q: %v", root, err)
		}
	}
	spec := b.spec("k")
	spec.Root = filepath.Join(b.dir, "link")
	b.must(os.Mkdir(b.root, 0o700))
	b.must(os.Symlink(b.root, spec.Root))
	if w := b.prepare(spec); w.Path != filepath.Join(b.root, "k") {
		t.Errorf("by a link: %s", w.Path)
	}
}

func TestCheck_SeesASwap(t *testing.T) {
	b := newBench(t)
	w := b.prepare(b.spec("k"))
	b.must(os.Rename(w.Path, w.Path+"-away"))
	if err := w.Check(); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
	b.must(os.Symlink(w.Path+"-away", w.Path)) // a link to the very same folder
	if err := w.BeforeRun(t.Context()); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
	b.must(os.Remove(w.Path))
	b.must(os.Mkdir(w.Path, 0o755))
	if err := w.AfterRun(t.Context()); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
}

func TestPrepare_FolderAndEmpty(t *testing.T) {
	b := newBench(t)
	spec := b.spec("k")
	spec.Mode, spec.Directory, spec.Repository = workflow.ModeFolder, "sub", filepath.Join(b.dir, "link")
	b.must(os.Symlink(b.repo, spec.Repository))
	spec.Hooks.Scripts = map[string]string{AfterCreate: "exit 1", BeforeRun: "pwd >> ../seen"}
	w, err := Prepare(t.Context(), spec)
	b.must(err)
	b.must(w.BeforeRun(t.Context()))
	if w.Path != b.repo || w.Dir != filepath.Join(b.repo, "sub") || w.Created || b.text("seen") != b.repo+"\n" {
		t.Errorf("%+v, %q", w, b.text("seen"))
	}
	b.must(w.Close(true))
	spec.Repository = filepath.Join(b.repo, "file")
	if _, err := Prepare(t.Context(), spec); err == nil {
		t.Error("a file is taken for a folder")
	}

	spec = b.spec("k")
	spec.Mode, spec.Repository = workflow.ModeEmpty, ""
	spec.Hooks.Scripts = map[string]string{AfterCreate: "echo x > made"}
	w = b.prepare(spec)
	if !w.Created || w.Branch != "" || b.text("root/k/made") != "x\n" {
		t.Errorf("%+v", w)
	}
	b.done(w)
	if w := b.prepare(spec); w.Created {
		t.Error("made twice")
	}
}
