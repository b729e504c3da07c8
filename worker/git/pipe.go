package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrPipe says that a named pipe or a device lies where git reads a file.
var ErrPipe = errors.New("git would wait for ever where it reads a file")

// mostCopied bounds a file of a repository's that is read whole.
const mostCopied = 32 << 20

// odd says what a file is where reading it may never end; "" for others. Opening a socket fails at
// once, and the null device is empty.
func odd(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeDevice != 0:
		if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(info, null) {
			return ""
		}
		return "a device"
	}
	return ""
}

// plain refuses a path at which something lies that may never end, or a link to such a thing. A
// missing one is fine.
func plain(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // git will say so where it needs it
	}
	return refused(filepath.Base(path), info)
}

func refused(name string, info fs.FileInfo) error {
	if what := odd(info); what != "" {
		return fmt.Errorf("%w: %s is %s", ErrPipe, name, what)
	}
	return nil
}

// openFile opens a regular file, whatever lies there by the time it is opened, and waits for nobody.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = refused(filepath.Base(path), info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// slurp reads a file whole.
func slurp(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostCopied+1))
	if err == nil && len(text) > mostCopied {
		err = fmt.Errorf("%s is too large", filepath.Base(path))
	}
	return text, err
}

// asked are the files that git reads wherever they lie in a tree.
var asked = []string{".gitignore", ".gitattributes", ".gitmodules", ".mailmap"}

// atOnce looks where git is most often kept waiting.
func atOnce(of tree) error {
	for _, name := range asked {
		if info, err := os.Lstat(filepath.Join(of.top, name)); err == nil {
			if err := refused(name, info); err != nil {
				return err
			}
		}
	}
	return plain(filepath.Join(of.common, "objects", "info", "alternates"))
}

// watched ends a call that is kept waiting by a pipe: whoever works in a tree can put one there at
// any moment. A call that takes its time for another reason is looked after ever more rarely.
func (p program) watched(ctx context.Context, of tree) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for wait := p.look; ; wait *= 2 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if err := waiting(ctx, of); err != nil {
				cancel(err)
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-over
	}
}

// waiting looks for what git may be waiting for: in the tree at the files that it reads there, those
// of repositories within included, and in the repository's own folders at all.
func waiting(ctx context.Context, of tree) (found error) {
	for _, folder := range slices.Compact([]string{of.top, of.common, of.dir}) {
		if folder == "" {
			continue
		}
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return fs.SkipAll
			}
			if err != nil || d.Type()&(fs.ModeNamedPipe|fs.ModeDevice) == 0 {
				return nil //nolint:nilerr // what can't be read is not what it waits for
			}
			name, _ := filepath.Rel(folder, path)
			if folder == of.top && !slices.Contains(asked, d.Name()) && !slices.Contains(strings.Split(name, "/"), ".git") {
				return nil
			}
			if info, err := d.Info(); err == nil {
				found = refused(name, info)
			}
			if found != nil {
				return fs.SkipAll
			}
			return nil
		})
		if found != nil {
			return found
		}
	}
	return nil
}
