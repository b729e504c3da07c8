package git

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Placeholder reports whether a path is what a sandbox left where it had mounted something over
// a path that didn't exist: bubblewrap makes an empty file without any right to write, and
// empty folders above it, and removes none of them. A folder counts when nothing else is in it.
// A link is none.
func Placeholder(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return placeholder(info)
	}
	empty := true
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var in fs.FileInfo
			if in, err = d.Info(); err == nil && placeholder(in) {
				return nil
			}
		}
		if err != nil || !d.IsDir() {
			empty = false
			return fs.SkipAll
		}
		return nil
	})
	return err == nil && empty
}

func placeholder(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Size() == 0 && info.Mode().Perm()&0o222 == 0
}

// unlooked reports whether an entry of git's status is one that doesn't count: a placeholder that
// git doesn't know, in the tree with this top folder.
func unlooked(top, entry string) bool {
	name, unknown := strings.CutPrefix(entry, "?? ")
	return unknown && Placeholder(filepath.Join(top, name))
}
