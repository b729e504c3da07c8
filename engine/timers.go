package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"stint/api"
	"stint/db"
)

const (
	batch      = 200 // rows that a timer reads at a time
	sideBySide = 64  // transactions of a timer that may share a commit
)

// timed is one kind of thing that comes due only through time.
type timed struct {
	what string // what is done with it, for the log: "end a lapsed claim"

	// due returns the ids of what is due at now, at most n.
	due func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error)

	// do handles one of them, after checking that it is still due.
	do func(tx *db.Tx, id int64) error

	// next is the first instant later than now at which more can be due, 0 when
	// there is none; nil for what is only looked for from time to time.
	next func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error)
}

// handle does what of these kinds is due at now and returns the first instant later than that
// same now at which more can be. now is read before anything is done, so what comes due during
// the work is returned as an instant that has passed, and never missed.
func (e *Engine) handle(ctx context.Context, now time.Time, kinds ...timed) (time.Time, error) {
	var errs []error
	var next int64
	at := db.Micros(now)
	for _, k := range kinds {
		if err := e.eachDue(ctx, at, k); err != nil {
			errs = append(errs, err)
		}
	}
	err := e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		for _, k := range kinds {
			if k.next == nil {
				continue
			}
			first, err := k.next(ctx, tx, at)
			if err != nil && !db.None(err) {
				return fmt.Errorf("find when to %s next: %w", k.what, err)
			}
			next = earliest(next, first)
		}
		return nil
	})
	return api.At(next).Time, errors.Join(append(errs, err)...)
}

// earliest is the first of two instants, of which 0 is none.
func earliest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// eachDue does what of one kind is due, one row at a time, each in a separate transaction. So
// a row that can't be handled is logged, retried at the next turn, and never stops the others.
func (e *Engine) eachDue(ctx context.Context, now int64, k timed) error {
	seen := map[int64]bool{}
	for stuck := int64(0); ; { // seen and still due
		n := batch + stuck
		var ids []int64
		err := e.store.ReadTimer(ctx, func(tx *db.ReadTx) (err error) {
			ids, err = k.due(ctx, tx, now, n)
			return err
		})
		if err != nil {
			return fmt.Errorf("read what is due to %s: %w", k.what, err)
		}
		var fresh []int64
		for _, id := range ids {
			if !seen[id] {
				fresh = append(fresh, id)
				seen[id] = true
			}
		}
		stuck = int64(len(ids) - len(fresh))
		if len(fresh) == 0 && int64(len(ids)) < n {
			return nil
		}
		e.doEach(ctx, k.what, fresh, k.do)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// doEach handles rows side by side, so that their transactions share commits.
func (e *Engine) doEach(ctx context.Context, what string, ids []int64, do func(tx *db.Tx, id int64) error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	gate := make(chan struct{}, sideBySide)
	for _, id := range ids {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			err := e.write(ctx, func(tx *db.Tx) error { return do(tx, id) })
			if err != nil && ctx.Err() == nil {
				e.log.Error("could not "+what+"; it is tried again at the next turn", "id", id, "error", err)
			}
		})
	}
}
