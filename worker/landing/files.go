package landing

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"stint/api"
	"stint/worker/git"
)

// What is read of files that are not committed. The rest is listed by name.
const (
	mostFile  = 8 << 20  // bytes of one
	mostBytes = 64 << 20 // of all
	mostPaths = 5000
)

// unread is what of a tree's files is not given to git for comparing.
type unread struct {
	list  []api.ChangedFile // by name only
	count int64             // how many there are
}

func (u *unread) add(f api.ChangedFile) {
	u.count++
	if len(u.list) < api.MaxChangedFiles {
		u.list = append(u.list, f)
	}
}

// files fills in the files that differ from the base.
func (t *Tree) files(ctx context.Context, c *Changes) (err error) {
	d, err := t.tree.Draft()
	if err != nil {
		return err
	}
	defer func() { err = also(err, d.Close()) }()
	var left unread
	paths, err := t.uncommitted(ctx, c, &left)
	if err != nil {
		return err
	}
	if len(paths) > 0 {
		call := git.Call{Args: []string{"update-index", "--add", "--remove", "--replace", "-z", "--stdin"}, Set: quiet, Input: strings.Join(paths, "\x00") + "\x00"}
		if _, err := d.Do(ctx, call); err != nil {
			return err
		}
	}
	against := c.State.Base
	if against == "" {
		if against, err = t.nothing(ctx); err != nil {
			return err
		}
	}
	if err := differences(ctx, d, against, c); err != nil {
		return err
	}
	known := map[string]int{}
	for i, f := range c.Files {
		known[f.Path] = i
	}
	for _, f := range left.list {
		if i, ok := known[f.Path]; ok { // what was staged of it was compared, what lies there was not
			c.Files[i].Cut = true
			left.count--
			continue
		}
		if len(c.Files) < api.MaxChangedFiles {
			c.Files = append(c.Files, f)
		}
	}
	c.FileCount += left.count
	slices.SortFunc(c.Files, func(a, b api.ChangedFile) int { return cmp.Compare(a.Path, b.Path) })
	return nil
}

// uncommitted finds the files that have to be read, within bounds.
func (t *Tree) uncommitted(ctx context.Context, c *Changes, left *unread) (paths []string, err error) {
	top, err := os.OpenRoot(t.top())
	if err != nil {
		return nil, err
	}
	defer func() { _ = top.Close() }()
	bytes := int64(0)
	return paths, t.status(ctx, func(e entry) error {
		c.State.Dirty = true
		if !e.file {
			return nil
		}
		f := api.ChangedFile{Path: Quoted(e.path), Change: api.FileModified, Cut: true}
		if e.unknown {
			f.Change = api.FileAdded
		}
		if e.inside {
			f.Change, f.Cut = api.FileSubmodule, false
			left.add(f)
			return nil
		}
		info, err := top.Lstat(filepath.FromSlash(e.path))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir(): // gone, or a submodule
		case err != nil, !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
			left.add(f)
			return nil
		case info.Size() > mostFile, bytes+info.Size() > mostBytes, len(paths) >= mostPaths, !readable(top, e.path, info):
			left.add(f)
			return nil
		default:
			bytes += info.Size()
		}
		paths = append(paths, e.path)
		return nil
	})
}

// readable reports whether git will be able to read a file.
func readable(top *os.Root, path string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() {
		return true
	}
	f, err := top.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may lie there by now
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// nothing is the id of a tree without files.
func (t *Tree) nothing(ctx context.Context) (string, error) {
	return t.out(ctx, "hash-object", "-t", "tree", "--stdin")
}
