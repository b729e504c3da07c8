package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
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

	// Committed is told after each transaction that wrote how long its COMMIT took, the disk
	// included, and how many callers shared it; nil = nobody is. It must be quick.
	Committed func(took time.Duration, shared int)

	// Unsafe is for tests.
	Unsafe Unsafe

	openFiles *openFiles // what connections of a store must find at the path; nil = anything
	still     bool       // nothing changes the file, and it has no log
}

// Unsafe are settings that give up what the store promises. They exist so that
// tests can be fast, can simulate a disk, and can show that they would notice.
type Unsafe struct {
	Synchronous string // "" = FULL; NORMAL and OFF lose writes when the power goes
	VFS         string // name of a registered SQLite VFS; "" = the operating system's files

	CheckRowCache bool // compare each row that the writer keeps with the table before it is used

	CheckpointPages int // write the log back after this many pages; 0 = 1000

	Retry time.Duration // the first pause before a store that can't write tries again; 0 = 1 s
}

// Store is an open database file. All methods may be called from any goroutine.
type Store struct {
	path      string
	options   Options // with the place
	openFiles *openFiles
	book      *notebook
	told      told
	writer    atomic.Pointer[writer] // replaced by the recovery
	readers   *readers               // guarded by readsGate; replaced by the recovery

	broken chan error    // why the writer stopped
	ending chan struct{} // closed when the store is to end
	tended chan struct{} // closed when the recovery has ended

	closing   sync.Mutex
	closed    bool // guarded by closing
	reads     sync.WaitGroup
	readsGate sync.RWMutex
	noReads   bool // guarded by readsGate
}

// Open opens the file, bringing its schema up to date first: under a lock that
// other processes wait for, and after a snapshot beside the file (its name ends
// in .before-vN). A symbolic link is followed, so that the lock and the log lie
// beside the file itself, by whatever name it is opened. It refuses a file of a
// newer version ([ErrNewer]), a file and a log that don't belong together
// ([ErrUnpaired]), a directory that cannot be written to, an SQLite older than
// 3.51.3 and a connection on which any setting does not read back. ctx bounds
// the opening.
func Open(ctx context.Context, o Options) (*Store, error) {
	path, err := Resolve(o.Path)
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
	s := &Store{
		path: path, options: o,
		broken: make(chan error, 1), ending: make(chan struct{}), tended: make(chan struct{}),
	}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	s.begin(s.writer.Load())
	go s.tend()
	return s, nil
}

// begin lets a writer work and notifies the recovery when it stops.
func (s *Store) begin(w *writer) {
	w.book, w.told = s.book, &s.told
	w.wakeReaders = s.told.events.Wake
	w.broken = func(cause error) {
		if errors.Is(cause, ErrForeign) {
			s.disown()
		}
		s.broken <- cause // one writer at a time, and each stops once
	}
	go w.loop()
}

// Write runs fn in a transaction and returns after its COMMIT is on the disk.
//
// fn may share the transaction with other closures and may run more than once, so it must
// assign its results, not add to them. It must do no I/O, start no goroutine that uses tx, and
// never call the store: everybody waits for it. An error or a panic of fn undoes fn alone and
// is returned, a panic as a [*PanicError]. ctx is checked before fn starts and not after, so
// that a caller that leaves cannot harm the others.
//
// Every error except [ErrOutcomeUnknown] means that nothing was written: the states of the
// store ([ErrFull], [ErrReadOnly], [ErrFailing], [ErrMoved], [ErrForeign], [ErrDamaged],
// [ErrClosed]), [ErrBusy], and what fn returned. The states also come in the product's own
// words, as an [api.Error].
func (s *Store) Write(ctx context.Context, fn func(tx *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{ctx: ctx, fn: fn}
	w := s.writer.Load()
	switch b, err := w.queue.join(r); {
	case err != nil:
		return refused(err)
	case b == nil:
		w.runAlone(r)
	default:
		<-b.done
	}
	return refused(r.err)
}

// Read runs fn on one consistent snapshot, which holds everything that was committed before.
// It waits for no writer and ends after 5 seconds at the latest, including the wait for a free
// connection: then statements fail with [ErrSlow]. fn must not write to the network while it
// holds the snapshot, and must not call Read. Reading also works while nothing can be written.
// The states of the store come as from Write.
func (s *Store) Read(ctx context.Context, fn func(tx *ReadTx) error) error {
	return refused(s.read(ctx, forAnybody, fn))
}

// ReadTimer is [Store.Read] for what the coordinator does without a request, on connections
// that no request takes: however many readers wait, what is due is found.
func (s *Store) ReadTimer(ctx context.Context, fn func(tx *ReadTx) error) error {
	return s.read(ctx, forTimers, fn)
}

// ReadRights is [Store.Read] for the look-ups without which no request begins, such as whose a
// token is, on a separate connection: a write doesn't queue behind readers of lists. fn must
// be a few look-ups by an index.
func (s *Store) ReadRights(ctx context.Context, fn func(tx *ReadTx) error) error {
	return s.read(ctx, forRights, fn)
}

func (s *Store) read(ctx context.Context, use int, fn func(tx *ReadTx) error) error {
	readers := s.startRead()
	if readers == nil {
		return ErrClosed
	}
	defer s.reads.Done()
	return classify(readers.read(ctx, use, s.Now(), fn))
}

// startRead returns what to read with, nil when the store is closed.
func (s *Store) startRead() *readers {
	s.readsGate.RLock()
	defer s.readsGate.RUnlock()
	if s.noReads {
		return nil
	}
	s.reads.Add(1)
	return s.readers
}

// Now reads the store's clock: UTC, whole microseconds.
func (s *Store) Now() time.Time { return s.writer.Load().instant() }

// Writable returns why writes fail at the moment, according to the last one: [ErrFull],
// [ErrReadOnly], [ErrFailing], [ErrMoved], [ErrForeign] or [ErrDamaged]; nil when they don't.
// A later write that succeeds makes it nil again. It comes as from Write.
func (s *Store) Writable() error {
	w := s.writer.Load()
	if err := w.unusable(); err != nil {
		return refused(err)
	}
	if err := w.refusal.Load(); err != nil {
		return refused(*err)
	}
	return nil
}

// Close refuses new calls, waits for the running ones, writes the log back into the file and
// closes it. Later calls do nothing.
func (s *Store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.ending)
	<-s.tended
	w := s.writer.Load()
	w.queue.stop(ErrClosed)
	<-w.done
	select {
	case cause := <-s.broken: // the recovery no longer receives it
		s.save(w, cause)
	default:
	}
	s.readsGate.Lock()
	s.noReads = true
	s.readsGate.Unlock()
	s.reads.Wait()
	err := s.readers.close()
	if w.unusable() != nil {
		return errors.Join(err, s.leave(w))
	}
	emptied, failed := w.checkpoint()
	switch {
	case emptied:
		s.endCleanly()
	case errors.Is(classify(failed), ErrFull) || errors.Is(classify(failed), ErrReadOnly):
		// Everything is in the log, which stays and is read at the next start.
		s.options.Log.Warn("the log stays beside the database: the disk takes no more", "error", failed)
		failed = nil
	}
	return errors.Join(err, failed, w.close(), s.openFiles.leave(), s.book.file.Close())
}

// leave ends a store that can't write. It calls no further fsync on a log that the kernel may
// have given up on, and deletes no log beside a file that isn't ours: SQLite does both when
// the last connection closes, so the writer's stays open until the process ends.
func (s *Store) leave(w *writer) error {
	if w.closed {
		return errors.Join(s.openFiles.leave(), s.book.file.Close())
	}
	return w.pool.Close()
}

// endCleanly notes that the log holds nothing, before it is deleted.
func (s *Store) endCleanly() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	unlock, err := lockFile(ctx, s.path+lockSuffix)
	if err != nil {
		return // another process opens the database, and will note how that ended
	}
	use := lastUseOf(s.path)
	use.state = stateClean
	if err := errors.Join(s.book.write(use), unlock()); err != nil {
		s.options.Log.Warn("note the clean end", "error", err)
	}
}

// UseOFDLocks makes SQLite's locks survive a stray open and close of the file by anything else
// in this process, which silently drops ordinary POSIX locks. Call it before anything else; it
// changes nothing where the system has no such locks.
func UseOFDLocks() error {
	if _, err := sqlite.OFDLocking(true); err != nil && !errors.Is(err, sqlite.ErrOFDLockingUnavailable) {
		return fmt.Errorf("use open file description locks: %w", err)
	}
	return nil
}
