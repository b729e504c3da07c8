package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// ClaimNext grants the best eligible session of any of the caller's workers:
// highest priority first, then the oldest. It holds for up to in.WaitSeconds and
// answers nil when none came. The same RequestID answers the same claim again.
func (e *Engine) ClaimNext(ctx context.Context, c Caller, in api.ClaimNextRequest) (*api.Claim, error) {
	if err := checkNext(&in); err != nil {
		return nil, err
	}
	seat := e.seats.take()
	var got api.AgentID
	defer func() { e.seats.leave(seat, got) }()
	offers := e.seats.offers()
	out, agents, err := e.claimNext(ctx, c, in)
	if err != nil || out != nil || in.WaitSeconds == 0 {
		return out, err
	}
	timeout := time.NewTimer(time.Duration(in.WaitSeconds) * time.Second)
	defer timeout.Stop()
	e.seats.sit(seat, agents)
	// What was offered between the look and the seat would wake nobody: look once more.
	look := e.seats.offers() != offers
	for {
		if !look && !e.seats.await(ctx, seat, timeout.C) {
			return nil, ctx.Err()
		}
		look = false
		e.seats.sit(seat, agents) // before the look, so that no offer falls between
		out, _, err := e.claimNext(ctx, c, in)
		if err != nil {
			return nil, err
		}
		if out != nil {
			got = out.Session.AgentID
			return out, nil
		}
		e.seats.pass(seat)
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

func (e *Engine) claimNext(ctx context.Context, c Caller, in api.ClaimNextRequest) (*api.Claim, []api.AgentID, error) {
	var out *api.Claim
	var agents []api.AgentID
	err := e.writeAs(ctx, c, func(tx *db.Tx) error {
		out, agents = nil, nil
		var err error
		out, agents, err = e.claimNextTx(tx, c, in)
		return err
	})
	return out, agents, err
}

// candidate is a session that fits one of the caller's workers.
type candidate struct {
	row queries.NextLaneRow
	w   *workerRow // nil = there is none
	a   *agentRow
}

func (a candidate) before(b candidate) bool {
	x, y := a.row, b.row
	if x.Priority != y.Priority {
		return x.Priority > y.Priority
	}
	if x.QueuedAt != y.QueuedAt {
		return x.QueuedAt < y.QueuedAt
	}
	return x.ID < y.ID
}

func (e *Engine) claimNextTx(tx *db.Tx, c Caller, in api.ClaimNextRequest) (*api.Claim, []api.AgentID, error) {
	var best candidate
	agents := make([]api.AgentID, 0, len(in.WorkerIDs))
	for _, id := range in.WorkerIDs {
		row, err := tx.WorkerAndLoad(wctx(), id)
		if none(err) || (err == nil && !c.runs(&row.Worker)) {
			return nil, nil, notFound("worker")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read worker %s: %w", id, err)
		}
		w := &row.Worker
		if err := sameInstance(w, in.InstanceID); err != nil {
			return nil, nil, err
		}
		agents = append(agents, w.AgentID)
		if in.RequestID != "" {
			again, err := e.sameRequest(tx, w, in.RequestID)
			if again != nil || err != nil {
				return again, nil, err
			}
		}
		next, err := e.bestFor(tx, &workerFacts{w: w, running: row.Running, inFolder: row.InFolder})
		if err != nil {
			return nil, nil, fmt.Errorf("look for work of worker %s: %w", w.ID, err)
		}
		if next.w != nil && (best.w == nil || next.before(best)) {
			best = next
		}
	}
	if best.w == nil {
		return nil, agents, nil
	}
	s, err := tx.Session(wctx(), best.row.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("read session %s: %w", best.row.ID, err)
	}
	term, err := e.term(in.LeaseSeconds, best.a)
	if err != nil {
		return nil, nil, err
	}
	out, err := e.grant(tx, best.w, &s, best.a, term, in.RequestID, false)
	if err != nil {
		return nil, nil, err
	}
	return &out, nil, nil
}

// sameRequest answers a request id that was answered before with the same claim,
// as long as it lives.
func (e *Engine) sameRequest(tx *db.Tx, w *workerRow, requestID string) (*api.Claim, error) {
	c, err := tx.ClaimByRequest(wctx(), queries.ClaimByRequestParams{WorkerID: w.ID, RequestID: requestID})
	if none(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the claim of request %q: %w", requestID, err)
	}
	if c.ClosedAt != 0 || c.ExpiresAt <= micros(tx.Now) || c.InstanceID != w.InstanceID {
		return nil, nil
	}
	s, err := tx.Session(wctx(), c.SessionID)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", c.SessionID, err)
	}
	a, err := tx.AgentEvenDeleted(wctx(), c.AgentID)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", c.AgentID, err)
	}
	out, err := e.answer(tx, &c, w, &s, &a, term{seconds: c.LeaseSeconds})
	return &out, err
}

// bestFor finds the first session without a gate in the lanes that fit a worker.
// Sessions of other lanes are passed over in one step each, so that they starve
// nobody behind them (contract 4.2).
func (e *Engine) bestFor(tx *db.Tx, wf *workerFacts) (candidate, error) {
	w := wf.w
	if w.State == api.Offline || w.Desired != api.DesiredRunning || wf.running >= w.MaxConcurrent || wf.inFolder > 0 {
		return candidate{}, nil
	}
	a, err := tx.AgentEvenDeleted(wctx(), w.AgentID)
	if err != nil {
		return candidate{}, fmt.Errorf("read agent %s: %w", w.AgentID, err)
	}
	if a.Paused != 0 || a.DeletedAt != 0 || a.Running >= a.MaxConcurrent || !w.Types.Has(api.Labels{string(a.Type)}) {
		return candidate{}, nil
	}
	var best candidate
	for from := ""; ; {
		row, err := tx.NextLane(wctx(), queries.NextLaneParams{AgentID: a.ID, Lane: from, Now: micros(tx.Now), ProcessID: w.ProcessID})
		if none(err) {
			return best, nil
		}
		if err != nil {
			return candidate{}, err
		}
		if next := (candidate{row, w, &a}); laneFits(row.Lane, w) && (best.w == nil || next.before(best)) {
			best = next
		}
		if from = row.NextLane; from == "" {
			return best, nil
		}
	}
}
