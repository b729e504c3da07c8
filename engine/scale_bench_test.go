package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"stint/api"
	"stint/db"
	"stint/engine"
)

// clone copies the newest session n times, each with a new id, thread and trigger: the only
// way to a million rows within a benchmark's patience.
func (s *bench) clone(b *testing.B, n int, set map[string]string) {
	b.Helper()
	if err := s.store.Close(); err != nil {
		b.Fatal(err)
	}
	raw, err := sql.Open("sqlite", s.path)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	rows, err := raw.Query("SELECT name FROM pragma_table_info('sessions')")
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	var cols, values []string
	for rows.Next() {
		var col string
		if err := rows.Scan(&col); err != nil {
			b.Fatal(err)
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
		b.Fatal(err)
	}
	for _, stmt := range []string{
		fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO sessions (%s) SELECT %s FROM sessions, n WHERE id = (SELECT MAX(id) FROM sessions)",
			n, strings.Join(cols, ","), strings.Join(values, ",")),
		"UPDATE counters SET value = (SELECT MAX(id) FROM sessions) WHERE name = 'id'",
		"PRAGMA wal_checkpoint(TRUNCATE)",
	} {
		if _, err := raw.Exec(stmt); err != nil {
			b.Fatal(err)
		}
	}
	s.reopen(b)
}

func (s *bench) reopen(b *testing.B) {
	b.Helper()
	store, err := db.Open(context.Background(), db.Options{Path: s.path})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	s.store, s.e = store, engine.New(store, engine.DefaultConfig())
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func (s *bench) medianClaim(b *testing.B) time.Duration {
	b.Helper()
	var took []time.Duration
	for range 201 {
		took = append(took, s.claimOne(b, s.workers[0]))
	}
	return median(took)
}

// BenchmarkClaimDepth compares a claim at a thousand queued sessions with one at
// a million, and with ten thousand in front that don't fit. The bar is a ratio of 3.
func BenchmarkClaimDepth(b *testing.B) {
	for b.Loop() {
		few := newBench(b, 1)
		few.fillQueue(b, "bench", 1000)
		base := few.medianClaim(b)

		many := newBench(b, 1)
		many.fillQueue(b, "bench", 1)
		many.clone(b, 1_000_000, nil)
		deep := many.medianClaim(b)

		unfit := newBench(b, 1)
		unfit.fillQueue(b, "bench", 1)
		unfit.clone(b, 10_000, map[string]string{"lane": "'~|gpu'", "labels": "'gpu'", "priority": "900"})
		unfit.fillQueue(b, "bench", 1000)
		misfits := unfit.medianClaim(b)

		b.ReportMetric(float64(base.Microseconds()), "µs-at-1k")
		b.ReportMetric(float64(deep)/float64(base), "x-at-1M")
		b.ReportMetric(float64(misfits)/float64(base), "x-behind-10k-unfit")
	}
}

// BenchmarkNewest lists the newest 50 of a million sessions. The bar is 1 ms.
func BenchmarkNewest(b *testing.B) {
	s := newBench(b, 1)
	s.fillQueue(b, "bench", 1)
	if err := s.cycle(s.workers[0], true); err != nil {
		b.Fatal(err)
	}
	s.clone(b, 1_000_000, map[string]string{"status": "'complete'", "ended_at": "1", "claim_id": "0"})
	for b.Loop() {
		page, err := s.e.Sessions(context.Background(), s.c, api.SessionFilter{}, api.Page{})
		if err != nil || len(page.Items) != 50 {
			b.Fatal(len(page.Items), err)
		}
	}
}

// BenchmarkFilters lists a million finished sessions by filters that hardly
// anything fits. The bar is a tenth of what a read may take: 500 ms.
func BenchmarkFilters(b *testing.B) {
	s := newBench(b, 1)
	s.fillQueue(b, "bench", 1)
	s.clone(b, 1_000_000, map[string]string{"status": "'complete'", "ended_at": "1", "claim_id": "0"})
	for _, f := range []struct {
		name   string
		filter api.SessionFilter
	}{
		{"none", api.SessionFilter{}},
		{"active", api.SessionFilter{Statuses: []api.Status{api.Active}}},
		{"queued", api.SessionFilter{Statuses: []api.Status{api.Queued}}},
		{"waiting", api.SessionFilter{Statuses: api.PhasePending.Statuses()}},
		{"cancelled", api.SessionFilter{Statuses: []api.Status{api.Cancelled}}},
		{"failed", api.SessionFilter{Statuses: api.PhaseFailed.Statuses()}},
		{"failed-of-agent", api.SessionFilter{Agent: "bench", Statuses: api.PhaseFailed.Statuses()}},
		{"text", api.SessionFilter{Query: "nowhere"}},
		{"text-and-status", api.SessionFilter{Query: "nowhere", Statuses: []api.Status{api.Complete}}},
		{"trigger", api.SessionFilter{Trigger: api.ByWebhook}},
		{"since", api.SessionFilter{Since: api.Time{Time: time.Now().Add(time.Hour)}}},
	} {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.e.SessionList(context.Background(), s.c, f.filter, api.Page{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIdleTick ticks over ten thousand scheduled agents of which none is due. The bar is 1 ms.
func BenchmarkIdleTick(b *testing.B) {
	s := newBench(b, 1)
	for i := range 10_000 {
		in := engine.DefaultConfig().DefaultAgent()
		in.Slug, in.Run.Command, in.Schedule = fmt.Sprintf("a%d", i), []string{"true"}, "0 0 1 1 *"
		if _, err := s.e.CreateAgent(context.Background(), s.c, in); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.e.Tick(context.Background(), s.e.Now()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.e.Tick(context.Background(), s.e.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFootprint measures the bytes of a finished session with four events. The bar is 900.
func BenchmarkFootprint(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		s := newBench(b, 64)
		before := s.size(b)
		s.run(b, 64, n, func(w api.WorkerID) error { return s.cycle(w, true) })
		b.ReportMetric(float64(s.size(b)-before)/n, "bytes/session")
	}
}

// size is the database's size after everything is in the main file.
func (s *bench) size(b *testing.B) int64 {
	b.Helper()
	copied := filepath.Join(b.TempDir(), "copy.db")
	if err := s.store.Snapshot(context.Background(), copied); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(copied)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
