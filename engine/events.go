package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"stint/api"
	"stint/db"
	"stint/queries"
)

func (e *Engine) logSession(tx *db.Tx, s *sessionRow, actor, kind string, data api.EventData) error {
	return tx.Log(db.Event{Session: s.ID, Actor: actor, Type: kind, Data: data})
}

func (e *Engine) logAgent(tx *db.Tx, a *agentRow, actor, kind string, data api.EventData) error {
	return tx.Log(db.Event{Workspace: a.WorkspaceID, Agent: a.ID, Actor: actor, Type: kind, Data: data})
}

func toEvent(r queries.Event) api.Event {
	ev := api.Event{Seq: r.Seq, At: api.At(r.At), Type: r.Type, Actor: r.Actor, AgentID: r.AgentID, SessionID: r.SessionID, TaskID: r.TaskID, Data: api.EventData{}}
	if r.Data == "" {
		return ev
	}
	if err := json.Unmarshal([]byte(r.Data), &ev.Data); err != nil {
		ev.Data = api.EventData{"unreadable": r.Data}
	}
	return ev
}

// Events returns what happened after a sequence number, oldest first, restricted to what the
// caller may see. limit is clamped to 1–1000. Errors: gone for a number whose event retention
// took.
func (e *Engine) Events(ctx context.Context, c Caller, after int64, limit int) ([]api.Event, error) {
	var out []api.Event
	limit = min(max(limit, 1), 1000)
	err := e.store.Read(ctx, func(tx *db.ReadTx) error {
		out = []api.Event{}
		if err := eventThere(ctx, tx, after); err != nil {
			return err
		}
		y, place := newVisibility(tx, c), after
		for {
			rows, err := tx.EventsAfter(ctx, queries.EventsAfterParams{After: place, WorkspaceID: c.WorkspaceID, Me: c.UserID, N: int64(limit)})
			if err != nil {
				return err
			}
			for _, r := range rows {
				place = r.Event.Seq
				ev, seen, err := y.shown(ctx, r.Event)
				if err != nil {
					return err
				}
				if seen {
					out = append(out, ev)
				}
				if len(out) == limit {
					return nil
				}
			}
			if len(rows) < limit {
				return nil
			}
		}
	})
	return out, err
}

// eventThere refuses to read on after an event that retention took: between it and the next that
// is there may have been others.
func eventThere(ctx context.Context, q queries.Querier, seq int64) error {
	forgotten, err := q.Counter(ctx, db.Forgotten)
	if err != nil || seq == 0 || seq > forgotten {
		return err
	}
	found, err := q.LastEventUpTo(ctx, seq)
	if db.None(err) || err == nil && found.Seq != seq {
		return api.Refuse(api.CodeGone, fmt.Sprintf("Event %d was removed, as old ones are. All after number %d are there; after=0 begins with the oldest that is left.", seq, forgotten))
	}
	return err
}

// EventRange returns the sequence number from which on every event is kept, and the newest; some
// older ones may be kept too.
func (e *Engine) EventRange(ctx context.Context) (whole, newest int64, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if newest, err = tx.Counter(ctx, "event"); err != nil {
			return err
		}
		whole, err = tx.Counter(ctx, db.Forgotten)
		return err
	})
	return whole + 1, newest, err
}

// LastEvent returns the newest sequence number, 0 when there is none.
func (e *Engine) LastEvent(ctx context.Context) (int64, error) {
	_, newest, err := e.EventRange(ctx)
	return newest, err
}

// SessionEvents returns the session's timeline, newest first.
func (e *Engine) SessionEvents(ctx context.Context, c Caller, id api.SessionID, page api.Page) (api.List[api.Event], error) {
	var out api.List[api.Event]
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		s, err := visible(ctx, tx, c, id)
		if err != nil {
			return err
		}
		rows, err := tx.EventsOfSession(ctx, queries.EventsOfSessionParams{SessionID: id, Before: before, N: n + 1})
		if err != nil {
			return fmt.Errorf("list the events of session %s: %w", id, err)
		}
		if len(rows) == 0 && s.EventsRemovedAt != 0 {
			return api.Refuse(api.CodeGone, "The events of this session were removed on "+day(s.EventsRemovedAt)+": old ones are, unless their session is kept.")
		}
		out = db.ListOf(rows, n, func(r queries.Event) api.Event {
			ev := toEvent(r)
			ev.AgentID = s.AgentID
			return ev
		}, func(r queries.Event) int64 { return r.Seq })
		return newVisibility(tx, c).redactAll(ctx, out.Items)
	})
	return out, err
}
