package engine_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// Each field of the query language finds what it names and leaves the rest out, in the list and in the
// counts alike.
func TestSessions_AQueryFindsWhatItNames(t *testing.T) {
	w := enginetest.Open(t)
	ctx := context.Background()
	a, b := w.Agent(), w.Agent()
	worker := w.Worker(a, func(in *api.WorkerInput) { in.Name = "desk" })
	names := map[api.SessionID]string{}
	// Rows are made as they would have become, beside archived ones that they are copies of.
	add := func(name string, agent api.Agent, set map[string]string) api.SessionID {
		t.Helper()
		s := w.New(agent, func(in *api.SessionInput) { in.Title = "base" })
		if _, err := w.CancelSession(ctx, w.Owner, s.ID, api.CancelInput{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.ArchiveSession(ctx, w.Owner, s.ID); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{"title": "'" + name + "'", "archived_at": "0", "outcome": "''", "status": "'cancelled'"}
		maps.Copy(all, set)
		copies(t, w.Path, s.ID, 1, all)
		names[s.ID+1] = name
		w.Jump(time.Hour)
		return s.ID + 1
	}
	took := func(seconds int64, set map[string]string) map[string]string {
		set["started_at"], set["ended_at"] = "created_at", "created_at + "+strconv.FormatInt(seconds*1_000_000, 10)
		return set
	}
	type set = map[string]string
	add("oldest", a, took(600, set{"status": "'complete'", "outcome": "'success'"}))
	add("dear", a, took(900, set{"status": "'complete'", "outcome": "'refused'", "cost_micros": "2000000", "input_tokens": "150000"}))
	add("timed out", a, took(1800, set{"status": "'error'", "error_code": "'TIMEOUT'", "tries": "2"}))
	add("kept", b, took(1, set{"status": "'complete'", "kept_at": "created_at"}))
	archived := add("archived", b, took(1, set{"archived_at": "created_at", "tries": "7"}))
	add("on the desk", a, took(1, set{"worker_id": strconv.FormatInt(int64(worker.ID), 10)}))
	add("waiting", b, set{"status": "'queued'", "ended_at": "0"})
	for query, want := range map[string][]string{
		"":                             {"waiting", "on the desk", "kept", "timed out", "dear", "oldest"},
		"status:error":                 {"timed out"},
		"-status:complete":             {"waiting", "on the desk", "timed out"},
		"-status:complete,cancelled":   {"waiting", "timed out"},
		"agent:" + b.Slug:              {"waiting", "kept"},
		"worker:desk":                  {"on the desk"},
		"worker:" + worker.ID.String(): {"on the desk"},
		"worker:nobody":                nil,
		"cost:>1":                      {"dear"},
		"cost:<=1 agent:" + b.Slug:     {"waiting", "kept"},
		"tokens:>100k":                 {"dear"},
		"tries:>=2":                    {"timed out"},
		"took:>10m":                    {"timed out", "dear"},
		"took:10m..15m":                {"dear", "oldest"},
		"code:timeout":                 {"timed out"},
		"is:kept":                      {"kept"},
		"is:marked":                    {"dear"},
		"is:archived tries:7":          {"archived"},
		"since:2h":                     {"waiting", "on the desk"},
		"until:5h":                     {"dear", "oldest"},
		"since:5h until:3h":            {"kept", "timed out"},
		"OUT timed":                    {"timed out"},
		`"out timed"`:                  nil,
		"on desk by:user":              {"on the desk"},
		"by:scheduler":                 nil,
		archived.String():              {"archived"},
		"status:error cost:>1":         nil,
	} {
		f, err := api.ParseSessionQuery(query, w.Now())
		if err != nil {
			t.Fatal(err)
		}
		list, err := w.Sessions(ctx, w.Owner, f, api.Page{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list.Items {
			got = append(got, names[s.ID])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query, got, want)
		}
		f.Statuses = nil
		counts, err := w.SessionCounts(ctx, w.Owner, f)
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, one := range counts.ByStatus {
			n += one
		}
		if all, err := w.Sessions(ctx, w.Owner, f, api.Page{}); err != nil || n != int64(len(all.Items)) {
			t.Errorf("%s counts %d of %d (%v)", query, n, len(all.Items), err)
		}
	}
	if list, err := w.Sessions(ctx, w.Colleague("Bea", api.Member), api.SessionFilter{IDs: []api.SessionID{archived}}, api.Page{}); err != nil || len(list.Items) != 0 {
		t.Errorf("somebody else finds a local session by its id: %v (%v)", list.Items, err)
	}
}
