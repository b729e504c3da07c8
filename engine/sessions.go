package engine

import (
	"context"
	"fmt"
	"math"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Session returns one session with the reason why it waits.
func (e *Engine) Session(ctx context.Context, c Caller, id api.SessionID) (out api.Session, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		out, err = e.sessionTx(ctx, tx, c, id, db.Micros(e.Now()))
		return err
	})
	return out, err
}

// Sessions lists sessions that the caller may see, newest first. A page ends sooner when it
// holds a few MiB of text, or when so many sessions were looked at that the caller should
// decide whether to look further: its cursor continues there.
func (e *Engine) Sessions(ctx context.Context, c Caller, f api.SessionFilter, page api.Page) (api.List[api.Session], error) {
	out := api.List[api.Session]{Items: []api.Session{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.lookThrough(f)(ctx, func(tx *db.ReadTx) error {
		list, err := e.search(ctx, tx, c, f)
		if err != nil {
			return err
		}
		now, agents := db.Micros(e.Now()), map[api.AgentID]*agentRow{}
		out, err = gathering[sessionRow, api.Session]{
			read: func(before, n int64) ([]sessionRow, error) { return list.rows(ctx, before, n) },
			rest: func() int64 { return list.rest },
			key:  func(s sessionRow) int64 { return int64(s.ID) },
			take: func(s sessionRow) (api.Session, bool, error) {
				a, err := agentOnce(ctx, tx, agents, s.AgentID)
				if err != nil {
					return api.Session{}, false, err
				}
				shown, err := e.present(ctx, tx, &s, a, now)
				return shown, true, err
			},
			size: sizeOfSession,
		}.page(n, before)
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		return nil
	})
	return out, err
}

// lookThrough is where a list of sessions is read: what looks through thousands of them stops no page.
func (e *Engine) lookThrough(f api.SessionFilter) func(context.Context, func(*db.ReadTx) error) error {
	if !f.Narrows() {
		return e.store.Read
	}
	return func(ctx context.Context, fn func(*db.ReadTx) error) error {
		return e.store.Search(ctx, "by agent, status or time, or ask for fewer at once", fn)
	}
}

// agentOnce reads an agent that isn't known yet.
func agentOnce(ctx context.Context, q queries.Querier, known map[api.AgentID]*agentRow, id api.AgentID) (*agentRow, error) {
	if a := known[id]; a != nil {
		return a, nil
	}
	a, err := agentEvenDeleted(ctx, q, id)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", id, err)
	}
	known[id] = &a
	return &a, nil
}

// How many sessions of each status a count looks at; fewer when their texts are read.
const (
	countMost = 5000
	countText = 2000
)

// SessionCounts counts the sessions of a filter per status; its own statuses don't narrow. It
// looks at a limited number of each status, of the complete ones at those among as many of the
// newest, and says so when that weren't all.
func (e *Engine) SessionCounts(ctx context.Context, c Caller, f api.SessionFilter) (api.SessionCounts, error) {
	out := api.NoSessions()
	err := e.store.Search(ctx, "by agent or time", func(tx *db.ReadTx) error {
		s, err := e.search(ctx, tx, c, f)
		if err != nil {
			return err
		}
		out, err = s.countEach(ctx)
		return err
	})
	return out, err
}

func (s *sessionSearch) countEach(ctx context.Context) (api.SessionCounts, error) {
	out, most := api.NoSessions(), int64(countMost)
	if len(s.f.Texts()) > 0 {
		most = countText
	}
	found, err := s.find(ctx, most)
	if err != nil {
		return out, err
	}
	for status, n := range found.byStatus() {
		out.ByStatus[status] = n
	}
	if out.LookedAt = found.of; s.whole() || found.of == 0 {
		return out, nil
	}
	for _, status := range api.Statuses {
		n, err := s.countStatus(ctx, status, most)
		if err != nil {
			return out, err
		}
		if n == most {
			continue // a common one counts among the newest
		}
		fit, err := s.ofStatus(ctx, status, s.reach, s.until, most)
		if err != nil {
			return out, fmt.Errorf("count %s sessions: %w", status, err)
		}
		out.ByStatus[status] = int64(len(fit))
	}
	return out, nil
}
