package engine_test

import (
	"context"
	"slices"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

func TestSessions_ThreadAndRetryNarrowAListLikeAnyFilter(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a, b := w.Agent(), w.Agent()
	cancel := func(id api.SessionID) {
		t.Helper()
		if _, err := w.CancelSession(ctx, w.Owner, id, api.CancelInput{}); err != nil {
			t.Fatal(err)
		}
	}
	retry := func(id api.SessionID) api.Session {
		t.Helper()
		s, err := w.RetrySession(ctx, w.Owner, id)
		if err != nil {
			t.Fatal(err)
		}
		return s.Session
	}
	first, other := w.New(a), w.New(a)
	w.New(b)
	cancel(first.ID)
	second := retry(first.ID)
	cancel(second.ID)
	third, again := retry(second.ID), retry(first.ID)
	cancel(again.ID)
	if _, err := w.ArchiveSession(ctx, w.Owner, first.ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		filter api.SessionFilter
		want   []api.SessionID // newest first
		queued int64           // the count, whatever the statuses
	}{
		{"retries of the first", api.SessionFilter{RetryOf: first.ID}, []api.SessionID{again.ID, second.ID}, 0},
		{"retries of a retry", api.SessionFilter{RetryOf: second.ID}, []api.SessionID{third.ID}, 1},
		{"no retries", api.SessionFilter{RetryOf: other.ID}, nil, 0},
		{"retries of nothing", api.SessionFilter{RetryOf: other.ID + 999}, nil, 0},
		{"retries with a status", api.SessionFilter{RetryOf: second.ID, Statuses: []api.Status{api.Cancelled}}, nil, 1},
		{"thread", api.SessionFilter{ThreadID: first.ThreadID}, []api.SessionID{again.ID, third.ID, second.ID}, 1},
		{"thread, archived too", api.SessionFilter{ThreadID: first.ThreadID, Archived: true}, []api.SessionID{again.ID, third.ID, second.ID, first.ID}, 1},
		{"thread with a status", api.SessionFilter{ThreadID: first.ThreadID, Statuses: []api.Status{api.Queued}}, []api.SessionID{third.ID}, 1},
		{"thread of another agent", api.SessionFilter{ThreadID: first.ThreadID, Agent: b.Slug}, nil, 0},
		{"thread and agent", api.SessionFilter{ThreadID: other.ThreadID, Agent: a.Slug}, []api.SessionID{other.ID}, 1},
		{"thread and retries", api.SessionFilter{ThreadID: other.ThreadID, RetryOf: first.ID}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []api.SessionID
			for p := (api.Page{Limit: 1}); ; {
				list, err := w.Sessions(ctx, w.Owner, c.filter, p)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range list.Items {
					got = append(got, s.ID)
				}
				if p.Cursor = list.NextCursor; p.Cursor == "" {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("listed %v, want %v", got, c.want)
			}
			counts, err := w.SessionCounts(ctx, w.Owner, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			if counts.ByStatus[api.Queued] != c.queued || counts.LookedAt != 0 {
				t.Errorf("%d are queued, want %d", counts.ByStatus[api.Queued], c.queued)
			}
		})
	}
}
