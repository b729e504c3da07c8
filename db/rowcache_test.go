package db

import (
	"errors"
	"testing"

	"stint/api"
	"stint/queries"
)

// cachedAgent creates an agent in a store that doesn't compare what it caches, so that a
// wrongly cached row shows.
func cachedAgent(t *testing.T, s *Store) (agent api.AgentID) {
	t.Helper()
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		agent = api.AgentID(tx.NewID())
		workspace := api.WorkspaceID(tx.NewID())
		return errors.Join(
			tx.InsertWorkspace(t.Context(), queries.InsertWorkspaceParams{ID: workspace, Slug: "default", Name: "default"}),
			One(tx.PutAgent(t.Context(), queries.PutAgentParams{
				ID: agent, WorkspaceID: workspace, Slug: "tidy", Mode: api.Local, CatchUp: api.CatchUpLatest, Overlap: api.OverlapSkip, MaxConcurrent: 9, Version: 1,
			})))
	}))
	return agent
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// running reads the agent twice, so that the second answer comes from the cache.
func running(t *testing.T, s *Store, agent api.AgentID) (n int64) {
	t.Helper()
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		if _, err := tx.AgentEvenDeleted(t.Context(), agent); err != nil {
			return err
		}
		a, err := tx.AgentEvenDeleted(t.Context(), agent)
		n = a.Running
		return err
	}))
	return n
}

func take(t *testing.T, agent api.AgentID) func(tx *Tx) error {
	return func(tx *Tx) error {
		return tx.TakeAgentSlot(agent, 0)
	}
}

func isCached(t *testing.T, s *Store, agent api.AgentID) (yes bool) {
	t.Helper()
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		_, yes = tx.w.rowCache.agents[agent]
		return nil
	}))
	return yes
}

func TestRowCache_FollowsItsOwnChanges(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s)
	running(t, s, agent)
	must(t, s.Write(t.Context(), take(t, agent)))
	if !isCached(t, s, agent) {
		t.Error("the row was forgotten, so that each verb reads it again")
	}
	if n := running(t, s, agent); n != 1 {
		t.Errorf("%d running", n)
	}
}

func TestRowCache_AnyOtherStatementOnTheTableForgets(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s)
	running(t, s, agent)
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.SetFailuresInRow(t.Context(), queries.SetFailuresInRowParams{ID: agent, FailuresInRow: 3})
		return err
	}))
	if isCached(t, s, agent) {
		t.Error("the row is still cached")
	}
}

func TestRowCache_AnotherConnectionsWriteForgets(t *testing.T) {
	s := open(t)
	agent := cachedAgent(t, s)
	running(t, s, agent)
	other := open(t, func(o *Options) { o.Path = s.path })
	must(t, other.Write(t.Context(), take(t, agent)))
	if n := running(t, s, agent); n != 1 {
		t.Errorf("%d running after the other store took a slot", n)
	}
}

// A closure that fails, alone and among others, also undoes its changes in the cached rows.
func TestRowCache_UndoneChangesAreForgotten(t *testing.T) {
	broken := errors.New("broken")
	s := open(t)
	agent := cachedAgent(t, s)
	failing := func(tx *Tx) error { return errors.Join(take(t, agent)(tx), broken) }
	running(t, s, agent)
	if err := s.Write(t.Context(), failing); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if n := running(t, s, agent); n != 0 {
		t.Errorf("%d running after a failure", n)
	}
	errs := togetherWith(t, s, func() {}, call{t.Context(), failing}, call{t.Context(), take(t, agent)}, call{t.Context(), failing})
	if !errors.Is(errs[0], broken) || errs[1] != nil || !errors.Is(errs[2], broken) {
		t.Fatal(errs)
	}
	if n := running(t, s, agent); n != 1 {
		t.Errorf("%d running after two failures and a success", n)
	}
}

// The comparison that other packages' tests run with notices a wrong row.
func TestRowCache_CheckNoticesAWrongRow(t *testing.T) {
	s := open(t, func(o *Options) { o.Unsafe.CheckRowCache = true })
	agent := cachedAgent(t, s)
	running(t, s, agent)
	err := s.Write(t.Context(), func(tx *Tx) error {
		a := tx.w.rowCache.agents[agent]
		a.Running = 7
		tx.w.rowCache.agents[agent] = a
		_, err := tx.AgentEvenDeleted(t.Context(), agent)
		return err
	})
	if err == nil {
		t.Error("a wrong row was used")
	}
}

func TestRowCache_NeverMoreThanItsBound(t *testing.T) {
	k := newRowCache(false)
	for i := range 3 * maxCachedRows {
		keep(k, "workers", k.workers, api.WorkerID(i), queries.Worker{})
		if len(k.workers) > maxCachedRows {
			t.Fatalf("%d rows are cached", len(k.workers))
		}
	}
}

func TestWrittenTable(t *testing.T) {
	for query, want := range map[string]string{
		"-- name: A :one\nSELECT * FROM sessions WHERE id = ?1":            "",
		"-- name: B :execrows\nUPDATE agents SET running = running + 1":    "agents",
		"-- name: C :exec\nINSERT INTO claims (\n id) VALUES (?1)":         "claims",
		"-- name: D :execrows\n-- why\n\nDELETE FROM workers WHERE id = 1": "workers",
		"-- name: E :exec\nWITH old AS (SELECT 1)\nDELETE FROM workers":    anyTable,
		"REPLACE INTO agents (id) VALUES (1)":                              anyTable,
		"COMMIT":                                                           "",
		"ROLLBACK TO closure":                                              "",
	} {
		if got := writtenTable(query); got != want {
			t.Errorf("%q writes %q, not %q", query, got, want)
		}
	}
}
