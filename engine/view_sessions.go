package engine

import (
	"context"
	"fmt"
	"math"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// How many sessions a count looks at, newest first: a page must not read a million rows to say
// how many there are, and a live one not even this often.
const (
	listScan = 5000
	homeScan = 2000
)

// SessionListView is one page of the list of sessions.
type SessionListView struct {
	View
	Rows       []SessionView
	NextCursor string
	Counts     map[api.Status]int64 // over the filter without its statuses
	CountsOf   int64                // of how many, newest first, the counts are taken; 0 = of all
	Agents     []string             // slugs to filter by
	Unlanded   bool                 // there are sessions whose changes wait, of whatever filter
}

// SessionList reads a page of sessions that the caller may see, newest first,
// with the counts per status.
func (e *Engine) SessionList(ctx context.Context, c Caller, f api.SessionFilter, page api.Page) (out SessionListView, err error) {
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	out.View, err = e.viewBy(ctx, c, e.lookThrough(f), func(r *viewReader) error {
		search, err := e.search(ctx, r.q, c, f)
		if err != nil {
			return err
		}
		found, err := search.find(ctx, listScan)
		if err != nil {
			return err
		}
		var rows []sessionRow
		if len(f.Texts()) > 0 && page.Cursor == "" {
			rows, err = found.first(ctx, search, n+1)
		} else {
			rows, err = search.rows(ctx, before, n+1)
		}
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		shown := search.page(rows, n)
		out.NextCursor = shown.NextCursor
		if out.Rows, err = r.sessions(ctx, shown.Items); err != nil {
			return err
		}
		out.Counts, out.CountsOf, _ = found.counts()
		waiting, err := r.unlanded(ctx, 1)
		if err != nil {
			return err
		}
		out.Unlanded = waiting > 0
		out.Agents, err = r.slugs(ctx)
		return err
	})
	return out, err
}

// SessionChanges is what a live list needs: the rows it shows as they are now, how many newer
// ones match its filter, and the counts.
type SessionChanges struct {
	View
	Rows     []SessionView // of those asked for that still exist
	Newer    int64         // sessions of the filter after newest
	Counts   map[api.Status]int64
	CountsOf int64
	Unlanded bool
}

// SessionsAgain reads rows of a list again.
func (e *Engine) SessionsAgain(ctx context.Context, c Caller, f api.SessionFilter, ids []api.SessionID, newest api.SessionID) (out SessionChanges, err error) {
	out.View, err = e.viewBy(ctx, c, e.lookThrough(f), func(r *viewReader) error {
		search, err := e.search(ctx, r.q, c, f)
		if err != nil {
			return err
		}
		for _, id := range ids {
			s, err := r.q.Session(ctx, id)
			if db.None(err) || (err == nil && !sees(c, &s)) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read session %s: %w", id, err)
			}
			v, err := r.session(ctx, &s)
			if err != nil {
				return err
			}
			out.Rows = append(out.Rows, v)
		}
		if out.Newer, err = search.newer(ctx, newest); err != nil {
			return err
		}
		waiting, err := r.unlanded(ctx, 1)
		if err != nil {
			return err
		}
		out.Unlanded = waiting > 0
		found, err := search.find(ctx, listScan)
		out.Counts, out.CountsOf, _ = found.counts()
		return err
	})
	return out, err
}

func (r *viewReader) slugs(ctx context.Context) ([]string, error) {
	rows, err := r.q.ViewAgents(ctx, queries.ViewAgentsParams{WorkspaceID: r.c.WorkspaceID, N: db.MaxPage})
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	out := make([]string, 0, len(rows))
	for _, a := range rows {
		out = append(out, a.Slug)
	}
	return out, nil
}
