package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// Options say which file to open and how.
type Options struct {
	// Path is the database file. Its directory must exist; the file is created
	// with mode 0600 if it does not. Any characters are allowed.
	Path string

	// Clock is what Now of every transaction is read from; nil = [time.Now].
	Clock func() time.Time

	// Log gets what no caller can be told; nil = nothing is logged.
	Log *slog.Logger

	// Migrations are the goose files that make the schema; nil = the embedded ones.
	Migrations fs.FS

	// Unsafe is for tests.
	Unsafe Unsafe
}

// Unsafe are settings that give up what the store promises. They exist so that
// tests can be fast, can simulate a disk, and can show that they would notice.
type Unsafe struct {
	Synchronous string // "" = FULL; NORMAL and OFF lose writes when the power goes
	VFS         string // name of a registered SQLite VFS; "" = the operating system's files

	CheckKept bool // compare each row that the writer keeps with the table before it is used

	CheckpointPages int // write the log back after this many pages; 0 = 1000
}

// Store is an open database file. All methods may be called from any goroutine.
type Store struct {
	path    string
	options Options
	writer  *writer
	readers *readers

	closing   sync.Mutex
	closed    bool // guarded by closing
	reads     sync.WaitGroup
	readsGate sync.RWMutex
	noReads   bool // guarded by readsGate
}

// Open opens the file, bringing its schema up to date first: under a lock that
// other processes wait for, and after a snapshot beside the file (its name ends
// in .before-vN). It refuses a file of a newer version ([ErrNewer]), a
// directory that cannot be written to, an SQLite older than 3.51.3 and a
// connection on which any setting does not read back. ctx bounds the opening.
func Open(ctx context.Context, o Options) (*Store, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("find database %s: %w", o.Path, err)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Migrations == nil {
		o.Migrations = embedded()
	}
	if err := migrate(ctx, path, o); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	s := &Store{path: path, options: o}
	if s.writer, err = openWriter(ctx, path, o); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	if s.readers, err = openReaders(path, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), s.writer.close())
	}
	go s.writer.loop()
	return s, nil
}

// Write runs fn in a transaction and returns after its COMMIT is on the disk.
//
// fn may share the transaction with other closures and may run more than once,
// so it must assign what it hands out, not add to it. It must do no I/O, start
// no goroutine that uses tx, and never call the store: everybody waits for it.
// An error or a panic of fn undoes fn alone and is returned, a panic as a
// [*PanicError]. ctx is looked at before fn starts and not after, so that a
// caller who leaves cannot hurt the others.
//
// [ErrFull], [ErrReadOnly] and [ErrClosed] mean that nothing was written, as
// does every error but [ErrOutcomeUnknown].
func (s *Store) Write(ctx context.Context, fn func(tx *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{ctx: ctx, fn: fn}
	switch b, err := s.writer.queue.join(r); {
	case err != nil:
		return err
	case b == nil:
		s.writer.runAlone(r)
	default:
		<-b.done
	}
	return r.err
}

// Read runs fn on one consistent snapshot, which holds everything that was
// committed before. It waits for no writer and ends after 5 seconds at the
// latest, the wait for a free connection included: statements fail then with
// the context's error. fn must not write to the network while it holds the
// snapshot, and must not call Read.
func (s *Store) Read(ctx context.Context, fn func(tx *ReadTx) error) error {
	if !s.startRead() {
		return ErrClosed
	}
	defer s.reads.Done()
	return s.readers.read(ctx, s.Now(), fn)
}

func (s *Store) startRead() bool {
	s.readsGate.RLock()
	defer s.readsGate.RUnlock()
	if s.noReads {
		return false
	}
	s.reads.Add(1)
	return true
}

// Now reads the store's clock: UTC, whole microseconds.
func (s *Store) Now() time.Time { return s.writer.instant() }

// Writable returns why writes fail at the moment, as far as the last one told:
// [ErrFull], [ErrReadOnly] or [ErrOutcomeUnknown]; nil when they don't. A later
// write that succeeds makes it nil again.
func (s *Store) Writable() error {
	if err := s.writer.unusable(); err != nil {
		return err
	}
	if err := s.writer.refusal.Load(); err != nil {
		return *err
	}
	return nil
}

// Fatal is closed when the outcome of a commit is unknown. Nothing is written
// from then on; the process has to start again and recover (contract 14).
func (s *Store) Fatal() <-chan struct{} { return s.writer.failed }

// Close refuses new calls, waits for those that run, writes the log back into
// the file and closes it. Later calls do nothing.
func (s *Store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.writer.queue.stop(ErrClosed)
	<-s.writer.done
	s.readsGate.Lock()
	s.noReads = true
	s.readsGate.Unlock()
	s.reads.Wait()
	if s.writer.unusable() != nil {
		return s.leave()
	}
	return errors.Join(s.readers.close(), s.writer.checkpoint(), s.writer.close())
}

// leave closes a store whose last commit failed, without a checkpoint: it would
// call fsync again on a log that the kernel may have given up on. SQLite
// makes one when the last connection closes, so the writer's stays open until
// the process ends.
func (s *Store) leave() error {
	return errors.Join(s.readers.close(), s.writer.pool.Close())
}

// UseOFDLocks makes SQLite's locks survive a stray open and close of the file
// by anything else in this process, which drops ordinary POSIX locks without a
// word. Call it before anything else; it changes nothing where the system has
// no such locks.
func UseOFDLocks() error {
	if _, err := sqlite.OFDLocking(true); err != nil && !errors.Is(err, sqlite.ErrOFDLockingUnavailable) {
		return fmt.Errorf("use open file description locks: %w", err)
	}
	return nil
}
