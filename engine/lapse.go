package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Lapse ends claims whose lease is over and those of workers that went offline,
// and drains what must be gone by now: each in its own step, exactly once. It
// answers the next instant at which anything can be due.
func (e *Engine) Lapse(ctx context.Context) (time.Time, error) {
	err := errors.Join(e.lapseDue(ctx), e.offlineDue(ctx), e.quietDue(ctx), e.drainDue(ctx))
	if err != nil {
		return time.Time{}, err
	}
	var next int64
	err = e.store.Read(ctx, func(tx *db.ReadTx) (err error) {
		next, err = e.nextLapse(ctx, tx, micros(tx.Now))
		return err
	})
	return api.At(next).Time, err
}

// lapseDue ends claims whose lease is over.
func (e *Engine) lapseDue(ctx context.Context) error {
	return e.eachDue(ctx, "end a lapsed claim", func(tx *db.ReadTx, n int64) ([]int64, error) {
		rows, err := tx.DueLapses(ctx, queries.DueLapsesParams{Now: micros(tx.Now), N: n})
		return keysOf(rows, func(c claimRow) int64 { return int64(c.ID) }), err
	}, func(tx *db.Tx, id int64) error {
		c, err := tx.Claim(wctx(), api.ClaimKey(id))
		if err != nil {
			return err
		}
		if c.ClosedAt != 0 || c.ExpiresAt > micros(tx.Now) {
			return nil
		}
		return e.lapseRow(tx, &c, closedByLapse)
	})
}

// offlineDue ends the claims of workers that have been silent for too long (contract 5.2).
func (e *Engine) offlineDue(ctx context.Context) error {
	limit := span(e.cfg.OfflineAfter)
	return e.eachDue(ctx, "mark a worker offline", func(tx *db.ReadTx, n int64) ([]int64, error) {
		rows, err := tx.OfflineDue(ctx, queries.OfflineDueParams{Before: micros(tx.Now) - limit, N: n})
		return keysOf(rows, func(w workerRow) int64 { return int64(w.ID) }), err
	}, func(tx *db.Tx, id int64) error {
		w, err := tx.Worker(wctx(), api.WorkerID(id))
		if none(err) || (err == nil && (w.State == api.Offline || w.LastBeatAt > micros(tx.Now)-limit)) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := e.setWorkerState(tx, &w, api.Offline, evWorkerOffline); err != nil {
			return err
		}
		return e.endClaims(tx, &w, closedByOffline)
	})
}

// quietDue marks workers stale that have been silent for a while.
func (e *Engine) quietDue(ctx context.Context) error {
	limit := span(e.cfg.StaleAfter)
	return e.eachDue(ctx, "mark a worker stale", func(tx *db.ReadTx, n int64) ([]int64, error) {
		rows, err := tx.StaleDue(ctx, queries.StaleDueParams{Before: micros(tx.Now) - limit, N: n})
		return keysOf(rows, func(w workerRow) int64 { return int64(w.ID) }), err
	}, func(tx *db.Tx, id int64) error {
		w, err := tx.Worker(wctx(), api.WorkerID(id))
		if none(err) || (err == nil && (w.State != api.Online || w.LastBeatAt > micros(tx.Now)-limit)) {
			return nil
		}
		if err != nil {
			return err
		}
		return e.setWorkerState(tx, &w, api.WorkerStale, evWorkerStale)
	})
}

// drainDue counts closed claims as drained whose worker must have ended them.
func (e *Engine) drainDue(ctx context.Context) error {
	return e.eachDue(ctx, "drain a closed claim", func(tx *db.ReadTx, n int64) ([]int64, error) {
		rows, err := tx.DueDrains(ctx, queries.DueDrainsParams{Now: micros(tx.Now), N: n})
		return keysOf(rows, func(c claimRow) int64 { return int64(c.ID) }), err
	}, func(tx *db.Tx, id int64) error {
		c, err := tx.Claim(wctx(), api.ClaimKey(id))
		if err != nil {
			return err
		}
		if c.ClosedAt == 0 || c.Drained != 0 || c.DrainBy > micros(tx.Now) {
			return nil
		}
		return e.drained(tx, &c, actorSystem)
	})
}

// nextLapse is the first instant after now at which a lease ends, a drain is
// over or a worker becomes stale or offline; 0 when there is none.
func (e *Engine) nextLapse(ctx context.Context, tx *db.ReadTx, now int64) (next int64, err error) {
	for _, look := range []struct {
		query func(context.Context, int64) (int64, error)
		after time.Duration // what is added to the instant in the row
	}{
		{tx.NextLapse, 0}, {tx.NextDrain, 0}, {tx.NextBeat, e.cfg.OfflineAfter}, {tx.NextOnlineBeat, e.cfg.StaleAfter},
	} {
		at, err := look.query(ctx, now-span(look.after))
		if none(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if at += span(look.after); next == 0 || at < next {
			next = at
		}
	}
	return next, nil
}

func keysOf[R any](rows []R, key func(R) int64) []int64 {
	out := make([]int64, 0, len(rows))
	for _, r := range rows {
		out = append(out, key(r))
	}
	return out
}

func (e *Engine) lapseRow(tx *db.Tx, c *claimRow, by string) error {
	s, err := tx.Session(wctx(), c.SessionID)
	if err != nil {
		return fmt.Errorf("read session %s: %w", c.SessionID, err)
	}
	a, err := tx.AgentEvenDeleted(wctx(), c.AgentID)
	if err != nil {
		return fmt.Errorf("read agent %s: %w", c.AgentID, err)
	}
	_, err = e.lapseClaim(tx, c, &s, &a, by)
	return err
}

// lapseClaim takes a claim away: its session goes stale and is claimable again
// with no human action, or ends when it was asked to stop or has lapsed too
// often (contract 2.3, 4.6). The timer and claim share it.
func (e *Engine) lapseClaim(tx *db.Tx, c *claimRow, s *sessionRow, a *agentRow, by string) (*sessionRow, error) {
	if err := e.closeClaim(tx, c, by); err != nil {
		return nil, err
	}
	next := *s
	next.ClaimID = 0
	next.AffinityUntil = 0
	data := api.EventData{"reason": by, "fence": c.Fence}
	kind := evSessionStale
	if by != closedByDeletion {
		next.Lapses++
		data["lapses"] = next.Lapses
	}
	switch {
	case next.StopRequestedAt != 0:
		kind = evSessionCancelled
		next.Status, next.Outcome = api.Cancelled, "stopped_by_user"
		next.ErrorCode, next.ErrorMessage = "stopped", "It was asked to stop and its worker didn't report back."
	case by != closedByDeletion && next.Lapses >= a.MaxLapses:
		kind = evSessionError
		next.Status = api.Failed
		next.ErrorCode = "lease_lapsed_repeatedly"
		next.ErrorMessage = fmt.Sprintf("Its worker was lost %d times, which is the agent's limit.", next.Lapses)
		data["code"] = next.ErrorCode
	default:
		next.Status = api.Stale
		next.ReclaimAt = micros(tx.Now) + seconds(a.ReclaimDelay)
		if a.ReclaimDelay == 0 {
			next.ReclaimAt = 0
		}
		if next.AgentSessionID != "" {
			next.AffinityUntil = micros(tx.Now) + span(e.cfg.AffinityWait)
		}
	}
	if next.Status.Terminal() {
		if err := e.closePrompt(tx, &next, actorSystem, "cancelled"); err != nil {
			return nil, err
		}
	}
	moved, err := e.move(tx, s, next, actorSystem, kind, data)
	if err != nil {
		return nil, err
	}
	if c.Drained != 0 {
		if _, err := e.freed(tx, c.AgentID); err != nil {
			return nil, err
		}
		a.Running--
	}
	return moved, nil
}

// endClaims takes the live claims of a worker away, at once and exactly once.
func (e *Engine) endClaims(tx *db.Tx, w *workerRow, by string) error {
	rows, err := tx.LiveClaimsOfWorker(wctx(), w.ID)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := e.lapseRow(tx, &rows[i], by); err != nil {
			return err
		}
	}
	return nil
}

// endLapsed ends the worker's claims whose lease is over, ahead of the timer.
func (e *Engine) endLapsed(tx *db.Tx, w *workerRow) error {
	rows, err := tx.LiveClaimsOfWorker(wctx(), w.ID)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].ExpiresAt > micros(tx.Now) {
			continue
		}
		if err := e.lapseRow(tx, &rows[i], closedByLapse); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) setWorkerState(tx *db.Tx, w *workerRow, state api.WorkerState, kind string) error {
	if err := one(tx.SetWorkerState(wctx(), queries.SetWorkerStateParams{State: state, ID: w.ID})); err != nil {
		return fmt.Errorf("set worker %s to %s: %w", w.ID, state, err)
	}
	w.State = state
	return e.logWorker(tx, w, actorSystem, kind, nil)
}
