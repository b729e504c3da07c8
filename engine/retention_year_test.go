package engine_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// aDaysSessions stand for the 60,000 of a busy machine; STINT_RETENTION_SESSIONS sets another
// number.
func aDaysSessions(t *testing.T) int {
	t.Helper()
	text := os.Getenv("STINT_RETENTION_SESSIONS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func figure(t *testing.T, w *enginetest.Fixture, query string, args ...any) int {
	t.Helper()
	n, err := strconv.Atoi(w.Tell(query, args...)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// compact is how many pages the content of a fixture's file takes, written anew.
func compact(t *testing.T, w *enginetest.Fixture) int {
	t.Helper()
	raw, err := sql.Open("sqlite", w.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	copied := filepath.Join(t.TempDir(), "compact.db")
	if _, err := raw.ExecContext(t.Context(), "VACUUM INTO ?", copied); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(copied)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size() / 4096)
}

const inUse = `SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count)`

// TestPrune_ADatabaseOfManyDaysStaysWithinItsBound lives through 400 days. What is there then is
// what the limits say, in hardly more pages than that needs; what runs, waits or is kept is among
// it; and each id that is gone says so.
func TestPrune_ADatabaseOfManyDaysStaysWithinItsBound(t *testing.T) {
	const days, text = 400, "the quick brown fox jumps over the lazy dog\n"
	perDay := aDaysSessions(t)
	w := enginetest.New(t, enginetest.With(func(c *engine.Config) {
		c.OfflineAfter = 1000 * day
		c.StaleAfter = 999 * day
		c.MaxLease = 1000 * day
		c.Grace = 0
	}))
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 5 })
	k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 5 })
	kept := ran(t, w, k, a)
	must[api.Changed](t)(w.KeepSession(t.Context(), w.Owner, kept, true))
	waiting := w.New(a, notBefore(w.Now().Add(1000*day))).ID
	running := w.New(a).ID
	long := int64(900 * day / time.Second)
	prints(t, w, k, k.Claim(running, func(in *api.ClaimRequest) { in.LeaseSeconds = &long }), "begun\n")

	var all []api.SessionID
	for range days {
		for range perDay {
			s := w.New(a)
			c := k.Claim(s.ID)
			prints(t, w, k, c, strings.Repeat(text, 50))
			must[api.Finished](t)(k.Complete(c, "done"))
			all = append(all, s.ID)
		}
		w.Jump(day)
		k.Beat()
		prune(t, w)
	}
	for what, c := range map[string]struct {
		query string
		days  int
		more  int
	}{
		"sessions": {"SELECT COUNT(*) FROM sessions", 180, 3},
		"claims":   {"SELECT COUNT(*) FROM claims", 180, 2},
		"outputs":  {"SELECT COUNT(*) FROM outputs", 30, 2},
		"items":    {"SELECT COUNT(DISTINCT session_id) FROM items", 30, 2},
		"events":   {"SELECT COUNT(DISTINCT session_id) FROM events WHERE session_id > 0", 30, 3},
		"figures":  {"SELECT SUM(complete) FROM figures", 400, 3},
	} {
		// What is 180 days old to the second stays until the next round.
		if n, most := figure(t, w, c.query), (c.days+1)*perDay+c.more; n > most || n < most-2*perDay {
			t.Errorf("%s: %d, not %d or a day's less", what, n, most)
		}
	}
	if n := figure(t, w, "SELECT COUNT(*) FROM removed_spans"); n > days {
		t.Errorf("%d rows say what is gone, more than one a day", n)
	}
	used, least := figure(t, w, inUse), compact(t, w)
	t.Logf("%d sessions a day for %d days: %d pages in use, written anew %d, the file has %s", perDay, days, used, least, w.Tell("SELECT page_count FROM pragma_page_count")[0])
	if float64(used) > 1.1*float64(least) {
		t.Errorf("%d pages are in use for what takes %d", used, least)
	}
	for name, id := range map[string]api.SessionID{"kept": kept, "waiting": waiting, "running": running} {
		if s, err := w.Session(t.Context(), w.Owner, id); err != nil || !s.OutputRemovedAt.IsZero() {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	there := map[string]bool{}
	for _, id := range w.Tell("SELECT id FROM sessions") {
		there[id] = true
	}
	for _, id := range all {
		want := api.CodeGone
		if there[strconv.FormatInt(int64(id), 10)] {
			want = ""
		}
		if code := codeOf(w.Session(t.Context(), w.Owner, id)); code != want {
			t.Fatalf("session %s answers %q, not %q", id, code, want)
		}
	}
}

// What was removed is given back to the disk.
func TestPrune_TheFileShrinks(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	line := strings.Repeat("x", 60_000)
	for range 20 {
		s := w.New(a)
		c := k.Claim(s.ID)
		for range 25 {
			prints(t, w, k, c, line)
		}
		must[api.Finished](t)(k.Complete(c, ""))
	}
	pages := func() int { return figure(t, w, "SELECT page_count FROM pragma_page_count") }
	before := pages()
	w.Jump(31 * day)
	steps := prune(t, w)
	must[int64](t)(w.Store.GiveBack(t.Context()))
	if after := pages(); before*4096 < 28<<20 || after > 4500 {
		t.Errorf("the file had %d pages and has %d", before, after)
	}
	if steps < 5 {
		t.Errorf("500 rows went in %d steps", steps)
	}
}
