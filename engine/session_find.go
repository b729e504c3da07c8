package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"stint/api"
	"stint/queries"
)

// foundSessions are those that fit a filter without its statuses, among the newest.
type foundSessions struct {
	rows  []queries.FitSessionsRow
	of    int64         // how many were looked at; 0 = all
	reach api.SessionID // down to where
}

// find looks at the newest sessions of the search's place, whatever their status.
func (s *sessionSearch) find(ctx context.Context, most int64) (out foundSessions, err error) {
	if len(s.f.Texts()) > 0 {
		most = min(most, readText)
	}
	left := s.left
	defer func() { s.left = left }() // what is looked at for counts is not a page's
	reach, err := s.next(ctx, s.until, most)
	if err != nil {
		return out, err
	}
	if out.rows, err = s.fitting(ctx, reach, s.until, most, nil); err != nil {
		return out, fmt.Errorf("look through sessions: %w", err)
	}
	if reach != s.reach || int64(len(out.rows)) == most {
		out.of, out.reach = most, reach
	}
	return out, nil
}

// newer counts the sessions of the filter after one, among a number: a page that was open for a
// week need not know more. Of those whose changes wait none is counted: what comes to wait
// needn't be a newer session.
func (s *sessionSearch) newer(ctx context.Context, newest api.SessionID) (int64, error) {
	if s.f.Unlanded {
		return 0, nil
	}
	reach, err := s.next(ctx, s.until, listScan)
	if err != nil {
		return 0, err
	}
	fit, err := s.fitting(ctx, max(reach, newest+1), s.until, listScan, s.f.Statuses)
	if err != nil {
		return 0, fmt.Errorf("count newer sessions: %w", err)
	}
	return int64(len(fit)), nil
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
func (s foundSessions) first(ctx context.Context, search *sessionSearch, n int64) ([]sessionRow, error) {
	fit := slices.DeleteFunc(slices.Clone(s.rows), func(r queries.FitSessionsRow) bool {
		return len(search.f.Statuses) > 0 && !slices.Contains(search.f.Statuses, r.Status)
	})
	if int64(len(fit)) < n && s.of > 0 {
		few, err := search.rareOnly(ctx)
		if err != nil {
			return nil, err
		}
		if few {
			search.place, search.chosen = placeStatuses, true
			return search.rows(ctx, math.MaxInt64, n)
		}
		search.rest = int64(s.reach)
	}
	return search.read(ctx, fit[:min(int64(len(fit)), n)])
}
