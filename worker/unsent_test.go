package worker

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/worker/workertest"
)

// What a worker can't hand in is known to the coordinator, and for how long; once it is handed
// in there is nothing.
func TestBeat_SaysWhatIsUnsent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.proxy.Rule(func(call string, _ int) workertest.Fault {
		if call == "POST items" || call == "POST complete" {
			return workertest.Fault{Status: 502, Body: "<h1>Bad gateway</h1>"}
		}
		return workertest.Fault{}
	})
	w.start(w.options())
	id := w.trigger(w.agent("talks", "sh", "-c", "echo one; echo two"), "")
	gauges := func() engine.Gauges {
		t.Helper()
		g, err := w.engine.Gauges(t.Context())
		w.must(err)
		return g
	}
	w.eventually("the coordinator knows", func() bool { g := gauges(); return g.Unsent >= 2 && g.UnsentFor > 2*time.Second })
	w.proxy.Rule(nil)
	w.untilStatus(id, api.Complete)
	w.eventually("it is over", func() bool { g := gauges(); return g.Unsent == 0 && g.UnsentFor == 0 })
}
