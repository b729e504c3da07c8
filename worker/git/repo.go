package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stint/worker/regular"
)

var (
	// ErrNoGit says that there is no git to call.
	ErrNoGit = errors.New("git is not installed")
	// ErrNoRepository says that a folder is in no repository with a work tree.
	ErrNoRepository = errors.New("the folder is in no git repository")
	// ErrForeign says that a repository belongs to another user.
	ErrForeign = errors.New("the git repository belongs to another user")
	// ErrNoCommit says that a name stands for no commit.
	ErrNoCommit = errors.New("there is no such branch or commit")
)

// Repo is a repository with one of its trees.
type Repo struct {
	Top    string // the top folder of its files, links resolved
	Prefix string // where in it the requested folder lies; "" = at the top
	Common string // the git directory that all its trees share

	at      tree
	program program
}

// Open finds the repository that a folder lies in.
//
// The error may be ErrNoGit, ErrNoRepository or ErrForeign.
func Open(ctx context.Context, folder string, by Caller) (Repo, error) {
	p, err := find(by)
	if err != nil {
		return Repo{}, err
	}
	if folder, err = clean(folder); err != nil {
		return Repo{}, fmt.Errorf("look for the git repository: %w", err)
	}
	// Finding it executes nothing: settings are read, but none takes effect.
	out, err := p.read(ctx, tree{top: folder}, "rev-parse", "--path-format=absolute", "--git-common-dir", "--absolute-git-dir", "--show-toplevel", "--show-prefix")
	if err != nil {
		var refused *Error
		switch {
		case !errors.As(err, &refused):
			return Repo{}, err
		case strings.Contains(refused.Stderr, "dubious ownership"):
			return Repo{}, fmt.Errorf("%w: %s", ErrForeign, folder)
		case ctx.Err() != nil:
			return Repo{}, err
		}
		return Repo{}, fmt.Errorf("%w: %s: %w", ErrNoRepository, folder, err)
	}
	lines := strings.SplitN(strings.TrimSuffix(out, "\n"), "\n", 4)
	if len(lines) != 4 || strings.Contains(lines[3], "\n") {
		return Repo{}, fmt.Errorf("%w: %s has an ambiguous path", ErrNoRepository, folder)
	}
	r := Repo{Prefix: strings.TrimSuffix(lines[3], "/"), program: p}
	for i, to := range []*string{&r.Common, &r.at.dir, &r.Top} {
		if *to, err = clean(lines[i]); err != nil {
			return Repo{}, fmt.Errorf("look at the git repository: %w", err)
		}
		if err := owned(*to); err != nil {
			return Repo{}, err
		}
	}
	r.at.common, r.at.top = r.Common, r.Top
	// A setting can move the tree elsewhere; then it isn't the intended one.
	if filepath.Join(r.Top, r.Prefix) != folder {
		return Repo{}, fmt.Errorf("%w: the repository at %s has its files elsewhere, in %s", ErrNoRepository, folder, r.Top)
	}
	return r, nil
}

func (r Repo) run(ctx context.Context, args ...string) (string, error) {
	if args[0] == "worktree" {
		unlock, err := lockTrees(ctx, r.Common, 6*r.program.brief) // several may stand in line
		if err != nil {
			return "", err
		}
		defer unlock()
	}
	return r.program.run(ctx, r.at, Call{Args: args})
}

// Commit is the id of the commit that a name stands for: a branch, a remote branch, a tag or
// an id; "" is the tree's current one. The error may be ErrNoCommit.
func (r Repo) Commit(ctx context.Context, name string) (string, error) {
	if name == "" {
		name = "HEAD"
	}
	out, err := r.run(ctx, "rev-parse", "--quiet", "--verify", "--end-of-options", name+"^{commit}")
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: %q", ErrNoCommit, name)
	}
	return strings.TrimSpace(out), nil
}

// Branch is the id of the commit at the tip of a local branch; "" when there is none, or when it
// only stands for another ref: whatever is done to it would be done to that.
func (r Repo) Branch(ctx context.Context, name string) (string, error) {
	out, err := r.run(ctx, "for-each-ref", "--format=%(refname) %(objectname) %(symref)", "refs/heads/"+name)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) { // the pattern also matches a folder of branches
		if f := strings.Fields(line); len(f) == 2 && f[0] == "refs/heads/"+name {
			return f[1], nil
		}
	}
	return "", nil
}

// Worktree is one registered tree of a repository.
type Worktree struct {
	Path   string // as registered; it need not exist
	Branch string // what is checked out there; "" = none
}

// Worktrees lists what is registered, the main one first.
func (r Repo) Worktrees(ctx context.Context) ([]Worktree, error) {
	out, err := r.run(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	var all []Worktree
	for field := range strings.SplitSeq(out, "\x00") {
		key, value, _ := strings.Cut(field, " ")
		switch key {
		case "worktree":
			all = append(all, Worktree{Path: value})
		case "branch":
			all[len(all)-1].Branch = strings.TrimPrefix(value, "refs/heads/")
		}
	}
	if len(all) > 0 { // git takes the view's place for it
		all[0].Path = strings.TrimSuffix(r.Common, "/.git")
	}
	return all, nil
}

// Add makes a tree at a path that doesn't exist yet, with a branch checked out: a new one that
// begins at start or, if start is "", an existing one.
func (r Repo) Add(ctx context.Context, path, branch, start string) (Tree, error) {
	args := []string{"worktree", "add", "--quiet", "--force", "--no-checkout"}
	if start == "" {
		args = append(args, "--", path, branch)
	} else {
		args = append(args, "--no-track", "-b", branch, "--", path, start)
	}
	if _, err := r.run(ctx, args...); err != nil {
		return Tree{}, err
	}
	t, err := r.registered(ctx, path)
	if err != nil {
		return Tree{}, err
	}
	_, err = t.run(ctx, "reset", "--quiet", "--hard", "--no-recurse-submodules")
	return t, err
}

// registered completes a tree that git has just added: it lies in the repository and not in a view
// of that, and has the settings that are this tree's own where the repository has such.
func (r Repo) registered(ctx context.Context, path string) (Tree, error) {
	t, err := r.Tree(path)
	if err != nil {
		return t, err
	}
	if err := os.WriteFile(filepath.Join(path, ".git"), []byte("gitdir: "+t.at.dir+"\n"), 0o666); err != nil {
		return t, fmt.Errorf("register the worktree: %w", err)
	}
	all, err := r.program.settings(ctx, r.at)
	if err != nil || last(all, "extensions.worktreeConfig", "local") != "true" {
		return t, err
	}
	// As git does by itself where it knows of these settings.
	own := filepath.Join(t.at.dir, "config.worktree")
	if err := copyFile(filepath.Join(r.at.dir, "config.worktree"), own); err != nil {
		return t, fmt.Errorf("register the worktree: %w", err)
	}
	if _, err := os.Lstat(own); err != nil {
		return t, nil //nolint:nilerr // there are none
	}
	for _, key := range []string{"core.bare", "core.worktree"} {
		if _, err := r.program.read(ctx, tree{top: path}, "config", "--file", own, "--unset-all", key); err != nil && Exit(err) != nothingToUnset {
			return t, err
		}
	}
	return t, nil
}

// nothingToUnset is how git config ends when a file has no such setting.
const nothingToUnset = 5

// Adopt registers a folder again that was a tree of the repository until git forgot it, with
// an existing branch. Nothing in it changes except its .git file. by is a path on the same
// disk that doesn't exist yet.
func (r Repo) Adopt(ctx context.Context, path, by, branch string) (Tree, error) {
	link := filepath.Join(path, ".git")
	if info, err := os.Lstat(link); err == nil && info.IsDir() {
		return Tree{}, fmt.Errorf("register the worktree %s again: it has become a separate repository", path)
	}
	if _, err := r.run(ctx, "worktree", "add", "--quiet", "--force", "--no-checkout", "--", by, branch); err != nil {
		return Tree{}, err
	}
	t, err := r.registered(ctx, by)
	if err == nil {
		// First the registration: a crash in between leaves a folder that git knows.
		err = os.WriteFile(filepath.Join(t.at.dir, "gitdir"), []byte(link+"\n"), 0o644)
	}
	if err == nil {
		err = os.Rename(filepath.Join(by, ".git"), link)
	}
	if err := errors.Join(err, os.RemoveAll(by)); err != nil {
		return Tree{}, fmt.Errorf("register the worktree %s again: %w", path, err)
	}
	if t, err = r.Tree(path); err == nil {
		_, err = t.run(ctx, "reset", "--quiet", "--mixed", "--no-recurse-submodules") // the index, not the files
	}
	return t, err
}

// Forget removes the registration of a tree whose folder is gone.
func (r Repo) Forget(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("forget the worktree %s: its folder is there", path)
	}
	_, err := r.run(ctx, "worktree", "remove", "--force", "--force", "--", path) // twice: locked ones too
	return err
}

// DeleteBranch deletes a branch if its tip is still the given commit.
func (r Repo) DeleteBranch(ctx context.Context, branch, tip string) error {
	_, err := r.run(ctx, "update-ref", "--no-deref", "-d", "refs/heads/"+branch, tip)
	return err
}

// ErrUnregistered says that a repository doesn't know a folder as its tree.
var ErrUnregistered = errors.New("the repository has no worktree there")

// Tree is one linked tree of a repository.
type Tree struct {
	Path string
	repo Repo
	at   tree
}

// Tree finds the tree that is registered at a path, by the repository's own files and not by
// the folder's contents. The error may be ErrUnregistered.
func (r Repo) Tree(path string) (Tree, error) {
	admin := filepath.Join(r.Common, "worktrees")
	entries, err := os.ReadDir(admin)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Tree{}, fmt.Errorf("list the worktrees: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(admin, e.Name())
		text, err := regular.Read(filepath.Join(dir, "gitdir"))
		if err != nil {
			continue // being made or removed
		}
		to := strings.TrimSpace(string(text))
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		if e.IsDir() && filepath.Dir(filepath.Clean(to)) == path {
			return Tree{Path: path, repo: r, at: tree{common: r.Common, dir: dir, top: path}}, nil
		}
	}
	return Tree{}, fmt.Errorf("%w: %s", ErrUnregistered, path)
}
