package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

// TestSessions_FewAmongMany: what matches a filter is found wherever it lies, each once and
// newest first, page by page, through the list and through the page.
func TestSessions_FewAmongMany(t *testing.T) {
	w := enginetest.Open(t)
	ctx := context.Background()
	a := w.Agent()
	oldQueued := w.New(a)
	oldCancelled := w.New(a)
	if _, err := w.CancelSession(ctx, w.Owner, oldCancelled.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	many := w.New(a)
	if _, err := w.CancelSession(ctx, w.Owner, many.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	const n = 1500 // more than is looked at first
	copies(t, w.Path, many.ID, n, map[string]string{"status": "'complete'", "title": "'one of many'", "triggered_at": "triggered_at-1000000000-i"})
	newQueued := w.New(a)
	for _, c := range []struct {
		name   string
		filter api.SessionFilter
		want   []api.SessionID
	}{
		{"queued", api.SessionFilter{Statuses: []api.Status{api.Queued}}, []api.SessionID{newQueued.ID, oldQueued.ID}},
		{"queued of the agent", api.SessionFilter{Agent: a.Slug, Statuses: []api.Status{api.Queued}}, []api.SessionID{newQueued.ID, oldQueued.ID}},
		{"cancelled", api.SessionFilter{Statuses: []api.Status{api.Cancelled}}, []api.SessionID{many.ID, oldCancelled.ID}},
		{"several", api.SessionFilter{Statuses: []api.Status{api.Cancelled, api.Queued, api.Failed}}, []api.SessionID{newQueued.ID, many.ID, oldCancelled.ID, oldQueued.ID}},
		{"active", api.SessionFilter{Statuses: []api.Status{api.Active}}, nil},
		{"text that isn't there", api.SessionFilter{Query: "nowhere"}, nil},
		{"text and status", api.SessionFilter{Query: "one of many", Statuses: []api.Status{api.Queued}}, nil},
		{"trigger", api.SessionFilter{Trigger: api.ByWebhook}, nil},
		{"later", api.SessionFilter{Since: api.Time{Time: w.Clock.Now().AddDate(1, 0, 0)}}, nil},
	} {
		for _, limit := range []int{1, 50} {
			var listed, paged []api.SessionID
			for p := (api.Page{Limit: limit}); ; {
				l, err := w.Sessions(ctx, w.Owner, c.filter, p)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range l.Items {
					listed = append(listed, s.ID)
				}
				if p.Cursor = l.NextCursor; p.Cursor == "" {
					break
				}
			}
			for p := (api.Page{Limit: limit}); ; {
				l, err := w.SessionList(ctx, w.Owner, c.filter, p)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range l.Rows {
					paged = append(paged, s.ID)
				}
				if p.Cursor = l.NextCursor; p.Cursor == "" {
					break
				}
			}
			if !slices.Equal(listed, c.want) || !slices.Equal(paged, c.want) {
				t.Errorf("%s, %d a page: %v and %v, want %v", c.name, limit, listed, paged, c.want)
			}
		}
	}
	all, err := w.SessionList(ctx, w.Owner, api.SessionFilter{}, api.Page{})
	if err != nil || len(all.Rows) != 50 || all.Counts[api.Complete] != n || all.Counts[api.Queued] != 2 || all.CountsOf != 0 {
		t.Errorf("all: %d rows, counts %v of %d (%v)", len(all.Rows), all.Counts, all.CountsOf, err)
	}
}

// TestSessions_APageLooksAtALimitedNumber: among more sessions than a page looks at, what fits is
// found by going on, and what wasn't looked at is said.
func TestSessions_APageLooksAtALimitedNumber(t *testing.T) {
	w := enginetest.Open(t)
	ctx := context.Background()
	a, other := w.Agent(), w.Agent()
	needle := w.New(a, func(in *api.SessionInput) { in.Title = "A Needle in the hay" })
	elsewhere := w.New(other)
	many := w.New(a)
	for _, s := range []api.Session{needle, many} {
		if _, err := w.CancelSession(ctx, w.Owner, s.ID, api.CancelInput{}); err != nil {
			t.Fatal(err)
		}
	}
	const n = 12_000
	copies(t, w.Path, many.ID, n, map[string]string{"status": "'complete'", "title": "'hay'", "triggered_at": "triggered_at-1000000000-i"})
	for _, c := range []struct {
		name   string
		filter api.SessionFilter
		want   api.SessionID
		pages  int // at least
	}{
		{"text", api.SessionFilter{Query: "needle"}, needle.ID, 3},
		{"text of an agent", api.SessionFilter{Query: "needle", Agent: a.Slug}, needle.ID, 3},
		{"text and a rare status", api.SessionFilter{Query: "needle", Statuses: []api.Status{api.Cancelled}}, needle.ID, 1},
		{"text and a common status", api.SessionFilter{Query: "needle", Statuses: []api.Status{api.Cancelled, api.Complete}}, needle.ID, 3},
		{"rare agent", api.SessionFilter{Agent: other.Slug}, elsewhere.ID, 1},
		{"trigger", api.SessionFilter{Trigger: api.ByWebhook}, 0, 2},
	} {
		listed := map[api.SessionID]int{}
		pages := 0
		for p := (api.Page{}); ; {
			l, err := w.Sessions(ctx, w.Owner, c.filter, p)
			if err != nil {
				t.Fatal(err)
			}
			v, err := w.SessionList(ctx, w.Owner, c.filter, p)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Rows) != len(l.Items) || v.NextCursor != l.NextCursor {
				t.Errorf("%s: the page has %d and goes on at %q, the list %d and %q", c.name, len(v.Rows), v.NextCursor, len(l.Items), l.NextCursor)
			}
			if c.filter.Query != "" && v.CountsOf == 0 {
				t.Errorf("%s: the counts are said to be of all", c.name)
			}
			for _, s := range l.Items {
				listed[s.ID]++
			}
			pages++
			if p.Cursor = l.NextCursor; p.Cursor == "" {
				break
			}
		}
		if pages < c.pages || pages > c.pages+1 || (c.want != 0 && listed[c.want] != 1) || len(listed) > 1 {
			t.Errorf("%s: %v on %d pages, want %s and %d pages", c.name, listed, pages, c.want, c.pages)
		}
	}
	counts, err := w.SessionCounts(ctx, w.Owner, api.SessionFilter{})
	if err != nil || counts.ByStatus[api.Cancelled] != 2 || counts.ByStatus[api.Queued] != 1 || counts.ByStatus[api.Complete] != 5000 ||
		counts.LookedAt != 5000 || counts.Text(api.Complete) != "5000+" || counts.Text(api.Queued) != "1" {
		t.Errorf("counted %v of %d each (%v)", counts.ByStatus, counts.LookedAt, err)
	}
	counts, err = w.SessionCounts(ctx, w.Owner, api.SessionFilter{Agent: other.Slug})
	if err != nil || counts.LookedAt != 0 || counts.ByStatus[api.Queued] != 1 {
		t.Errorf("of one agent %v of %d each (%v)", counts.ByStatus, counts.LookedAt, err)
	}
}

// copies writes n copies of a session, bypassing the engine, each with a new id, thread and
// trigger.
func copies(t *testing.T, path string, id api.SessionID, n int, set map[string]string) {
	t.Helper()
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	rows, err := raw.QueryContext(t.Context(), "SELECT name FROM pragma_table_info('sessions')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var cols, values []string
	for rows.Next() {
		var col string
		if err := rows.Scan(&col); err != nil {
			t.Fatal(err)
		}
		value, given := set[col]
		switch {
		case given:
		case col == "id" || col == "thread_id" || col == "triggered_at":
			value = col + "+i"
		default:
			value = col
		}
		cols, values = append(cols, col), append(values, value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, stmt := range []string{
		fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO sessions (%s) SELECT %s FROM sessions, n WHERE id = %d",
			n, strings.Join(cols, ","), strings.Join(values, ","), int64(id)),
		"UPDATE counters SET value = (SELECT MAX(id) FROM sessions) WHERE name = 'id'",
	} {
		if _, err := raw.ExecContext(t.Context(), stmt); err != nil {
			t.Fatal(err)
		}
	}
}
