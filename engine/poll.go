package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Poll lists what this worker may claim, best first, and what is still held back
// with its gate, and tells the pending signal (contract 5.3, 5.4). It holds for
// up to wait while there is nothing claimable and no signal but the one that the
// caller says it knows (0 = none). Each of the two ends sooner when it holds a few
// MiB of text.
func (e *Engine) Poll(ctx context.Context, c Caller, worker api.WorkerID, instance string, seen api.SignalID, wait time.Duration) (api.PollAnswer, error) {
	var timeout <-chan time.Time
	for {
		changed := e.Changed()
		out, err := e.poll(ctx, c, worker, instance)
		signalled := out.PendingSignal != nil && out.PendingSignal.ID != seen
		if err != nil || wait <= 0 || signalled || (len(out.Items) > 0 && out.Items[0].Claimable) {
			return out, err
		}
		if timeout == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-changed:
		case <-timeout:
			return out, nil
		case <-ctx.Done():
			return api.PollAnswer{}, ctx.Err()
		}
	}
}

func (e *Engine) poll(ctx context.Context, c Caller, worker api.WorkerID, instance string) (api.PollAnswer, error) {
	out := api.PollAnswer{Items: []api.Claimable{}}
	err := e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := workerOf(ctx, tx, c, worker)
		if err != nil {
			return err
		}
		if err := sameInstance(w, instance); err != nil {
			return err
		}
		out.DesiredState = w.Desired
		if out.PendingSignal, err = pendingSignal(ctx, tx, w.ID); err != nil {
			return err
		}
		a, err := tx.AgentEvenDeleted(ctx, w.AgentID)
		if err != nil {
			return fmt.Errorf("read agent %s: %w", w.AgentID, err)
		}
		waits, err := tx.WaitingIDsOfAgent(ctx, queries.WaitingIDsOfAgentParams{AgentID: a.ID, N: maxPage})
		if err != nil {
			return fmt.Errorf("list what waits: %w", err)
		}
		out.Items, err = e.pollRows(ctx, tx, w, &a, waits)
		return err
	})
	return out, err
}

func (e *Engine) pollRows(ctx context.Context, q queries.Querier, w *workerRow, a *agentRow, waits []api.SessionID) ([]api.Claimable, error) {
	now := micros(e.Now())
	ready, held := []api.Claimable{}, []api.Claimable{}
	wf, err := loadWorker(ctx, q, w)
	if err != nil {
		return nil, err
	}
	var readySize, heldSize int
	for _, id := range waits {
		row, err := q.Session(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", id, err)
		}
		s := &row
		if !laneFits(s.Lane, w) || s.Mode != w.Mode {
			continue
		}
		f, err := loadClaimFacts(ctx, q, s, a)
		if err != nil {
			return nil, err
		}
		shown := toSession(s, a.Slug)
		g := f.claimGate(now, false)
		if g == nil {
			g = f.workerGate(&wf, now, false)
		}
		// What is held back must not keep what is claimable off a page that is full.
		if shown.WaitingFor = g; g == nil {
			if readySize += sizeOfSession(&shown); readySize > pageTexts && len(ready) > 0 {
				break
			}
			ready = append(ready, api.Claimable{Session: shown, Claimable: true})
		} else if heldSize += sizeOfSession(&shown); heldSize <= pageTexts || len(held) == 0 {
			held = append(held, api.Claimable{Session: shown})
		}
	}
	return append(ready, held...), nil
}
