package landing

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/git"
)

// bench is a repository of an owner's with a remote, and a worktree of it as a session has it.
type bench struct {
	*testing.T
	dir, repo, remote, tree, home string
	place                         Place
}

// newBench makes one; init are arguments of git init.
func newBench(t *testing.T, init ...string) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	b := &bench{T: t, dir: dir, repo: dir + "/repo", remote: dir + "/remote.git", tree: dir + "/tree", home: dir + "/home"}
	b.must(err)
	for _, d := range []string{b.repo, b.remote, b.home, dir + "/scratch"} {
		b.must(os.Mkdir(d, 0o755))
	}
	b.put("home/.gitconfig", "[user]\n\tname = Olga Owner\n\temail = olga@example.org\n")
	b.git(b.repo, append([]string{"init", "-q", "-b", "main"}, init...)...)
	b.git(b.remote, append([]string{"init", "-q", "--bare", "-b", "main"}, init...)...)
	b.put("repo/file", "one\ntwo\nthree\n")
	b.put("repo/.gitignore", "*.log\n")
	b.commit(b.repo, "begin")
	b.git(b.repo, "remote", "add", "origin", b.remote)
	b.git(b.repo, "push", "-q", "origin", "main")
	b.git(b.repo, "fetch", "-q", "origin")
	b.place = b.worktree("tree", "stint/work", "main")
	return b
}

// worktree adds one, as a workspace does.
func (b *bench) worktree(name, branch, base string) Place {
	b.Helper()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home}
	repo, err := git.Open(b.Context(), b.repo, git.Caller{Env: env, Room: b.dir + "/scratch"})
	b.must(err)
	start, err := repo.Commit(b.Context(), base)
	b.must(err)
	_, err = repo.Add(b.Context(), filepath.Join(b.dir, name), branch, start)
	b.must(err)
	routes, err := repo.Here().Routes(b.Context())
	b.must(err)
	return Place{
		Kind: api.PlaceWorktree, Path: filepath.Join(b.dir, name), Repository: b.repo, Branch: branch, Start: start, Base: base,
		Routes: routes, Env: env, Scratch: b.dir + "/scratch",
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// git runs git as a person would.
func (b *bench) git(dir string, args ...string) string {
	b.Helper()
	out, err := b.tryGit(dir, args...)
	if err != nil {
		b.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (b *bench) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+b.home,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (b *bench) commit(dir, subject string) string {
	b.Helper()
	b.git(dir, "add", "-A")
	b.git(dir, "-c", "core.hooksPath=/dev/null", "commit", "-qm", subject)
	return b.git(dir, "rev-parse", "HEAD")
}

func (b *bench) put(name, text string) {
	b.Helper()
	path := filepath.Join(b.dir, name)
	b.must(os.MkdirAll(filepath.Dir(path), 0o755))
	b.must(os.WriteFile(path, []byte(text), 0o644))
}

func (b *bench) text(name string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	b.must(err)
	return string(text)
}

func (b *bench) open() *Tree {
	b.Helper()
	t, err := Open(b.Context(), b.place)
	b.must(err)
	return t
}

func (b *bench) look() Changes {
	b.Helper()
	c, err := b.open().Look(b.Context())
	b.must(err)
	return c
}

func (b *bench) tip(branch string) string { return b.git(b.repo, "rev-parse", branch) }

// snapshot is everything that a refusal may not change: all files, branches and logs of the
// repository, its trees and its remote, and that no object is broken.
func (b *bench) snapshot() string {
	b.Helper()
	var out strings.Builder
	for _, dir := range []string{b.repo, b.remote} {
		refs, _ := b.tryGit(dir, "for-each-ref")
		head, _ := b.tryGit(dir, "rev-parse", "--symbolic-full-name", "HEAD")
		fsck, err := b.tryGit(dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "fsck", "--full", "--no-dangling", "--no-progress")
		if err != nil {
			b.Errorf("git fsck in %s: %s", dir, fsck)
		}
		fmt.Fprintln(&out, refs, head)
	}
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel := strings.TrimPrefix(path, b.dir)
		inGit := strings.Contains(rel, "/.git/") || strings.HasPrefix(rel, "/remote.git/")
		if inGit && !strings.Contains(rel, "/logs/") && !strings.HasSuffix(rel, "/HEAD") {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := []byte{}
		if info.Mode().IsRegular() {
			text, err = os.ReadFile(path)
		} else if info.Mode()&fs.ModeSymlink != 0 {
			to, _ := os.Readlink(path)
			text = []byte(to)
		}
		fmt.Fprintf(&out, "%q %v %x\n", rel, info.Mode(), sha256.Sum256(text))
		return err
	})
	b.must(err)
	return out.String()
}

// refused runs a verb that has to be refused with a code, and changes nothing.
func (b *bench) refused(code string, verb func(*Tree) (api.LandOutcome, error)) *Refusal {
	b.Helper()
	before := b.snapshot()
	_, err := verb(b.open())
	r := (*Refusal)(nil)
	if !errors.As(err, &r) {
		b.Fatalf("got %v, want a refusal", err)
	}
	if r.Code != code {
		b.Errorf("refused as %s (%s), want %s", r.Code, r.Text, code)
	}
	if strings.Contains(r.Text, b.dir) || strings.Contains(strings.Join(r.Paths, ""), b.dir) {
		b.Errorf("the refusal names a path of the machine: %s", r.Text)
	}
	if after := b.snapshot(); after != before {
		b.Errorf("a refusal changed something: before\n%s\nafter\n%s", before, after)
	}
	if left := b.left(); len(left) > 0 {
		b.Errorf("left behind: %v", left)
	}
	return r
}

// left is what lies in the folder for moments.
func (b *bench) left() []string {
	var names []string
	entries, err := os.ReadDir(b.dir + "/scratch")
	b.must(err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// done runs a verb that has to succeed.
func (b *bench) done(verb func(*Tree) (api.LandOutcome, error)) api.LandOutcome {
	b.Helper()
	out, err := verb(b.open())
	b.must(err)
	if left := b.left(); len(left) > 0 {
		b.Errorf("left behind: %v", left)
	}
	return out
}

func (b *bench) keep(t *Tree) (api.LandOutcome, error) {
	return t.Keep(b.Context(), "Keep it\n\nall of it")
}
func (b *bench) push(t *Tree) (api.LandOutcome, error) { return t.Push(b.Context(), false) }
func (b *bench) merge(how api.MergeMethod) func(t *Tree) (api.LandOutcome, error) {
	return func(t *Tree) (api.LandOutcome, error) {
		return t.Merge(b.Context(), Merge{Method: how, Message: "Do the thing"})
	}
}

func file(b *bench, c Changes, path string) api.ChangedFile {
	b.Helper()
	i := slices.IndexFunc(c.Files, func(f api.ChangedFile) bool { return f.Path == path })
	if i < 0 {
		b.Fatalf("no file %q in %+v", path, c.Files)
	}
	return c.Files[i]
}
