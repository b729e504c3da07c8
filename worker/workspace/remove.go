package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// trash begins the names of folders that are being removed.
const trash = "trash-"

// discard removes a workspace's folder if it is the one that it is taken for. It moves
// it aside first and looks then, so that nobody can put another one into its place in
// between.
func (r *root) discard(name string, is identity) error {
	aside := filepath.Join(hidden, trash+strings.ToLower(rand.Text()))
	if err := r.dir.Rename(name, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("remove the workspace %s: %w", name, err)
	}
	id, err := r.folder(aside)
	if err == nil && id != is && is != (identity{}) {
		err = ErrMoved
	}
	if err != nil {
		return errors.Join(fmt.Errorf("remove the workspace %s: %w", name, err), r.dir.Rename(aside, name))
	}
	return r.empty(aside)
}

// empty removes what was moved aside. Folders without the right to write are opened
// up first: build tools make such ones.
func (r *root) empty(aside string) error {
	err := r.dir.RemoveAll(aside)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = fs.WalkDir(r.dir.FS(), aside, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = r.dir.Chmod(path, 0o700)
		}
		return nil //nolint:nilerr // what stays shut is seen below
	})
	return r.dir.RemoveAll(aside)
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
