package worker

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/worker/proc"
)

// A worker that idled for longer than a lease minus its staging keeps its first claim: it asks
// how long the lease lasts before it relies on it (contract 4.4).
func TestClaim_AfterAnIdlePeriodIsKept(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agentWith("idler", brief, "true")
	w.start(w.options())
	w.eventually("it holds a request", func() bool { return w.proxy.Count("POST claim-next") > 0 })
	time.Sleep(3500 * time.Millisecond) // the length of the idling is what is tested
	s := w.untilStatus(w.trigger(a, ""), api.Complete)
	if s.Fence != 1 || s.Releases != 0 {
		t.Errorf("it took %d claims, %d were given back", s.Fence, s.Releases)
	}
}

// A session that is given back continues with the tries it has left.
func TestTries_AreNotResetByEachClaim(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	runs := filepath.Join(t.TempDir(), "runs")
	o := w.options()
	o.MaxRetryAttempts, o.MaxRetryBackoff = 1, time.Millisecond
	g := w.start(o)
	a := w.agent("failing", "sh", "-c", fmt.Sprintf(`echo x >>%s; [ $(wc -l <%s) != 2 ] && exit 1; echo waits; exec sleep 100`, runs, runs))
	id := w.trigger(a, "")
	w.eventually("its second try waits", func() bool { return w.text(id, "stdout") != "" })
	g.end()
	w.until(id, "given back", func(s api.Session) bool { return s.Status == api.Queued })
	w.start(o)
	s := w.untilStatus(id, api.Failed)
	if n := countLines(t, runs); n != 3 || s.Tries != 1 {
		t.Errorf("it ran %d times with %d failed tries", n, s.Tries)
	}
}

// A usage limit parks the session until it ends; a limit whose end isn't named, or has just
// passed, parks it for a time that grows.
func TestLimitedUntil(t *testing.T) {
	now := time.Date(2026, 11, 28, 15, 20, 0, 0, time.UTC)
	for _, tt := range []struct {
		named  time.Time
		before int64
		want   time.Duration
	}{
		{now.Add(time.Hour), 0, time.Hour},
		{now.Add(-20 * time.Minute), 0, 15 * time.Second},
		{now.Add(-20 * time.Minute), 3, 2 * time.Minute},
		{now.Add(time.Second), 2, time.Minute},
		{time.Time{}, 0, 5 * time.Minute},
		{time.Time{}, 2, 20 * time.Minute},
		{time.Time{}, 15, time.Hour},
	} {
		if got := limitedUntil(tt.named, now, tt.before).Sub(now); got != tt.want {
			t.Errorf("named %v after %d: parked for %v, want %v", tt.named, tt.before, got, tt.want)
		}
	}
}

// A worker that the coordinator refuses because of its settings doesn't ask for ever: it ends
// and says why, or serves the agents that it does fit until the others change.
func TestRegister_RefusedSettingsEndTheWorker(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agentWith("hasty", brief, "true")
	o := w.options()
	o.Stages = proc.Stages{Interrupt: time.Second, Term: time.Second, Kill: time.Second}
	g := w.start(o)
	if code := g.wait(); code != ExitFailed || !errors.Is(g.err, ErrUnfit) || !strings.Contains(g.err.Error(), "at least 6s") {
		t.Errorf("it ended with %d: %v", code, g.err)
	}
	fits := w.agentWith("calm", nil, "true")
	w.start(o)
	w.untilStatus(w.trigger(fits, ""), api.Complete)
	id := w.trigger(a, "")
	_, err := w.client.EditAgent(t.Context(), a.Slug, map[string]any{"leaseSeconds": 10})
	w.must(err)
	w.untilStatus(id, api.Complete)
}
