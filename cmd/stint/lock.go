package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// dirLock is the exclusive right to run a coordinator on a data directory. The
// kernel ends it with the process, however that ends; the file stays.
type dirLock struct{ file *os.File }

// errLocked says that another process holds the lock; pid is 0 where it isn't known.
type errLocked struct{ pid int }

func (e errLocked) Error() string { return "locked by process " + strconv.Itoa(e.pid) }

// lockAttempts and lockPause: the command line looks at the lock by taking it
// shared for a moment, which must not stop a start.
const (
	lockAttempts = 6
	lockPause    = 30 * time.Millisecond
)

// lockDir takes the lock or fails with errLocked.
func lockDir(d dataDir) (*dirLock, error) {
	f, err := os.OpenFile(d.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data directory: %w", err)
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
	l := &dirLock{f}
	if err := l.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("sign the lock of the data directory: %w", err), f.Close())
	}
	return l, nil
}

// sign writes our process id for the next one to name.
func (l *dirLock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release gives the lock up. The file stays: removing it could let two in.
func (l *dirLock) release() error { return l.file.Close() }

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
