package web

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
)

// million is a coordinator whose file was filled by SQL: most of its sessions have ended, over
// half a year, half of them of one agent.
type million struct {
	path    string
	n       int
	store   *db.Store
	engine  *engine.Engine
	handler http.Handler
	caller  engine.Caller
	middle  api.SessionID // one in the middle
	events  int64
	next    int // number of the session that a write creates
}

// millionAgents is how many agents share the sessions.
const millionAgents = 200

func newMillion(b *testing.B, n int) *million {
	b.Helper()
	m := &million{path: filepath.Join(b.TempDir(), "stint.db"), n: n}
	if kept := os.Getenv("STINT_BENCH_FILE"); kept != "" {
		m.path = kept
	}
	_, err := os.Stat(m.path)
	m.open(b)
	b.Cleanup(func() { _ = m.store.Close() })
	if err == nil {
		m.look(b)
		return m
	}
	ctx := context.Background()
	var first api.Agent
	for i := range millionAgents {
		in := engine.DefaultConfig().DefaultAgent()
		in.Slug, in.Run.Command, in.MaxConcurrent = fmt.Sprintf("agent-%03d", i), []string{"true"}, 1000
		a, err := m.engine.CreateAgent(ctx, m.caller, in)
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			first = a
		}
	}
	w, err := m.engine.RegisterWorker(ctx, m.caller, first.Slug, api.WorkerInput{Name: "w", MaxConcurrent: 1000})
	if err != nil {
		b.Fatal(err)
	}
	prompt := "Look through the repository. " + strings.Repeat("Change what is wrong, leave what is right. ", 12)
	if _, _, err := m.engine.CreateSession(ctx, m.caller, first.Slug, api.SessionInput{Prompt: &prompt}, engine.Idempotency{}); err != nil {
		b.Fatal(err)
	}
	claim, err := m.engine.ClaimNext(ctx, m.caller, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{w.Worker.ID}})
	if err != nil || claim == nil {
		b.Fatal(claim, err)
	}
	proof := api.UnderClaim{ClaimID: claim.ClaimID}
	if _, err := m.engine.AddActivity(ctx, m.caller, w.Worker.ID, claim.SessionID, api.ActivityInput{UnderClaim: proof, Type: api.ActivityProgress, Text: "half way"}); err != nil {
		b.Fatal(err)
	}
	if _, err := m.engine.Complete(ctx, m.caller, w.Worker.ID, claim.SessionID, api.CompleteRequest{UnderClaim: proof, Result: "hello"}); err != nil {
		b.Fatal(err)
	}
	task := engine.DefaultTask()
	task.Title = "A task"
	if _, _, err := m.engine.CreateTask(ctx, m.caller, task, engine.Idempotency{}); err != nil {
		b.Fatal(err)
	}
	if err := m.store.Close(); err != nil {
		b.Fatal(err)
	}
	m.fill(b)
	m.open(b)
	m.look(b)
	return m
}

// open opens the file as a coordinator does.
func (m *million) open(b *testing.B) {
	b.Helper()
	ctx := context.Background()
	store, err := db.Open(ctx, db.Options{Path: m.path})
	if err != nil {
		b.Fatal(err)
	}
	m.store, m.engine = store, engine.New(store, engine.DefaultConfig())
	people := account.New(store, account.DefaultConfig())
	if _, _, err := people.EnsureOwner(ctx); err != nil {
		b.Fatal(err)
	}
	who, err := people.Owner(ctx)
	if err != nil {
		b.Fatal(err)
	}
	if m.caller, err = people.In(ctx, who, account.DefaultWorkspace); err != nil {
		b.Fatal(err)
	}
	m.handler = New(Options{Engine: m.engine, Accounts: people, CallerOf: func(*http.Request) (engine.Caller, account.Identity, bool) {
		return m.caller, who, true
	}})
}

// fill clones the one session with its claim and events, and the one task.
func (m *million) fill(b *testing.B) {
	b.Helper()
	raw, err := sql.Open("sqlite", m.path)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	raw.SetMaxOpenConns(1)
	do := func(query string) {
		b.Helper()
		if _, err := raw.ExecContext(b.Context(), query); err != nil {
			b.Fatalf("%v: %s", err, query)
		}
	}
	clone := func(table string, set map[string]string, from string) {
		b.Helper()
		cols, values := millionColumns(b, raw, table, set)
		do(fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s", table, cols, values, from))
	}
	do("PRAGMA synchronous = OFF")
	do("PRAGMA cache_size = -400000")
	do(fmt.Sprintf("CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) SELECT i, ((unixepoch() - 1704067200 - %d + i * 15) << 18) AS id, (unixepoch() - %d + i * 15) * 1000000 AS at FROM n", m.n, m.n*15+3600, m.n*15+3600))
	do("CREATE TEMP TABLE one AS SELECT MAX(id) AS id FROM sessions")
	do("CREATE TEMP TABLE a AS SELECT row_number() OVER (ORDER BY id) - 1 AS k, id FROM agents")
	do("CREATE UNIQUE INDEX temp.a_k ON a (k)")
	do("BEGIN")
	clone("events", map[string]string{
		"seq": "(SELECT MAX(seq) FROM events) + n.i", "session_id": "0", "workspace_id": fmt.Sprint(int64(m.caller.WorkspaceID)), "agent_id": "0",
		"type": "'member_role'", "actor": "'usr_rare'", "at": "n.at", "data": "''",
	}, "events e, n WHERE e.seq = 1 AND n.i <= 20")
	agent := fmt.Sprintf("(SELECT a.id FROM a WHERE a.k = CASE WHEN n.i %% 2 THEN n.i / 2 %% %d ELSE 0 END)", millionAgents)
	clone("sessions", map[string]string{
		"id": "n.id", "thread_id": "n.id", "agent_id": agent, "triggered_at": "n.at + n.i", "created_at": "n.at", "queued_at": "n.at",
		"place_at": "n.at", "started_at": "n.at + 1000000", "ended_at": "n.at + 60000000",
		"title": "'Part ' || n.i || ' of the round'", "claim_id": "0",
		"status":        "CASE WHEN n.i % 1000 < 20 THEN 'error' WHEN n.i % 1000 < 25 THEN 'cancelled' ELSE 'complete' END",
		"triggered_by":  "CASE WHEN n.i % 50000 = 7 THEN 'webhook' WHEN n.i % 10 < 7 THEN 'scheduler' ELSE 'user' END",
		"owner_user_id": "s.owner_user_id + (n.i % 20 = 0)",
	}, "sessions s, n WHERE s.id = (SELECT id FROM one)")
	clone("claims", map[string]string{"id": "n.id + 1", "session_id": "n.id", "thread_id": "n.id", "agent_id": agent}, "claims c, n WHERE c.session_id = (SELECT id FROM one)")
	do("CREATE TEMP TABLE e AS SELECT row_number() OVER (ORDER BY seq) - 1 AS k, count(*) OVER () AS of, seq AS base FROM events WHERE session_id = (SELECT id FROM one)")
	do("CREATE TEMP TABLE top AS SELECT MAX(seq) AS seq FROM events")
	clone("events", map[string]string{
		"seq": "(SELECT seq FROM top) + (n.i - 1) * k.of + k.k + 1", "session_id": "n.id", "at": "n.at + k.k * 10000000",
		"actor": "CASE WHEN n.i % 10 < 7 THEN 'scheduler' ELSE e.actor END",
	}, "n CROSS JOIN temp.e k CROSS JOIN events e WHERE e.seq = k.base")
	clone("tasks", map[string]string{
		"id": "n.id + 2", "number": "n.i + 1", "state": "CASE n.i % 20 WHEN 1 THEN 'todo' WHEN 2 THEN 'review' WHEN 3 THEN 'blocked' WHEN 4 THEN 'in_progress' ELSE 'done' END",
		"priority": "'p' || (1 + n.i % 3)", "done_at": "CASE WHEN n.i % 20 BETWEEN 1 AND 4 THEN 0 ELSE n.at END", "created_at": "n.at", "updated_at": "n.at",
	}, "tasks t, n WHERE t.number = 1 AND n.i % 10 = 3")
	clone("sessions", map[string]string{
		"id": "s.id - n.i - 10", "thread_id": "s.id - n.i - 10", "agent_id": agent, "triggered_at": "s.triggered_at + n.i", "title": "'Waiting ' || n.i",
		"claim_id": "0", "status": "CASE n.i % 10 WHEN 1 THEN 'pending' ELSE 'queued' END", "started_at": "0", "ended_at": "0",
	}, "sessions s, n WHERE s.id = (SELECT id FROM one) AND n.i <= 2000")
	do("UPDATE counters SET value = (SELECT MAX(id) FROM sessions) WHERE name = 'id'")
	do("UPDATE counters SET value = (SELECT MAX(seq) FROM events) WHERE name = 'event'")
	do("COMMIT")
	do("PRAGMA wal_checkpoint(TRUNCATE)")
}

// millionColumns are a table's columns and what a clone has in them.
func millionColumns(b *testing.B, raw *sql.DB, table string, set map[string]string) (cols, values string) {
	b.Helper()
	rows, err := raw.QueryContext(b.Context(), "SELECT name FROM pragma_table_info(?1)", table)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	var names, all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			b.Fatal(err)
		}
		value, given := set[name]
		if !given {
			value = table[:1] + "." + name
		}
		names, all = append(names, name), append(all, value)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return strings.Join(names, ","), strings.Join(all, ",")
}

// look finds what the pages are asked for.
func (m *million) look(b *testing.B) {
	b.Helper()
	raw, err := sql.Open("sqlite", m.path)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	err = raw.QueryRowContext(b.Context(), "SELECT (SELECT id FROM sessions WHERE id > (SELECT (MIN(id) + MAX(id)) / 2 FROM sessions) ORDER BY id LIMIT 1), (SELECT MAX(seq) FROM events)").Scan(&m.middle, &m.events)
	if err != nil {
		b.Fatal(err)
	}
}

// paths are the dashboard's pages and their filters.
func (m *million) paths() []string {
	middle, deep := db.Cursor(int64(m.middle)), db.Cursor(m.events/2)
	return []string{
		"/", "/inbox", "/sessions", "/sessions?cursor=" + middle,
		"/sessions?status=complete", "/sessions?status=error", "/sessions?status=cancelled", "/sessions?status=queued", "/sessions?status=pending",
		"/sessions?status=active", "/sessions?status=stale,awaiting_input", "/sessions?status=error&cursor=" + middle, "/sessions?status=complete&cursor=" + middle,
		"/sessions?agent=agent-000", "/sessions?agent=agent-007", "/sessions?agent=agent-007&status=error", "/sessions?agent=agent-000&status=cancelled",
		"/sessions?by=webhook", "/sessions?by=scheduler", "/sessions?by=webhook&status=complete",
		"/sessions?q=round", "/sessions?q=nowhere", "/sessions?q=nowhere&status=complete", "/sessions?q=nowhere&status=error", "/sessions?q=nowhere&status=queued",
		"/sessions?q=nowhere&agent=agent-007", "/sessions?q=nowhere&agent=agent-000&status=complete", "/sessions?q=nowhere&cursor=" + middle,
		"/activity", "/activity?cursor=" + deep, "/activity?type=session_complete", "/activity?type=member_role", "/activity?type=session_stale",
		"/activity?actor=scheduler", "/activity?actor=usr_rare", "/activity?actor=nobody", "/activity?agent=agent-007", "/activity?agent=agent-007&type=agent_edited",
		"/activity?session=" + m.middle.String(), "/activity?actor=nobody&cursor=" + deep,
		"/agents", "/agents/agent-000", "/agents/agent-007", "/search?q=agent-007", "/schedules", "/insights", "/workers", "/run",
		sessionURL(m.middle), sessionURL(m.middle) + "?view=timeline", sessionURL(m.middle) + "?view=json",
		"/tasks", "/tasks?state=todo", "/tasks?state=done", "/tasks?state=todo,review", "/tasks?q=nowhere", "/tasks?label=none", "/tasks?assignee=me", "/tasks?assignee=agent-007",
		"/tasks?holder=any", "/tasks?priority=p2", "/tasks?view=board", "/tasks?view=board&label=none", "/tasks?view=next", "/tasks/T-4",
		"/settings/members", "/settings/keys", "/settings/webhooks", "/settings/programs",
	}
}

// verbs are what REST and the command line ask beyond the pages.
func (m *million) verbs() map[string]func(context.Context) error {
	list := func(f api.SessionFilter, p api.Page) func(context.Context) error {
		return func(ctx context.Context) error { _, err := m.engine.Sessions(ctx, m.caller, f, p); return err }
	}
	counts := func(f api.SessionFilter) func(context.Context) error {
		return func(ctx context.Context) error { _, err := m.engine.SessionCounts(ctx, m.caller, f); return err }
	}
	half := api.Time{Time: time.Now().Add(-time.Duration(m.n) * 15 / 2 * time.Second)}
	return map[string]func(context.Context) error{
		"list 200":            list(api.SessionFilter{}, api.Page{Limit: 200}),
		"list since":          list(api.SessionFilter{Since: half}, api.Page{}),
		"list since, nothing": list(api.SessionFilter{Since: api.Time{Time: time.Now().Add(time.Hour)}}, api.Page{}),
		"list since, text":    list(api.SessionFilter{Since: half, Query: "nowhere"}, api.Page{}),
		"list of a thread":    list(api.SessionFilter{ThreadID: api.ThreadID(m.middle)}, api.Page{}),
		"list of retries":     list(api.SessionFilter{RetryOf: m.middle}, api.Page{}),
		"counts":              counts(api.SessionFilter{}),
		"counts of an agent":  counts(api.SessionFilter{Agent: "agent-000"}),
		"counts since":        counts(api.SessionFilter{Since: half}),
		"counts of a text":    counts(api.SessionFilter{Query: "nowhere"}),
		"counts of a trigger": counts(api.SessionFilter{Trigger: api.ByWebhook}),
		"counts of a thread":  counts(api.SessionFilter{ThreadID: api.ThreadID(m.middle)}),
		"audit since": func(ctx context.Context) error {
			_, err := m.engine.Audit(ctx, m.caller, api.AuditFilter{Since: half}, api.Page{Limit: 200})
			return err
		},
		"audit until": func(ctx context.Context) error {
			_, err := m.engine.Audit(ctx, m.caller, api.AuditFilter{Until: half}, api.Page{})
			return err
		},
		"events of the middle": func(ctx context.Context) error {
			_, err := m.engine.SessionEvents(ctx, m.caller, m.middle, api.Page{})
			return err
		},
		"counts of tasks": func(ctx context.Context) error { _, err := m.engine.TaskCounts(ctx, m.caller); return err },
	}
}

// asked is what can be measured: a page or a verb.
func (m *million) asked() (names []string, ask map[string]func() error) {
	ask = map[string]func() error{}
	for _, path := range m.paths() {
		names = append(names, path)
		ask[path] = func() error {
			res := httptest.NewRecorder()
			m.handler.ServeHTTP(res, httptest.NewRequest(http.MethodGet, path, nil))
			if res.Code != http.StatusOK {
				return fmt.Errorf("status %d", res.Code)
			}
			return nil
		}
	}
	verbs := m.verbs()
	var more []string
	for name, do := range verbs {
		more = append(more, name)
		ask[name] = func() error { return do(context.Background()) }
	}
	slices.Sort(more)
	return append(names, more...), ask
}

func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)-1, int(float64(len(all))*p))]
}

// write makes about 200 durable writes a second until ctx ends, and returns how long each took.
func (m *million) write(ctx context.Context, b *testing.B) (took []time.Duration) {
	const each = 5 * time.Millisecond
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(each)
	defer tick.Stop()
	prompt := "x"
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return took
		case <-tick.C:
		}
		m.next++
		agent := fmt.Sprintf("agent-%03d", m.next%millionAgents)
		wg.Go(func() {
			began := time.Now()
			if _, _, err := m.engine.CreateSession(context.Background(), m.caller, agent, api.SessionInput{Prompt: &prompt}, engine.Idempotency{}); err != nil {
				b.Error(err)
			}
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
		})
	}
}

// BenchmarkMillion prints for every page and filter how long the coordinator takes at a million
// sessions and four million events, alone and beside 200 writes a second, and what the reads
// do to the writes. The bar is 150 ms of processor time at the 99th percentile, and no page
// that isn't 200. With -short there are twenty thousand sessions. STINT_BENCH_FILE names a file that is
// filled once and used again.
func BenchmarkMillion(b *testing.B) {
	n, rounds := 1_000_000, 100
	if testing.Short() {
		n, rounds = 20_000, 10
	}
	for b.Loop() {
		m := newMillion(b, n)
		fmt.Printf("%d sessions, %d events, %s\n", m.n, m.events, m.started(b))
		names, ask := m.asked()
		cpu, beside := map[string][]time.Duration{}, map[string][]time.Duration{}
		wall := map[string][]time.Duration{}
		for _, name := range names {
			for range rounds {
				before, began := processCPU(), time.Now()
				if err := ask[name](); err != nil {
					b.Errorf("%s: %v", name, err)
					break
				}
				wall[name] = append(wall[name], time.Since(began))
				cpu[name] = append(cpu[name], processCPU()-before)
			}
		}
		alone, stop := context.WithTimeout(context.Background(), time.Duration(rounds)*100*time.Millisecond)
		quiet := m.write(alone, b)
		stop()
		busy, stop := context.WithCancel(context.Background())
		var loaded []time.Duration
		var writers sync.WaitGroup
		writers.Go(func() { loaded = m.write(busy, b) })
		for range max(rounds/4, 1) {
			for _, name := range names {
				began := time.Now()
				if err := ask[name](); err != nil {
					b.Errorf("%s beside writes: %v", name, err)
				}
				beside[name] = append(beside[name], time.Since(began))
			}
		}
		stop()
		writers.Wait()
		var out strings.Builder
		fmt.Fprintf(&out, "\n%-64s %9s %9s %9s %9s %9s %9s\n", "", "cpu p50", "cpu p99", "p50", "p99", "p50 beside", "p99")
		for _, name := range names {
			fmt.Fprintf(&out, "%-64s", name)
			for _, all := range [][]time.Duration{cpu[name], wall[name], beside[name]} {
				fmt.Fprintf(&out, " %8.1f  %8.1f ", ms(percentile(all, 0.5)), ms(percentile(all, 0.99)))
			}
			out.WriteString("\n")
			if p := percentile(cpu[name], 0.99); p > 150*time.Millisecond {
				fmt.Fprintf(&out, "  ^ over the bar\n")
			}
		}
		fmt.Print(out.String())
		b.ReportMetric(ms(percentile(quiet, 0.99)), "ms-write-p99-alone")
		b.ReportMetric(ms(percentile(loaded, 0.99)), "ms-write-p99-beside")
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// started measures from the opening of the file to the first page.
func (m *million) started(b *testing.B) string {
	b.Helper()
	if err := m.store.Close(); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	m.open(b)
	if err := m.engine.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	info, err := os.Stat(m.path)
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	return fmt.Sprintf("%d MB, ready after %.0f ms", info.Size()>>20, ms(took))
}
