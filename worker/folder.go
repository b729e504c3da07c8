package worker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"stint/api"
)

// folder is a work folder that was checked and found usable.
type folder struct {
	path string      // as the agent names it
	real string      // links resolved, cleaned
	info fs.FileInfo // which folder it was at that time
}

// openFolder checks a work folder in the order of contract 10.2.
func openFolder(path string) (folder, *api.Failure) {
	if !filepath.IsAbs(path) {
		if path == "" {
			return folder{}, refuse(CodeFolderNotAbsolute, "The agent names no work folder. Give it one on its page (Edit, Work folder) or with: stint agent edit AGENT --work-folder DIR.")
		}
		return folder{}, refuse(CodeFolderNotAbsolute, "The work folder %q is not an absolute path. Write it whole on the agent's page (Edit, Work folder) or with: stint agent edit AGENT --work-folder DIR", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return folder{}, folderFailure(path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return folder{}, folderFailure(path, err)
	}
	if !info.IsDir() {
		return folder{}, refuse(CodeFolderNotADir, "The work folder %q is not a folder.", path)
	}
	if err := enter(real); err != nil {
		return folder{}, refuse(CodeFolderNotReadable, "The work folder %q can't be read by the worker's user: %v.", path, cause(err))
	}
	return folder{path: path, real: filepath.Clean(real), info: info}, nil
}

func folderFailure(path string, err error) *api.Failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(CodeFolderNotFound, "The work folder %q does not exist on the worker's machine.", path)
	case errors.Is(err, syscall.ENOTDIR):
		return refuse(CodeFolderNotADir, "A part of the work folder's path %q is not a folder.", path)
	default:
		return refuse(CodeFolderNotReadable, "The work folder %q can't be read by the worker's user: %v.", path, cause(err))
	}
}

// enter reads one entry and looks one up, which takes the rights to list and to search.
func enter(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if _, err := d.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = os.Stat(dir + "/.") // filepath.Join would remove the dot
	return err
}

// cause strips the operation and the path from a file error; the sentence already has them.
func cause(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// vanished reports whether the checked folder is no longer where it was. A disk that doesn't
// answer for a moment is not a sign of that.
func (f folder) vanished() bool {
	info, err := os.Stat(f.real)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	return !os.SameFile(info, f.info)
}

// machineID reads the random name of this machine, or makes it. It is no secret,
// but it keeps folder keys of two machines, or of two users, apart.
func machineID(file string) (string, error) {
	for range 2 {
		b, err := os.ReadFile(file)
		if id := strings.TrimSpace(string(b)); err == nil && len(id) >= 16 {
			return id, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read the machine's name: %w", err)
		}
		if err := writeOnce(file, rand.Text()+"\n"); err != nil {
			return "", fmt.Errorf("keep the machine's name: %w", err)
		}
	}
	return "", fmt.Errorf("%s holds no machine name: delete it", file)
}

// writeOnce makes a file whole or not at all; one that another process has just made stays.
func writeOnce(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.WriteString(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// folderKey is the opaque name of a work folder that the coordinator compares; it doesn't
// reveal the path. It has a part for each folder on the way, so that the key of a folder
// begins with the key of each folder that it lies in. Links and the spelling of the path make
// no difference; what doesn't exist yet is named by its nearest existing parent.
func folderKey(machine, path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	var b strings.Builder
	sum := sha256.Sum256([]byte(machine))
	b.WriteString(hex.EncodeToString(sum[:8]))
	for _, name := range strings.FieldsFunc(resolve(filepath.Clean(path)), func(r rune) bool { return r == filepath.Separator }) {
		sum = sha256.Sum256(append(sum[:], name...))
		b.WriteByte('/')
		b.WriteString(hex.EncodeToString(sum[:5]))
	}
	return b.String()
}

func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// folders lets one session at a time into a folder, or into one within it. The
// coordinator keeps sessions apart by the keys of their folders; this covers what
// its keys can't show: a link that was changed since the worker registered. contract 10.2
type folders struct {
	mu    sync.Mutex
	taken map[string]struct{} // resolved paths
	freed chan struct{}       // closed and made anew when a path is freed
}

func newFolders() *folders {
	return &folders{taken: map[string]struct{}{}, freed: make(chan struct{})}
}

// take waits until nobody is in the folder, above it or below it; waiting is called once if
// that takes time. It returns the function that leaves it again.
func (f *folders) take(ctx context.Context, path string, waiting func(other string)) (leave func(), err error) {
	for first := true; ; first = false {
		f.mu.Lock()
		other, busy := f.overlaps(path)
		if !busy {
			f.taken[path] = struct{}{}
			f.mu.Unlock()
			return func() { f.free(path) }, nil
		}
		freed := f.freed
		f.mu.Unlock()
		if first {
			waiting(other)
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// try takes a folder if nobody is in it, above it or below it.
func (f *folders) try(path string) (leave func(), free bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, busy := f.overlaps(path); busy {
		return nil, false
	}
	f.taken[path] = struct{}{}
	return func() { f.free(path) }, true
}

func (f *folders) free(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.taken, path)
	close(f.freed)
	f.freed = make(chan struct{})
}

func (f *folders) overlaps(path string) (string, bool) {
	for other := range f.taken {
		if within(path, other) || within(other, path) {
			return other, true
		}
	}
	return "", false
}

// within reports whether path is dir or lies in it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(dir, string(filepath.Separator)))
}
