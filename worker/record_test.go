package worker

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
)

// A worker that begins while the coordinator still counts with one of its name, which ended
// without a goodbye, says that once for all agents and takes its place.
func TestRecord_SaysOnceThatAnotherWorkerIsInTheWay(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	agents := []api.Agent{w.agent("one", "true"), w.agent("two", "true"), w.agent("three", "true")}
	before := w.start(w.options())
	for _, a := range agents {
		w.untilStatus(w.trigger(a, ""), api.Complete)
		w.untilDrained(a)
	}
	w.proxy.Cut()
	before.end()
	w.proxy.Mend()
	var log strings.Builder
	o := w.options()
	o.StateDir, o.Log = filepath.Join(w.dir, "another"), slog.New(slog.NewTextHandler(&locked{to: &log}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	after := w.start(o)
	for _, a := range agents {
		w.untilStatus(w.trigger(a, ""), api.Complete)
	}
	after.end()
	if lines := strings.TrimSpace(log.String()); strings.Count(lines, "\n") != 0 || !strings.Contains(lines, "another worker of this name") || !strings.Contains(lines, "name=w1") {
		t.Errorf("it warned:\n%s", lines)
	}
}
