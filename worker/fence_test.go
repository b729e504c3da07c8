package worker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/worker/proc"
	"stint/worker/workertest"
)

// A worker that can't keep its lease has ended its agent, even one that ignores signals, when
// the lease ends, whatever exactly gets lost on the way (contract 4.7).
func TestFence_NothingRunsWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	lifeline := func(call string) bool { return call == "POST renew" || call == "POST heartbeat" }
	for name, unreachable := range map[string]func(w *fixture){
		"the network is cut":              func(w *fixture) { w.proxy.Cut() },
		"requests are lost":               func(w *fixture) { w.proxy.Rule(faultOn(lifeline, workertest.Fault{Drop: true})) },
		"answers are lost":                func(w *fixture) { w.proxy.Rule(faultOn(lifeline, workertest.Fault{LoseAnswer: true})) },
		"answers take longer than a call": func(w *fixture) { w.proxy.Rule(faultOn(lifeline, workertest.Fault{Delay: 5 * time.Second})) },
		"a proxy answers": func(w *fixture) {
			w.proxy.Rule(faultOn(lifeline, workertest.Fault{Status: 502, Body: "<h1>Bad gateway</h1>"}))
		},
		"it is overloaded": func(w *fixture) {
			w.proxy.Rule(faultOn(lifeline, workertest.Fault{Status: 503, Body: `{"code":"unavailable","detail":"later","retryAfterSeconds":60}`}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.start(w.options())
			_, id, file := w.stampingWith(brief, "fenced", "deaf")
			unreachable(w)
			end := w.leaseEnd(id)
			// Where only the lifeline is cut, the session is claimed and run again, in a new
			// process.
			w.untilDead(workertest.Lives(t, file)[0])
			if life := workertest.Lives(t, file)[0]; life.Last >= end {
				t.Errorf("the agent still ran %v after its lease", life.Last.Sub(end))
			}
		})
	}
}

func faultOn(which func(call string) bool, f workertest.Fault) func(string, int) workertest.Fault {
	return func(call string, _ int) workertest.Fault {
		if which(call) {
			return f
		}
		return workertest.Fault{}
	}
}

// leaseEnd waits until a session no longer runs and returns when its lease ended, or would
// have.
func (w *fixture) leaseEnd(id api.SessionID) (end proc.BootTime) {
	w.Helper()
	w.eventually("the session is taken or given back", func() bool {
		s, err := w.client.Session(w.Context(), id)
		w.must(err)
		if s.Status.Running() {
			// Two clocks of one machine, read together; the text is cut to the millisecond.
			left := time.Until(s.LeaseExpiresAt.Time)
			end = proc.BootNow().Add(left + time.Millisecond)
		}
		return !s.Status.Running()
	})
	return end
}

// Random histories of two workers that share one session: networks that fail and recover,
// workers that are stopped and started, signals, and never two agents at once.
// STINT_TEST_LIVES says how many histories, of six faults each; 170 are a thousand faults.
func TestFence_TwoWorkersNeverRunOneSessionAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range livesOf(t, 6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			d := rand.New(rand.NewPCG(seed, 11))
			w := newFixture(t)
			file := filepath.Join(t.TempDir(), "stamps")
			a := w.agentWith("shared", func(in *api.AgentInput) { in.LeaseSeconds, in.MaxLapses = 3, 100 },
				workertest.Agent(t, []string{"stamp", "deaf"}[d.IntN(2)], file)...)
			id := w.trigger(a, "")
			far := w.options()
			far.Embedded = true // a restart is in place
			near := w.options()
			near.URL, near.StateDir, near.Name = w.direct, filepath.Join(w.dir, "second"), "w2"
			running := []*guest{w.start(far), w.start(near)}
			w.eventually("an agent runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
			for range 6 {
				switch d.IntN(5) {
				case 0:
					w.proxy.Cut()
				case 1:
					w.proxy.Mend()
				case 2:
					call := []string{"POST renew", "POST heartbeat", "POST claim-next", "POST release"}[d.IntN(4)]
					w.proxy.Rule(faultOn(func(c string) bool { return c == call }, workertest.Fault{LoseAnswer: d.IntN(2) == 0, Delay: time.Duration(d.IntN(3)) * time.Second}))
				case 3:
					which := d.IntN(2)
					running[which].end()
					running[which] = w.start([]Options{far, near}[which])
				case 4:
					w.restartAny(a, d)
				}
				time.Sleep(time.Duration(200+d.IntN(1500)) * time.Millisecond) // the lengths of the faults are what is tried
			}
			w.proxy.Rule(nil)
			w.proxy.Mend()
			_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
			w.must(err)
			w.untilDrained(a)
			w.quiet(file)
			lives := workertest.Lives(t, file)
			workertest.Apart(t, lives)
			t.Logf("%d agents ran, one after the other", len(lives))
		})
	}
}

// livesOf is how many histories to try.
func livesOf(t *testing.T, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv("STINT_TEST_LIVES")
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatalf("STINT_TEST_LIVES: %v", err)
	}
	return n
}

// The same with a worker process that is stopped for longer than its lease, or shorter, and
// killed with -9: its guardian keeps the deadline in its place.
func TestFence_AStoppedOrKilledWorkerNeverRunsBesideAnother(t *testing.T) {
	t.Parallel()
	for seed := range livesOf(t, 2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			d := rand.New(rand.NewPCG(seed, 12))
			w := newFixture(t)
			file := filepath.Join(t.TempDir(), "stamps")
			a := w.agentWith("shared", func(in *api.AgentInput) { in.LeaseSeconds, in.MaxLapses = 3, 100 },
				workertest.Agent(t, []string{"stamp", "deaf"}[d.IntN(2)], file)...)
			id := w.trigger(a, "")
			born := func() *child {
				return w.spawn(func(c *childConfig) {
					c.URL, c.StateDir, c.Name = w.direct, filepath.Join(w.dir, "second"), "w2"
				})
			}
			w.must(os.MkdirAll(filepath.Join(w.dir, "second", "setup"), 0o700))
			near := born()
			w.eventually("an agent runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
			w.start(w.options())
			for range 6 {
				switch d.IntN(3) {
				case 0:
					near.signal(syscall.SIGKILL)
					near.wait()
					time.Sleep(time.Duration(d.IntN(4000)) * time.Millisecond) // the lengths of the faults are what is tried
					near = born()
				case 1:
					near.signal(syscall.SIGSTOP)
					time.Sleep(time.Duration(500+d.IntN(4500)) * time.Millisecond)
					near.signal(syscall.SIGCONT)
				case 2:
					near.signal(syscall.SIGTERM)
					near.wait()
					near = born()
				}
				time.Sleep(time.Duration(200+d.IntN(1500)) * time.Millisecond)
			}
			_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
			w.must(err)
			w.untilDrained(a)
			w.quiet(file)
			lives := workertest.Lives(t, file)
			workertest.Apart(t, lives)
			t.Logf("%d agents ran, one after the other", len(lives))
		})
	}
}

// restartAny asks one of an agent's workers to restart.
func (w *fixture) restartAny(a api.Agent, d *rand.Rand) {
	w.Helper()
	list, err := w.client.AgentWorkers(w.Context(), a.Slug, api.Page{})
	w.must(err)
	if n := len(list.Items); n > 0 {
		w.signal(list.Items[d.IntN(n)], api.SignalRestart)
	}
}
