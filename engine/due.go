package engine

import (
	"context"
	"fmt"
	"sync"

	"stint/db"
)

const (
	batch      = 200 // rows that a timer reads at a time
	sideBySide = 64  // transactions of a timer that may share a commit
)

// eachDue does what is due, one row at a time: list answers the ids of due rows,
// at most n, and do handles one of them in a transaction of its own, after
// looking whether it is still due. So a row that can't be handled is logged,
// tried again at the next turn, and never stops the others.
func (e *Engine) eachDue(ctx context.Context, what string, list func(tx *db.ReadTx, n int64) ([]int64, error), do func(tx *db.Tx, id int64) error) error {
	seen := map[int64]bool{}
	for stuck := int64(0); ; { // seen and due all the same
		n := batch + stuck
		var ids []int64
		err := e.store.Read(ctx, func(tx *db.ReadTx) (err error) {
			ids, err = list(tx, n)
			return err
		})
		if err != nil {
			return fmt.Errorf("read what is due to %s: %w", what, err)
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
		e.doEach(ctx, what, fresh, do)
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
