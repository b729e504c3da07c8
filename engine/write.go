package engine

import (
	"context"
	"fmt"
	"time"

	"stint/db"
)

// Now is the coordinator's clock, the only one that counts.
func (e *Engine) Now() time.Time { return e.store.Now() }

// write runs fn in the store's write path, after settling an outage that the clock shows, so
// that no verb can mistake the coordinator's absence for a worker's silence (contract 4.6).
func (e *Engine) write(ctx context.Context, fn func(tx *db.Tx) error) error {
	return e.store.Write(ctx, func(tx *db.Tx) error {
		e.waiters.noted = nil // a closure can run again from the start
		if err := e.settle(tx); err != nil {
			return fmt.Errorf("settle an outage: %w", err)
		}
		if err := fn(tx); err != nil {
			return err
		}
		e.match(tx)
		return nil
	})
}

// writeAs is write for a caller: the events of fn say where the call came from.
func (e *Engine) writeAs(ctx context.Context, c Caller, fn func(tx *db.Tx) error) error {
	return e.write(ctx, func(tx *db.Tx) error {
		tx.From, tx.Via = c.From, c.Via
		return fn(tx)
	})
}
