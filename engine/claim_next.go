package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// ClaimNext grants the best eligible session of any of the caller's workers: highest priority
// first, then the oldest. It holds for up to in.WaitSeconds and returns nil when none came.
// The same RequestID gets the same claim again.
func (e *Engine) ClaimNext(ctx context.Context, c Caller, in api.ClaimNextRequest) (*api.Claim, error) {
	if err := checkNext(&in); err != nil {
		return nil, err
	}
	s := newWaiter(toClaim)
	defer func() { e.offerAgain(ctx, s, e.waiters.leave(s)) }()
	offers := e.waiters.offered()
	out, workers, err := e.claimNext(ctx, c, in, nil)
	if err != nil || out != nil || in.WaitSeconds == 0 {
		return out, err
	}
	s.since = db.Micros(e.Now())
	timeout := time.NewTimer(time.Duration(in.WaitSeconds) * time.Second)
	defer timeout.Stop()
	e.waiters.join(s, workers)
	// What was offered before it joined would wake nobody: look once more.
	look := e.waiters.offered() != offers
	for {
		if !look && !await(ctx, s.wake, timeout.C) {
			return nil, ctx.Err()
		}
		e.waiters.join(s, workers) // before the look, so that no offer falls in between
		out, found, err := e.claimNext(ctx, c, in, s)
		if err != nil || out != nil {
			return out, err
		}
		// An offer meanwhile was judged by what the workers were: look once more.
		workers, look = found, e.waiters.changed(s, found)
	}
}

func checkNext(in *api.ClaimNextRequest) error {
	var v api.Invalid
	if len(in.WorkerIDs) == 0 || len(in.WorkerIDs) > 500 {
		v.Add("workerIds", "must name 1 to 500 of your workers")
	}
	if in.WaitSeconds < 0 || in.WaitSeconds > 60 {
		v.Add("wait", "must be 0 to 60 seconds")
	}
	if len(in.RequestID) > 100 {
		v.Add("requestId", "has more than 100 characters")
	}
	return v.Err()
}

// heldSince is when the request of a waiter came, 0 for one that has just come.
func heldSince(s *waiter) int64 {
	if s == nil {
		return 0
	}
	return s.since
}

// claimNext looks once, for a waiter or, with nil, for a request that isn't held
// yet. Without a claim it answers what the caller's workers are.
func (e *Engine) claimNext(ctx context.Context, c Caller, in api.ClaimNextRequest, s *waiter) (*api.Claim, []waitingWorker, error) {
	var out *api.Claim
	var workers []waitingWorker
	err := e.writeAs(ctx, c, func(tx *db.Tx) error {
		out, workers = nil, nil
		calls := e.waiters.calls(s)
		var err error
		if out, workers, err = e.claimNextTx(tx, c, in, heldSince(s)); err != nil {
			return err
		}
		for agent := range calls {
			e.noteOffer(offer{agent: agent, except: s})
		}
		if out != nil && s != nil {
			e.noteOffer(offer{agent: out.Session.AgentID, except: s})
		}
		tx.AfterCommit(func() { e.waiters.answered(s, calls) })
		return nil
	})
	return out, workers, err
}

// candidate is a session that fits one of the caller's workers.
type candidate struct {
	row queries.NextLaneRow
	w   *workerRow // nil = there is none
	a   *agentRow
	s   *sessionRow
}

func (c candidate) before(b candidate) bool {
	x, y := c.row, b.row
	if x.Priority != y.Priority {
		return x.Priority > y.Priority
	}
	if x.PlaceAt != y.PlaceAt {
		return x.PlaceAt < y.PlaceAt
	}
	return x.ID < y.ID
}

func (e *Engine) claimNextTx(tx *db.Tx, c Caller, in api.ClaimNextRequest, heldSince int64) (*api.Claim, []waitingWorker, error) {
	again, err := e.sameRequest(tx, c, in)
	if again != nil || err != nil {
		return again, nil, err
	}
	var best candidate
	workers := make([]waitingWorker, 0, len(in.WorkerIDs))
	for _, id := range in.WorkerIDs {
		row, err := tx.WorkerAndLoad(tx.Context(), id)
		if db.None(err) || (err == nil && !actsAs(c, &row.Worker)) {
			return nil, nil, db.NotFound("worker")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read worker %s: %w", id, err)
		}
		w := &row.Worker
		if err := sameInstance(w, in.InstanceID); err != nil {
			return nil, nil, err
		}
		workers = append(workers, waitingWorkerOf(w))
		next, err := bestFor(tx.Context(), tx, db.Micros(tx.Now), &workerFacts{w: w, running: row.Running, inFolder: row.InFolder, heldSince: heldSince, staleAfter: db.Span(e.cfg.StaleAfter)})
		if err != nil {
			return nil, nil, fmt.Errorf("look for work of worker %s: %w", w.ID, err)
		}
		if next.w != nil && (best.w == nil || next.before(best)) {
			best = next
		}
	}
	if best.w == nil {
		return nil, workers, nil
	}
	term, err := e.term(in.LeaseSeconds, best.a, best.w)
	if err != nil {
		return nil, nil, err
	}
	out, err := e.grant(tx, best.w, best.s, best.a, term, in.RequestID, false)
	if err != nil {
		return nil, nil, err
	}
	return &out, nil, nil
}

// sameRequest answers a request id that was answered before with the same claim, as long as
// that holds. Any worker of the process may hold it: a request that is made again may name
// others than it did, and the first one may still be under way.
func (e *Engine) sameRequest(tx *db.Tx, c Caller, in api.ClaimNextRequest) (*api.Claim, error) {
	if in.RequestID == "" {
		return nil, nil
	}
	claim, err := tx.ClaimByRequest(tx.Context(), queries.ClaimByRequestParams{RequestID: in.RequestID, InstanceID: in.InstanceID})
	if db.None(err) || (err == nil && (claim.ClosedAt != 0 || claim.ExpiresAt <= db.Micros(tx.Now))) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the claim of request %q: %w", in.RequestID, err)
	}
	w, err := tx.Worker(tx.Context(), claim.WorkerID)
	if db.None(err) || (err == nil && (!actsAs(c, &w) || w.InstanceID != in.InstanceID)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read worker %s: %w", claim.WorkerID, err)
	}
	s, err := tx.Session(tx.Context(), claim.SessionID)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", claim.SessionID, err)
	}
	a, err := agentEvenDeleted(tx.Context(), tx, claim.AgentID)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", claim.AgentID, err)
	}
	out, err := e.answer(tx, &claim, &s, &a, term{seconds: claim.LeaseSeconds})
	return &out, err
}

// bestFor finds the best session that a worker may claim now. The query walks the lanes that
// may fit, so that sessions for other workers starve nobody behind them, and the gates judge
// each that it names (contract 2.4, 4.2).
func bestFor(ctx context.Context, q queries.Querier, now int64, wf *workerFacts) (candidate, error) {
	w := wf.w
	a, err := agentEvenDeleted(ctx, q, w.AgentID)
	if err != nil {
		return candidate{}, fmt.Errorf("read agent %s: %w", w.AgentID, err)
	}
	// What holds back a session without requirements holds back every one.
	plainest := facts{a: &a, s: &sessionRow{Status: api.Queued, Mode: w.Mode, OwnerUserID: w.OwnerUserID}}
	if plainest.gate(wf, now, false) != nil {
		return candidate{}, nil
	}
	var best candidate
	from := laneStart(&a, w, "", now)
	for {
		row, err := q.NextLane(ctx, from)
		if db.None(err) {
			return best, nil
		}
		if err != nil {
			return candidate{}, err
		}
		next := candidate{row: row, w: w, a: &a}
		if laneFits(row.Lane, w) && (best.w == nil || next.before(best)) {
			held, err := next.load(ctx, q, wf, now)
			if err != nil {
				return candidate{}, err
			}
			if held {
				from.Lane, from.Priority, from.PlaceAt, from.ID = row.Lane, row.Priority, row.PlaceAt, row.ID
				continue
			}
			best = next
		}
		if row.NextLane == "" {
			return best, nil
		}
		from = laneStart(&a, w, row.NextLane, now)
	}
}

// laneStart is the place before the first session of a lane.
func laneStart(a *agentRow, w *workerRow, lane string, now int64) queries.NextLaneParams {
	return queries.NextLaneParams{AgentID: a.ID, Lane: lane, Priority: MaxPriority + 1, Now: now, ProcessID: w.ProcessID}
}

// load reads the candidate's session and reports whether a gate holds it back.
func (c *candidate) load(ctx context.Context, q queries.Querier, wf *workerFacts, now int64) (held bool, err error) {
	s, err := q.Session(ctx, c.row.ID)
	if err != nil {
		return false, fmt.Errorf("read session %s: %w", c.row.ID, err)
	}
	f, err := loadFacts(ctx, q, &s, c.a)
	if err != nil {
		return false, fmt.Errorf("read the gates of session %s: %w", s.ID, err)
	}
	c.s = &s
	return f.gate(wf, now, false) != nil, nil
}
