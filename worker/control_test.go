package worker

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/workertest"
)

func (w *fixture) signal(k api.Worker, kind api.SignalKind) api.SignalID {
	w.Helper()
	got, err := w.client.SignalWorker(w.Context(), k.AgentID, k.ID, kind)
	w.must(err)
	return got.Worker.PendingSignal.ID
}

// untilWorker waits for a worker's record to be as wanted.
func (w *fixture) untilWorker(k api.Worker, what string, wanted func(api.Worker) bool) (out api.Worker) {
	w.Helper()
	w.eventually("the worker is "+what, func() bool {
		got, err := w.client.Worker(w.Context(), k.AgentID, k.ID)
		w.must(err)
		out = got
		return wanted(got)
	})
	return out
}

func acknowledged(k api.Worker) bool { return k.PendingSignal == nil }

func stopped(k api.Worker) bool {
	return acknowledged(k) && k.State == api.Offline && k.DesiredState == api.DesiredStopped
}

func TestSignal_PausedWorkerClaimsNothingAndLetsItsSessionRun(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	file := filepath.Join(t.TempDir(), "go")
	a := w.agentWith("pausable", func(in *api.AgentInput) { in.MaxConcurrent = 2 }, "sh", "-c", "echo on; while ! [ -e "+file+" ]; do sleep 0.02; done")
	first := w.trigger(a, "")
	w.eventually("it runs", func() bool { return w.text(first, "stdout") != "" })
	k := w.onlyWorker(a.Slug, 0)
	w.signal(k, api.SignalPause)
	w.untilWorker(k, "paused", acknowledged)
	second := w.trigger(a, "")
	touch(t, file)
	w.untilStatus(first, api.Complete)
	s, err := w.client.Session(t.Context(), second)
	w.must(err)
	if s.Status != api.Queued || s.WaitingFor == nil || s.WaitingFor.Code != "worker_paused" {
		t.Errorf("the second session is %s and waits for %+v", s.Status, s.WaitingFor)
	}
	w.signal(k, api.SignalResume)
	w.untilStatus(second, api.Complete)
	w.untilWorker(k, "resumed", acknowledged)
}

func TestSignal_StoppedWorkerGivesBackSaysSoAndEndsWell(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Agents = []string{"busy"}
	file := filepath.Join(t.TempDir(), "stamps")
	a := w.agent("busy", workertest.Agent(t, "stamp", file)...)
	id := w.trigger(a, "")
	g := w.start(o)
	w.eventually("the agent runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
	k := w.onlyWorker(a.Slug, 0)
	w.signal(k, api.SignalStop)
	if code := g.wait(); code != ExitOK || g.err != nil {
		t.Errorf("exit code %d, %v", code, g.err)
	}
	w.quiet(file)
	s := w.untilStatus(id, api.Queued)
	if s.Lapses != 0 || s.Fence != 1 {
		t.Errorf("lapses %d, fence %d", s.Lapses, s.Fence)
	}
	if got := w.untilWorker(k, "stopped", acknowledged); !stopped(got) {
		t.Errorf("after the stop the record is %+v", got)
	}
	w.untilDrained(a)
	// Started again, it runs: the registration clears the stop.
	w.start(o)
	w.eventually("it runs again", func() bool { return len(workertest.Lives(t, file)) == 2 })
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
	workertest.Apart(t, workertest.Lives(t, file))
}

func TestSignal_StoppedWorkerHandsInWhatIsDone(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Agents = []string{"done"}
	a := w.agent("done", "echo", "result")
	// For a while the finished work can't be reported.
	w.proxy.Rule(func(call string, n int) workertest.Fault {
		return workertest.Fault{Drop: call == "POST complete" && n < 4}
	})
	g := w.start(o)
	id := w.trigger(a, "")
	w.eventually("the result is on its way", func() bool { return w.proxy.Count("POST complete") > 0 })
	w.signal(w.onlyWorker(a.Slug, 0), api.SignalStop)
	if code := g.wait(); code != ExitOK {
		t.Errorf("exit code %d, %v", code, g.err)
	}
	if s := w.untilStatus(id, api.Complete); !strings.Contains(s.Result, "result") {
		t.Errorf("result %q", s.Result)
	}
}

func TestSignal_OneStoppedRecordLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	one, two := w.agent("one", "true"), w.agent("two", "true")
	g := w.start(w.options())
	w.untilStatus(w.trigger(one, ""), api.Complete)
	w.untilStatus(w.trigger(two, ""), api.Complete)
	k := w.onlyWorker("one", 0)
	w.signal(k, api.SignalStop)
	w.untilWorker(k, "stopped", stopped)
	w.untilStatus(w.trigger(two, ""), api.Complete)
	waits := w.trigger(one, "")
	// It is asked to start again, and the process that serves it learns so.
	w.signal(k, api.SignalRestart)
	w.untilStatus(waits, api.Complete)
	if got := w.untilWorker(k, "started", acknowledged); got.State != api.Online || got.DesiredState != api.DesiredRunning {
		t.Errorf("after the start the record is %+v", got)
	}
	for _, slug := range []string{"one", "two"} {
		w.signal(w.onlyWorker(slug, 0), api.SignalStop)
	}
	if code := g.wait(); code != ExitOK {
		t.Errorf("with all records stopped the exit code is %d, %v", code, g.err)
	}
}

func TestSignal_RestartEndsTheProcessOfOneRecordWithItsCode(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Agents = []string{"again"}
	file := filepath.Join(t.TempDir(), "stamps")
	a := w.agent("again", workertest.Agent(t, "stamp", file)...)
	id := w.trigger(a, "")
	g := w.start(o)
	w.eventually("the agent runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
	k := w.onlyWorker(a.Slug, 0)
	w.signal(k, api.SignalRestart)
	if code := g.wait(); code != ExitRestart || !errors.Is(g.err, ErrRestart) {
		t.Errorf("exit code %d, %v", code, g.err)
	}
	w.quiet(file)
	w.untilStatus(id, api.Queued)
	w.untilWorker(k, "told", acknowledged)
	w.start(o)
	w.eventually("it runs again", func() bool { return len(workertest.Lives(t, file)) == 2 })
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
}

func TestSignal_RestartOfOneOfSeveralConcernsThatOne(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	files := map[string]string{}
	for _, slug := range []string{"one", "two"} {
		files[slug] = filepath.Join(t.TempDir(), "stamps")
		w.trigger(w.agent(slug, workertest.Agent(t, "stamp", files[slug])...), "")
	}
	o := w.options()
	o.Embedded = true
	w.start(o)
	for _, file := range files {
		w.eventually("the agent runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
	}
	k := w.onlyWorker("one", 0)
	w.signal(k, api.SignalRestart)
	w.eventually("it runs again", func() bool { return len(workertest.Lives(t, files["one"])) == 2 })
	w.untilWorker(k, "restarted", acknowledged)
	if lives := workertest.Lives(t, files["two"]); len(lives) != 1 {
		t.Errorf("the other agent was started %d times", len(lives))
	}
	workertest.Apart(t, workertest.Lives(t, files["one"]))
}

func TestSignal_NewerOneReplacesAStopUnderWay(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Agents = []string{"waver"}
	// The record waits for the report of what it gave back.
	w.proxy.Rule(func(call string, _ int) workertest.Fault { return workertest.Fault{Drop: call == "POST release"} })
	file := filepath.Join(t.TempDir(), "stamps")
	a := w.agent("waver", workertest.Agent(t, "stamp", file)...)
	id := w.trigger(a, "")
	g := w.start(o)
	w.eventually("the agent runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
	k := w.onlyWorker(a.Slug, 0)
	w.signal(k, api.SignalStop)
	w.eventually("it is giving back", func() bool { return w.proxy.Count("POST release") > 0 })
	w.signal(k, api.SignalResume)
	w.untilWorker(k, "resumed", acknowledged)
	w.proxy.Rule(nil)
	w.eventually("it runs again", func() bool { return len(workertest.Lives(t, file)) == 2 })
	select {
	case <-g.done:
		t.Errorf("it ended with %d, %v", g.code, g.err)
	default:
	}
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
}

func TestSignal_LostAnswersOfTheAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, kind := range []api.SignalKind{api.SignalStop, api.SignalPause, api.SignalRestart} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			o := w.options()
			o.Agents = []string{"lossy"}
			a := w.agent("lossy", "true")
			w.proxy.Rule(func(call string, n int) workertest.Fault {
				return workertest.Fault{LoseAnswer: call == "POST ack-control-signal" && n < 2}
			})
			g := w.start(o)
			w.untilStatus(w.trigger(a, ""), api.Complete)
			k := w.onlyWorker(a.Slug, 0)
			w.signal(k, kind)
			w.untilWorker(k, "told", acknowledged)
			want := map[api.SignalKind]int{api.SignalStop: ExitOK, api.SignalRestart: ExitRestart}
			if code, ends := want[kind]; ends {
				if got := g.wait(); got != code {
					t.Errorf("exit code %d, %v", got, g.err)
				}
				return
			}
			w.signal(k, api.SignalResume)
			w.untilStatus(w.trigger(a, ""), api.Complete)
		})
	}
}

func TestSignal_IsLearntOfWithoutTheLiveEvents(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.proxy.Rule(func(call string, _ int) workertest.Fault { return workertest.Fault{Drop: call == "GET events"} })
	a := w.agent("deafish", "true")
	w.start(w.options())
	w.untilStatus(w.trigger(a, ""), api.Complete)
	k := w.onlyWorker(a.Slug, 0)
	w.signal(k, api.SignalPause)
	w.untilWorker(k, "paused", acknowledged)
}

func TestEnd_RecordDeletedWhileAwayIsNotRecreatedUnasked(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agent("away", "true")
	g := w.start(w.options())
	w.untilStatus(w.trigger(a, ""), api.Complete)
	k := w.onlyWorker(a.Slug, 0)
	g.end()
	w.must(w.client.DeleteWorker(t.Context(), a.ID, k.ID))
	again := w.start(w.options())
	if code := again.wait(); code != ExitNoRecord || !errors.Is(again.err, ErrNoRecord) {
		t.Errorf("exit code %d, %v", code, again.err)
	}
	o := w.options()
	o.Register = true
	w.start(o)
	w.untilStatus(w.trigger(a, ""), api.Complete)
	w.onlyWorker(a.Slug, k.ID)
}

func TestEnd_RecordDeletedInThisLifeStaysAway(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, other := w.agent("gone", "true"), w.agent("here", "true")
	o := w.options()
	o.Register, o.Embedded = true, true
	w.start(o)
	w.untilStatus(w.trigger(a, ""), api.Complete)
	k := w.onlyWorker(a.Slug, 0)
	w.must(w.client.DeleteWorker(t.Context(), a.ID, k.ID))
	beats := w.proxy.Count("GET agents")
	w.eventually("the agents are looked at again", func() bool { return w.proxy.Count("GET agents") > beats+3 })
	w.untilStatus(w.trigger(other, ""), api.Complete)
	list, err := w.client.AgentWorkers(t.Context(), a.Slug, api.Page{})
	w.must(err)
	if len(list.Items) != 0 {
		t.Errorf("it was made anew in the same life: %+v", list.Items)
	}
}

func TestWorker_RenamedRecordIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agent("named", "true")
	g := w.start(w.options())
	w.untilStatus(w.trigger(a, ""), api.Complete)
	k := w.onlyWorker(a.Slug, 0)
	_, err := w.client.EditWorker(t.Context(), a.ID, k.ID, map[string]any{"name": "desk", "maxConcurrent": 1})
	w.must(err)
	g.end()
	w.start(w.options())
	w.untilStatus(w.trigger(a, ""), api.Complete)
	if got := w.onlyWorker(a.Slug, 0); got.ID != k.ID || got.Name != "desk" || got.MaxConcurrent != 1 {
		t.Errorf("after a new start the record is %+v", got)
	}
}
