package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"stint/queries"
)

// readLimit ends a read. While a snapshot is held the log cannot be reset: one forgotten
// reader made it grow from 4 to 578 MiB in two seconds.
const readLimit = 5 * time.Second

// ReadTx is one consistent snapshot. It is valid until the closure returns and
// only on its goroutine. The generated queries may be given any context:
// statements always run under the deadline of the read.
type ReadTx struct {
	*queries.Queries

	// Now is when the read started, in UTC and whole microseconds.
	Now time.Time

	r *reader
}

// Query runs a query that is not one of the generated ones, such as a check over the whole
// file. The caller closes the rows.
func (tx *ReadTx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	// With a context that can end, database/sql would close the rows on a goroutine of its own, at
	// any time, on a connection that the generated statements use without asking it.
	rows, err := tx.r.conn.QueryContext(context.WithoutCancel(ctx), query, args...)
	if err == nil {
		tx.r.given = append(tx.r.given, rows)
	}
	return rows, err
}

// readers is the pool of read-only connections.
type readers struct {
	log  *slog.Logger
	pool *sql.DB
	free [len(connections)]chan *reader // by use; a nil reader is a slot whose connection is not open yet
}

// reader is one connection of the pool, with the statements it has run kept prepared. It
// belongs to the goroutine that took it out of readers.free.
type reader struct {
	use        int
	conn       *sql.Conn
	guard      *guard
	queries    *queries.Queries
	begin, end *control
	reads      stage
	given      []*sql.Rows // what the running read's closure was given by Query
}

// What read connections are for. No other use takes those of one use.
const (
	forAnybody = iota
	forTimers
	forRights
	forSearches
)

// connections says how many each use has, opened when they are first taken.
var connections = [...]func() int{
	forAnybody: readerCount,
	forTimers:  func() int { return 2 }, // one timer that has much to read doesn't delay the others
	forRights:  func() int { return 1 },
	// However many search, they take one core at a time from the writer, and no connection from a page.
	forSearches: func() int { return 2 },
}

// readerCount is the cores but one, so that readers can never take all of them from the
// writer: four heavy readers on two cores cut 33 thousand writes/s to 2. It is at least two,
// because one slow page must not delay every other.
func readerCount() int { return max(2, runtime.GOMAXPROCS(0)-1) }

func openReaders(path string, o Options) (*readers, error) {
	pool, err := openRole(path, reading, o)
	if err != nil {
		return nil, err
	}
	rs := &readers{log: o.Log, pool: pool}
	for use, count := range connections {
		rs.free[use] = make(chan *reader, count())
		for range cap(rs.free[use]) {
			rs.free[use] <- nil
		}
	}
	return rs, nil
}

// take waits for a free connection until ctx ends. If none can be opened any more, as when the
// file was moved away, it takes one that is already open.
func (rs *readers) take(ctx context.Context, use int) (r *reader, err error) {
	free := rs.free[use]
	for range cap(free) {
		select {
		case r = <-free:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) { // and not that the caller left
				rs.log.Warn("no read connection became free", "connections", cap(free), "error", ctx.Err())
			}
			return nil, fmt.Errorf("wait for a read connection: %w", ctx.Err())
		}
		if r != nil {
			return r, nil
		}
		if r, err = rs.open(ctx, use); err == nil {
			return r, nil
		}
		free <- nil
	}
	if use != forAnybody {
		return rs.take(ctx, forAnybody)
	}
	return nil, err
}

func (rs *readers) open(ctx context.Context, use int) (*reader, error) {
	conn, err := rs.pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a read connection: %w", err)
	}
	r := &reader{use: use, conn: conn, reads: newStage()}
	if err := r.prepare(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *reader) prepare(ctx context.Context) (err error) {
	if r.guard, err = guardOf(r.conn); err != nil {
		return err
	}
	r.queries = queries.New(r.guard.direct)
	if r.begin, err = newControl(ctx, r.guard, "BEGIN"); err != nil {
		return err
	}
	r.end, err = newControl(ctx, r.guard, "ROLLBACK")
	return err
}

func (r *reader) close() error {
	r.reads.close()
	var errs []error
	for _, c := range []*control{r.begin, r.end} {
		if c != nil {
			errs = append(errs, c.stmt.Close())
		}
	}
	if r.guard != nil {
		r.guard.direct.Close()
	}
	return errors.Join(append(errs, r.conn.Close())...)
}

// read runs fn on one snapshot.
func (rs *readers) read(caller context.Context, use int, now time.Time, fn func(*ReadTx) error) (err error) {
	ctx, cancel := context.WithTimeout(caller, readLimit)
	defer cancel()
	r, err := rs.take(ctx, use)
	if err != nil {
		if ctx.Err() != nil && caller.Err() == nil {
			err = fmt.Errorf("%w: %w", ErrSlow, err)
		}
		return err
	}
	r.reads.do(func() {
		defer func() {
			late := errors.Is(ctx.Err(), context.DeadlineExceeded) && caller.Err() == nil
			err = errors.Join(err, rs.put(ctx, r))
			if err != nil && late {
				err = fmt.Errorf("%w: %w", ErrSlow, err)
			}
		}()
		r.guard.ctx = ctx
		defer r.guard.direct.Until(ctx)()
		if err = r.begin.run(); err == nil {
			err = fn(&ReadTx{Queries: r.queries, Now: now, r: r})
		}
	})
	return err
}

// put ends the snapshot and makes the connection free again. A connection
// whose snapshot does not end is replaced.
func (rs *readers) put(ctx context.Context, r *reader) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		rs.log.Warn("a read ran into its deadline", "limit", readLimit)
	}
	left := r.guard.closeRows()
	for _, rows := range r.given {
		_ = rows.Close() // they are closed below; database/sql lets no connection go before it knows
	}
	r.given, r.guard.ctx = nil, nil
	if err := r.end.run(); err != nil {
		rs.free[r.use] <- nil
		return errors.Join(err, r.close())
	}
	rs.free[r.use] <- r
	if left {
		return errOpenRows
	}
	return nil
}

// close waits for the running reads and closes every connection.
func (rs *readers) close() error {
	var errs []error
	for _, free := range rs.free {
		for range cap(free) {
			if r := <-free; r != nil {
				errs = append(errs, r.close())
			}
		}
	}
	return errors.Join(append(errs, rs.pool.Close())...)
}
