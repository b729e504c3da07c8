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
// which most filters fill a page; then, for a filter by status, only those with that status,
// by an index; else so many that it stays well below a second. If that is the end, the page's
// cursor continues there.
const (
	glance   = 1000
	searched = 20_000
)

// sessionSearch is a filter on its way through the sessions, newest first.
type sessionSearch struct {
	q     queries.Querier
	c     Caller
	f     api.SessionFilter
	agent api.AgentID // of the filter; 0 = any
	rest  int64       // where to continue when rows returned fewer than requested; 0 = there are no more
}

// rows returns up to n sessions before an id.
func (s *sessionSearch) rows(ctx context.Context, before, n int64) ([]sessionRow, error) {
	s.rest = 0
	switch thread, err := filterThread(ctx, s.q, s.f); {
	case db.None(err):
		return nil, nil // no such session, or one of another thread
	case err != nil:
		return nil, err
	case thread != 0:
		return s.ofThread(ctx, thread, before, n)
	}
	rows, err := s.newest(ctx, before, n, glance)
	if err != nil || int64(len(rows)) == n || s.rest == 0 {
		return rows, err
	}
	if len(s.f.Statuses) == 0 {
		return s.newest(ctx, before, n, searched)
	}
	return s.byStatus(ctx, before, n)
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

// newest looks at the newest scan sessions of the agent or of the workspace.
func (s *sessionSearch) newest(ctx context.Context, before, n, scan int64) ([]sessionRow, error) {
	reach, err := s.reach(ctx, before, scan)
	if err != nil {
		return nil, err
	}
	s.looked(reach)
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

// looked notes how far down sessions were looked at. Ids grow with time, so nothing in a
// filter's time is below the first id of that time.
func (s *sessionSearch) looked(reach int64) {
	if reach > 0 && reach > db.FirstID(s.f.Since.Time) {
		s.rest = max(s.rest, reach)
	}
}

// byStatus merges what the index of each status has.
func (s *sessionSearch) byStatus(ctx context.Context, before, n int64) ([]sessionRow, error) {
	s.rest = 0
	var all []sessionRow
	for _, status := range s.f.Statuses {
		reach, rows, err := s.ofStatus(ctx, status, before, n)
		if err != nil {
			return nil, fmt.Errorf("list %s sessions: %w", status, err)
		}
		s.looked(reach)
		all = append(all, rows...)
	}
	slices.SortFunc(all, func(a, b sessionRow) int { return int(b.ID - a.ID) })
	// Below where one status ended the order is unknown.
	all = slices.DeleteFunc(all, func(r sessionRow) bool { return int64(r.ID) < s.rest })
	return slices.Clip(all[:min(int64(len(all)), n)]), nil
}

func (s *sessionSearch) ofStatus(ctx context.Context, status api.Status, before, n int64) (reach int64, rows []sessionRow, err error) {
	in := queries.ReachOfOpenSessionsParams{
		WorkspaceID: s.c.WorkspaceID, AgentID: int64(s.agent), Status: status, Before: api.SessionID(before), Scan: searched,
	}
	if status.Terminal() {
		r, failed := s.q.ReachOfEndedSessions(ctx, queries.ReachOfEndedSessionsParams(in))
		reach, err = reached(r.Reach, r.N, searched, failed)
	} else {
		r, failed := s.q.ReachOfOpenSessions(ctx, in)
		reach, err = reached(r.Reach, r.N, searched, failed)
	}
	if err != nil {
		return 0, nil, err
	}
	p := queries.ListOpenSessionsParams{
		WorkspaceID: s.c.WorkspaceID, AgentID: int64(s.agent), Status: status, Before: api.SessionID(before), Reach: api.SessionID(reach), Me: s.c.UserID,
		Trigger: string(s.f.Trigger), Query: strings.ToLower(s.f.Query), Since: api.Micros(s.f.Since.Time), Archived: db.Flag(s.f.Archived), N: n,
	}
	if status.Terminal() {
		rows, err = s.q.ListEndedSessions(ctx, queries.ListEndedSessionsParams(p))
	} else {
		rows, err = s.q.ListOpenSessions(ctx, p)
	}
	return reach, rows, err
}
