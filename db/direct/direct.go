// Package direct runs prepared statements on one connection of the SQLite driver without
// database/sql, which costs more than SQLite does for statements as small as ours: it binds
// and reads columns without reflection and takes no lock that a single owner doesn't need.
package direct

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Error is an error of SQLite's.
type Error struct {
	message string
	code    int
}

func (e *Error) Error() string { return e.message }

// Code returns SQLite's extended result code.
func (e *Error) Code() int { return e.code }

// DB prepares each statement when it is first run and keeps it. It belongs to one goroutine at
// a time, and so does the driver's connection from then on: SQLite takes no lock of it any more.
type DB struct {
	lib     library
	o       Options
	byPlace map[place]*statement
	byText  map[string]*statement
	open    []*statement // those with rows that aren't closed
	ctx     context.Context
	lock    func() // gives the connection its lock back
}

// Options say what surrounds the statements.
type Options struct {
	// Preparing is called before SQLite compiles a text, and what it returns after that, for what
	// the text is to the owner.
	Preparing func(query string) (prepared func() Class)

	// Admit is asked before each execution with what Preparing's function returned. An error
	// refuses it.
	Admit func(Class) error
}

// Class is what a statement is to the owner of the connection.
type Class struct {
	Writes string // the table that it changes, "" for none
	Flush  bool   // it looks at what may be held back, or changes it
}

// place is where a text lies. The generated ones are constants, which are told apart by that
// without a look at their two thousand bytes; the pointer keeps the others where they are.
type place struct {
	data *byte
	len  int
}

// New takes a connection of the driver. Whoever closes that one closes the DB first.
func New(conn any, o Options) (*DB, error) {
	lib, err := libraryOf(conn)
	if err != nil {
		return nil, err
	}
	lock, err := lib.unlock()
	if err != nil {
		return nil, err
	}
	return &DB{lib: lib, o: o, lock: lock, byPlace: map[place]*statement{}, byText: map[string]*statement{}}, nil
}

// Until makes statements fail when ctx ends, the running one too, with the error of ctx. The
// caller calls what it returns when they are over, on the same goroutine.
func (d *DB) Until(ctx context.Context) (over func()) {
	d.ctx = ctx
	left, ended := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		// One that comes before the first step is forgotten by SQLite.
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			d.lib.interrupt()
			select {
			case <-left:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		close(left)
		if !stop() {
			<-ended
		}
		d.ctx = nil
	}
}

// CloseRows closes all rows that are still open, and reports whether there were any.
func (d *DB) CloseRows() bool {
	left := len(d.open) > 0
	for len(d.open) > 0 {
		_ = d.open[len(d.open)-1].end() // nobody waits for its outcome
	}
	return left
}

// Close frees the statements.
func (d *DB) Close() {
	d.CloseRows()
	for _, s := range d.byText {
		for ; s != nil; s = s.spare {
			d.lib.finalize(s.handle)
			s.forgetTexts()
		}
	}
	d.byPlace, d.byText = nil, nil
	d.lock()
}

// ExecContext runs a statement to its end. The context is not used; see [DB.Until].
func (d *DB) ExecContext(_ context.Context, query string, args ...any) (Result, error) {
	s, err := d.begin(query, args)
	if err != nil {
		return Result{}, err
	}
	for s.rc == row {
		s.step()
	}
	if err := s.failed(); err != nil {
		_ = s.end() // the first failure counts
		return Result{}, err
	}
	changes := d.lib.changes()
	return Result{changes}, s.end()
}

// QueryContext runs a statement that returns rows, which the caller closes. The context is not
// used; see [DB.Until].
func (d *DB) QueryContext(_ context.Context, query string, args ...any) (Rows, error) {
	s, err := d.begin(query, args)
	if err != nil {
		return Rows{}, err
	}
	if err := s.failed(); err != nil {
		_ = s.end() // the first failure counts
		return Rows{}, err
	}
	return Rows{s: s, turn: s.turn, first: true}, nil
}

// QueryRowContext runs a statement that returns at most one row. The context is not used; see
// [DB.Until].
func (d *DB) QueryRowContext(ctx context.Context, query string, args ...any) Row {
	rows, err := d.QueryContext(ctx, query, args...)
	return Row{rows, err}
}

// begin binds a statement and takes its first step.
func (d *DB) begin(query string, args []any) (*statement, error) {
	if err := d.ended(); err != nil {
		return nil, err
	}
	s, err := d.statement(query)
	if err != nil {
		return nil, err
	}
	if err := d.o.Admit(s.class); err != nil {
		return nil, err
	}
	s.running = true
	s.turn++
	d.open = append(d.open, s)
	if err := s.bind(args); err != nil {
		_ = s.end() // the first failure counts
		return nil, err
	}
	s.step()
	return s, nil
}

func (d *DB) ended() error {
	if d.ctx == nil {
		return nil
	}
	return d.ctx.Err()
}

// statement returns one for the text that isn't running.
func (d *DB) statement(query string) (*statement, error) {
	at := placeOf(query)
	s := d.byPlace[at]
	if s == nil {
		if s = d.byText[query]; s == nil {
			var err error
			if s, err = d.prepare(query); err != nil {
				return nil, err
			}
			d.byText[query] = s
		}
		d.byPlace[at] = s
	}
	for s.running {
		if s.spare == nil {
			var err error
			if s.spare, err = d.prepare(query); err != nil {
				return nil, err
			}
		}
		s = s.spare
	}
	return s, nil
}

func (d *DB) prepare(query string) (*statement, error) {
	prepared := d.o.Preparing(query)
	handle, err := d.lib.prepare(query)
	class := prepared()
	if err != nil {
		return nil, err
	}
	return &statement{
		db: d, handle: handle, class: class,
		parameters: d.lib.parameters(handle), columns: d.lib.columns(handle),
	}, nil
}

// statement is a prepared one.
type statement struct {
	db         *DB
	handle     uintptr
	class      Class
	parameters int
	columns    int
	spare      *statement // another of the same text, for when this one runs
	running    bool
	turn       uint64 // how often it has run, so that rows of an earlier time don't close those of a later
	rc         int32  // of the last step
	texts      texts
}

func (s *statement) step() { s.rc = s.db.lib.step(s.handle) }

// failed is the error of the last step.
func (s *statement) failed() error {
	switch s.rc {
	case row, done:
		return nil
	case interrupted:
		if err := s.db.ended(); err != nil {
			return err
		}
	}
	return s.db.lib.failure(s.rc)
}

// end makes the statement ready for the next time. The error of a step that failed is not told
// again.
func (s *statement) end() error {
	d := s.db
	rc := d.lib.reset(s.handle)
	s.running = false
	if n := len(d.open); d.open[n-1] == s {
		d.open = d.open[:n-1]
	} else {
		i := slices.Index(d.open, s)
		d.open = slices.Delete(d.open, i, i+1)
	}
	s.tidyTexts()
	if rc != ok && (s.rc == row || s.rc == done) {
		return d.lib.failure(rc)
	}
	return nil
}

// Result says what a statement did.
type Result struct{ changes int64 }

// RowsAffected returns how many rows were inserted, changed or deleted; the error is nil.
func (r Result) RowsAffected() (int64, error) { return r.changes, nil }

// Rows are what a query returns, one after the other.
type Rows struct {
	s     *statement
	turn  uint64
	first bool // the statement stands on the first row, or at the end, and Next wasn't called
	err   error
}

// live says whether the rows aren't closed.
func (r *Rows) live() bool { return r.s != nil && r.s.running && r.s.turn == r.turn }

// Next goes to the next row. After the last it returns false, as after an error, which Err
// tells.
func (r *Rows) Next() bool {
	if !r.live() || r.err != nil {
		return false
	}
	if r.err = r.s.db.ended(); r.err != nil {
		return false
	}
	if !r.first && r.s.rc == row {
		r.s.step()
	}
	r.first = false
	r.err = r.s.failed()
	return r.err == nil && r.s.rc == row
}

// Err is the error that ended the rows, if one did.
func (r *Rows) Err() error { return r.err }

// Close ends the query; only the first call does anything.
func (r *Rows) Close() error {
	if !r.live() {
		return nil
	}
	return r.s.end()
}

// Scan copies the row's columns into what dest point to.
func (r *Rows) Scan(dest ...any) error {
	if !r.live() || r.first || r.s.rc != row {
		return fmt.Errorf("there is no row to scan")
	}
	return r.s.scan(unseen(dest))
}

// Row is a query's only row.
type Row struct {
	rows Rows
	err  error
}

// Scan copies the row's columns into what dest point to. Without a row it returns
// [sql.ErrNoRows].
func (r Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	if !r.rows.Next() {
		err := r.rows.Err()
		if err == nil {
			err = sql.ErrNoRows
		}
		r.rows.Close()
		return err
	}
	if err := r.rows.s.scan(unseen(dest)); err != nil {
		r.rows.Close()
		return err
	}
	return r.rows.Close()
}
