package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stint/worker/regular"
)

// view is a git directory of our own for one call, through which git sees a repository: its
// objects and branches as they are, and of its settings those that [inForce] passes on, as they
// were when it was opened. Whoever changes the repository's settings, its attributes or its lists
// of ignored files while git runs changes nothing for it, so that there is no moment in which git
// would execute what they name. Nor does git follow what a tree's own files say about where the
// repository lies.
//
// git-config(1), gitrepository-layout(5): settings, info and logs are looked for in
// GIT_COMMON_DIR; branches where the file commondir of GIT_DIR leads.
type view struct {
	dir  string
	of   tree
	at   tree
	call Call
}

// Left begins the names of folders that calls leave in a room when they are killed.
const Left = "git-"

// Calls that write an index, and those that write logs of branches.
var (
	indexing = []string{"merge", "reset", "update-index", "write-tree"}
	logging  = []string{"merge", "reset", "update-ref", "worktree"}
)

func (p program) view(ctx context.Context, of tree, c Call) (v view, err error) {
	all, err := p.known.settings(ctx, p, of)
	if err != nil {
		return v, err
	}
	config, err := inForce(all, of.top)
	if err != nil {
		return v, err
	}
	dir, err := p.room("view")
	if err != nil {
		return v, err
	}
	v = view{dir: dir, of: of, at: tree{common: dir, dir: dir, top: of.top}, call: c}
	v.call.of = of
	if of.dir != of.common {
		v.at.dir = filepath.Join(dir, "tree")
	}
	if err = atOnce(of); err == nil {
		err = os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)
	}
	if err == nil {
		err = v.fill()
	}
	if err == nil {
		err = v.lists(p, all)
	}
	if err != nil {
		return v, errors.Join(fmt.Errorf("look at the git repository: %w", err), v.close())
	}
	return v, nil
}

// room makes a folder for a call.
func (p program) room(kind string) (string, error) {
	room := p.source.Room
	if !filepath.IsAbs(room) {
		return "", errors.New("git has no folder of its own to work in")
	}
	err := os.MkdirAll(room, 0o700)
	if err == nil {
		err = owned(room)
	}
	if err == nil {
		var dir string
		if dir, err = os.MkdirTemp(room, Left+kind+"-"); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("make a folder for git: %w", err)
}

// fill links what git reads and writes as it is, and copies the small files that it reads.
func (v *view) fill() error {
	for _, name := range []string{"objects", "refs", "packed-refs", "reftable", "worktrees"} {
		if err := v.link(v.of.common, v.dir, name); err != nil {
			return err
		}
	}
	err := errors.Join(
		copyHead(v.of.common, v.dir),
		copyFile(filepath.Join(v.of.common, "shallow"), filepath.Join(v.dir, "shallow")),
		copyFile(filepath.Join(v.of.common, "info", "attributes"), filepath.Join(v.dir, "info", "attributes")),
		copyFile(filepath.Join(v.of.common, "info", "exclude"), filepath.Join(v.dir, "info", "exclude")),
	)
	if err == nil && v.at.dir != v.dir {
		err = v.linked()
	}
	if err == nil {
		err = copyFile(filepath.Join(v.of.dir, "info", "sparse-checkout"), filepath.Join(v.at.dir, "info", "sparse-checkout"))
	}
	if err != nil {
		return err
	}
	if err := v.index(); err != nil {
		return err
	}
	if !slices.Contains(logging, v.call.Args[0]) {
		return v.link(v.of.common, v.dir, "logs")
	}
	if v.call.Args[0] == "worktree" {
		// A link that leads nowhere is no folder to git.
		err = os.Mkdir(filepath.Join(v.of.common, "worktrees"), 0o777)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Mkdir(filepath.Join(v.dir, "logs"), 0o700)
}

// linked adds what a linked tree has of its own.
func (v *view) linked() error {
	if err := os.Mkdir(v.at.dir, 0o700); err != nil {
		return err
	}
	err := errors.Join(copyHead(v.of.dir, v.at.dir), os.WriteFile(filepath.Join(v.at.dir, "commondir"), []byte("..\n"), 0o600))
	for _, name := range []string{"refs", "reftable"} {
		err = errors.Join(err, v.link(v.of.dir, v.at.dir, name))
	}
	if !slices.Contains(logging, v.call.Args[0]) {
		err = errors.Join(err, v.link(v.of.dir, v.at.dir, "logs"))
	}
	return err
}

// link makes a link of the same name to what lies in a folder, unless that is a pipe or the like.
func (v *view) link(from, to, name string) error {
	path := filepath.Join(from, name)
	if err := plain(path); err != nil {
		return err
	}
	return os.Symlink(path, filepath.Join(to, name))
}

// index has git use the tree's own index, which is nobody's link to another file when it is
// written.
func (v *view) index() error {
	if v.call.Args[0] == "worktree" {
		return nil
	}
	if v.call.index == "" {
		v.call.index = filepath.Join(v.of.dir, "index")
	}
	if err := plain(v.call.index); err != nil {
		return err
	}
	if slices.Contains(indexing, v.call.Args[0]) {
		if info, err := os.Lstat(v.call.index); err == nil && !info.Mode().IsRegular() {
			return errors.New("the index of the repository is a link")
		}
	}
	// The other half of a divided one.
	entries, err := os.ReadDir(v.of.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "sharedindex.") {
			err = errors.Join(err, v.link(v.of.dir, v.at.dir, e.Name()))
		}
	}
	return err
}

// lists copies the lists of ignored files and of attributes that the repository's settings name.
func (v *view) lists(p program, all []setting) error {
	for _, key := range []string{"core.excludesFile", "core.attributesFile"} {
		path := last(all, key, "local", "worktree")
		if path == "" || path == os.DevNull {
			continue
		}
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(p.home(), rest)
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(v.of.top, path)
		}
		own := filepath.Join(v.dir, strings.TrimPrefix(key, "core."))
		if err := copyFile(path, own); err != nil {
			return err
		}
		v.call.Set = append(slices.Clone(v.call.Set), [2]string{key, own})
	}
	return nil
}

func (v *view) close() error { return os.RemoveAll(v.dir) }

// copyHead copies what a git directory says is checked out.
func copyHead(from, to string) error {
	from, to = filepath.Join(from, "HEAD"), filepath.Join(to, "HEAD")
	if ref, err := os.Readlink(from); err == nil && strings.HasPrefix(ref, "refs/") {
		return os.Symlink(ref, to)
	}
	return copyFile(from, to)
}

// copyFile copies a file that may be missing.
func copyFile(from, to string) error {
	text, err := regular.Read(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	return err
}
