package engine

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"

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
	err = e.store.Search(ctx, "by agent, status or time, or ask for fewer at once", func(tx *db.ReadTx) error {
		agent, err := filterAgent(ctx, tx, c, f)
		if err != nil {
			return err
		}
		now, agents := db.Micros(e.Now()), map[api.AgentID]*agentRow{}
		list := sessionSearch{q: tx, c: c, f: f, agent: agent}
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

func filterAgent(ctx context.Context, q queries.Querier, c Caller, f api.SessionFilter) (api.AgentID, error) {
	if f.Agent == "" {
		return 0, nil
	}
	a, err := agentOf(ctx, q, c, f.Agent)
	if err != nil {
		return 0, err
	}
	return a.ID, nil
}

// filterThread is the thread that a filter narrows a list to, 0 for none: a retry is in the
// thread of the session that it retries. No row means that nothing can match.
func filterThread(ctx context.Context, q queries.Querier, f api.SessionFilter) (api.ThreadID, error) {
	if f.RetryOf == 0 {
		return f.ThreadID, nil
	}
	s, err := q.Session(ctx, f.RetryOf)
	if err == nil && f.ThreadID != 0 && f.ThreadID != s.ThreadID {
		err = sql.ErrNoRows
	}
	return s.ThreadID, err
}

// statusSet spells a set of statuses in the way the queries look for one in it.
func statusSet(set []api.Status) string {
	if len(set) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteByte(',')
	for _, s := range set {
		b.WriteString(string(s))
		b.WriteByte(',')
	}
	return b.String()
}

// SessionCounts counts the sessions of a filter per status; its own statuses don't narrow.
func (e *Engine) SessionCounts(ctx context.Context, c Caller, f api.SessionFilter) (map[api.Status]int64, error) {
	out := map[api.Status]int64{}
	for _, s := range api.Statuses {
		out[s] = 0
	}
	err := e.store.Search(ctx, "by agent or time", func(tx *db.ReadTx) error {
		agent, err := filterAgent(ctx, tx, c, f)
		if err != nil {
			return err
		}
		rows, err := tx.CountSessions(ctx, queries.CountSessionsParams{
			WorkspaceID: c.WorkspaceID, Me: c.UserID, AgentID: int64(agent), Trigger: string(f.Trigger),
			ThreadID: int64(f.ThreadID), RetryOf: int64(f.RetryOf), Query: strings.ToLower(f.Query), Since: api.Micros(f.Since.Time), Archived: db.Flag(f.Archived),
		})
		for _, r := range rows {
			out[r.Status] = r.N
		}
		return err
	})
	return out, err
}
