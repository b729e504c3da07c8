package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// tryAdmit moves a pending session to queued if no row gate holds it any more; otherwise it
// makes sure that the timer looks again at the right moment.
func (e *Engine) tryAdmit(tx *db.Tx, s *sessionRow) error {
	a, err := agentEvenDeleted(tx.Context(), tx, s.AgentID)
	if err != nil {
		return fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	f, err := loadFacts(tx.Context(), tx, s, &a)
	if err != nil {
		return fmt.Errorf("read the gates of session %s: %w", s.ID, err)
	}
	now := db.Micros(tx.Now)
	if g := f.rowGate(now); g != nil {
		if at := admitAt(g); at != s.AdmitAt {
			return db.One(tx.SetAdmitAt(tx.Context(), queries.SetAdmitAtParams{AdmitAt: at, ID: s.ID}))
		}
		return nil
	}
	next := *s
	next.Status = api.Queued
	_, err = e.move(tx, s, next, api.ActorSystem, api.EventSessionQueued, nil)
	return err
}

// admitNow is tryAdmit for a caller that continues with the session.
func (e *Engine) admitNow(tx *db.Tx, s *sessionRow) (*sessionRow, error) {
	if err := e.tryAdmit(tx, s); err != nil {
		return nil, err
	}
	again, err := tx.Session(tx.Context(), s.ID)
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

// admitHeld checks again the sessions that wait behind the agent's overlap gate.
func (e *Engine) admitHeld(tx *db.Tx, agent api.AgentID) error {
	rows, err := tx.HeldByOverlap(tx.Context(), agent)
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

// letHeldGo lifts the gate overlap for what waits behind it, for an agent whose new rule has
// no such gate.
func (e *Engine) letHeldGo(tx *db.Tx, agent api.AgentID) error {
	rows, err := tx.HeldByOverlap(tx.Context(), agent)
	if err != nil {
		return fmt.Errorf("read what waits behind runs of agent %s: %w", agent, err)
	}
	for i := range rows {
		s := &rows[i]
		if err := db.One(tx.LiftOverlap(tx.Context(), s.ID)); err != nil {
			return fmt.Errorf("lift the gate of session %s: %w", s.ID, err)
		}
		s.OverlapHeld = 0
		if err := e.tryAdmit(tx, s); err != nil {
			return err
		}
	}
	return nil
}

// Admit queues pending sessions whose time has come at now. It returns the first instant later
// than now at which another's comes.
func (e *Engine) Admit(ctx context.Context, now time.Time) (time.Time, error) {
	return e.handle(ctx, now, timed{
		what: "queue a session whose time has come",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			rows, err := tx.DueAdmissions(ctx, queries.DueAdmissionsParams{Now: now, N: n})
			return keysOf(rows, func(id api.SessionID) int64 { return int64(id) }), err
		},
		do: func(tx *db.Tx, id int64) error {
			s, err := tx.Session(tx.Context(), api.SessionID(id))
			if err != nil {
				return err
			}
			if s.Status != api.Pending || s.AdmitAt == 0 || s.AdmitAt > db.Micros(tx.Now) {
				return nil
			}
			return e.tryAdmit(tx, &s)
		},
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) { return tx.NextAdmission(ctx, now) },
	})
}

// EndUnclaimed ends sessions that no worker claimed within the agent's queueTimeout, counted
// from the later of queued and the last unpause (contract 2.3). It returns the first instant
// later than now at which it has to look again.
func (e *Engine) EndUnclaimed(ctx context.Context, now time.Time) (time.Time, error) {
	return e.handle(ctx, now, timed{
		what: "close a session that nobody claimed", due: unclaimed, do: e.neverClaimed, next: nextUnclaimed,
	})
}

func unclaimed(ctx context.Context, tx *db.ReadTx, now, n int64) (due []int64, err error) {
	agents, err := tx.AgentsWithQueueTimeout(ctx)
	if err != nil {
		return nil, err
	}
	for i := range agents {
		a := &agents[i]
		if a.UnpausedAt+db.Seconds(a.QueueTimeout) > now {
			continue
		}
		rows, err := tx.OldestWaiting(ctx, queries.OldestWaitingParams{AgentID: a.ID, Before: now - db.Seconds(a.QueueTimeout), N: n - int64(len(due))})
		if err != nil {
			return nil, err
		}
		due = append(due, keysOf(rows, func(id api.SessionID) int64 { return int64(id) })...)
		if int64(len(due)) >= n {
			break
		}
	}
	return due, nil
}

// nextUnclaimed is the first instant after now at which a queue time-out ends; at the latest
// half the shortest one from now, so that each session is seen before its own can end, and not
// every queued session has to wake the timer.
func nextUnclaimed(ctx context.Context, tx *db.ReadTx, now int64) (next int64, err error) {
	agents, err := tx.AgentsWithQueueTimeout(ctx)
	if err != nil {
		return 0, err
	}
	for i := range agents {
		a := &agents[i]
		wait := db.Seconds(a.QueueTimeout)
		since := now - wait // what is older was tried just now
		if a.UnpausedAt > since {
			since = 0
		}
		first, err := tx.FirstWaitingSince(ctx, queries.FirstWaitingSinceParams{AgentID: a.ID, Since: since})
		if err != nil {
			return 0, fmt.Errorf("agent %s: %w", a.ID, err)
		}
		at := now + wait/2
		if first != 0 {
			at = min(at, max(first, a.UnpausedAt)+wait)
		}
		next = earliest(next, at)
	}
	return next, nil
}

// neverClaimed ends one session, if it is still unclaimed and its time is over.
func (e *Engine) neverClaimed(tx *db.Tx, id int64) error {
	s, err := tx.Session(tx.Context(), api.SessionID(id))
	if err != nil {
		return err
	}
	a, err := agentEvenDeleted(tx.Context(), tx, s.AgentID)
	if err != nil {
		return fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	waits := s.Status == api.Queued || s.Status == api.Stale
	if !waits || a.Paused != 0 || a.QueueTimeout == 0 || max(s.QueuedAt, a.UnpausedAt)+db.Seconds(a.QueueTimeout) > db.Micros(tx.Now) {
		return nil
	}
	next := s
	next.Status = api.Failed
	next.ErrorCode = "never_claimed"
	next.ErrorMessage = fmt.Sprintf("No worker claimed it within the agent's queue time-out of %d seconds.", a.QueueTimeout)
	if err := e.closePrompt(tx, &next, api.ActorSystem, "cancelled"); err != nil {
		return err
	}
	_, err = e.move(tx, &s, next, api.ActorSystem, api.EventSessionError, api.EventData{"code": next.ErrorCode})
	return err
}
