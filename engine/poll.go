package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Polling is a worker's request to see what it may claim. What it is made of is kept here and
// not in the frames of [Polling.Wait]: thousands wait, and a stack is doubled, not stretched.
type Polling struct {
	e        *Engine
	c        Caller
	worker   api.WorkerID
	instance string
	seen     api.SignalID
}

// Polling makes the request of a worker that knows a signal (0 = none).
func (e *Engine) Polling(c Caller, worker api.WorkerID, instance string, seen api.SignalID) *Polling {
	return &Polling{e, c, worker, instance, seen}
}

// Poll is [Polling.Wait] of [Engine.Polling].
func (e *Engine) Poll(ctx context.Context, c Caller, worker api.WorkerID, instance string, seen api.SignalID, wait time.Duration) (api.PollAnswer, error) {
	return e.Polling(c, worker, instance, seen).Wait(ctx, wait)
}

// Wait lists what the worker may claim, best first, and what is still held back with its
// gate, and returns the pending signal (contract 5.3, 5.4). It holds for up to wait while
// there is nothing claimable and no signal but the one that the caller says it knows. Each of
// the two lists ends sooner when it holds a few MiB of text.
func (p *Polling) Wait(ctx context.Context, wait time.Duration) (out api.PollAnswer, err error) {
	e := p.e
	s := newWaiter(toList)
	defer func() { e.offerAgain(ctx, s, e.waiters.leave(s)) }()
	var at *waitingWorker // as which it joined
	err = untilFound(ctx, wait, func() (found bool, wake <-chan struct{}, err error) {
		offers, joined := e.waiters.offered(), at != nil
		if joined {
			e.waiters.join(s, []waitingWorker{*at}) // before the look, so that no offer falls in between
		}
		calls := e.waiters.calls(s)
		var now waitingWorker
		out, now, err = e.poll(ctx, &p.c, p.worker, p.instance)
		signalled := out.PendingSignal != nil && out.PendingSignal.ID != p.seen
		claimable := len(out.Items) > 0 && out.Items[0].Claimable
		if claimable {
			e.waiters.answered(s, e.waiters.calls(s)) // its worker gets an answer; a wake ends here
		}
		if err != nil || wait <= 0 || signalled || claimable {
			return true, nil, err
		}
		if !joined || !at.same(&now) {
			at = &now
			e.waiters.join(s, []waitingWorker{now})
			if joined || e.waiters.offered() != offers {
				s.nudge() // What came before it joined as what it is would wake nobody: it looks once more.
			}
			return false, s.wake, nil
		}
		e.waiters.answered(s, calls)
		for agent := range calls {
			e.offerAgain(ctx, s, []api.AgentID{agent})
		}
		return false, s.wake, nil
	})
	return out, err
}

// poll looks once, and also returns what the worker is to those who look for one.
func (e *Engine) poll(ctx context.Context, c *Caller, worker api.WorkerID, instance string) (out api.PollAnswer, at waitingWorker, err error) {
	out = api.PollAnswer{Items: []api.Claimable{}}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := workerOf(ctx, tx, *c, worker)
		if err != nil {
			return err
		}
		if err := sameInstance(w, instance); err != nil {
			return err
		}
		out.DesiredState, at = w.Desired, waitingWorkerOf(w)
		if out.PendingSignal, err = pendingSignal(ctx, tx, w.ID); err != nil {
			return err
		}
		a, err := agentEvenDeleted(ctx, tx, w.AgentID)
		if err != nil {
			return fmt.Errorf("read agent %s: %w", w.AgentID, err)
		}
		waits, err := tx.WaitingIDsOfAgent(ctx, queries.WaitingIDsOfAgentParams{
			AgentID: a.ID, Mode: w.Mode, OwnerUserID: w.OwnerUserID, N: db.MaxPage,
		})
		if err != nil {
			return fmt.Errorf("list what waits: %w", err)
		}
		out.Items, err = e.pollRows(ctx, tx, w, &a, waits)
		return err
	})
	return out, at, err
}

func (e *Engine) pollRows(ctx context.Context, q queries.Querier, w *workerRow, a *agentRow, waits []api.SessionID) ([]api.Claimable, error) {
	now := db.Micros(e.Now())
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
		if !laneFits(s.Lane, w) {
			continue
		}
		f, err := loadClaimFacts(ctx, q, s, a)
		if err != nil {
			return nil, err
		}
		shown := toSession(s, a.Slug)
		g := f.gate(&wf, now, false)
		// What is held back must not displace what is claimable from a full page.
		if shown.WaitingFor = g; g == nil {
			if readySize += sizeOfSession(&shown); readySize > pageTexts && len(ready) > 0 {
				break
			}
			held = held[:min(len(held), db.MaxPage-1)]
			ready = append(ready, api.Claimable{Session: shown, Claimable: true})
		} else if heldSize += sizeOfSession(&shown); heldSize <= pageTexts || len(held) == 0 {
			held = append(held, api.Claimable{Session: shown})
		}
	}
	if len(ready) == 0 && int64(len(waits)) == db.MaxPage {
		// What is claimable may come after everything that was looked at.
		next, err := bestFor(ctx, q, now, &wf)
		if err != nil {
			return nil, err
		}
		if next.w != nil {
			held = held[:min(len(held), db.MaxPage-1)]
			ready = append(ready, api.Claimable{Session: toSession(next.s, a.Slug), Claimable: true})
		}
	}
	return append(ready, held...), nil
}
