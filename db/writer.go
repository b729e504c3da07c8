package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"stint/queries"
)

// writer makes all changes. At any time it has one owner, given by the queue: the writer
// goroutine (loop), or the only caller that wants to write.
type writer struct {
	now       func() time.Time
	log       *slog.Logger
	queue     *queue
	done      chan struct{}                        // closed when the writer goroutine has ended
	committed func(took time.Duration, shared int) // of Options
	broken    func(cause error)                    // called once when the writer stops for good; must not wait
	ended     atomic.Pointer[error]                // why it has stopped and nothing may be written any more

	refusal atomic.Pointer[error] // why the disk refused the last write; nil since one was accepted

	// The fields from here on belong to the owner.

	pool        *sql.DB
	conn        *sql.Conn // keeps guard open
	guard       *guard
	queries     *queries.Queries
	rowCache    *rowCache
	held        heldBack
	openFiles   *openFiles
	book        *notebook
	told        *told
	wakeReaders func() // of the log; one value for all, because each costs an allocation
	closed      bool

	begin, savepoint, release, undo, commit, rollback, version *control

	ids, events counter
	lastID      int64 // the highest id handed out by this process
	wrote       bool  // a closure of the current transaction has written
	counterErr  error // why a counter could not be read in the running closure
}

// openWriter opens the writing connection and keeps the statements prepared on it. One that
// is parsed for each use costs 1.6 to 2 times as much.
func openWriter(ctx context.Context, path string, o Options) (*writer, error) {
	w := &writer{
		now:       o.Clock,
		log:       o.Log,
		queue:     newQueue(),
		done:      make(chan struct{}),
		committed: o.Committed,
		broken:    func(error) {},
		openFiles: o.openFiles,
		ids:       counter{name: "id"},
		told:      &told{},
		events:    counter{name: "event"},
		rowCache:  newRowCache(o.Unsafe.CheckRowCache),
	}
	var err error
	if w.pool, err = openRole(path, writing, o); err != nil {
		return nil, err
	}
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *writer) prepare(ctx context.Context) (err error) {
	if w.conn, err = w.pool.Conn(ctx); err != nil {
		return fmt.Errorf("open the writing connection: %w", err)
	}
	if w.guard, err = guardOf(w.conn); err != nil {
		return err
	}
	w.guard.rowCache, w.guard.flush, w.guard.rolledBack = w.rowCache, w.flush, w.held.drop
	w.queries = queries.New(w.guard.direct)
	for _, c := range []struct {
		control **control
		text    string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.savepoint, "SAVEPOINT w"},
		{&w.release, "RELEASE w"},
		{&w.undo, "ROLLBACK TO w"},
		{&w.commit, "COMMIT"},
		{&w.rollback, "ROLLBACK"},
		{&w.version, "PRAGMA data_version"},
	} {
		if *c.control, err = newControl(ctx, w.guard, c.text); err != nil {
			return err
		}
	}
	// Take the write lock once: a file that cannot be written to must be discovered now, not
	// by the first caller.
	if err := w.start(); err != nil {
		return fmt.Errorf("take the write lock: %w", err)
	}
	return w.rollback.run()
}

// close ends the connection; later calls do nothing. The writer goroutine must
// have ended.
func (w *writer) close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	var errs []error
	for _, c := range []*control{w.begin, w.savepoint, w.release, w.undo, w.commit, w.rollback, w.version} {
		if c != nil {
			errs = append(errs, c.stmt.Close())
		}
	}
	if w.guard != nil {
		w.guard.direct.Close()
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	return errors.Join(append(errs, w.pool.Close())...)
}

// loop runs batches until the queue is stopped and empty.
func (w *writer) loop() {
	defer close(w.done)
	finished := false
	defer func() {
		if !finished {
			w.abandon()
		}
	}()
	for b := w.queue.next(); b != nil; b = w.queue.next() {
		w.runBatch(b)
	}
	finished = true
}

// runBatch answers a batch.
func (w *writer) runBatch(b *batch) {
	defer close(b.done)
	w.answer(b.requests)
	w.queue.rest(len(b.requests))
}

// runAlone answers one request on its caller's goroutine.
func (w *writer) runAlone(r *request) {
	defer w.queue.leave()
	w.answer([]*request{r})
}

// errGoexit is the outcome of a closure that ended its goroutine.
var errGoexit = errors.New("a closure ended its goroutine (runtime.Goexit, as FailNow of a test does)")

// answer gives every request its outcome, whatever the closures do.
func (w *writer) answer(requests []*request) {
	finished := false
	defer func() {
		if !finished {
			w.guard.closeRows()
			settleAll(requests, errors.Join(errGoexit, w.abort()))
		}
	}()
	if err := w.unusable(); err != nil {
		settleAll(requests, err)
	} else {
		w.run(requests)
	}
	finished = true
}

// unusable returns why nothing may be written any more, or nil.
func (w *writer) unusable() error {
	if err := w.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// abandon is for a closure that ended the writer goroutine itself: there is no way back into
// the loop, so everybody gets an error and nobody hangs.
func (w *writer) abandon() {
	w.queue.stop(errGoexit)
	for {
		b, _ := w.queue.take()
		if b == nil {
			return
		}
		settleAll(b.requests, errGoexit)
		close(b.done)
	}
}

func settleAll(requests []*request, err error) {
	for _, r := range requests {
		if !r.settled {
			r.settle(err)
		}
	}
}

// call runs one closure. A panic becomes an error.
func (w *writer) call(r *request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	r.after, w.counterErr = r.room[:0], nil
	tx := &Tx{Queries: w.queries, Now: w.instant(), w: w, r: r}
	if err := r.fn(tx); err != nil {
		return err
	}
	return w.counterErr
}

// instant reads the clock in the store's precision.
func (w *writer) instant() time.Time {
	return w.now().UTC().Truncate(time.Microsecond)
}

// afterCommit calls what the closures registered.
func (w *writer) afterCommit(r *request) {
	for _, f := range r.after {
		w.callAfter(f)
	}
}

func (w *writer) callAfter(f func()) {
	defer func() {
		if v := recover(); v != nil {
			// The change is committed; its caller must learn that.
			w.log.Error("panic after commit", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// stop ends all writing by this writer: later requests are answered later, and a new writer
// has to be opened (contract 14).
func (w *writer) stop(cause, later error) {
	w.log.Error("no more writes until the database can be opened again", "error", cause)
	w.ended.Store(&later)
	w.queue.stop(later)
	w.broken(cause)
}

// checkpoint writes the whole log back into the file and empties it. Another process that
// reads prevents the emptying, which costs nothing but space: emptied is false then.
func (w *writer) checkpoint() (emptied bool, err error) {
	return w.moveLog("TRUNCATE")
}

func (w *writer) moveLog(how string) (all bool, err error) {
	w.guard.inTx = true // it isn't a closure's statement
	defer func() { w.guard.inTx = false }()
	return moveLog(context.Background(), w.conn, how)
}

// rowQuerier is a pool or one connection of it.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// moveLog writes as much of the log back into the file as readers let it.
func moveLog(ctx context.Context, conn rowQuerier, how string) (all bool, err error) {
	var busy, frames, moved int
	if err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+how+")").Scan(&busy, &frames, &moved); err != nil {
		return false, fmt.Errorf("write the log back: %w", err)
	}
	return busy == 0 && frames == moved, nil
}

// sign writes the number of a start into the file's first page, which also
// proves that the disk takes writes.
func (w *writer) sign(number uint32) error {
	if err := w.start(); err != nil {
		return classify(err)
	}
	if _, err := w.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA user_version = %d", int32(number))); err != nil {
		return errors.Join(classify(err), w.abort())
	}
	if err := w.commit.run(); err != nil {
		return errors.Join(classify(err), w.abort())
	}
	w.guard.inTx = false
	_, err := w.moveLog("PASSIVE")
	return err
}
