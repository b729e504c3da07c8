package db

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// workPrefix begins the name of a directory in which a backup is made or looked at.
const workPrefix = ".stint-backup-"

// workDir is a private directory beside what is made in it. It is locked as long as its process
// lives, so that one that a kill left behind is known from one in use.
type workDir struct {
	path string
	lock *os.File
}

// newWorkDir makes a directory in dir, after removing those that killed processes left there.
func newWorkDir(dir string) (*workDir, error) {
	dropWorkDirs(dir)
	for range 10 {
		path, err := os.MkdirTemp(dir, workPrefix+"*")
		if err != nil {
			return nil, err
		}
		w := &workDir{path: path}
		w.lock, err = tryLock(w.file("lock"), os.O_CREATE)
		if err == nil && w.lock != nil {
			return w, nil
		}
		// Another process took it for one that was left behind, in the moment before it was locked,
		// or removes it just now.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
	return nil, errors.New("no directory to work in can be locked")
}

func (w *workDir) file(name string) string { return filepath.Join(w.path, name) }

func (w *workDir) remove() error { return errors.Join(os.RemoveAll(w.path), w.lock.Close()) }

// dropWorkDirs removes what nobody works in any more. What can't be removed does no harm.
func dropWorkDirs(dir string) {
	all, err := filepath.Glob(filepath.Join(escapeGlob(dir), workPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range all {
		if !ownDir(path) {
			continue // in a directory that users share
		}
		f, err := tryLock(filepath.Join(path, "lock"), 0)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			_ = os.Remove(path) // nothing is in it yet, or any more
		case f != nil:
			_ = errors.Join(os.RemoveAll(path), f.Close())
		}
	}
}

// ownDir reports whether a path is a directory, and no link, of the user who runs this.
func ownDir(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
