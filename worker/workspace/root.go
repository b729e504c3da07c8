package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"stint/worker/git"
)

var (
	// ErrRoot says that a folder isn't suitable for workspaces.
	ErrRoot = errors.New("workspaces can't be kept there")
	// ErrBusy says that another worker uses the workspace.
	ErrBusy = errors.New("another worker uses the workspace")
	// ErrMoved says that a workspace is no longer the folder that it was.
	ErrMoved = errors.New("the workspace is not the folder that it was")
)

// hidden holds what is known about the workspaces beside it.
const hidden = ".stint"

// root is a folder of workspaces. Everything in it is reached through dir, which no link leads
// out of.
type root struct {
	path string // links resolved
	dir  *os.Root
}

// openRoot opens the folder, and creates it if make is set. Nobody else may be able to write
// it.
func openRoot(path string, create bool) (*root, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%w: %q is not an absolute path", ErrRoot, path)
	}
	if create {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRoot, err)
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRoot, err)
	}
	dir, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRoot, err)
	}
	info, err := dir.Stat(".")
	if err == nil {
		err = private(real, info)
	}
	if err == nil && create {
		if err = dir.Mkdir(hidden, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrRoot, err), dir.Close())
	}
	return &root{real, dir}, nil
}

func private(path string, info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users can write to %s", path)
	}
	return nil
}

// caller lets git work beside the records.
func (r *root) caller(env []string) git.Caller {
	return git.Caller{Env: env, Room: filepath.Join(r.path, hidden)}
}

func (r *root) close() { _ = r.dir.Close() }

// identity tells a folder from every other one that lies at its path later.
type identity struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

func identityOf(info fs.FileInfo) identity {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(s.Dev), s.Ino} //nolint:unconvert // Dev has another type on macOS
}

// folder is the identity of a workspace's folder: a real one, not a link to one.
func (r *root) folder(name string) (identity, error) {
	info, err := r.dir.Lstat(name)
	if err != nil {
		return identity{}, err
	}
	if !info.IsDir() {
		return identity{}, fmt.Errorf("%w: %s is not a folder", ErrMoved, filepath.Join(r.path, name))
	}
	return identityOf(info), nil
}

// record is what is known about a workspace. It lies beside it, where an agent that is
// confined to its workspace can't write.
type record struct {
	Key        string `json:"key"`
	Agent      string `json:"agent"`
	Session    string `json:"session"` // the last one
	Mode       string `json:"mode"`
	Repository string `json:"repository,omitzero"` // the top folder of its repository
	Branch     string `json:"branch,omitzero"`
	Base       string `json:"base,omitzero"`       // the commit that it began at
	BaseBranch string `json:"baseBranch,omitzero"` // what it would be merged into
	// Where the repository's branches went when it was made, see [git.Routes].
	Remotes   map[string]string `json:"remotes,omitzero"`
	Branches  map[string]string `json:"branches,omitzero"`
	Landed    string            `json:"landed,omitzero"` // the commit up to which its branch is in the base branch
	Ready     bool              `json:"ready,omitzero"`  // it was made, after_create included
	Done      bool              `json:"done,omitzero"`   // its last session won't go on
	CreatedAt time.Time         `json:"createdAt"`
	UsedAt    time.Time         `json:"usedAt"`
	Folder    identity          `json:"folder,omitzero"`
}

func (r *root) read(name string) (rec record, found bool, err error) {
	text, err := r.dir.ReadFile(filepath.Join(hidden, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil {
		return record{}, true, fmt.Errorf("read the record of the workspace %s: %w", name, err)
	}
	return rec, true, nil
}

// write replaces a record; it is on disk when this returns.
func (r *root) write(name string, rec record) error {
	text, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("write the record of the workspace %s: %w", name, err)
	}
	at := filepath.Join(hidden, name+".json")
	f, err := r.dir.OpenFile(at+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the record of the workspace %s: %w", name, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = r.dir.Rename(at+".new", at)
	}
	if err == nil {
		err = r.sync(hidden)
	}
	if err != nil {
		return fmt.Errorf("write the record of the workspace %s: %w", name, err)
	}
	return nil
}

func (r *root) sync(name string) error {
	d, err := r.dir.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lock takes a workspace for this process; the system releases it when the process ends,
// however it ends. The error may be ErrBusy.
func (r *root) lock(name string) (*lockedFile, error) {
	at := filepath.Join(hidden, name+".lock")
	for {
		f, err := r.dir.OpenFile(at, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock the workspace %s: %w", name, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("%w: %s", ErrBusy, filepath.Join(r.path, name))
			}
			return nil, fmt.Errorf("lock the workspace %s: %w", name, err)
		}
		mine, err := f.Stat()
		if err == nil {
			if now, gone := r.dir.Lstat(at); gone == nil && os.SameFile(mine, now) {
				return &lockedFile{f}, nil
			}
		}
		_ = f.Close() // it was just removed with its workspace
	}
}

// lockedFile is a lock that is held. Closing it gives it back at once, even if a child that this
// process is just starting has the file too, as it does until its exec.
type lockedFile struct{ *os.File }

func (l *lockedFile) Close() error {
	return errors.Join(unix.Flock(int(l.Fd()), unix.LOCK_UN), l.File.Close())
}

// forget removes a record and its lock file, which the caller holds.
func (r *root) forget(name string) error {
	var bad error
	for _, ending := range []string{".json", ".lock"} {
		if err := r.dir.Remove(filepath.Join(hidden, name+ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad = errors.Join(bad, err)
		}
	}
	return bad
}
