//go:build unix

package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockEvery is how often a lock that is held elsewhere is tried again. A blocking call could
// not be ended by a context.
const lockEvery = 20 * time.Millisecond

// lockFile takes the lock of a file, creating it, and waits for its holder until ctx ends. The
// file stays: removing it would let two processes hold locks on two files of the same name.
func lockFile(ctx context.Context, path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the directory %s cannot be written to: %w", filepath.Dir(path), err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another process to open the database (%s): %w", path, ctx.Err()), f.Close())
		case <-time.After(lockEvery):
		}
	}
}

// lockSuffix is added to the database's name to name the lock file.
const lockSuffix = ".lock"

// tryLock takes the lock of a file, which the flag os.O_CREATE creates; nil when somebody else
// has it.
func tryLock(path string, create int) (*os.File, error) {
	f, err := os.OpenFile(path, create|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = nil
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
