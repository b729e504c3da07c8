package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Lapse ends claims, and leases on tasks, whose time is over at now and those of workers that went offline, and
// drains what must be gone by then: each in a separate step, exactly once. It returns the
// first instant later than now at which anything can be due.
func (e *Engine) Lapse(ctx context.Context, now time.Time) (time.Time, error) {
	return e.handle(ctx, now, e.lapses(), e.offlineWorkers(), e.staleWorkers(), e.drains(), e.taskLapses())
}

// lapses are claims whose lease is over.
func (e *Engine) lapses() timed {
	return timed{
		what: "end a lapsed claim",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			rows, err := tx.DueLapses(ctx, queries.DueLapsesParams{Now: now, N: n})
			return keysOf(rows, func(c claimRow) int64 { return int64(c.ID) }), err
		},
		do: func(tx *db.Tx, id int64) error {
			c, err := tx.Claim(tx.Context(), api.ClaimKey(id))
			if err != nil {
				return err
			}
			if c.ClosedAt != 0 || c.ExpiresAt > db.Micros(tx.Now) {
				return nil
			}
			return e.lapseRow(tx, &c, closedByLapse)
		},
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) { return tx.NextLapse(ctx, now) },
	}
}

// offlineWorkers are workers that have been silent for so long that their claims end
// (contract 5.2).
func (e *Engine) offlineWorkers() timed {
	limit := db.Span(e.cfg.OfflineAfter)
	return timed{
		what: "mark a worker offline",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			rows, err := tx.OfflineDue(ctx, queries.OfflineDueParams{Before: now - limit, N: n})
			return keysOf(rows, func(w workerRow) int64 { return int64(w.ID) }), err
		},
		do: func(tx *db.Tx, id int64) error {
			w, err := tx.Worker(tx.Context(), api.WorkerID(id))
			if db.None(err) || (err == nil && (w.State == api.Offline || w.LastBeatAt > db.Micros(tx.Now)-limit)) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := e.setWorkerState(tx, &w, api.Offline, api.EventWorkerOffline); err != nil {
				return err
			}
			return e.endClaims(tx, &w, closedByOffline)
		},
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) {
			beat, err := tx.NextBeat(ctx, now-limit)
			return later(beat, limit), err
		},
	}
}

// staleWorkers are workers that have been silent for a while and become stale.
func (e *Engine) staleWorkers() timed {
	limit := db.Span(e.cfg.StaleAfter)
	return timed{
		what: "mark a worker stale",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			rows, err := tx.StaleDue(ctx, queries.StaleDueParams{Before: now - limit, N: n})
			return keysOf(rows, func(w workerRow) int64 { return int64(w.ID) }), err
		},
		do: func(tx *db.Tx, id int64) error {
			w, err := tx.Worker(tx.Context(), api.WorkerID(id))
			if db.None(err) || (err == nil && (w.State != api.Online || w.LastBeatAt > db.Micros(tx.Now)-limit)) {
				return nil
			}
			if err != nil {
				return err
			}
			return e.setWorkerState(tx, &w, api.WorkerStale, api.EventWorkerStale)
		},
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) {
			beat, err := tx.NextOnlineBeat(ctx, now-limit)
			return later(beat, limit), err
		},
	}
}

// drains are closed claims whose worker must have ended their processes by now.
func (e *Engine) drains() timed {
	return timed{
		what: "drain a closed claim",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			rows, err := tx.DueDrains(ctx, queries.DueDrainsParams{Now: now, N: n})
			return keysOf(rows, func(c claimRow) int64 { return int64(c.ID) }), err
		},
		do: func(tx *db.Tx, id int64) error {
			c, err := tx.Claim(tx.Context(), api.ClaimKey(id))
			if err != nil {
				return err
			}
			if c.ClosedAt == 0 || c.Drained != 0 || c.DrainBy > db.Micros(tx.Now) {
				return nil
			}
			return e.drained(tx, &c, api.ActorSystem)
		},
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) { return tx.NextDrain(ctx, now) },
	}
}

// later is an instant of a row and what is added to it; 0 stays "none".
func later(at, span int64) int64 {
	if at == 0 {
		return 0
	}
	return at + span
}

func keysOf[R any](rows []R, key func(R) int64) []int64 {
	out := make([]int64, 0, len(rows))
	for _, r := range rows {
		out = append(out, key(r))
	}
	return out
}

func (e *Engine) lapseRow(tx *db.Tx, c *claimRow, by string) error {
	s, err := tx.Session(tx.Context(), c.SessionID)
	if err != nil {
		return fmt.Errorf("read session %s: %w", c.SessionID, err)
	}
	a, err := agentEvenDeleted(tx.Context(), tx, c.AgentID)
	if err != nil {
		return fmt.Errorf("read agent %s: %w", c.AgentID, err)
	}
	_, err = e.lapseClaim(tx, c, &s, &a, by)
	return err
}

// lapseClaim takes a claim away: its session goes stale and is claimable again with no human
// action, or ends when it was asked to stop or has lapsed too often (contract 2.3, 4.6). The
// timer and claim share it.
func (e *Engine) lapseClaim(tx *db.Tx, c *claimRow, s *sessionRow, a *agentRow, by string) (*sessionRow, error) {
	if err := e.closeClaim(tx, c, by); err != nil {
		return nil, err
	}
	e.observe(tx, func(o Observer) { o.Lost(by) })
	next := *s
	next.ClaimID, next.PlaceAt = 0, 0
	next.AffinityUntil = 0
	data := api.EventData{"reason": by, "fence": c.Fence}
	kind := api.EventSessionStale
	if by != closedByDeletion {
		if _, err := tx.NoteLoss(tx.Context(), queries.NoteLossParams{LostAt: db.Micros(tx.Now), ID: c.WorkerID}); err != nil {
			return nil, fmt.Errorf("note that worker %s lost a claim: %w", c.WorkerID, err)
		}
		next.Lapses++
		data["lapses"] = next.Lapses
	}
	switch {
	case next.StopRequestedAt != 0:
		kind = api.EventSessionCancelled
		next.Status, next.Outcome = api.Cancelled, api.OutcomeStopped
		next.ErrorCode, next.ErrorMessage = "stopped", "It was asked to stop and its worker didn't report back."
	case by != closedByDeletion && next.Lapses >= a.MaxLapses:
		kind = api.EventSessionError
		next.Status = api.Failed
		next.ErrorCode = "lease_lapsed_repeatedly"
		next.ErrorMessage = fmt.Sprintf("Its worker was lost %d times, which is the agent's limit.", next.Lapses)
		data["code"] = next.ErrorCode
	default:
		next.Status = api.Stale
		next.ReclaimAt = db.Micros(tx.Now) + db.Seconds(a.ReclaimDelay)
		if a.ReclaimDelay == 0 {
			next.ReclaimAt = 0
		}
		if next.AgentSessionID != "" {
			next.AffinityUntil = db.Micros(tx.Now) + db.Span(e.cfg.AffinityWait)
		}
	}
	if next.Status == api.Stale && (next.PromptID != 0 || next.ReclaimAt != 0 || c.Drained == 0) {
		data["held"] = true // it is announced again once it can be claimed
	}
	if next.Status.Terminal() {
		if err := e.closePrompt(tx, &next, api.ActorSystem, "cancelled"); err != nil {
			return nil, err
		}
	}
	moved, err := e.move(tx, s, next, api.ActorSystem, kind, data)
	if err != nil {
		return nil, err
	}
	if c.Drained != 0 {
		if _, err := e.freed(tx, c); err != nil {
			return nil, err
		}
		a.Running--
	}
	return moved, nil
}

// endClaims takes the live claims of a worker away, at once and exactly once.
func (e *Engine) endClaims(tx *db.Tx, w *workerRow, by string) error {
	rows, err := tx.LiveClaimsOfWorker(tx.Context(), w.ID)
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
	rows, err := tx.LiveClaimsOfWorker(tx.Context(), w.ID)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].ExpiresAt > db.Micros(tx.Now) {
			continue
		}
		if err := e.lapseRow(tx, &rows[i], closedByLapse); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) setWorkerState(tx *db.Tx, w *workerRow, state api.WorkerState, kind string) error {
	if err := db.One(tx.SetWorkerState(tx.Context(), queries.SetWorkerStateParams{State: state, ID: w.ID})); err != nil {
		return fmt.Errorf("set worker %s to %s: %w", w.ID, state, err)
	}
	w.State = state
	return e.logWorker(tx, w, api.ActorSystem, kind, nil)
}
