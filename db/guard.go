package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"

	"modernc.org/sqlite"

	"stint/db/direct"
)

// sqliteConn is what the driver's connection is known to be able to do.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
	sqlite.HookRegisterer
	sqlite.AuthorizerRegisterer
}

// guard is between database/sql and a connection of the driver and enforces two rules that
// cannot be left to the code above.
//
// First, statements run under the context of the transaction, never under the one that a
// closure happens to pass (the generated ones run under none, see [direct.DB]): with this driver a context that ends during an INSERT rolls the
// whole transaction back, including everybody's changes.
//
// Second, no statement runs on the writer's connection outside a transaction. When SQLite
// rolls back by itself (disk full, I/O error), the closure's next statement would otherwise be
// committed alone.
//
// All fields belong to the goroutine that uses the connection.
type guard struct {
	sqliteConn
	role       role
	ctx        context.Context // what statements run under; nil = the context that they are given
	inTx       bool            // a transaction is open; maintained for the writing role
	rowCache   *rowCache       // rows to forget as tables are written; nil except for the writing role
	flush      func() error    // writes what the transaction holds back; nil except for the writing role
	rolledBack func()          // forgets what was held back; nil except for the writing role
	late       bool            // the statement that is being compiled touches what may be held back
	dirty      bool            // the running closure has written
	keeping    bool            // the running statement's caller keeps the rows up to date
	rows       []*guardedRows  // open cursors of database/sql's statements
	direct     *direct.DB      // the generated statements, which don't go through database/sql; for writing and reading
}

func newGuard(inner sqliteConn, r role) (g *guard, err error) {
	g = &guard{sqliteConn: inner, role: r}
	if r == writing || r == reading {
		g.direct, err = direct.New(inner, direct.Options{Preparing: g.preparing, Admit: g.admitDirect})
	}
	if err == nil && r == writing {
		g.ctx = context.Background()
		err = inner.RegisterAuthorizer(g.authorize)
		// Called for every rollback, SQLite's own included; not for ROLLBACK TO.
		inner.RegisterRollbackHook(func() {
			g.inTx = false
			g.rowCache.forgetAll()
			g.rolledBack()
		})
	}
	return g, err
}

// preparing finds out what a generated statement touches while it is compiled.
func (g *guard) preparing(query string) (prepared func() direct.Class) {
	g.late = false
	return func() direct.Class { return direct.Class{Writes: writtenTable(query), Flush: g.late} }
}

// authorize refuses nothing. It is told of each column that a statement reads or writes, its
// triggers and foreign keys included, when it is compiled.
func (g *guard) authorize(action sqlite.AuthorizerActionCode, table, column, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthInsert, sqlite.AuthDelete:
		g.late = g.late || isHeldBack(table, "")
	case sqlite.AuthRead, sqlite.AuthUpdate:
		g.late = g.late || isHeldBack(table, column)
	}
	return sqlite.AuthorizerOK
}

// admitDirect is what a generated statement is asked before it runs.
func (g *guard) admitDirect(c direct.Class) error {
	if g.role == writing && !g.inTx {
		return errNoTransaction
	}
	if c.Flush && g.flush != nil {
		if err := g.flush(); err != nil {
			return err
		}
	}
	g.wrote(c.Writes)
	return nil
}

func (g *guard) admit(given context.Context) (context.Context, error) {
	if g.role == writing && !g.inTx {
		return nil, errNoTransaction
	}
	if g.flush != nil { // such statements are rare: what they look at isn't asked
		if err := g.flush(); err != nil {
			return nil, err
		}
	}
	if g.ctx != nil {
		return g.ctx, nil
	}
	return given, nil
}

// closeRows closes the cursors that a closure left open and reports whether there were any: a
// single open cursor keeps the log from ever being reset.
func (g *guard) closeRows() bool {
	left := slices.Clone(g.rows)
	for _, r := range left {
		r.Close()
	}
	return g.direct.CloseRows() || len(left) > 0
}

// Prepare is part of [driver.Conn].
func (g *guard) Prepare(query string) (driver.Stmt, error) {
	return g.PrepareContext(context.Background(), query)
}

// PrepareContext is part of [driver.ConnPrepareContext].
func (g *guard) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	inner, err := g.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	stmt, ok := inner.(sqliteStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQLite driver's %T lacks a needed method", inner), inner.Close())
	}
	return &guardedStmt{sqliteStmt: stmt, guard: g, writes: writtenTable(query)}, nil
}

// ExecContext is part of [driver.ExecerContext].
func (g *guard) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	ctx, err := g.admit(ctx)
	if err != nil {
		return nil, err
	}
	g.wrote(writtenTable(query))
	return g.sqliteConn.ExecContext(ctx, query, args)
}

// QueryContext is part of [driver.QueryerContext].
func (g *guard) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	ctx, err := g.admit(ctx)
	if err != nil {
		return nil, err
	}
	g.wrote(writtenTable(query))
	rows, err := g.sqliteConn.QueryContext(ctx, query, args)
	return g.track(ctx, rows, err)
}

func (g *guard) track(ctx context.Context, inner driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	r := &guardedRows{Rows: inner, guard: g, ctx: ctx}
	g.rows = append(g.rows, r)
	return r, nil
}

// BeginTx is part of [driver.ConnBeginTx].
func (g *guard) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if g.role != migrating {
		return nil, errors.New("transactions are begun by the store alone")
	}
	inner, err := g.sqliteConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return &checkedTx{Tx: inner, conn: g.sqliteConn}, nil
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type guardedStmt struct {
	sqliteStmt
	guard  *guard
	writes string // the table that it changes, "" for none
}

// wrote notes that a statement is about to change a table.
func (g *guard) wrote(table string) {
	if table == "" || g.rowCache == nil {
		return
	}
	g.dirty = true
	if !g.keeping {
		g.rowCache.forget(table)
	}
}

// ExecContext is part of [driver.StmtExecContext].
func (s *guardedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	ctx, err := s.guard.admit(ctx)
	if err != nil {
		return nil, err
	}
	s.guard.wrote(s.writes)
	return s.sqliteStmt.ExecContext(ctx, args)
}

// QueryContext is part of [driver.StmtQueryContext].
func (s *guardedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	ctx, err := s.guard.admit(ctx)
	if err != nil {
		return nil, err
	}
	s.guard.wrote(s.writes)
	rows, err := s.sqliteStmt.QueryContext(ctx, args)
	return s.guard.track(ctx, rows, err)
}

// guardedRows is a cursor that ends with its transaction's context: the driver checks the
// context only until the first row.
type guardedRows struct {
	driver.Rows
	guard *guard
	ctx   context.Context
}

// Next is part of [driver.Rows].
func (r *guardedRows) Next(dest []driver.Value) error {
	if r.guard == nil {
		return io.EOF
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return r.Rows.Next(dest)
}

// Close is part of [driver.Rows]; only the first call does anything.
func (r *guardedRows) Close() error {
	if r.guard == nil {
		return nil
	}
	i := slices.Index(r.guard.rows, r)
	r.guard.rows = slices.Delete(r.guard.rows, i, i+1)
	r.guard = nil
	return r.Rows.Close()
}

// checkedTx is a migration's transaction: it commits only a file in which every foreign key
// has a row to point at.
type checkedTx struct {
	driver.Tx
	conn sqliteConn
}

// Commit is part of [driver.Tx].
func (t *checkedTx) Commit() error {
	if err := foreignKeysHold(t.conn); err != nil {
		return errors.Join(err, t.Tx.Rollback())
	}
	return t.Tx.Commit()
}

func foreignKeysHold(conn sqliteConn) error {
	rows, err := conn.QueryContext(context.Background(), "PRAGMA foreign_key_check", nil)
	if err != nil {
		return fmt.Errorf("check foreign keys: %w", err)
	}
	broken := make([]driver.Value, len(rows.Columns()))
	switch err := rows.Next(broken); {
	case errors.Is(err, io.EOF):
		return rows.Close()
	case err != nil:
		return errors.Join(fmt.Errorf("check foreign keys: %w", err), rows.Close())
	}
	err = fmt.Errorf("row %v of table %v refers to a missing row of %v", broken[1], broken[0], broken[2])
	return errors.Join(err, rows.Close())
}
