package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stint/worker/git"
	"stint/worker/workflow"
)

// branchPrefix begins the names of the branches that are made for worktrees. If somebody has a
// branch of exactly that name, git allows none below it.
const (
	branchPrefix  = "stint/"
	branchPrefix2 = "stint-"
)

// undoLimit bounds what is still done after the claim has ended.
const undoLimit = 5 * time.Second

// mostNames bounds the search for a free name.
const mostNames = 100

// Spec says which workspace is wanted.
type Spec struct {
	Mode       string // workflow.ModeFolder, ModeWorktree or ModeEmpty
	Repository string // absolute: the folder, or one in the repository of the worktree
	Root       string // absolute: where workspaces are made; unused in mode folder
	Key        string // what it is for: the same key finds the same workspace again
	BaseBranch string // what a new branch begins at; "" = what the repository has checked out
	Directory  string // where in it the agent starts; relative
	Agent      string // slug
	Session    string // id
	Hooks      Hooks
}

// Workspace is a place that a session has to itself until Close. In mode folder, the worker
// keeps track of which folders are taken.
type Workspace struct {
	Path    string // its top folder, links resolved
	Dir     string // where the agent starts; Path or below
	Branch  string // of a worktree
	Base    string // the commit at which the branch began
	Created bool   // it was made just now
	Said    string // what was repaired or could not be, in a sentence for the session; "" = nothing

	spec Spec
	id   identity
	root *root
	name string
	lock *lockedFile
	rec  record
}

// Prepare finds or makes the workspace for a key. If its folder, its record and git's
// registration don't agree, it repairs what it can and otherwise takes another name; nothing
// that was left in a folder is lost.
//
// The error may be a *HookError, ErrBusy, ErrRoot, or one of package git; see [Failure].
func Prepare(ctx context.Context, spec Spec) (*Workspace, error) {
	if spec.Mode == workflow.ModeFolder {
		return plain(spec)
	}
	r, err := openRoot(spec.Root, true)
	if err != nil {
		return nil, err
	}
	w, err := prepareIn(ctx, r, spec)
	if err != nil {
		r.close()
		return nil, err
	}
	return w, nil
}

func prepareIn(ctx context.Context, r *root, spec Spec) (*Workspace, error) {
	m := maker{root: r, spec: spec}
	if spec.Mode == workflow.ModeWorktree {
		repo, err := git.Open(ctx, spec.Repository, r.caller(spec.Hooks.Env))
		if err != nil {
			return nil, err
		}
		m.repo = repo
		if within(repo.Top, r.path) && !within(repo.Common, r.path) {
			// A root inside the work tree would show up in it as unknown files.
			return nil, fmt.Errorf("%w: %s lies inside of the repository %s", ErrRoot, r.path, repo.Top)
		}
	}
	first, passed := Name(spec.Key), false // passed: it had one before
	for n := 1; n <= mostNames; n++ {
		name := first
		if n > 1 {
			name = fmt.Sprintf("%s-%d", first, n)
		}
		w, err := m.take(ctx, name)
		if errors.Is(err, errOther) {
			rec, found, err := r.read(name)
			passed = passed || (err == nil && found && rec.Key == spec.Key)
			continue
		}
		if err == nil && w.Created && passed {
			w.Said = "The earlier workspace of this conversation can't be used as it is now, so a new one was made. What lies in the earlier one stays there."
		}
		return w, err
	}
	return nil, fmt.Errorf("%w: no name is free for %q in %s", ErrRoot, spec.Key, r.path)
}

func within(outer, inner string) bool {
	rel, err := filepath.Rel(outer, inner)
	return err == nil && filepath.IsLocal(rel)
}

// plain is the folder itself.
func plain(spec Spec) (*Workspace, error) {
	real, err := filepath.EvalSymlinks(spec.Repository)
	if err != nil {
		return nil, fmt.Errorf("use the folder: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("use the folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("use the folder %s: it is none", real)
	}
	w := &Workspace{Path: real, spec: spec, id: identityOf(info)}
	return w, w.enter("")
}

// errOther says that a name is for something else.
var errOther = errors.New("the name is taken")

// maker makes workspaces of one kind.
type maker struct {
	root *root
	spec Spec
	repo git.Repo // of mode worktree
}

// take finds or makes the workspace under one name, or returns errOther.
func (m maker) take(ctx context.Context, name string) (*Workspace, error) {
	rec, found, err := m.root.read(name)
	if err == nil && found && rec.Key != m.spec.Key {
		return nil, errOther
	}
	lock, busy := m.root.lock(name)
	if busy != nil {
		return nil, busy
	}
	w := &Workspace{Path: filepath.Join(m.root.path, name), spec: m.spec, root: m.root, name: name, lock: lock}
	if rec, found, err = m.root.read(name); err == nil { // its state under the lock
		err = m.fit(ctx, w, rec, found)
	} else {
		err = errOther // an unreadable record belongs to somebody, perhaps to a newer version
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return w, nil
}

// fit makes w the workspace of its name.
func (m maker) fit(ctx context.Context, w *Workspace, rec record, found bool) error {
	id, err := m.root.folder(w.name)
	switch {
	case errors.Is(err, ErrMoved):
		return errOther
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at the workspace %s: %w", w.Path, err)
	}
	exists := err == nil
	switch {
	case !found && exists:
		return errOther
	case !found:
		return m.create(ctx, w)
	case rec.Key != m.spec.Key || rec.Mode != m.spec.Mode || rec.Repository != m.repo.Top:
		return errOther
	case !exists:
		return m.create(ctx, w)
	case !rec.Ready || rec.Folder != id:
		return errOther // its making was cut short, or it was replaced: its contents stay there
	}
	if m.spec.Mode == workflow.ModeWorktree {
		_, err := m.repo.Tree(w.Path)
		if errors.Is(err, git.ErrUnregistered) {
			err = m.adopt(ctx, w, rec)
		}
		if err != nil {
			return err
		}
	}
	w.id, w.rec = id, rec
	w.Branch, w.Base = rec.Branch, rec.Base
	w.rec.Session, w.rec.Agent, w.rec.Done, w.rec.UsedAt = m.spec.Session, m.spec.Agent, false, time.Now().UTC()
	if err := m.root.write(w.name, w.rec); err != nil {
		return err
	}
	return w.enter(m.repo.Prefix)
}

// adopt registers a worktree again that git has forgotten, for example after a prune. The
// folder has to stay the same: what is in it is nowhere else, and agents' programs find their
// conversations by it. If its branch is gone, or checked out elsewhere, it returns errOther.
func (m maker) adopt(ctx context.Context, w *Workspace, rec record) error {
	tip, err := m.repo.Branch(ctx, rec.Branch)
	if err != nil {
		return err
	}
	trees, err := m.repo.Worktrees(ctx)
	if err != nil {
		return err
	}
	if tip == "" || slices.ContainsFunc(trees, func(t git.Worktree) bool { return t.Branch == rec.Branch }) {
		return errOther
	}
	by := filepath.Join(m.root.path, hidden, adopting+strings.ToLower(rand.Text()))
	if _, err := m.repo.Adopt(ctx, w.Path, by, rec.Branch); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w: %w", errOther, err)
	}
	w.Said = "Git had forgotten the worktree of this conversation. It is registered again; all files in it are as they were."
	return nil
}

// create makes the folder. The record is written first, so that a crash leaves nothing behind
// that has no record.
func (m maker) create(ctx context.Context, w *Workspace) error {
	now := time.Now().UTC()
	w.rec = record{Key: m.spec.Key, Agent: m.spec.Agent, Session: m.spec.Session, Mode: m.spec.Mode, Repository: m.repo.Top, CreatedAt: now, UsedAt: now}
	worktree := m.spec.Mode == workflow.ModeWorktree
	start := ""
	if worktree {
		var err error
		if start, err = m.start(ctx, w); err != nil {
			return err
		}
		w.rec.Branch, w.rec.Base = w.Branch, w.Base
		if err := m.around(ctx, &w.rec); err != nil {
			return err
		}
	}
	if err := m.root.write(w.name, w.rec); err != nil {
		return err
	}
	if worktree {
		if _, err := m.repo.Add(ctx, w.Path, w.Branch, start); err != nil {
			return errors.Join(err, m.undo(ctx, w))
		}
	} else if err := m.root.dir.Mkdir(w.name, 0o700); err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	id, err := m.root.folder(w.name)
	if err != nil {
		return fmt.Errorf("look at the new workspace: %w", err)
	}
	w.id, w.rec.Folder, w.Created = id, id, true
	if err := m.root.write(w.name, w.rec); err != nil {
		return err
	}
	if err := w.hook(ctx, AfterCreate); err != nil {
		// Even when the claim is over: it is quick, and bounded.
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		return errors.Join(err, m.undo(brief, w))
	}
	w.rec.Ready = true
	if err := m.root.write(w.name, w.rec); err != nil {
		return err
	}
	return w.enter(m.repo.Prefix)
}

// start prepares git for the worktree and returns the commit at which its branch begins, ""
// when the branch exists already and continues where it is.
func (m maker) start(ctx context.Context, w *Workspace) (string, error) {
	w.Branch = branchPrefix + w.name
	if tip, err := m.repo.Branch(ctx, strings.TrimSuffix(branchPrefix, "/")); err != nil {
		return "", err
	} else if tip != "" {
		w.Branch = branchPrefix2 + w.name
	}
	trees, err := m.repo.Worktrees(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range trees {
		switch {
		case t.Path == w.Path: // the folder is gone and git still knows it
			if err := m.repo.Forget(ctx, w.Path); err != nil {
				return "", err
			}
		case t.Branch == w.Branch: // somebody works on it elsewhere
			return "", errOther
		}
	}
	base, err := m.repo.Commit(ctx, m.spec.BaseBranch)
	if err != nil {
		return "", err
	}
	w.Base = base
	tip, err := m.repo.Branch(ctx, w.Branch)
	if err != nil || tip != "" {
		return "", err
	}
	return base, nil
}

// undo removes a workspace that could not be completed: nobody has worked in it.
func (m maker) undo(ctx context.Context, w *Workspace) error {
	if err := m.root.discard(w.name, w.rec.Folder); err != nil {
		return err
	}
	if w.Branch != "" {
		if err := m.repo.Forget(ctx, w.Path); err != nil {
			var refused *git.Error
			if !errors.As(err, &refused) { // it was never registered
				return err
			}
		}
		if tip, err := m.repo.Branch(ctx, w.Branch); err == nil && tip == w.Base {
			if err := m.repo.DeleteBranch(ctx, w.Branch, tip); err != nil {
				return err
			}
		}
	}
	return m.root.forget(w.name)
}

// enter finds the folder in which the agent starts.
func (w *Workspace) enter(prefix string) error {
	rel := filepath.Join(prefix, w.spec.Directory)
	if rel == "" || rel == "." {
		w.Dir = w.Path
		return nil
	}
	top, err := os.OpenRoot(w.Path)
	if err != nil {
		return fmt.Errorf("enter the workspace: %w", err)
	}
	defer func() { _ = top.Close() }()
	info, err := top.Stat(rel) // refuses links that lead out
	if err != nil {
		return fmt.Errorf("start in %s of the workspace: %w", rel, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("start in %s of the workspace: it is not a folder", rel)
	}
	w.Dir = filepath.Join(w.Path, rel)
	return nil
}

// Check returns ErrMoved when another folder, or none, is where the workspace was. Call it
// right before something is started in it.
func (w *Workspace) Check() error {
	info, err := os.Lstat(w.Path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	if !info.IsDir() || identityOf(info) != w.id {
		return fmt.Errorf("%w: %s", ErrMoved, w.Path)
	}
	return nil
}

// Close gives up the workspace. done says that its session won't continue, so that the
// workspace may be removed when it is old.
func (w *Workspace) Close(done bool) error {
	if w.lock == nil {
		return nil
	}
	w.rec.Done, w.rec.UsedAt = done, time.Now().UTC()
	err := w.root.write(w.name, w.rec)
	err = errors.Join(err, w.lock.Close())
	w.lock = nil
	w.root.close()
	return err
}
