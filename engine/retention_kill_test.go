package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
)

// prunedFile names to a child of the test the file that it prunes, and prunedAt the time.
const (
	prunedFile = "STINT_TEST_PRUNED_FILE"
	prunedAt   = "STINT_TEST_PRUNED_AT"
)

// TestPrune_Child is the process that TestPrune_KilledAnywhereItLosesNothingElse kills. It says
// after each step that it took it.
func TestPrune_Child(t *testing.T) {
	path := os.Getenv(prunedFile)
	if path == "" {
		return
	}
	at, err := time.Parse(time.RFC3339, os.Getenv(prunedAt))
	if err != nil {
		t.Fatal(err)
	}
	store, err := db.Open(t.Context(), db.Options{Path: path, Clock: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.DefaultConfig()
	cfg.Log = slog.New(slog.DiscardHandler)
	e := engine.New(store, cfg)
	for {
		next, err := e.Prune(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("step")
		if next.IsZero() {
			fmt.Println("over")
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// pruneUntil runs the child and kills it after so many steps; it reports whether the round was
// over before.
func pruneUntil(t *testing.T, path string, at time.Time, steps int) (over bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPrune_Child$")
	c.Env = append(os.Environ(), prunedFile+"="+path, prunedAt+"="+at.Format(time.RFC3339))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	taken := 0
	for lines := bufio.NewScanner(out); lines.Scan() && !over; {
		if over = lines.Text() == "over"; lines.Text() == "step" {
			taken++
		}
		if taken == steps {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	_ = c.Wait() // it was killed
	if !over && taken < steps {
		t.Fatalf("it ended after %d steps, not over", taken)
	}
	return over
}

// A round that is killed at any step, half of a session removed or not, leaves everything else as
// it was, and the next one goes on.
func TestPrune_KilledAnywhereItLosesNothingElse(t *testing.T) {
	w := enginetest.Open(t)
	a := w.Agent()
	k := w.Worker(a)
	var kept, old []api.SessionID
	for i := range 60 {
		s := w.New(a)
		c := k.Claim(s.ID)
		for range 1 + i%3*100 { // some take several steps
			prints(t, w, k, c, "a line\n")
		}
		must[api.Finished](t)(k.Complete(c, "done"))
		if i%10 == 9 {
			kept = append(kept, s.ID)
			must[api.Changed](t)(w.KeepSession(t.Context(), w.Owner, s.ID, true))
		} else {
			old = append(old, s.ID)
		}
	}
	w.Jump(100 * day)
	k = w.Worker(a)
	for range 5 {
		kept = append(kept, ran(t, w, k, a))
	}
	w.Jump(85 * day)
	w.Turn()
	rowsOf := func() (all []string) {
		for _, id := range kept[:6] {
			for _, table := range []string{"claims", "events", "items", "outputs", "activities"} {
				all = append(all, w.Tell("SELECT '"+table+"' || ' ' || COUNT(*) FROM "+table+" WHERE session_id = ?", int64(id))...)
			}
			all = append(all, w.Tell("SELECT status || result || output_removed_at || events_removed_at FROM sessions WHERE id = ?", int64(id))...)
		}
		return append(all, w.Tell("SELECT COUNT(*) FROM ledger UNION ALL SELECT COUNT(*) FROM agents UNION ALL SELECT COUNT(*) FROM events WHERE type = 'agent_created'")...)
	}
	was, at := rowsOf(), w.Clock.Now()
	w.Close()
	kills := 0
	for n := 0; !pruneUntil(t, w.Path, at, 1+n%3); n++ {
		kills++
		w.Restart()
		w.Check()
		if now := rowsOf(); !slices.Equal(now, was) {
			t.Fatalf("after kill %d: %v, not %v", kills, now, was)
		}
		w.Close()
		if kills > 500 {
			t.Fatal("it never ends: a round begins anew after each kill, and gets no further")
		}
		if kills == 25 {
			if !pruneUntil(t, w.Path, at, 10_000) {
				t.Fatal("it isn't over")
			}
			break
		}
	}
	w.Restart()
	w.Check()
	if now := rowsOf(); !slices.Equal(now, was) || kills < 5 {
		t.Errorf("after %d kills: %v, not %v", kills, now, was)
	}
	for _, id := range old {
		if code := codeOf(w.Session(t.Context(), w.Owner, id)); code != api.CodeGone {
			t.Errorf("session %s answers %q", id, code)
		}
	}
	for _, id := range kept {
		if _, err := w.Session(t.Context(), w.Owner, id); err != nil {
			t.Error(err)
		}
	}
	if left := strings.Join(w.Tell("SELECT COUNT(*) FROM items"), ""); left == "0" {
		t.Error("the output of what is kept is gone")
	}
}
