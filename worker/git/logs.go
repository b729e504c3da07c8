package git

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// putBack adds what git wrote into the logs of branches to those of the repository. Git itself would
// follow a link that lies there, and so write what people and agents chose, such as the name of a
// branch, into any file of the owner's. Where something odd lies, nothing is added: the logs
// are only a help to people.
func (v *view) putBack() {
	v.carry(filepath.Join(v.dir, "logs"), v.of.common)
	if v.at.dir != v.dir {
		v.carry(filepath.Join(v.at.dir, "logs"), v.of.dir)
	}
}

func (v *view) carry(from, to string) {
	if info, err := os.Lstat(from); err != nil || !info.IsDir() {
		return
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	_ = fs.WalkDir(os.DirFS(from), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if text, err := os.ReadFile(filepath.Join(from, name)); err == nil {
			appendTo(root, filepath.Join("logs", name), text)
		}
		return nil
	})
}

// appendTo adds to a file that is nobody's link, in folders that are none.
func appendTo(root *os.Root, name string, text []byte) {
	for at := 0; at >= 0; {
		next := strings.IndexByte(name[at+1:], '/')
		if next < 0 {
			break
		}
		at += 1 + next
		_ = root.Mkdir(name[:at], 0o777)
		if info, err := root.Lstat(name[:at]); err != nil || !info.IsDir() {
			return
		}
	}
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	opened, err := f.Stat()
	lies, gone := root.Lstat(name)
	if err != nil || gone != nil || !lies.Mode().IsRegular() || !os.SameFile(opened, lies) {
		return
	}
	if s, ok := opened.Sys().(*syscall.Stat_t); ok && s.Nlink != 1 {
		return
	}
	_, _ = f.Write(text)
}
