//go:build unix

package db

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openFiles knows which files a store has open, so that it notices when they are no longer the
// ones at their path: moved away, deleted, replaced, truncated or written over by another
// program. What is written then reaches a file that no later start will find, so it must not
// be acknowledged (contract 14).
//
// The ids are fixed when the store opens; the rest belongs to the owner of the writer, or to
// the recovery once the writer has stopped.
type openFiles struct {
	path          string
	main, log, ix fileID   // the database, its log and the log's index
	file, index   *os.File // the database and the index, to check bypassing SQLite

	header  header
	changed time.Time // of the database, when header was read
	size    int64     // of the database
	logSize int64
}

// fileID distinguishes the files of one machine.
type fileID struct{ device, number uint64 }

// header is the part of the database's first page that changes with its content.
type header [100]byte

// sign is PRAGMA user_version.
func (h header) sign() uint32 { return binary.BigEndian.Uint32(h[60:]) }

// bytes is the length that the file claims, 0 where it doesn't say. For a file with a log the
// log says it.
func (h header) bytes() int64 {
	if binary.BigEndian.Uint32(h[24:]) != binary.BigEndian.Uint32(h[92:]) {
		return 0 // written by an SQLite that doesn't keep it
	}
	return int64(binary.BigEndian.Uint32(h[28:])) * pageSize(binary.BigEndian.Uint16(h[16:]))
}

// pageSize reads what SQLite stores in two bytes.
func pageSize(stored uint16) int64 {
	if stored == 1 {
		return 64 << 10
	}
	return int64(stored)
}

// signOf is the number that the last start wrote into a database's first page.
func signOf(path string) (sign uint32, err error) {
	h, err := headerOf(path)
	return h.sign(), err
}

func headerOf(path string) (h header, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, fmt.Errorf("look at the file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if n, err := f.ReadAt(h[:], 0); n < len(h) {
		return h, fmt.Errorf("look at the file: %w", err)
	}
	return h, nil
}

// occupy notes the database file. It comes before the first connection, and opening it here is
// harmless only because leave comes after the last: closing a file drops the process's
// ordinary locks on it.
func occupy(path string) (*openFiles, error) {
	p := &openFiles{path: path}
	var err error
	if p.file, err = os.Open(path); err != nil {
		return nil, fmt.Errorf("look at the file: %w", err)
	}
	if p.main, err = idOf(p.file); err != nil {
		return nil, errors.Join(fmt.Errorf("look at the file: %w", err), p.file.Close())
	}
	return p, nil
}

// settle notes the log and its index once a connection has created them, and checks that the
// database is still the file that was occupied.
func (p *openFiles) settle() error {
	index, err := os.Open(p.path + "-shm")
	if err != nil {
		return fmt.Errorf("look at the log's index: %w", err)
	}
	if p.index != nil {
		err = p.index.Close()
	}
	p.index = index
	if err != nil {
		return fmt.Errorf("look at the log's index: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(p.path+"-wal", &st); err != nil {
		return fmt.Errorf("look at the log: %w", err)
	}
	p.log, p.logSize = statID(&st), st.Size
	if p.ix, err = idOf(p.index); err != nil {
		return fmt.Errorf("look at the log's index: %w", err)
	}
	if err := unix.Stat(p.path, &st); err != nil {
		return fmt.Errorf("look at the file: %w", err)
	}
	if statID(&st) != p.main {
		return fmt.Errorf("%w while it was being opened", ErrMoved)
	}
	p.size, p.changed = st.Size, changedAt(&st)
	p.header, err = p.readHeader()
	return err
}

// leave forgets the files. Every connection of the store must be closed, or stay open until
// the process ends.
func (p *openFiles) leave() error {
	err := p.file.Close()
	if p.index != nil {
		err = errors.Join(err, p.index.Close())
	}
	return err
}

// here reports whether the database at the path is the one that is open.
func (p *openFiles) here() bool {
	var st unix.Stat_t
	return unix.Stat(p.path, &st) == nil && statID(&st) == p.main
}

// whole returns nil if all files are the open ones and nothing else has touched them:
// [ErrMoved], [errLogGone] or [ErrForeign].
func (p *openFiles) whole() error {
	var main, log, ix unix.Stat_t
	switch err := unix.Stat(p.path, &main); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMoved, err)
	case statID(&main) != p.main:
		return fmt.Errorf("%w: another file is there", ErrMoved)
	}
	if err := p.untouched(&main); err != nil {
		return err
	}
	switch err := errors.Join(unix.Stat(p.path+"-wal", &log), unix.Stat(p.path+"-shm", &ix)); {
	case errors.Is(err, unix.ENOENT):
		return errLogGone
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMoved, err)
	case statID(&log) != p.log, statID(&ix) != p.ix:
		return fmt.Errorf("%w: another log is beside it", ErrForeign)
	}
	if log.Size < p.logSize {
		if err := p.logHolds(log.Size); err != nil {
			return err
		}
	}
	p.logSize = log.Size
	return nil
}

// untouched checks the database file itself: only a checkpoint changes it, which never removes
// the sign of a start or the end. A copy put over it that differs in neither goes unnoticed:
// it was made since this start, and the file has not grown since.
func (p *openFiles) untouched(st *unix.Stat_t) error {
	if st.Size == p.size && changedAt(st).Equal(p.changed) {
		return nil
	}
	// Another process may be in the middle of a checkpoint.
	var err error
	for range 5 {
		if err = p.follow(st); err == nil {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
		if again := unix.Stat(p.path, st); again != nil {
			return fmt.Errorf("%w: %w", ErrMoved, again)
		}
	}
	return err
}

// follow takes over what a checkpoint has changed, or says why it wasn't one.
func (p *openFiles) follow(st *unix.Stat_t) error {
	h, err := p.readHeader()
	switch {
	case err != nil:
		return err
	case h.sign() != p.header.sign() && !lastUseOf(p.path).names(h.sign()):
		return fmt.Errorf("%w: it is a copy from another time", ErrForeign)
	}
	if st.Size < p.size {
		// A checkpoint cuts it to exactly the size that the index knows.
		if ix, err := p.readIndex(); err != nil || st.Size < ix.pages*ix.pageSize {
			return fmt.Errorf("%w: its end was cut off", ErrForeign)
		}
	}
	p.header, p.size, p.changed = h, st.Size, changedAt(st)
	return nil
}

func (p *openFiles) readHeader() (h header, err error) {
	n, err := p.file.ReadAt(h[:], 0)
	if n < len(h) {
		return h, fmt.Errorf("%w: its beginning is gone (%w)", ErrForeign, err)
	}
	return h, nil
}

// logHolds compares the log's size, which may shrink when it is reset, with how many frames
// its index counts.
func (p *openFiles) logHolds(size int64) error {
	const logHeader, frameHeader = 32, 24
	ix, err := p.readIndex()
	if err != nil {
		return err
	}
	if ix.frames > 0 && size < logHeader+ix.frames*(frameHeader+ix.pageSize) {
		return fmt.Errorf("%w: the end of its log was cut off", ErrForeign)
	}
	return nil
}

// index is what the log's index says about the last commit.
type index struct{ frames, pages, pageSize int64 }

// readIndex reads the index as SQLite's WalIndexHdr lays it out, which its file format fixes:
// all processes on one file share it.
func (p *openFiles) readIndex() (index, error) {
	var raw [48]byte
	if n, err := p.index.ReadAt(raw[:], 0); n < len(raw) {
		return index{}, fmt.Errorf("%w: its log's index is gone (%w)", ErrForeign, err)
	}
	return index{
		frames:   int64(binary.NativeEndian.Uint32(raw[16:])),
		pages:    int64(binary.NativeEndian.Uint32(raw[20:])),
		pageSize: pageSize(binary.NativeEndian.Uint16(raw[14:])),
	}, nil
}

// deleted reports whether the open database no longer has a name.
func (p *openFiles) deleted() bool {
	var st unix.Stat_t
	return unix.Fstat(int(p.file.Fd()), &st) == nil && st.Nlink == 0
}

func idOf(f *os.File) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fileID{}, err
	}
	return statID(&st), nil
}

// linkedTwice reports whether a file has a second name, where another program would look for
// another lock and another log.
func linkedTwice(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// statID and changedAt: the fields' types differ between systems.
func statID(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), uint64(st.Ino)} } //nolint:unconvert // for other widths

func changedAt(st *unix.Stat_t) time.Time { return time.Unix(st.Mtim.Unix()) }
