package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stint/worker/regular"
)

// Draft is a copy of a tree's index with a place of its own for new objects: what is done in it
// leaves the repository as it is.
type Draft struct {
	tree Tree
	dir  string
}

// Draft makes one. Close it.
func (t Tree) Draft() (Draft, error) {
	dir, err := t.repo.program.room("draft")
	if err != nil {
		return Draft{}, err
	}
	d := Draft{t, dir}
	err = lend(t.repo.Common, filepath.Join(dir, "objects"))
	if err == nil {
		err = copyIndex(filepath.Join(t.at.dir, "index"), filepath.Join(dir, "index"))
	}
	if err != nil {
		return Draft{}, errors.Join(fmt.Errorf("copy the index: %w", err), d.Close())
	}
	return d, nil
}

// Do calls git on the draft.
func (d Draft) Do(ctx context.Context, c Call) (string, error) {
	c.index, c.objects = filepath.Join(d.dir, "index"), filepath.Join(d.dir, "objects")
	return d.tree.Do(ctx, c)
}

// Close removes it.
func (d Draft) Close() error { return os.RemoveAll(d.dir) }

// copyIndex keeps the time of the file, by which git knows which of its entries may have been
// written at the same instant as their files. No index is an empty one.
func copyIndex(from, to string) error {
	in, err := regular.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// lend makes a folder of objects in which those of a repository are found too.
func lend(common, dir string) error {
	if strings.ContainsRune(common, '\n') {
		return errors.New("the repository has a line break in its path")
	}
	if err := os.MkdirAll(filepath.Join(dir, "info"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "info", "alternates"), []byte(filepath.Join(common, "objects")+"\n"), 0o600)
}

// Scratch is a bare repository of our own in which a repository's objects are found and nothing
// that its settings name is in force.
type Scratch struct {
	repo Repo
	at   tree
}

// Scratch makes one. Close it.
func (t Tree) Scratch(ctx context.Context) (Scratch, error) {
	format, err := t.run(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return Scratch{}, err
	}
	dir, err := t.repo.program.room("scratch")
	if err != nil {
		return Scratch{}, err
	}
	s := Scratch{t.repo, tree{common: dir, dir: dir, top: dir}}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
	if format = strings.TrimSpace(format); format != "sha1" {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = " + format + "\n"
	}
	err = lend(t.repo.Common, filepath.Join(dir, "objects"))
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config, "refs/heads/.keep": ""} {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	// Where the history was cut off, so that nobody looks beyond.
	err = errors.Join(err, copyFile(filepath.Join(t.repo.Common, "shallow"), filepath.Join(dir, "shallow")))
	if err != nil {
		return Scratch{}, errors.Join(fmt.Errorf("make an own repository: %w", err), s.Close())
	}
	return s, nil
}

// Do calls git on it, with no settings but this package's. New objects are put into the
// repository itself.
func (s Scratch) Do(ctx context.Context, c Call) (string, error) {
	c.objects, c.of = filepath.Join(s.repo.Common, "objects"), s.behind()
	return s.repo.program.do(ctx, s.at, c)
}

// Send calls git on it with the user's own settings in force and other machines in reach.
func (s Scratch) Send(ctx context.Context, c Call) (string, error) {
	c.owner, c.of = true, s.behind()
	return s.repo.program.do(ctx, s.at, c)
}

// behind is the repository whose objects are read.
func (s Scratch) behind() tree { return tree{common: s.repo.Common, dir: s.repo.Common} }

// Path is its folder.
func (s Scratch) Path() string { return s.at.dir }

// Close removes it.
func (s Scratch) Close() error { return os.RemoveAll(s.at.dir) }

// Under is an operation in progress, such as a rebase; "" when none is.
func (t Tree) Under() string {
	for name, what := range ongoing {
		if _, err := os.Lstat(filepath.Join(t.at.dir, name)); err == nil {
			return what
		}
	}
	return ""
}

// Rewrites is the branch that a rebase or a bisection in this tree is about; "" when there is
// none.
func (t Tree) Rewrites() string {
	for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
		if text, err := regular.Read(filepath.Join(t.at.dir, name)); err == nil {
			return strings.TrimPrefix(strings.TrimSpace(string(text)), "refs/heads/")
		}
	}
	return ""
}

// At is the tree of the repository at a path: the one that it was opened through, a linked one or
// the main one. The error may be ErrUnregistered.
func (r Repo) At(ctx context.Context, path string) (Tree, error) {
	if path == r.Top {
		return r.Here(), nil
	}
	t, err := r.Tree(path)
	if !errors.Is(err, ErrUnregistered) {
		return t, err
	}
	main, other := Open(ctx, path, r.program.source)
	if other != nil || main.Common != r.Common || main.Top != path || main.Linked() {
		return Tree{}, err
	}
	return main.Here(), nil
}

// Current is the branch that the repository's tree has checked out, "" when none is.
func (r Repo) Current(ctx context.Context) (string, error) {
	ref, err := r.run(ctx, "symbolic-ref", "--quiet", "HEAD")
	if Exit(err) == 1 {
		return "", nil
	}
	return strings.TrimPrefix(strings.TrimSpace(ref), "refs/heads/"), err
}
