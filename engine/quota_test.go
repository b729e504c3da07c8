package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// As the database approaches its maximum size, people are warned; at the maximum nothing new
// is started, and what runs still ends with its result.
func TestQuota_WarnsAndThenStartsNothing(t *testing.T) {
	var log bytes.Buffer
	w := enginetest.New(t, enginetest.With(func(c *engine.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }))
	a := w.Agent(func(in *api.AgentInput) { in.Schedule = "* * * * *" })
	b := w.Agent()
	k := w.Worker(b)
	running := k.Claim(w.New(b).ID)
	measure := func() {
		t.Helper()
		if err := w.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	limit := func(most int64) {
		w.Reconfigure(func(c *engine.Config) { c.MaxData = most })
		measure()
	}
	w.Restart() // which leaves little in the log
	used, err := w.Store.Size(t.Context())
	if err != nil || used < 100<<10 || used > 20<<20 {
		t.Fatalf("an empty database takes %d bytes (%v)", used, err)
	}
	limit(2 * used)
	if w.Low() != "" {
		t.Errorf("half full it says %q", w.Low())
	}
	limit(used + used/20)
	measure()
	w.New(b)
	if low := w.Low(); !strings.Contains(low, "STINT_DATA_MIB") || !strings.Contains(low, "once it is full") || strings.Count(log.String(), "STINT_DATA_MIB") != 1 {
		t.Errorf("nearly full it says %q, and in the log\n%s", low, log.String())
	}
	limit(used)
	if home, err := w.Home(context.Background(), w.Owner, time.UTC); err != nil || !strings.Contains(home.Low, "New sessions are refused;") {
		t.Errorf("the home page says %q (%v)", home.Low, err)
	}
	_, _, err = w.CreateSession(t.Context(), w.Owner, b.Slug, api.SessionInput{}, engine.Idempotency{})
	if api.CodeOf(err) != api.CodeUnavailable || !strings.Contains(err.Error(), "STINT_DATA_MIB") {
		t.Errorf("a new session is answered %v", err)
	}
	w.Advance(time.Minute)
	if got := w.Verdicts(a.ID); len(got) == 0 || got[0].Verdict != api.SlotSkipped || !strings.Contains(got[0].Reason, "STINT_DATA_MIB") {
		t.Errorf("the slot is decided as %+v", got)
	}
	if _, err := k.Complete(running, "the result"); err != nil || w.Get(running.SessionID).Result != "the result" {
		t.Errorf("what ran ends with %v", err)
	}
}
