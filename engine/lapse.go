package engine

import (
	"context"
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
	var next time.Time
	steps := []struct {
		what string
		do   func(*db.Tx) (more bool, next int64, err error)
	}{
		{"end lapsed claims", e.lapseDue},
		{"mark quiet workers", e.quietDue},
		{"drain closed claims", e.drainDue},
	}
	for _, step := range steps {
		for more := true; more; {
			var at int64
			err := e.write(ctx, func(tx *db.Tx) (err error) {
				more, at, err = step.do(tx)
				return err
			})
			if err != nil {
				return time.Time{}, fmt.Errorf("%s: %w", step.what, err)
			}
			if !more {
				next = earliest(next, api.At(at).Time)
			}
		}
	}
	return next, nil
}

func (e *Engine) lapseDue(tx *db.Tx) (bool, int64, error) {
	rows, err := tx.DueLapses(wctx(), queries.DueLapsesParams{Now: micros(tx.Now), N: batch})
	if err != nil {
		return false, 0, err
	}
	for i := range rows {
		if err := e.lapseRow(tx, &rows[i], closedByLapse); err != nil {
			return false, 0, fmt.Errorf("claim %s: %w", rows[i].ID, err)
		}
	}
	next, err := tx.NextLapse(wctx())
	if none(err) {
		next, err = 0, nil
	}
	return len(rows) == batch, next, err
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

func (e *Engine) drainDue(tx *db.Tx) (bool, int64, error) {
	rows, err := tx.DueDrains(wctx(), queries.DueDrainsParams{Now: micros(tx.Now), N: batch})
	if err != nil {
		return false, 0, err
	}
	for i := range rows {
		if err := e.drained(tx, &rows[i], actorSystem); err != nil {
			return false, 0, err
		}
	}
	next, err := tx.NextDrain(wctx())
	if none(err) {
		next, err = 0, nil
	}
	return len(rows) == batch, next, err
}

// quietDue makes workers without a beat stale and then offline; offline ends
// their claims (contract 5.2).
func (e *Engine) quietDue(tx *db.Tx) (bool, int64, error) {
	now := micros(tx.Now)
	gone, err := tx.OfflineDue(wctx(), queries.OfflineDueParams{Before: now - span(e.cfg.OfflineAfter), N: batch})
	if err != nil {
		return false, 0, err
	}
	for i := range gone {
		if err := e.setWorkerState(tx, &gone[i], api.Offline, evWorkerOffline); err != nil {
			return false, 0, err
		}
		if err := e.endClaims(tx, &gone[i], closedByOffline); err != nil {
			return false, 0, fmt.Errorf("worker %s: %w", gone[i].ID, err)
		}
	}
	quiet, err := tx.StaleDue(wctx(), queries.StaleDueParams{Before: now - span(e.cfg.StaleAfter), N: batch})
	if err != nil {
		return false, 0, err
	}
	for i := range quiet {
		if err := e.setWorkerState(tx, &quiet[i], api.WorkerStale, evWorkerStale); err != nil {
			return false, 0, err
		}
	}
	next, err := e.nextQuiet(tx)
	return len(gone) == batch || len(quiet) == batch, next, err
}

// nextQuiet is when the next worker becomes stale or offline; 0 when there is none.
func (e *Engine) nextQuiet(tx *db.Tx) (int64, error) {
	oldest, err := tx.OldestBeat(wctx())
	if none(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	next := oldest + span(e.cfg.OfflineAfter)
	online, err := tx.OldestOnlineBeat(wctx())
	if none(err) {
		return next, nil
	}
	return min(next, online+span(e.cfg.StaleAfter)), err
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
