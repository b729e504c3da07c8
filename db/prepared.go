package db

import (
	"context"
	"database/sql"
	"errors"
)

// prepared is a connection that prepares each statement when it is first run and keeps it by
// its text. Preparing all of them at once would cost a reader more than most reads do, within
// the deadline of the first one. It belongs to one goroutine at a time.
type prepared struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	unending   bool // the end of a context ends nothing: who gave it doesn't decide about a commit of many
}

func newPrepared(conn *sql.Conn, unending bool) *prepared {
	return &prepared{conn: conn, statements: map[string]*sql.Stmt{}, unending: unending}
}

func (p *prepared) context(ctx context.Context) context.Context {
	if p.unending {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// PrepareContext returns the prepared statement for a query.
func (p *prepared) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := p.statements[query]; stmt != nil {
		return stmt, nil
	}
	// Under a context that has ended the statement is refused when it runs, if at all.
	stmt, err := p.conn.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	p.statements[query] = stmt
	return stmt, nil
}

// ExecContext runs a statement that returns no rows.
func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := p.PrepareContext(ctx, query) //nolint:sqlclosecheck // it is kept until Close
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(p.context(ctx), args...)
}

// QueryContext runs a statement that returns rows.
func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := p.PrepareContext(ctx, query) //nolint:sqlclosecheck // it is kept until Close
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(p.context(ctx), args...)
}

// QueryRowContext runs a statement that returns one row.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	stmt, err := p.PrepareContext(ctx, query) //nolint:sqlclosecheck // it is kept until Close
	if err != nil {
		return p.conn.QueryRowContext(ctx, query, args...) // it fails in the same way, and a Row can carry that
	}
	return stmt.QueryRowContext(p.context(ctx), args...)
}

// Close closes the statements that were kept.
func (p *prepared) Close() (err error) {
	for _, stmt := range p.statements {
		err = errors.Join(err, stmt.Close())
	}
	return err
}
