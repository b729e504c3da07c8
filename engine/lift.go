package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Lift notifies those who wait for work of what time alone has made claimable: the pause after
// a lapse is over, the worker that could resume has had its time, an agent's day of spending
// has ended. It returns the first instant later than now at which more can be.
func (e *Engine) Lift(ctx context.Context, now time.Time) (time.Time, error) {
	return e.handle(ctx, now, timed{
		what: "offer a session whose time to wait is over",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			rows, err := tx.LiftedByTime(ctx, queries.LiftedByTimeParams{Now: now, N: n})
			return keysOf(rows, func(id api.SessionID) int64 { return int64(id) }), err
		},
		do: e.liftSession, next: nextLift,
	}, timed{
		what: "begin an agent's day of spending",
		due: func(ctx context.Context, tx *db.ReadTx, now, _ int64) (due []int64, err error) {
			rows, err := tx.SpentOutAgents(ctx)
			for i := range rows {
				if rows[i].SpendDay != sumDay(&rows[i], now) {
					due = append(due, int64(rows[i].ID))
				}
			}
			return due, err
		},
		do: e.beginDay,
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (next int64, err error) {
			rows, err := tx.SpentOutAgents(ctx)
			for i := range rows {
				next = earliest(next, nextDay(&rows[i], now))
			}
			return next, err
		},
	})
}

func nextLift(ctx context.Context, tx *db.ReadTx, now int64) (next int64, err error) {
	for _, look := range []func(context.Context, int64) (int64, error){tx.NextReclaim, tx.NextAffinity} {
		at, err := look(ctx, now)
		if err != nil && !db.None(err) {
			return 0, err
		}
		next = earliest(next, at)
	}
	return next, nil
}

func (e *Engine) liftSession(tx *db.Tx, id int64) error {
	s, err := tx.Session(tx.Context(), api.SessionID(id))
	if err != nil {
		return err
	}
	now := db.Micros(tx.Now)
	passed := func(at int64) bool { return at > 0 && at <= now }
	if s.Status != api.Queued && s.Status != api.Stale || !passed(s.ReclaimAt) && !passed(s.AffinityUntil) {
		return nil
	}
	if err := db.One(tx.ClearLifted(tx.Context(), queries.ClearLiftedParams{Now: now, ID: s.ID})); err != nil {
		return fmt.Errorf("note that session %s has waited long enough: %w", s.ID, err)
	}
	if s.ReclaimAt > now || s.PromptID != 0 {
		return nil // something else still holds it
	}
	reason := gateAffinity
	if passed(s.ReclaimAt) {
		reason = gateReclaimDelay
	}
	return e.claimable(tx, &s, reason)
}

func (e *Engine) beginDay(tx *db.Tx, id int64) error {
	a, err := agentEvenDeleted(tx.Context(), tx, api.AgentID(id))
	if err != nil {
		return err
	}
	if a.DailySpendLimit == 0 || a.SpentOnDay < a.DailySpendLimit {
		return nil
	}
	switch day := sumDay(&a, db.Micros(tx.Now)); {
	case a.SpendDay == day:
		return nil
	case a.SpendDay > day:
		return moveSpend(tx, &a, day)
	}
	if err := db.One(tx.BeginSpendDay(tx.Context(), queries.BeginSpendDayParams{ID: a.ID, Ended: a.SpendDay})); err != nil {
		return fmt.Errorf("begin the day of agent %s: %w", a.ID, err)
	}
	a.SpentOnDay = 0
	e.offer(a.ID)
	return e.announce(tx, &a, gateSpendLimit)
}

// claimable announces that a waiting session can be claimed again, to those who hold a
// claim-next and to webhooks: agent.session_queued wakes cloud workers.
func (e *Engine) claimable(tx *db.Tx, s *sessionRow, lifted string) error {
	e.offer(s.AgentID)
	return e.logSession(tx, s, api.ActorSystem, api.EventSessionQueued, api.EventData{"reason": lifted})
}

// mostAnnounced bounds what one change of an agent announces: a worker that comes
// for one of them finds the others too.
const mostAnnounced = 10

// announce says which of an agent's sessions can be claimed now that one of the agent's own
// gates is lifted, as many as have a place.
func (e *Engine) announce(tx *db.Tx, a *agentRow, lifted string) error {
	ready, err := readyOf(tx, a, db.Micros(tx.Now))
	if err != nil {
		return err
	}
	for i := range ready {
		if err := e.logSession(tx, &ready[i], api.ActorSystem, api.EventSessionQueued, api.EventData{"reason": lifted}); err != nil {
			return err
		}
	}
	return nil
}

// readyOf are sessions of an agent that no gate except a worker's holds back, as many as the
// agent has places for.
func readyOf(tx *db.Tx, a *agentRow, now int64) (out []sessionRow, err error) {
	most := min(a.MaxConcurrent-a.Running, mostAnnounced)
	from := laneStart(a, &workerRow{}, "", now)
	for int64(len(out)) < most {
		row, err := tx.NextLane(tx.Context(), from)
		if db.None(err) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look for work of agent %s: %w", a.ID, err)
		}
		from.Lane, from.Priority, from.PlaceAt, from.ID = row.Lane, row.Priority, row.PlaceAt, row.ID
		s, err := tx.Session(tx.Context(), row.ID)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", row.ID, err)
		}
		f, err := loadFacts(tx.Context(), tx, &s, a)
		if err != nil {
			return nil, fmt.Errorf("read the gates of session %s: %w", s.ID, err)
		}
		if f.claimGate(now, false) == nil {
			out = append(out, s)
		}
	}
	return out, nil
}
