package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrAlreadyRunning says that another worker process uses the state directory.
var ErrAlreadyRunning = errors.New("WORKER_ALREADY_RUNNING")

// lock reserves a state directory for one process. The system releases it when the process
// ends, however it ends.
type lock struct{ file *os.File }

// takeLock makes the directory, private, and locks it for this process.
func takeLock(dir string) (lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return lock{}, fmt.Errorf("make the state directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return lock{}, fmt.Errorf("look at the state directory: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		// It holds prompts and output: nobody else may read them.
		if err := os.Chmod(dir, 0o700); err != nil {
			return lock{}, fmt.Errorf("make the state directory private: %w", err)
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "worker.pid"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return lock{}, fmt.Errorf("lock the state directory: %w", err)
	}
	if err := flock(f); err != nil {
		pid, _ := os.ReadFile(f.Name())
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return lock{}, fmt.Errorf("%w: process %s is a worker with the state directory %s; stop it, or give this one a directory of its own",
				ErrAlreadyRunning, strings.TrimSpace(string(pid)), dir)
		}
		return lock{}, fmt.Errorf("lock the state directory: %w", err)
	}
	// The number is for people; only the lock counts.
	if err := errors.Join(f.Truncate(0), writePid(f)); err != nil {
		_ = f.Close()
		return lock{}, fmt.Errorf("write the pid file: %w", err)
	}
	return lock{f}, nil
}

// flock takes the lock, with a moment's patience: a child that a dying process was just
// starting may hold it until its exec.
func flock(f *os.File) error {
	for end := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}

func writePid(f *os.File) error {
	_, err := fmt.Fprintln(f, os.Getpid())
	return err
}

func (l lock) release() { _ = l.file.Close() }
