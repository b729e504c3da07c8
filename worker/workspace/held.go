package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"stint/worker/git"
	"stint/worker/workflow"
)

// ErrGone says that there is no workspace for a key any more.
var ErrGone = errors.New("the workspace is gone")

// Facts are what is known of a workspace.
type Facts struct {
	Path, Mode string
	Repository string     // the top folder of a worktree's repository
	Branch     string     // that was made for a worktree
	Base       string     // the commit that it began at
	BaseBranch string     // what it would be merged into
	Routes     git.Routes // where the repository's branches went when it was made; without remotes' map: unknown
	Landed     string     // the commit whose changes are in the base branch already
}

func (rec record) facts(path string) Facts {
	return Facts{path, rec.Mode, rec.Repository, rec.Branch, rec.Base, rec.BaseBranch, git.Routes{Remotes: rec.Remotes, Branches: rec.Branches}, rec.Landed}
}

// Facts returns what is known of the workspace.
func (w *Workspace) Facts() Facts {
	f := w.rec.facts(w.Path)
	f.Mode = w.spec.Mode
	return f
}

// Held is a workspace that nobody else uses until Close, taken for what was left in it.
type Held struct {
	Facts

	root *root
	name string
	lock *lockedFile
}

// Hold takes the workspace of a key, of several the one that was used last. The error may be ErrGone,
// ErrBusy or ErrRoot.
func Hold(rootPath, key string) (*Held, error) {
	r, err := openRoot(rootPath, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	h, err := hold(r, key)
	if err != nil {
		r.close()
		return nil, err
	}
	return h, nil
}

func hold(r *root, key string) (*Held, error) {
	name, err := r.latest(key)
	if err != nil {
		return nil, err
	}
	lock, err := r.lock(name)
	if err != nil {
		return nil, err
	}
	rec, found, err := r.read(name) // its state under the lock
	if err == nil {
		id, gone := r.folder(name)
		if !found || rec.Key != key || gone != nil || !rec.Ready || id != rec.Folder {
			err = ErrGone
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Held{Facts: rec.facts(filepath.Join(r.path, name)), root: r, name: name, lock: lock}, nil
}

// latest is the name of the workspace of a key that was used last.
func (r *root) latest(key string) (string, error) {
	entries, err := fs.ReadDir(r.dir.FS(), hidden)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look for the workspace: %w", err)
	}
	name, used := "", time.Time{}
	for _, e := range entries {
		this, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		rec, found, err := r.read(this)
		if err != nil || !found || rec.Key != key || !rec.Ready || rec.UsedAt.Before(used) {
			continue // an unreadable one belongs to somebody else, perhaps to a newer version
		}
		if id, err := r.folder(this); err == nil && id == rec.Folder {
			name, used = this, rec.UsedAt
		}
	}
	if name == "" {
		return "", ErrGone
	}
	return name, nil
}

// Land notes that the changes up to a commit of the workspace's branch are in the base branch, so
// that the workspace may be removed though nothing else has these very commits.
func (h *Held) Land(commit string) error {
	rec, found, err := h.root.read(h.name)
	if err != nil || !found {
		return errors.Join(err, ErrGone)
	}
	rec.Landed = commit
	if err := h.root.write(h.name, rec); err != nil {
		return err
	}
	h.Landed = commit
	return nil
}

// Discard removes the workspace with everything in it, and the branch that was made for it if that
// still ends at tip. The hook runs first; then check has to say that all is as it was when this was
// decided.
func (h *Held) Discard(ctx context.Context, tip string, hooks Hooks, env []string, check func() error) error {
	rec, found, err := h.root.read(h.name)
	if err != nil || !found {
		return errors.Join(err, ErrGone)
	}
	// A failing hook doesn't stop it; what it printed went to Output.
	_ = hooks.run(ctx, BeforeRemove, h.Path, rec.Session, hookValues(rec))
	if err := check(); err != nil {
		return err
	}
	var linked git.Repo
	if rec.Mode == workflow.ModeWorktree {
		if linked, err = git.Open(ctx, rec.Repository, h.root.caller(env)); err != nil {
			return fmt.Errorf("look at the repository: %w", err)
		}
	}
	bin, err := h.root.unlink(ctx, h.name, rec, linked)
	if err == nil && rec.Branch != "" && tip != "" {
		err = linked.DeleteBranch(ctx, rec.Branch, tip)
	}
	if err == nil {
		err = h.root.forget(h.name)
	}
	if bin != "" {
		err = errors.Join(err, h.root.empty(ctx, bin))
	}
	return err
}

// around notes what the repository says at the beginning about where the work will go. An agent could
// change it later.
func (m maker) around(ctx context.Context, rec *record) error {
	remotes, err := m.repo.Here().Remotes(ctx)
	if err != nil {
		return err
	}
	routes, err := m.repo.Here().Routes(ctx)
	if err != nil {
		return err
	}
	rec.Remotes, rec.Branches = routes.Remotes, routes.Branches
	if m.spec.BaseBranch == "" {
		rec.BaseBranch, err = m.repo.Current(ctx)
		return err
	}
	for _, r := range remotes { // origin/main is for main
		if name, ok := strings.CutPrefix(m.spec.BaseBranch, r.Name+"/"); ok {
			rec.BaseBranch = name
		}
	}
	if tip, err := m.repo.Branch(ctx, m.spec.BaseBranch); err != nil || tip != "" {
		rec.BaseBranch = m.spec.BaseBranch
		return err
	}
	return nil
}

// Routes notes where the branches of a repository go that the hook has just made in the workspace.
func (w *Workspace) Routes(r git.Routes) error {
	w.rec.Remotes, w.rec.Branches = r.Remotes, r.Branches
	return w.root.write(w.name, w.rec)
}

// Close gives up the workspace.
func (h *Held) Close() error {
	err := h.lock.Close()
	h.root.close()
	return err
}
