package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
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
	id := strings.ToLower(rand.Text())
	moved, bin := filepath.Join(hidden, aside+id), filepath.Join(hidden, trash+id)
	if err := r.dir.Rename(name, moved); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("remove the workspace %s: %w", name, err)
	}
	now, err := r.folder(moved)
	if err == nil && now != is && is != (identity{}) {
		err = ErrMoved
	}
	if err != nil {
		return errors.Join(fmt.Errorf("remove the workspace %s: %w", name, err), r.dir.Rename(moved, name))
	}
	if err := r.dir.Rename(moved, bin); err != nil {
		return fmt.Errorf("remove the workspace %s: %w", name, err)
	}
	return r.empty(bin)
}

// empty removes what was moved aside. Folders without the right to write are opened up first:
// build tools make such ones.
func (r *root) empty(bin string) error {
	err := r.dir.RemoveAll(bin)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = fs.WalkDir(r.dir.FS(), bin, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = r.dir.Chmod(path, 0o700)
		}
		return nil //nolint:nilerr // what stays closed is found below
	})
	return r.dir.RemoveAll(bin)
}

// sweep removes what earlier removals left behind when they were cut short.
func (r *root) sweep() error {
	entries, err := fs.ReadDir(r.dir.FS(), hidden)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), trash) {
			err = errors.Join(err, r.empty(filepath.Join(hidden, e.Name())))
		}
	}
	return err
}
