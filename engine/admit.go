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

// tryAdmit moves a pending session to queued if no row gate holds it any more;
// otherwise it sees to it that the timer looks again at the right moment.
func (e *Engine) tryAdmit(tx *db.Tx, s *sessionRow) error {
	a, err := tx.AgentEvenDeleted(wctx(), s.AgentID)
	if err != nil {
		return fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	f, err := loadFacts(wctx(), tx, s, &a)
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
	if err := errors.Join(e.admitDue(ctx), e.closeUnclaimed(ctx)); err != nil {
		return time.Time{}, err
	}
	var next int64
	err := e.store.Read(ctx, func(tx *db.ReadTx) (err error) {
		next, err = e.nextAdmission(ctx, tx, micros(tx.Now))
		return err
	})
	return api.At(next).Time, err
}

func (e *Engine) admitDue(ctx context.Context) error {
	return e.eachDue(ctx, "queue a session whose time has come", func(tx *db.ReadTx, n int64) ([]int64, error) {
		rows, err := tx.DueAdmissions(ctx, queries.DueAdmissionsParams{Now: micros(tx.Now), N: n})
		return keysOf(rows, func(id api.SessionID) int64 { return int64(id) }), err
	}, func(tx *db.Tx, id int64) error {
		s, err := tx.Session(wctx(), api.SessionID(id))
		if err != nil {
			return err
		}
		if s.Status != api.Pending || s.AdmitAt == 0 || s.AdmitAt > micros(tx.Now) {
			return nil
		}
		return e.tryAdmit(tx, &s)
	})
}

// closeUnclaimed ends sessions that no worker claimed within the agent's
// queueTimeout, counted from the later of queued and the last unpause (contract 2.3).
func (e *Engine) closeUnclaimed(ctx context.Context) error {
	return e.eachDue(ctx, "close a session that nobody claimed", func(tx *db.ReadTx, n int64) (due []int64, err error) {
		agents, err := tx.AgentsWithQueueTimeout(ctx)
		if err != nil {
			return nil, err
		}
		now := micros(tx.Now)
		for i := range agents {
			a := &agents[i]
			if a.UnpausedAt+seconds(a.QueueTimeout) > now {
				continue
			}
			rows, err := tx.OldestWaiting(ctx, queries.OldestWaitingParams{AgentID: a.ID, Before: now - seconds(a.QueueTimeout), N: n - int64(len(due))})
			if err != nil {
				return nil, err
			}
			due = append(due, keysOf(rows, func(id api.SessionID) int64 { return int64(id) })...)
			if int64(len(due)) >= n {
				break
			}
		}
		return due, nil
	}, e.neverClaimed)
}

// nextAdmission is the first instant after now at which a session's time comes
// or its queue time-out ends; 0 when there is none.
func (e *Engine) nextAdmission(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) {
	next, err := tx.NextAdmission(ctx, now)
	if err != nil && !none(err) {
		return 0, err
	}
	agents, err := tx.AgentsWithQueueTimeout(ctx)
	if err != nil {
		return 0, err
	}
	for i := range agents {
		a := &agents[i]
		wait := seconds(a.QueueTimeout)
		since := now - wait // what is older was tried just now
		if a.UnpausedAt > since {
			since = 0
		}
		first, err := tx.FirstWaitingSince(ctx, queries.FirstWaitingSinceParams{AgentID: a.ID, Since: since})
		if err != nil {
			return 0, fmt.Errorf("agent %s: %w", a.ID, err)
		}
		if at := max(first, a.UnpausedAt) + wait; first != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return next, nil
}

// neverClaimed ends one session, if it is still unclaimed and its time is over.
func (e *Engine) neverClaimed(tx *db.Tx, id int64) error {
	s, err := tx.Session(wctx(), api.SessionID(id))
	if err != nil {
		return err
	}
	a, err := tx.AgentEvenDeleted(wctx(), s.AgentID)
	if err != nil {
		return fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	waits := s.Status == api.Queued || s.Status == api.Stale
	if !waits || a.Paused != 0 || a.QueueTimeout == 0 || max(s.QueuedAt, a.UnpausedAt)+seconds(a.QueueTimeout) > micros(tx.Now) {
		return nil
	}
	next := s
	next.Status = api.Failed
	next.ErrorCode = "never_claimed"
	next.ErrorMessage = fmt.Sprintf("No worker claimed it within the agent's queue time-out of %d seconds.", a.QueueTimeout)
	if err := e.closePrompt(tx, &next, actorSystem, "cancelled"); err != nil {
		return err
	}
	_, err = e.move(tx, &s, next, actorSystem, evSessionError, api.EventData{"code": next.ErrorCode})
	return err
}
