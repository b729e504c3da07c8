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

// readLimit ends a read. While a snapshot is held the log cannot be reset: one
// forgotten reader grew it from 4 to 578 MiB in two seconds.
const readLimit = 5 * time.Second

// ReadTx is one consistent snapshot. It is valid until the closure returns and
// only on its goroutine. The generated queries may be given any context:
// statements always run under the deadline of the read.
type ReadTx struct {
	*queries.Queries

	// Now is when the read started, in UTC and whole microseconds.
	Now time.Time

	conn *sql.Conn
}

// Query runs a query that is not one of the generated ones, such as a check
// over the whole file. The caller closes the rows.
func (tx *ReadTx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return tx.conn.QueryContext(ctx, query, args...)
}

// readers is the pool of read-only connections.
type readers struct {
	log  *slog.Logger
	pool *sql.DB
	free chan *reader // a nil reader is a place whose connection is not open yet
}

// reader is one connection of the pool with everything prepared on it. It
// belongs to the goroutine that took it out of readers.free.
type reader struct {
	conn       *sql.Conn
	guard      *guard
	queries    *queries.Queries
	begin, end *control
	reads      stage
}

// readerCount is the cores but one, so that readers can never take all of them
// from the writer: four heavy readers on two cores cut 33 thousand writes/s to
// 2. It is at least two, because one slow page must not hold up every other.
func readerCount() int { return max(2, runtime.GOMAXPROCS(0)-1) }

func openReaders(path string, o Options) (*readers, error) {
	pool, err := openRole(path, reading, o)
	if err != nil {
		return nil, err
	}
	rs := &readers{log: o.Log, pool: pool, free: make(chan *reader, readerCount())}
	for range cap(rs.free) {
		rs.free <- nil
	}
	return rs, nil
}

// take waits for a free connection until ctx ends.
func (rs *readers) take(ctx context.Context) (*reader, error) {
	select {
	case r := <-rs.free:
		if r != nil {
			return r, nil
		}
	case <-ctx.Done():
		rs.log.Warn("no read connection became free", "connections", cap(rs.free), "error", ctx.Err())
		return nil, fmt.Errorf("wait for a read connection: %w", ctx.Err())
	}
	r, err := rs.open(ctx)
	if err != nil {
		rs.free <- nil
		return nil, err
	}
	return r, nil
}

func (rs *readers) open(ctx context.Context) (*reader, error) {
	conn, err := rs.pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a read connection: %w", err)
	}
	r := &reader{conn: conn, reads: newStage()}
	if err := r.prepare(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *reader) prepare(ctx context.Context) (err error) {
	if r.guard, err = guardOf(r.conn); err != nil {
		return err
	}
	if r.queries, err = queries.Prepare(ctx, r.conn); err != nil {
		return err
	}
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
	if r.queries != nil {
		errs = append(errs, r.queries.Close())
	}
	return errors.Join(append(errs, r.conn.Close())...)
}

// read runs fn on one snapshot.
func (rs *readers) read(ctx context.Context, now time.Time, fn func(*ReadTx) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	r, err := rs.take(ctx)
	if err != nil {
		return err
	}
	r.reads.do(func() {
		defer func() { err = errors.Join(err, rs.put(ctx, r)) }()
		r.guard.ctx = ctx
		if err = r.begin.run(); err == nil {
			err = fn(&ReadTx{Queries: r.queries, Now: now, conn: r.conn})
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
	r.guard.ctx = nil
	if err := r.end.run(); err != nil {
		rs.free <- nil
		return errors.Join(err, r.close())
	}
	rs.free <- r
	if left {
		return errOpenRows
	}
	return nil
}

// close waits for the reads that run and closes every connection.
func (rs *readers) close() error {
	var errs []error
	for range cap(rs.free) {
		if r := <-rs.free; r != nil {
			errs = append(errs, r.close())
		}
	}
	return errors.Join(append(errs, rs.pool.Close())...)
}
