package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stint/worker/git"
	"stint/worker/workflow"
)

// branchPrefix begins the names of the branches that are made for worktrees. Where
// somebody has a branch of just that name, git allows none below it.
const (
	branchPrefix  = "stint/"
	branchPrefix2 = "stint-"
)

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

// Workspace is a place that a session has for itself until Close. In mode folder,
// which folders are taken is the worker's business.
type Workspace struct {
	Path    string // its top folder, links resolved
	Dir     string // where the agent starts; Path or below
	Branch  string // of a worktree
	Base    string // the commit at which the branch began
	Created bool   // it was made just now

	spec Spec
	id   identity
	root *root
	name string
	lock *os.File
	rec  record
}

// Prepare finds or makes the workspace for a key. Where its folder, its record and
// what git knows of it are out of step, it mends what it can and else takes another
// name; nothing that was left in a folder is lost.
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
		repo, err := git.Open(ctx, spec.Repository, spec.Hooks.Env)
		if err != nil {
			return nil, err
		}
		m.repo = repo
		if within(repo.Top, r.path) && !within(repo.Common, r.path) {
			// A root inside of the work tree would show up in it as unknown files.
			return nil, fmt.Errorf("%w: %s lies inside of the repository %s", ErrRoot, r.path, repo.Top)
		}
	}
	first := Name(spec.Key)
	for n := 1; n <= mostNames; n++ {
		name := first
		if n > 1 {
			name = fmt.Sprintf("%s-%d", first, n)
		}
		w, err := m.take(ctx, name)
		if errors.Is(err, errOther) {
			continue
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

// take finds or makes the workspace under one name, or answers errOther.
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
	if rec, found, err = m.root.read(name); err == nil { // as it is under the lock
		err = m.fit(ctx, w, rec, found)
	} else {
		err = errOther // a record that can't be read is somebody's, perhaps a newer version's
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
		return errOther // its making was cut short, or it was replaced: whatever is in it stays there
	}
	if m.spec.Mode == workflow.ModeWorktree {
		if _, err := m.repo.Tree(w.Path); err != nil {
			if errors.Is(err, git.ErrUnregistered) {
				return errOther
			}
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

// create makes the folder. The record is written first, so that a crash leaves
// nothing behind that nobody knows of.
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
		return errors.Join(err, m.undo(context.WithoutCancel(ctx), w))
	}
	w.rec.Ready = true
	if err := m.root.write(w.name, w.rec); err != nil {
		return err
	}
	return w.enter(m.repo.Prefix)
}

// start prepares git for the worktree and answers the commit at which its branch
// begins, "" when the branch is there already and goes on where it is.
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
		case t.Path == w.Path: // the folder is gone and git knows it still
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

// undo takes away a workspace whose making failed: nobody has worked in it.
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

// Check reports ErrMoved when another folder, or none, is where the workspace was: to
// be asked right before something is started in it.
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

// BeforeRun runs the hook before each try of the agent; its failure is the try's.
// The error is a *HookError or ErrMoved.
func (w *Workspace) BeforeRun(ctx context.Context) error {
	if err := w.Check(); err != nil {
		return err
	}
	return w.hook(ctx, BeforeRun)
}

// AfterRun runs the hook after each try, however it ended. Its failure is to be
// logged and changes nothing.
func (w *Workspace) AfterRun(ctx context.Context) error {
	if err := w.Check(); err != nil {
		return err
	}
	return w.hook(ctx, AfterRun)
}

func (w *Workspace) hook(ctx context.Context, hook string) error {
	return w.spec.Hooks.run(ctx, hook, w.Path, w.spec.Session, map[string]string{
		"STINT_BRANCH": w.Branch, "STINT_BASE": w.Base, "STINT_AGENT": w.spec.Agent, "STINT_SESSION_ID": w.spec.Session,
	})
}

// Close gives the workspace up. done says that its session won't go on, so that it may
// be removed when it is old.
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
