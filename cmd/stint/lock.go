package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stint/db"
)

// dirLock is the exclusive right to run a coordinator on a data directory, and on the database
// if that is a link to a file elsewhere. The kernel ends it with the process, however that
// ends; the files stay.
type dirLock []*os.File

// errLocked says that another process holds the lock; pid is 0 where it isn't known.
type errLocked struct{ pid int }

func (e errLocked) Error() string { return "locked by process " + strconv.Itoa(e.pid) }

// lockAttempts and lockPause: the command line checks the lock by taking it shared for a
// moment, which must not stop a start.
const (
	lockAttempts = 6
	lockPause    = 30 * time.Millisecond
)

// lockDir takes the lock or fails with errLocked.
func lockDir(d dataDir) (dirLock, error) {
	real, err := db.Resolve(d.database())
	if err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	var l dirLock
	for _, name := range []string{d.lock(), dataDir(filepath.Dir(real)).lock()} {
		f, err := lockOne(name, l)
		if err != nil {
			return nil, errors.Join(err, l.release())
		}
		if f != nil {
			l = append(l, f)
		}
	}
	return l, nil
}

// lockOne locks a file and writes our process id into it, for the next process to name. It
// returns nil for a file that is already locked, by whatever name.
func lockOne(name string, held dirLock) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data directory: %w", err)
	}
	if same, err := held.has(f); same || err != nil {
		return nil, errors.Join(err, f.Close())
	}
	for range lockAttempts {
		if err = flock(f, unix.LOCK_EX); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(lockPause)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		pid := lockHolder(f)
		return nil, errors.Join(errLocked{pid}, f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock the data directory: %w", err), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sign the lock of the data directory: %w", err), f.Close())
	}
	return f, nil
}

func (l dirLock) has(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("look at the lock of the data directory: %w", err)
	}
	for _, other := range l {
		held, err := other.Stat()
		if err != nil {
			return false, fmt.Errorf("look at the lock of the data directory: %w", err)
		}
		if os.SameFile(info, held) {
			return true, nil
		}
	}
	return false, nil
}

// release releases the lock. The files stay: removing them could let two in.
func (l dirLock) release() error {
	var errs []error
	for _, f := range l {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// lockHeld reports whether a coordinator runs on the data directory right now.
func lockHeld(d dataDir) bool {
	f, err := os.Open(d.lock())
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(flock(f, unix.LOCK_SH), unix.EWOULDBLOCK)
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func lockHolder(f *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}
