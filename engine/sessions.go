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
	err = e.lookThrough(f)(ctx, func(tx *db.ReadTx) error {
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

// lookThrough is where a list of sessions is read: what looks through thousands of them stops no page.
func (e *Engine) lookThrough(f api.SessionFilter) func(context.Context, func(*db.ReadTx) error) error {
	if !looksThrough(f) {
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
		agent, err := filterAgent(ctx, tx, c, f)
		if err != nil {
			return err
		}
		if f.Unlanded {
			found, err := (&sessionSearch{q: tx, c: c, f: f, agent: agent}).findUnlanded(ctx, countMost)
			for status, n := range found.byStatus() {
				out.ByStatus[status] = n
			}
			out.LookedAt = found.of
			return err
		}
		switch thread, err := filterThread(ctx, tx, f); {
		case db.None(err):
			return nil // no such session, or one of another thread
		case err != nil:
			return err
		case thread != 0:
			return countThread(ctx, tx, c, f, agent, thread, out)
		}
		out, err = countEach(ctx, tx, c, f, agent)
		return err
	})
	return out, err
}

func countThread(ctx context.Context, q queries.Querier, c Caller, f api.SessionFilter, agent api.AgentID, thread api.ThreadID, out api.SessionCounts) error {
	rows, err := q.CountSessionsOfThread(ctx, queries.CountSessionsOfThreadParams{
		ThreadID: int64(thread), RetryOf: int64(f.RetryOf), WorkspaceID: c.WorkspaceID, Me: c.UserID, AgentID: int64(agent),
		Trigger: string(f.Trigger), Query: strings.ToLower(f.Query), Since: api.Micros(f.Since.Time), Archived: db.Flag(f.Archived),
	})
	for _, r := range rows {
		out.ByStatus[r.Status] = r.N
	}
	return err
}

func countEach(ctx context.Context, q queries.Querier, c Caller, f api.SessionFilter, agent api.AgentID) (api.SessionCounts, error) {
	out := api.NoSessions()
	p := queries.CountOpenFittingParams{
		WorkspaceID: c.WorkspaceID, AgentID: int64(agent), Me: c.UserID, Trigger: string(f.Trigger), Query: strings.ToLower(f.Query),
		Since: api.Micros(f.Since.Time), Archived: db.Flag(f.Archived), Reach: api.SessionID(db.FirstID(f.Since.Time)), Most: countMost,
	}
	if f.Query != "" {
		p.Most = countText
	}
	for _, status := range api.Statuses {
		if p.Status = status; status == api.Complete {
			continue
		}
		count := q.CountOpenFitting
		if status.Terminal() {
			count = func(ctx context.Context, p queries.CountOpenFittingParams) (queries.CountOpenFittingRow, error) {
				r, err := q.CountEndedFitting(ctx, queries.CountEndedFittingParams(p))
				return queries.CountOpenFittingRow(r), err
			}
		}
		r, err := count(ctx, p)
		if err != nil {
			return out, fmt.Errorf("count %s sessions: %w", status, err)
		}
		if out.ByStatus[status] = r.N; r.Looked == p.Most {
			out.LookedAt = p.Most
		}
	}
	found, err := (&sessionSearch{q: q, c: c, f: f, agent: agent}).find(ctx, p.Most)
	if err != nil {
		return out, err
	}
	counts, of, _ := found.counts()
	out.ByStatus[api.Complete], out.LookedAt = counts[api.Complete], max(out.LookedAt, of)
	return out, nil
}
