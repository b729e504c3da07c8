package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const batch = 200 // rows that one timer transaction handles

// tryAdmit moves a pending session to queued if no row gate holds it any more;
// otherwise it sees to it that the timer looks again at the right moment.
func (e *Engine) tryAdmit(tx *db.Tx, s *sessionRow) error {
	a, err := tx.AgentEvenDeleted(wctx(), s.AgentID)
	if err != nil {
		return fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	f, err := loadFacts(wctx(), tx.Queries, s, &a)
	if err != nil {
		return fmt.Errorf("read the gates of session %s: %w", s.ID, err)
	}
	now := micros(tx.Now)
	if g := f.rowGate(now); g != nil {
		if at := admitAt(g); at != s.AdmitAt {
			return one(tx.SetAdmitAt(wctx(), queries.SetAdmitAtParams{AdmitAt: at, ID: s.ID}))
		}
		return nil
	}
	next := *s
	next.Status = api.Queued
	_, err = e.move(tx, s, next, actorSystem, evSessionQueued, nil)
	return err
}

// admitNow is tryAdmit for a caller who goes on with the session.
func (e *Engine) admitNow(tx *db.Tx, s *sessionRow) (*sessionRow, error) {
	if err := e.tryAdmit(tx, s); err != nil {
		return nil, err
	}
	again, err := tx.Session(wctx(), s.ID)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", s.ID, err)
	}
	return &again, nil
}

// admitAt is when time alone lifts a gate; 0 when something else must happen.
func admitAt(g *api.Waiting) int64 {
	if g == nil || g.Code != gateNotBefore {
		return 0
	}
	return api.Micros(g.Until.Time)
}

// admitHeld looks again at the sessions that wait behind the agent's overlap gate.
func (e *Engine) admitHeld(tx *db.Tx, agent api.AgentID) error {
	rows, err := tx.HeldByOverlap(wctx(), agent)
	if err != nil {
		return fmt.Errorf("read what waits behind runs of agent %s: %w", agent, err)
	}
	for i := range rows {
		if err := e.tryAdmit(tx, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// letHeldGo lifts the gate overlap from what waits behind it, for an agent whose
// new rule has no such gate.
func (e *Engine) letHeldGo(tx *db.Tx, agent api.AgentID) error {
	rows, err := tx.HeldByOverlap(wctx(), agent)
	if err != nil {
		return fmt.Errorf("read what waits behind runs of agent %s: %w", agent, err)
	}
	for i := range rows {
		s := &rows[i]
		if err := one(tx.LiftOverlap(wctx(), s.ID)); err != nil {
			return fmt.Errorf("lift the gate of session %s: %w", s.ID, err)
		}
		s.OverlapHeld = 0
		if err := e.tryAdmit(tx, s); err != nil {
			return err
		}
	}
	return nil
}

// Admit queues pending sessions whose time has come and closes those that
// nobody claimed within their queue time-out. It answers when to look again.
func (e *Engine) Admit(ctx context.Context) (time.Time, error) {
	var next int64
	for {
		var more bool
		err := e.write(ctx, func(tx *db.Tx) error {
			rows, err := tx.DueAdmissions(wctx(), queries.DueAdmissionsParams{Now: micros(tx.Now), N: batch})
			if err != nil {
				return err
			}
			for i := range rows {
				if err := e.tryAdmit(tx, &rows[i]); err != nil {
					return err
				}
			}
			more = len(rows) == batch
			next, err = tx.NextAdmission(wctx())
			if none(err) {
				next, err = 0, nil
			}
			return err
		})
		if err != nil {
			return time.Time{}, fmt.Errorf("admit due sessions: %w", err)
		}
		if !more {
			break
		}
	}
	timeout, err := e.closeUnclaimed(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return earliest(api.At(next).Time, timeout), nil
}

// closeUnclaimed ends sessions that no worker claimed within the agent's
// queueTimeout, counted from the later of queued and the last unpause (contract 2.3).
func (e *Engine) closeUnclaimed(ctx context.Context) (time.Time, error) {
	var next time.Time
	err := e.write(ctx, func(tx *db.Tx) error {
		next = time.Time{}
		agents, err := tx.AgentsWithQueueTimeout(wctx())
		if err != nil {
			return err
		}
		for i := range agents {
			at, err := e.closeUnclaimedOf(tx, &agents[i])
			if err != nil {
				return fmt.Errorf("agent %s: %w", agents[i].ID, err)
			}
			next = earliest(next, at)
		}
		return nil
	})
	if err != nil {
		return next, fmt.Errorf("close unclaimed sessions: %w", err)
	}
	return next, nil
}

func (e *Engine) closeUnclaimedOf(tx *db.Tx, a *agentRow) (time.Time, error) {
	now, wait := micros(tx.Now), seconds(a.QueueTimeout)
	if a.UnpausedAt+wait <= now {
		rows, err := tx.OldestWaiting(wctx(), queries.OldestWaitingParams{AgentID: a.ID, Before: now - wait, N: batch})
		if err != nil {
			return time.Time{}, err
		}
		for i := range rows {
			if err := e.neverClaimed(tx, &rows[i], a); err != nil {
				return time.Time{}, err
			}
		}
		if len(rows) == batch {
			return tx.Now, nil
		}
	}
	first, err := tx.FirstWaitingSince(wctx(), a.ID)
	if err != nil || first == 0 {
		return time.Time{}, err
	}
	return api.At(max(first, a.UnpausedAt) + wait).Time, nil
}

func (e *Engine) neverClaimed(tx *db.Tx, s *sessionRow, a *agentRow) error {
	next := *s
	next.Status = api.Failed
	next.ErrorCode = "never_claimed"
	next.ErrorMessage = fmt.Sprintf("No worker claimed it within the agent's queue time-out of %d seconds.", a.QueueTimeout)
	if err := e.closePrompt(tx, &next, actorSystem, "cancelled"); err != nil {
		return err
	}
	_, err := e.move(tx, s, next, actorSystem, evSessionError, api.EventData{"code": next.ErrorCode})
	return err
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
