package landing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stint/api"
	"stint/worker/git"
)

// Place says where a session worked and what is known of how that began.
type Place struct {
	Kind api.Place
	// Path is the top folder of a worktree, the folder in which a clone was made, or the work
	// folder itself.
	Path       string
	Repository string // the top folder of a worktree's repository
	Branch     string // that was made for a worktree
	Start      string // the commit that the work began at; "" = unknown, or there was none
	Base       string // the branch it would be merged into; "" = find out
	// Routes are where branches went before anything of the work ran; without a map of remotes that
	// isn't known, and nothing is pushed.
	Routes git.Routes
	// Landed is the commit whose changes are in the base branch already, "" = none.
	Landed    string
	Protected []string // patterns of branches, as of path.Match, that nothing is merged into or pushed to
	Env       []string // the worker's own environment
	Scratch   string   // a folder for what is needed for a moment, in which no agent can write
}

func (p Place) caller() git.Caller { return git.Caller{Env: p.Env, Room: p.Scratch} }

// Tree is the git tree of a place.
type Tree struct {
	place Place
	tree  git.Tree
	repo  git.Repo
}

// Open finds the git tree of a place. The error may be one of package git's Open; its
// ErrNoRepository says that there is nothing to land.
func Open(ctx context.Context, p Place) (*Tree, error) {
	t := &Tree{place: p}
	var err error
	if p.Kind != api.PlaceFolder {
		// A link in its place would have the worker show what lies where it leads.
		if info, err := os.Lstat(p.Path); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("%w: %s is a folder no more", git.ErrUnregistered, p.Path)
		}
	}
	switch p.Kind {
	case api.PlaceWorktree:
		if t.repo, err = git.Open(ctx, p.Repository, p.caller()); err != nil {
			return nil, err
		}
		t.tree, err = t.repo.Tree(p.Path)
		return t, err
	case api.PlaceClone:
		if t.repo, err = clone(ctx, p); err != nil {
			return nil, err
		}
	default:
		if t.repo, err = git.Open(ctx, p.Path, p.caller()); err != nil {
			return nil, err
		}
	}
	t.tree = t.repo.Here()
	return t, nil
}

// clone finds the one repository that was made in a folder: the folder itself, or one in it.
func clone(ctx context.Context, p Place) (git.Repo, error) {
	path, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		return git.Repo{}, fmt.Errorf("look for the clone: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return git.Repo{}, fmt.Errorf("look for the clone: %w", err)
	}
	var found []string
	for _, e := range entries {
		if e.Name() == ".git" {
			found = []string{path}
			break
		}
		if _, err := os.Lstat(filepath.Join(path, e.Name(), ".git")); err == nil && e.IsDir() {
			found = append(found, filepath.Join(path, e.Name()))
		}
	}
	if len(found) != 1 {
		return git.Repo{}, fmt.Errorf("%w: %d repositories are in the workspace", git.ErrNoRepository, len(found))
	}
	// A link or a file there would lead to a repository that somebody else made.
	own := filepath.Join(found[0], ".git")
	if info, err := os.Lstat(own); err != nil || !info.IsDir() {
		return git.Repo{}, fmt.Errorf("%w: the workspace's repository lies elsewhere", git.ErrNoRepository)
	}
	repo, err := git.Open(ctx, found[0], p.caller())
	if err == nil && (repo.Top != found[0] || repo.Common != own || repo.Linked()) {
		err = fmt.Errorf("%w: the workspace's repository lies elsewhere", git.ErrNoRepository)
	}
	return repo, err
}

// Routes are where the branches of the tree's repository go now.
func (t *Tree) Routes(ctx context.Context) (git.Routes, error) { return t.tree.Routes(ctx) }

// top is the folder of the tree's files.
func (t *Tree) top() string { return t.tree.Path }

// out is what a call prints, without the line break at its end.
func (t *Tree) out(ctx context.Context, args ...string) (string, error) {
	text, err := t.tree.Do(ctx, git.Call{Args: args})
	return strings.TrimSuffix(text, "\n"), err
}

// maybe is what a call prints, or "" when it ends with exit status 1: there is no such thing.
func (t *Tree) maybe(ctx context.Context, args ...string) (string, error) {
	text, err := t.out(ctx, args...)
	if git.Exit(err) == 1 {
		return "", nil
	}
	return text, err
}

// point is where a tree stands.
type point struct {
	head   string // the commit checked out; "" = none yet
	branch string // the branch checked out; "" = none
}

func (t *Tree) point(ctx context.Context) (p point, err error) {
	if p.head, err = t.commit(ctx, "HEAD"); err != nil {
		return p, err
	}
	ref, err := t.maybe(ctx, "symbolic-ref", "--quiet", "HEAD")
	p.branch = strings.TrimPrefix(ref, "refs/heads/")
	return p, err
}

// commit is the id of the commit that a name stands for, "" when there is none.
func (t *Tree) commit(ctx context.Context, name string) (string, error) {
	return t.maybe(ctx, "rev-parse", "--quiet", "--verify", "--end-of-options", name+"^{commit}")
}

// base is the branch that work would be merged into.
type base struct {
	branch string // its name; "" = there is none
	tip    string // its commit; "" = the branch is gone
	from   string // the commit that work is compared with; "" = nothing was there
}

// base finds out about the base branch of what stands at p.
func (t *Tree) base(ctx context.Context, p point) (b base, err error) {
	known := ""
	switch t.place.Kind {
	case api.PlaceWorktree:
		if b.branch = t.place.Base; b.branch == "" {
			if b.branch, err = t.repo.Current(ctx); err != nil {
				return b, err
			}
		}
	case api.PlaceClone:
		if b.branch, known, err = t.remoteBranch(ctx); err != nil {
			return b, err
		}
	default: // what it is compared with is where the session began
		if b.branch, _, err = t.remoteBranch(ctx); err != nil {
			return b, err
		}
		if b.branch == p.branch {
			b.branch = ""
		}
	}
	if b.branch == t.place.Branch && t.place.Branch != "" {
		b.branch = ""
	}
	if b.branch != "" {
		if b.tip, err = t.repo.Branch(ctx, b.branch); err != nil {
			return b, err
		}
	}
	if known == "" && b.tip != "" && b.branch != p.branch && t.place.Kind != api.PlaceFolder {
		known = b.tip
	}
	b.from, err = t.from(ctx, p.head, known)
	return b, err
}

// remoteBranch is the main branch of where a clone came from, and its last known commit.
func (t *Tree) remoteBranch(ctx context.Context) (name, tip string, err error) {
	remote, err := t.remoteName(ctx, "")
	if err != nil || remote == "" {
		return "", "", err
	}
	prefix := "refs/remotes/" + remote + "/"
	ref, err := t.maybe(ctx, "symbolic-ref", "--quiet", prefix+"HEAD")
	if err != nil || !strings.HasPrefix(ref, prefix) {
		return "", "", err
	}
	tip, err = t.commit(ctx, ref)
	return strings.TrimPrefix(ref, prefix), tip, err
}

// from is the commit that work at head is compared with: where it left the known one, else
// where it began.
func (t *Tree) from(ctx context.Context, head, known string) (string, error) {
	if head == "" {
		return "", nil
	}
	for _, other := range []string{known, t.place.Start} {
		if other == "" {
			continue
		}
		fork, err := t.maybe(ctx, "merge-base", head, other)
		if err != nil && git.Exit(err) != 128 { // such a commit is not there any more
			return "", err
		}
		if err == nil && fork != "" {
			return fork, nil
		}
	}
	if t.place.Start == "" {
		return "", nil
	}
	return t.commit(ctx, t.place.Start)
}

// Refusal is why something was not done. Nothing was changed.
type Refusal struct {
	Code  string // one of api's codes of refusals to land
	Text  string // a sentence, without paths of the machine
	Paths []string
}

// Error is the sentence.
func (r *Refusal) Error() string { return r.Text }

func refuse(code, text string, args ...any) *Refusal {
	return &Refusal{Code: code, Text: fmt.Sprintf(text, args...)}
}

// Outcome puts what a verb returned into what a worker reports. A failure of git's own is told in
// git's words, with the place's paths left out.
func (p Place) Outcome(done api.LandOutcome, err error) (api.LandState, api.LandOutcome) {
	if err == nil {
		return api.LandDone, done
	}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return api.LandRefused, api.LandOutcome{Code: r.Code, Detail: r.Text, Paths: r.Paths}
	}
	if errors.Is(err, git.ErrUnregistered) || errors.Is(err, git.ErrNoRepository) || errors.Is(err, os.ErrNotExist) {
		return api.LandRefused, api.LandOutcome{Code: api.LandGone, Detail: "The workspace is gone, or git does not know it any more."}
	}
	return api.LandRefused, api.LandOutcome{Code: api.LandFailed, Detail: p.words(err.Error())}
}

// also adds the failure of a clean-up to an error, if there is one.
func also(err, failed error) error {
	if failed == nil {
		return err
	}
	return errors.Join(err, failed)
}
