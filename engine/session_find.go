package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// foundSessions are those that fit a filter without its statuses, among the newest.
type foundSessions struct {
	rows  []queries.FindSessionsRow
	of    int64 // how many were looked at; 0 = all
	reach int64 // down to which id
}

// find looks at the newest sessions of the agent or the workspace, whatever their status.
func (s *sessionSearch) find(ctx context.Context, most int64) (out foundSessions, err error) {
	f := s.f
	if f.Unlanded {
		return s.findUnlanded(ctx, most)
	}
	if f.Query != "" {
		most = min(most, readText)
	}
	if out.reach, err = s.reach(ctx, math.MaxInt64, most); err != nil {
		return out, err
	}
	if first := db.FirstID(f.Since.Time); out.reach > first {
		out.of = most
	} else {
		out.reach = first
	}
	if s.agent == 0 {
		out.rows, err = s.q.FindSessions(ctx, queries.FindSessionsParams{
			WorkspaceID: s.c.WorkspaceID, Reach: api.SessionID(out.reach), Me: s.c.UserID,
			Trigger: string(f.Trigger), Query: strings.ToLower(f.Query), Since: api.Micros(f.Since.Time), Archived: db.Flag(f.Archived),
		})
	} else {
		var rows []queries.FindSessionsOfAgentRow
		rows, err = s.q.FindSessionsOfAgent(ctx, queries.FindSessionsOfAgentParams{
			AgentID: s.agent, Reach: api.SessionID(out.reach), Me: s.c.UserID,
			Trigger: string(f.Trigger), Query: strings.ToLower(f.Query), Since: api.Micros(f.Since.Time), Archived: db.Flag(f.Archived),
		})
		for _, row := range rows {
			out.rows = append(out.rows, queries.FindSessionsRow(row))
		}
	}
	if err != nil {
		return out, fmt.Errorf("look through sessions: %w", err)
	}
	return out, nil
}

// findUnlanded is find among the sessions with changes that wait.
func (s *sessionSearch) findUnlanded(ctx context.Context, most int64) (out foundSessions, err error) {
	all := *s
	all.f.Statuses = nil
	rows, err := all.rows(ctx, math.MaxInt64, most)
	if err != nil {
		return out, fmt.Errorf("look through sessions with changes: %w", err)
	}
	for _, r := range rows {
		out.rows = append(out.rows, queries.FindSessionsRow{ID: r.ID, Status: r.Status, Outcome: r.Outcome})
		out.reach = int64(r.ID)
	}
	if int64(len(rows)) == most {
		out.of = most
	}
	return out, nil
}

// counts counts them per status. of is 0 when those are all there are. marked are those
// among the complete ones that are no plain success (contract 15.4).
func (s foundSessions) counts() (counts map[api.Status]int64, of, marked int64) {
	for _, row := range s.rows {
		if api.Marked(row.Outcome) {
			marked++
		}
	}
	return s.byStatus(), s.of, marked
}

func (s foundSessions) byStatus() map[api.Status]int64 {
	counts := map[api.Status]int64{}
	for _, row := range s.rows {
		counts[row.Status]++
	}
	return counts
}

// first is the first page of the whole filter, from what was found already: texts are read once
// for the list and its counts.
func (s foundSessions) first(ctx context.Context, search *sessionSearch, n int64) (rows []sessionRow, err error) {
	for _, found := range s.rows {
		if len(search.f.Statuses) > 0 && !slices.Contains(search.f.Statuses, found.Status) {
			continue
		}
		row, err := search.q.Session(ctx, found.ID)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", found.ID, err)
		}
		if rows = append(rows, row); int64(len(rows)) == n {
			return rows, nil
		}
	}
	if s.of == 0 {
		return rows, nil
	}
	if few, err := search.rareOnly(ctx); err != nil || few {
		if err != nil {
			return nil, err
		}
		return search.byStatus(ctx, math.MaxInt64, n)
	}
	search.rest = s.reach
	return rows, nil
}
