package engine

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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

	firstLook = 250 // sessions that the first look of a search is at, each next one at twice as many
	mostLook  = 2000
)

// scan is how many sessions a page looks at, newest first.
func scan(f api.SessionFilter) int64 {
	if len(f.Texts()) > 0 {
		return readText
	}
	return searched
}

// Where a search looks, each place with an index of its own. FitSessions knows all but the last two, which
// are asked for one id and one status at a time.
const (
	placeWorkspace = "workspace"
	placeAgent     = "agent"
	placeThread    = "thread"
	placeUnlanded  = "unlanded"
	placeIDs       = "id"
	placeStatuses  = "status"
)

// sessionSearch is a filter on its way through the sessions, newest first, for one page.
type sessionSearch struct {
	q     queries.Querier
	c     Caller
	f     api.SessionFilter
	agent api.AgentID // of the filter; 0 = any
	rest  int64       // where to continue when rows returned fewer than requested; 0 = there are no more

	place  string
	ids    []api.SessionID           // of the filter, the newest first
	rule   queries.FitSessionsParams // what the filter asks of a session, whatever its status
	reach  api.SessionID             // nothing below it can fit
	until  api.SessionID             // nor from here on
	left   int64                     // how many sessions the page may still look at
	chosen bool                      // it is known how to go on after the newest few
}

// whole reports whether the search goes by an index of few, so that all of it is looked at.
func (s *sessionSearch) whole() bool { return s.place != placeWorkspace && s.place != placeAgent }

// search begins to look for the sessions of a filter that the caller may see.
func (e *Engine) search(ctx context.Context, q queries.Querier, c Caller, f api.SessionFilter) (*sessionSearch, error) {
	agent, err := filterAgent(ctx, q, c, f)
	if err != nil {
		return nil, err
	}
	// Ids grow with time, so nothing in a filter's time is below the first id of that time.
	s := &sessionSearch{q: q, c: c, f: f, agent: agent, reach: api.SessionID(db.FirstID(f.Since.Time)), until: math.MaxInt64, left: glance}
	thread, err := filterThread(ctx, q, f)
	switch {
	case db.None(err): // no such session, or one of another thread
		s.place = placeIDs
	case err != nil:
		return nil, err
	case len(f.IDs) > 0:
		s.place, s.ids = placeIDs, slices.Clone(f.IDs)
		slices.SortFunc(s.ids, func(a, b api.SessionID) int { return int(b - a) })
		s.ids = slices.Compact(s.ids)
	case thread != 0:
		s.place = placeThread
	case f.Unlanded:
		s.place = placeUnlanded
	case agent != 0:
		s.place = placeAgent
	default:
		s.place = placeWorkspace
	}
	if !f.Until.IsZero() { // the ids of its second may be of before it
		s.until = api.SessionID(db.FirstID(f.Until.Time.Add(time.Second)))
	}
	s.rule = fitOf(c, f, agent, thread, db.Micros(e.Now()))
	return s, nil
}

// fitOf spells a filter without its statuses for the statement that has the rule.
func fitOf(c Caller, f api.SessionFilter, agent api.AgentID, thread api.ThreadID, now int64) queries.FitSessionsParams {
	p := queries.FitSessionsParams{
		WorkspaceID: c.WorkspaceID, Me: c.UserID, AgentID: int64(agent), Trigger: string(f.Trigger), ThreadID: int64(thread), RetryOf: int64(f.RetryOf),
		Worker: f.Worker, Code: f.Code, Since: api.Micros(f.Since.Time), Until: math.MaxInt64, Now: now, Kept: db.Flag(f.Kept), Ended: db.Flag(f.Unlanded),
	}
	if !f.Until.IsZero() {
		p.Until = api.Micros(f.Until.Time)
	}
	if err := p.WorkerID.UnmarshalText([]byte(f.Worker)); err != nil || p.WorkerID == 0 {
		p.WorkerID = -1 // it is a name
	}
	p.CostMin, p.CostMax = f.CostMicros.Bounds()
	p.TokensMin, p.TokensMax = f.Tokens.Bounds()
	p.TriesMin, p.TriesMax = f.Tries.Bounds()
	p.TookMin, p.TookMax = f.Took.Bounds()
	switch {
	case f.OnlyArchived:
		p.Archived = "only"
	case f.Archived, len(f.IDs) > 0: // whoever names a session means it
		p.Archived = "too"
	}
	if f.Marked {
		p.Outcomes = commaSet(api.MarkedOutcomes)
	}
	texts := []*string{&p.Text1, &p.Text2, &p.Text3, &p.Text4}
	for i, text := range f.Texts() {
		*texts[min(i, len(texts)-1)] = text
	}
	return p
}

// rows returns up to n sessions before an id. All calls for one page together look at no more
// than one would.
func (s *sessionSearch) rows(ctx context.Context, before, n int64) (rows []sessionRow, err error) {
	s.rest = 0
	place, look := min(api.SessionID(before), s.until), n
	if s.f.Narrows() {
		look = max(n, firstLook)
	}
	for {
		if s.left <= 0 && !s.whole() {
			on, err := s.goOn(ctx)
			if err != nil {
				return nil, err
			}
			if !on {
				s.rest = int64(place)
				return rows, nil
			}
		}
		reach, err := s.next(ctx, place, min(look, max(s.left, 1)))
		if err != nil {
			return nil, err
		}
		fit, err := s.fitting(ctx, reach, place, n-int64(len(rows)), s.f.Statuses)
		if err != nil {
			return nil, err
		}
		more, err := s.read(ctx, fit)
		if err != nil {
			return nil, err
		}
		if rows = append(rows, more...); int64(len(rows)) == n || reach == s.reach {
			return rows, nil
		}
		place, look = reach, min(2*look, mostLook)
	}
}

// next is down to where the next look goes: at so many sessions, or to the end.
func (s *sessionSearch) next(ctx context.Context, before api.SessionID, look int64) (api.SessionID, error) {
	if s.whole() {
		return s.reach, nil
	}
	p := queries.ReachOfSessionsParams{WorkspaceID: s.c.WorkspaceID, Before: before, Reach: s.reach, Scan: look}
	var r queries.ReachOfSessionsRow
	var err error
	if s.place == placeAgent {
		var of queries.ReachOfAgentsSessionsRow
		of, err = s.q.ReachOfAgentsSessions(ctx, queries.ReachOfAgentsSessionsParams{AgentID: s.agent, Before: before, Reach: s.reach, Scan: look})
		r = queries.ReachOfSessionsRow(of)
	} else {
		r, err = s.q.ReachOfSessions(ctx, p)
	}
	if err != nil {
		return 0, fmt.Errorf("see how far to look: %w", err)
	}
	if s.left -= r.N; r.N < look {
		return s.reach, nil
	}
	return api.SessionID(r.Reach), nil
}

// goOn decides, once, how a page goes on when the newest few sessions weren't enough; false when
// it has looked at all that it may.
func (s *sessionSearch) goOn(ctx context.Context) (bool, error) {
	if s.chosen {
		return false, nil
	}
	s.chosen = true
	few, err := s.rareOnly(ctx)
	if err != nil {
		return false, err
	}
	if s.left = scan(s.f) - glance; few {
		s.place = placeStatuses
	}
	return true, nil
}

// fitting are up to n sessions of the search's place that fit and have one of the statuses, down
// to reach and below before, the newest first. No statuses are all.
func (s *sessionSearch) fitting(ctx context.Context, reach, before api.SessionID, n int64, statuses []api.Status) (out []queries.FitSessionsRow, err error) {
	p := s.rule
	p.Place, p.Reach, p.Before, p.N, p.Statuses = s.place, reach, before, n, commaSet(statuses)
	switch s.place {
	case placeIDs:
		for _, id := range s.ids {
			p.ID = id
			fit, err := s.fit(ctx, p)
			if err != nil {
				return nil, err
			}
			out = append(out, fit...)
		}
	case placeStatuses:
		for _, status := range statuses {
			fit, err := s.ofStatus(ctx, status, reach, before, n)
			if err != nil {
				return nil, err
			}
			out = append(out, fit...)
		}
		slices.SortFunc(out, func(a, b queries.FitSessionsRow) int { return int(b.ID - a.ID) })
	default:
		return s.fit(ctx, p)
	}
	return slices.Clip(out[:min(int64(len(out)), n)]), nil
}

// ofStatus is fitting for one status, by its index.
func (s *sessionSearch) ofStatus(ctx context.Context, status api.Status, reach, before api.SessionID, n int64) ([]queries.FitSessionsRow, error) {
	p := s.rule
	p.Place, p.Status, p.Reach, p.Before, p.N = "open", status, reach, before, n
	if status.Terminal() {
		p.Place = "ended"
	}
	return s.fit(ctx, p)
}

func (s *sessionSearch) fit(ctx context.Context, p queries.FitSessionsParams) ([]queries.FitSessionsRow, error) {
	fit, err := s.q.FitSessions(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("see which sessions fit: %w", err)
	}
	return fit, nil
}

// read reads sessions that fit.
func (s *sessionSearch) read(ctx context.Context, fit []queries.FitSessionsRow) ([]sessionRow, error) {
	rows := make([]sessionRow, 0, len(fit))
	for _, f := range fit {
		row, err := s.q.Session(ctx, f.ID)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", f.ID, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// rareOnly reports whether the filter has statuses, and none that many sessions have.
func (s *sessionSearch) rareOnly(ctx context.Context) (bool, error) {
	for _, status := range s.f.Statuses {
		n, err := s.countStatus(ctx, status, rare)
		if err != nil {
			return false, err
		}
		if n == rare {
			return false, nil
		}
	}
	return len(s.f.Statuses) > 0, nil
}

// countStatus counts the sessions of a status, whatever else the filter says, up to a number. No
// index holds the complete ones, so of them it says that number.
func (s *sessionSearch) countStatus(ctx context.Context, status api.Status, most int64) (n int64, err error) {
	p := queries.CountOpenSessionsParams{WorkspaceID: s.c.WorkspaceID, AgentID: int64(s.agent), Status: status, Most: most}
	switch {
	case status == api.Complete:
		return most, nil
	case status.Terminal():
		n, err = s.q.CountEndedSessions(ctx, queries.CountEndedSessionsParams(p))
	default:
		n, err = s.q.CountOpenSessions(ctx, p)
	}
	if err != nil {
		return 0, fmt.Errorf("see how many %s sessions there are: %w", status, err)
	}
	return n, nil
}

// page makes a page from rows of which one more than n was requested.
func (s *sessionSearch) page(rows []sessionRow, n int64) api.List[sessionRow] {
	out := db.ListOf(rows, n, func(r sessionRow) sessionRow { return r }, func(r sessionRow) int64 { return int64(r.ID) })
	if out.NextCursor == "" && s.rest != 0 {
		out.NextCursor = db.Cursor(s.rest)
	}
	return out
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

// commaSet spells a set of words in the way the statements look for one in it.
func commaSet[T ~string](set []T) string {
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
