package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// How many sessions one page looks at to find those of a filter: first the newest few, among
// which most filters fill a page. Then, if no status of the filter has more than rare sessions, those
// with these statuses, by an index. Else so many that it stays well below a second; fewer when
// their texts are read. If that is the end, the page's cursor continues there.
const (
	glance   = 1000
	rare     = 10_000
	searched = 10_000
	readText = 5000
)

// scan is how many sessions a page looks at, newest first.
func scan(f api.SessionFilter) int64 {
	if f.Query != "" {
		return readText
	}
	return searched
}

// looksThrough reports whether a list may have to look at thousands of sessions to find those of
// its filter, so that it goes where it stops no page.
func looksThrough(f api.SessionFilter) bool {
	return f.Query != "" || f.Trigger != "" || len(f.Statuses) > 0 || !f.Since.IsZero()
}

// sessionSearch is a filter on its way through the sessions, newest first, for one page.
type sessionSearch struct {
	q     queries.Querier
	c     Caller
	f     api.SessionFilter
	agent api.AgentID // of the filter; 0 = any
	rest  int64       // where to continue when rows returned fewer than requested; 0 = there are no more
	plan  *searchPlan // nil until the newest few weren't enough
}

// searchPlan is how a page goes on when the newest few sessions weren't enough.
type searchPlan struct {
	rare  bool  // by the indexes of the statuses, to the end
	reach int64 // else down to this id; 0 = to the end
}

// rows returns up to n sessions before an id. All calls for one page together look at no more
// than one would.
func (s *sessionSearch) rows(ctx context.Context, before, n int64) ([]sessionRow, error) {
	s.rest = 0
	switch thread, err := filterThread(ctx, s.q, s.f); {
	case db.None(err):
		return nil, nil // no such session, or one of another thread
	case err != nil:
		return nil, err
	case s.f.Unlanded:
		return s.unlanded(ctx, thread, before, n)
	case thread != 0:
		return s.ofThread(ctx, thread, before, n)
	}
	if s.plan == nil {
		reach, err := s.reach(ctx, before, glance)
		if err != nil {
			return nil, err
		}
		rows, err := s.newest(ctx, before, n, reach)
		if err != nil || int64(len(rows)) == n || s.rest == 0 {
			return rows, err
		}
		if err := s.choose(ctx, before); err != nil {
			return nil, err
		}
	}
	if s.plan.rare {
		return s.byStatus(ctx, before, n)
	}
	return s.newest(ctx, before, n, s.plan.reach)
}

// choose decides how the page goes on.
func (s *sessionSearch) choose(ctx context.Context, before int64) (err error) {
	s.plan = &searchPlan{}
	if s.plan.rare, err = s.rareOnly(ctx); err != nil || s.plan.rare {
		return err
	}
	s.plan.reach, err = s.reach(ctx, before, scan(s.f))
	return err
}

// rareOnly reports whether the filter has statuses, and none that many sessions have. No index
// holds the complete ones, which nearly all are.
func (s *sessionSearch) rareOnly(ctx context.Context) (bool, error) {
	for _, status := range s.f.Statuses {
		if status == api.Complete {
			return false, nil
		}
		p := queries.CountOpenSessionsParams{WorkspaceID: s.c.WorkspaceID, AgentID: int64(s.agent), Status: status, Most: rare}
		count := s.q.CountOpenSessions
		if status.Terminal() {
			count = func(ctx context.Context, p queries.CountOpenSessionsParams) (int64, error) {
				return s.q.CountEndedSessions(ctx, queries.CountEndedSessionsParams(p))
			}
		}
		n, err := count(ctx, p)
		if err != nil {
			return false, fmt.Errorf("see how many %s sessions there are: %w", status, err)
		}
		if n == rare {
			return false, nil
		}
	}
	return len(s.f.Statuses) > 0, nil
}

// page makes a page from rows of which one more than n was requested.
func (s *sessionSearch) page(rows []sessionRow, n int64) api.List[sessionRow] {
	out := db.ListOf(rows, n, func(r sessionRow) sessionRow { return r }, func(r sessionRow) int64 { return int64(r.ID) })
	if out.NextCursor == "" && s.rest != 0 {
		out.NextCursor = db.Cursor(s.rest)
	}
	return out
}

func (s *sessionSearch) ofThread(ctx context.Context, thread api.ThreadID, before, n int64) ([]sessionRow, error) {
	return s.q.ListSessionsOfThread(ctx, queries.ListSessionsOfThreadParams{
		ThreadID: int64(thread), RetryOf: int64(s.f.RetryOf), AgentID: int64(s.agent),
		WorkspaceID: s.c.WorkspaceID, Before: api.SessionID(before), Me: s.c.UserID, Statuses: statusSet(s.f.Statuses),
		Trigger: string(s.f.Trigger), Query: strings.ToLower(s.f.Query), Since: api.Micros(s.f.Since.Time), Archived: db.Flag(s.f.Archived), N: n,
	})
}

// unlanded are those with changes that wait; an index has them, whatever else the filter says.
func (s *sessionSearch) unlanded(ctx context.Context, thread api.ThreadID, before, n int64) ([]sessionRow, error) {
	return s.q.ListUnlanded(ctx, queries.ListUnlandedParams{
		WorkspaceID: s.c.WorkspaceID, Before: api.SessionID(before), Me: s.c.UserID, AgentID: int64(s.agent), ThreadID: int64(thread), RetryOf: int64(s.f.RetryOf),
		Statuses: statusSet(s.f.Statuses), Trigger: string(s.f.Trigger), Query: strings.ToLower(s.f.Query), Since: api.Micros(s.f.Since.Time),
		Archived: db.Flag(s.f.Archived), N: n,
	})
}

// newest looks at the sessions of the agent or of the workspace down to reach.
func (s *sessionSearch) newest(ctx context.Context, before, n, reach int64) ([]sessionRow, error) {
	// Ids grow with time, so nothing in a filter's time is below the first id of that time.
	if s.rest = reach; reach <= db.FirstID(s.f.Since.Time) {
		s.rest, reach = 0, db.FirstID(s.f.Since.Time)
	}
	if s.agent != 0 {
		return s.q.ListSessionsOfAgent(ctx, queries.ListSessionsOfAgentParams{
			AgentID: s.agent, Before: api.SessionID(before), Reach: api.SessionID(reach), Me: s.c.UserID, Statuses: statusSet(s.f.Statuses),
			Trigger: string(s.f.Trigger), Query: strings.ToLower(s.f.Query), Since: api.Micros(s.f.Since.Time), Archived: db.Flag(s.f.Archived), N: n,
		})
	}
	return s.q.ListSessions(ctx, queries.ListSessionsParams{
		WorkspaceID: s.c.WorkspaceID, Before: api.SessionID(before), Reach: api.SessionID(reach), Me: s.c.UserID, Statuses: statusSet(s.f.Statuses),
		Trigger: string(s.f.Trigger), Query: strings.ToLower(s.f.Query), Since: api.Micros(s.f.Since.Time), Archived: db.Flag(s.f.Archived), N: n,
	})
}

// reach is the id down to which that many sessions reach, 0 when there are fewer.
func (s *sessionSearch) reach(ctx context.Context, before, scan int64) (int64, error) {
	if s.agent != 0 {
		r, err := s.q.ReachOfAgentsSessions(ctx, queries.ReachOfAgentsSessionsParams{AgentID: s.agent, Before: api.SessionID(before), Scan: scan})
		return reached(r.Reach, r.N, scan, err)
	}
	r, err := s.q.ReachOfSessions(ctx, queries.ReachOfSessionsParams{WorkspaceID: s.c.WorkspaceID, Before: api.SessionID(before), Scan: scan})
	return reached(r.Reach, r.N, scan, err)
}

func reached(reach, n, scan int64, err error) (int64, error) {
	if err != nil {
		return 0, fmt.Errorf("see how far to look: %w", err)
	}
	if n < scan {
		return 0, nil
	}
	return reach, nil
}

// byStatus merges what the index of each status has.
func (s *sessionSearch) byStatus(ctx context.Context, before, n int64) ([]sessionRow, error) {
	s.rest = 0
	var all []sessionRow
	for _, status := range s.f.Statuses {
		rows, err := s.ofStatus(ctx, status, before, n)
		if err != nil {
			return nil, fmt.Errorf("list %s sessions: %w", status, err)
		}
		all = append(all, rows...)
	}
	slices.SortFunc(all, func(a, b sessionRow) int { return int(b.ID - a.ID) })
	return slices.Clip(all[:min(int64(len(all)), n)]), nil
}

func (s *sessionSearch) ofStatus(ctx context.Context, status api.Status, before, n int64) ([]sessionRow, error) {
	p := queries.ListOpenSessionsParams{
		WorkspaceID: s.c.WorkspaceID, AgentID: int64(s.agent), Status: status, Before: api.SessionID(before), Me: s.c.UserID,
		Trigger: string(s.f.Trigger), Query: strings.ToLower(s.f.Query), Since: api.Micros(s.f.Since.Time), Archived: db.Flag(s.f.Archived), N: n,
	}
	if status.Terminal() {
		return s.q.ListEndedSessions(ctx, queries.ListEndedSessionsParams(p))
	}
	return s.q.ListOpenSessions(ctx, p)
}
