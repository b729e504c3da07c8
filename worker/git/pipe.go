package git

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stint/worker/regular"
)

// ErrPipe says that a named pipe or a device lies where git reads a file.
var ErrPipe = regular.ErrEndless

// plain refuses a path at which something lies that may never end, or a link to such a thing. A
// missing one is fine.
func plain(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // git will say so where it needs it
	}
	return regular.Refuse(filepath.Base(path), info)
}

// asked are the files that git reads wherever they lie in a tree.
var asked = []string{".gitignore", ".gitattributes", ".gitmodules", ".mailmap"}

// atOnce looks where git is most often kept waiting.
func atOnce(of tree) error {
	for _, name := range asked {
		if info, err := os.Lstat(filepath.Join(of.top, name)); err == nil {
			if err := regular.Refuse(name, info); err != nil {
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
				found = regular.Refuse(name, info)
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
