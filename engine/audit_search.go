package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// audited is how many entries one page of the audit looks at to find those of its filter.
const audited = 50_000

// auditSearch is a filter on its way through the log, newest first, for one page.
type auditSearch struct {
	ctx  context.Context
	q    queries.Querier
	p    queries.AuditPageParams
	of   api.SessionID // 0 = not of one session
	rest int64         // where to continue when rows returned fewer than requested; 0 = there are no more
}

// auditRead is where a page of the audit is read: what looks through thousands of entries stops no page.
func (e *Engine) auditRead(f api.AuditFilter) func(context.Context, func(*db.ReadTx) error) error {
	if f == (api.AuditFilter{}) || f == (api.AuditFilter{Session: f.Session}) {
		return e.store.Read
	}
	return func(ctx context.Context, fn func(*db.ReadTx) error) error {
		return e.store.Search(ctx, "by session or time, or ask for fewer at once", fn)
	}
}

func newAuditSearch(ctx context.Context, q queries.Querier, c Caller, f api.AuditFilter, before int64) (*auditSearch, error) {
	s := &auditSearch{ctx: ctx, q: q, of: f.Session, p: queries.AuditPageParams{
		Since: api.Micros(f.Since.Time), Until: math.MaxInt64, WorkspaceID: c.WorkspaceID, Me: c.UserID, Actor: f.Actor, Type: f.Type,
	}}
	if !f.Until.IsZero() {
		s.p.Until = api.Micros(f.Until.Time)
	}
	if f.Agent != "" {
		a, err := agentOf(ctx, q, c, f.Agent)
		if err != nil {
			return nil, err
		}
		s.p.AgentID = int64(a.ID)
	}
	oldest, newest, err := s.within(f)
	if err != nil {
		return nil, err
	}
	s.p.Before = min(before, newest+1)
	return s, s.reach(oldest)
}

// reach decides down to which entry the page looks; nothing that fits is below oldest.
func (s *auditSearch) reach(oldest int64) error {
	switch {
	case s.of != 0:
		return nil
	case s.ofType():
		r, err := s.q.ReachOfType(s.ctx, queries.ReachOfTypeParams{Type: s.p.Type, Before: s.p.Before, Scan: audited})
		if s.p.Reach, err = reached(r.Reach, r.N, audited, err); err != nil {
			return err
		}
	default:
		s.p.Reach = s.p.Before - audited
	}
	if s.p.Reach <= oldest {
		s.p.Reach = oldest
	} else {
		s.rest = s.p.Reach
	}
	return nil
}

// ofType reports whether the filter names a type that is about no session, which has an index.
func (s *auditSearch) ofType() bool {
	kind, known := about[s.p.Type]
	return known && kind != aboutSession
}

func (s *auditSearch) rows(before, n int64) ([]queries.AuditPageRow, error) {
	p := s.p
	p.Before, p.N = before, n
	var out []queries.AuditPageRow
	switch {
	case s.of != 0:
		rows, err := s.q.AuditOfSession(s.ctx, queries.AuditOfSessionParams{
			SessionID: s.of, Before: p.Before, Since: p.Since, Until: p.Until, WorkspaceID: p.WorkspaceID, Me: p.Me,
			Actor: p.Actor, Type: p.Type, AgentID: p.AgentID, N: p.N,
		})
		for _, r := range rows {
			out = append(out, queries.AuditPageRow(r))
		}
		return out, err
	case s.ofType():
		rows, err := s.q.AuditOfType(s.ctx, queries.AuditOfTypeParams{
			Type: p.Type, Before: p.Before, Reach: p.Reach, Since: p.Since, Until: p.Until, WorkspaceID: p.WorkspaceID,
			Actor: p.Actor, AgentID: p.AgentID, N: p.N,
		})
		for _, r := range rows {
			out = append(out, queries.AuditPageRow{Event: r.Event, Agent: int64(r.Agent)})
		}
		return out, err
	}
	return s.q.AuditPage(s.ctx, p)
}

// clockStep is by how much a clock may have gone back without a word in the log, generously.
const clockStep = time.Minute

// within are the numbers of the oldest and the newest entry that can be in the filter's time.
// Entries are numbered in the order of their times, unless the clock was set back.
func (s *auditSearch) within(f api.AuditFilter) (oldest, newest int64, err error) {
	if newest, err = s.q.Counter(s.ctx, "event"); err != nil {
		return 0, 0, fmt.Errorf("read the newest event: %w", err)
	}
	if oldest, err = s.q.OldestEvent(s.ctx); err != nil {
		return 0, 0, fmt.Errorf("read the oldest event: %w", err)
	}
	if f.Since.IsZero() && f.Until.IsZero() {
		return oldest, newest, nil
	}
	switch _, err := s.q.AnyEventOfType(s.ctx, api.EventClockBack); {
	case err == nil:
		return oldest, newest, nil
	case !db.None(err):
		return 0, 0, fmt.Errorf("see whether the clock was set back: %w", err)
	}
	first, last := oldest, newest
	if !f.Since.IsZero() {
		if first, err = firstEventFrom(s.ctx, s.q, db.Micros(f.Since.Add(-clockStep)), oldest, newest); err != nil {
			return 0, 0, err
		}
	}
	if !f.Until.IsZero() {
		if last, err = firstEventFrom(s.ctx, s.q, db.Micros(f.Until.Add(clockStep)), oldest, newest); err != nil {
			return 0, 0, err
		}
	}
	return first, min(last, newest), nil
}

// firstEventFrom is the number of the first event at an instant or later; newest+1 when there is
// none.
func firstEventFrom(ctx context.Context, q queries.Querier, at, oldest, newest int64) (int64, error) {
	low, high := oldest, newest+1
	for low < high {
		middle := low + (high-low)/2
		e, err := q.LastEventUpTo(ctx, middle)
		switch {
		case db.None(err):
			low = middle + 1
		case err != nil:
			return 0, fmt.Errorf("find when an event was: %w", err)
		case e.At >= at:
			high = middle
		default:
			low = middle + 1
		}
	}
	return low, nil
}

// reached is the place down to which so many entries reach, 0 when there are fewer.
func reached(reach, n, scan int64, err error) (int64, error) {
	if err != nil {
		return 0, fmt.Errorf("see how far to look: %w", err)
	}
	if n < scan {
		return 0, nil
	}
	return reach, nil
}
