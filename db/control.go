package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// control is a prepared statement that begins, ends or marks a transaction. It
// goes to the driver directly: two of them surround every closure, and
// database/sql would cost as much as SQLite does.
type control struct {
	text string
	stmt sqliteStmt
}

func newControl(ctx context.Context, g *guard, text string) (*control, error) {
	stmt, err := g.sqliteConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", text, err)
	}
	direct, ok := stmt.(sqliteStmt)
	if !ok {
		return nil, fmt.Errorf("prepare %s: the SQLite driver's %T lacks a needed method", text, stmt)
	}
	return &control{text: text, stmt: direct}, nil
}

// run executes the statement; nothing can cancel it.
func (c *control) run() error {
	if _, err := c.stmt.ExecContext(context.Background(), nil); err != nil {
		return fmt.Errorf("%s: %w", c.text, err)
	}
	return nil
}

// number executes a statement that returns one number.
func (c *control) number() (int64, error) {
	rows, err := c.stmt.QueryContext(context.Background(), nil)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.text, err)
	}
	value := make([]driver.Value, 1)
	err = errors.Join(rows.Next(value), rows.Close())
	n, ok := value[0].(int64)
	if err == nil && !ok {
		err = fmt.Errorf("it answered %v", value[0])
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.text, err)
	}
	return n, nil
}

// guardOf returns the guard below a connection of this package.
func guardOf(conn *sql.Conn) (*guard, error) {
	var g *guard
	err := conn.Raw(func(c any) error {
		var ok bool
		if g, ok = c.(*guard); !ok {
			return fmt.Errorf("the connection is a %T", c)
		}
		return nil
	})
	return g, err
}
