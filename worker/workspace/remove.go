package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"stint/worker/git"
	"stint/worker/workflow"
)

// aside begins the names of folders that were moved away for checking, and trash those that
// were found to be the right ones and may be removed by any process that sees them.
const (
	aside = "aside-"
	trash = "trash-"
)

// adopting begins the names of worktrees whose registration goes to another folder.
const adopting = "adopting-"

// discard removes a workspace's folder if it is the expected one. It moves the folder aside
// first and then checks, so that nobody can put another one in its place in between.
func (r *root) discard(name string, is identity) error {
	bin, err := r.throw(name, is)
	if err != nil || bin == "" {
		return err
	}
	return r.empty(context.Background(), bin)
}

// throw is discard up to where the folder may be emptied by anybody; bin is "" where there is
// none.
func (r *root) throw(name string, is identity) (bin string, err error) {
	id := strings.ToLower(rand.Text())
	moved := filepath.Join(hidden, aside+id)
	if err := r.dir.Rename(name, moved); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return "", fmt.Errorf("remove the workspace %s: %w", name, err)
	}
	now, err := r.folder(moved)
	if err == nil && now != is && is != (identity{}) {
		err = ErrMoved
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("remove the workspace %s: %w", name, err), r.dir.Rename(moved, name))
	}
	bin = filepath.Join(hidden, trash+id)
	if err := r.dir.Rename(moved, bin); err != nil {
		return "", fmt.Errorf("remove the workspace %s: %w", name, err)
	}
	return bin, nil
}

// empty removes what was moved aside. Folders without the right to write are opened up first:
// build tools make such ones. When ctx ends it stops between two folders, and the next sweep
// goes on.
func (r *root) empty(ctx context.Context, bin string) error {
	err := r.emptyOut(ctx, bin, interruptible)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = fs.WalkDir(r.dir.FS(), bin, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = r.dir.Chmod(path, 0o700)
		}
		return nil //nolint:nilerr // what stays closed is found below
	})
	return r.emptyOut(ctx, bin, interruptible)
}

// interruptible is how many levels of folders are removed one by one.
const interruptible = 4

func (r *root) emptyOut(ctx context.Context, at string, levels int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if levels > 0 {
		entries, err := fs.ReadDir(r.dir.FS(), at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			if err := r.emptyOut(ctx, filepath.Join(at, e.Name()), levels-1); err != nil {
				return err
			}
		}
	}
	return r.dir.RemoveAll(at)
}

// callLasts is longer than any call of git does, and whoever makes it.
const callLasts = time.Hour

// deserted reports whether an entry was left by a call of git's that was killed.
func (r *root) deserted(e fs.DirEntry) bool {
	if !e.IsDir() || !strings.HasPrefix(e.Name(), git.Left) {
		return false
	}
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > callLasts
}

// sweep removes what earlier removals left behind when they were cut short.
func (r *root) sweep(ctx context.Context) error {
	entries, err := fs.ReadDir(r.dir.FS(), hidden)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), trash) || r.deserted(e) {
			err = errors.Join(err, r.empty(ctx, filepath.Join(hidden, e.Name())))
		}
	}
	return err
}

// spared says that something speaks against a removal that was begun: nothing has failed.
type spared struct{ error }

// remove runs the hook and removes the folder, its registration, its branch and its record, in
// this order: what is left after a crash is found again. bin is what is left to be emptied.
func (c collector) remove(ctx context.Context, i *Item, rec record) (bin string, err error) {
	if _, err := c.root.folder(i.Name); err == nil && c.rules.Hooks != nil {
		hooks := c.rules.Hooks(rec.Agent)
		// A failing hook doesn't stop it; what it printed went to Output.
		_ = hooks.run(ctx, BeforeRemove, i.Path, rec.Session, hookValues(rec))
		if why := c.against(ctx, i, rec); why != "" {
			return "", spared{errors.New(why)}
		}
	}
	var linked git.Repo
	if rec.Mode == workflow.ModeWorktree {
		if linked, err = git.Open(ctx, rec.Repository, c.root.caller(c.rules.Env)); err != nil {
			if _, gone := c.root.folder(i.Name); !errors.Is(gone, fs.ErrNotExist) {
				return "", fmt.Errorf("look at the repository: %w", err)
			}
			return "", c.root.forget(i.Name) // neither of them is left
		}
	}
	if bin, err = c.root.unlink(ctx, i.Name, rec, linked); err != nil {
		return bin, err
	}
	if rec.Mode == workflow.ModeWorktree {
		if err := c.prune(ctx, linked, rec); err != nil {
			return bin, err
		}
	}
	return bin, c.root.forget(i.Name)
}

// unlink is throw, and removes the registration of a worktree.
func (r *root) unlink(ctx context.Context, name string, rec record, linked git.Repo) (bin string, err error) {
	if bin, err = r.throw(name, rec.Folder); err != nil || rec.Mode != workflow.ModeWorktree {
		return bin, err
	}
	path := filepath.Join(r.path, name)
	if _, err := linked.Tree(path); err != nil {
		return bin, nil //nolint:nilerr // it is registered no more
	}
	return bin, linked.Forget(ctx, path)
}

// hookValues are what before_remove is told of a workspace.
func hookValues(rec record) map[string]string {
	return map[string]string{"STINT_BRANCH": rec.Branch, "STINT_BASE": rec.Base, "STINT_AGENT": rec.Agent, "STINT_SESSION_ID": rec.Session}
}

// prune deletes the branch if it has nothing that others don't have, or all of it was landed.
func (c collector) prune(ctx context.Context, repo git.Repo, rec record) error {
	tip, err := repo.Branch(ctx, rec.Branch)
	if err != nil || tip == "" {
		return err
	}
	if tip != rec.Landed {
		if lone, err := repo.Lone(ctx, rec.Branch); err != nil || lone {
			return err
		}
	}
	return repo.DeleteBranch(ctx, rec.Branch, tip)
}
