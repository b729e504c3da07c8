package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/worker/workertest"
)

func TestOutage_ShorterThanTheLeaseIsNotNoticed(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	file := filepath.Join(t.TempDir(), "stamps")
	a := w.agentWith("brief", longer, workertest.Agent(t, "stamp", file, "200")...)
	id := w.trigger(a, "")
	w.eventually("the agent runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
	w.proxy.Cut()
	time.Sleep(1500 * time.Millisecond) // the length of the outage is what is tested
	w.proxy.Mend()
	s := w.untilStatus(id, api.Complete)
	if lives := workertest.Lives(t, file); len(lives) != 1 || !lives[0].Ended || s.Fence != 1 || s.Lapses != 0 {
		t.Errorf("lives %+v, fence %d, lapses %d", lives, s.Fence, s.Lapses)
	}
	if got := w.text(id, "stdout"); got != "stamping\ndone\n" {
		t.Errorf("output %q", got)
	}
}

func TestOutage_LongerThanTheLeaseEndsTheCommandBeforeItCanStartElsewhere(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	_, id, file := w.stampingWith(brief, "long", "deaf")
	w.proxy.Cut()
	direct := w.options()
	direct.URL, direct.StateDir, direct.Name = w.direct, filepath.Join(w.dir, "second"), "w2"
	w.start(direct)
	w.eventually("the session runs elsewhere", func() bool { return len(workertest.Lives(t, file)) >= 2 })
	w.proxy.Mend()
	workertest.Apart(t, workertest.Lives(t, file))
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
}

func TestOutage_ResultIsHandedInAfterIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	file := filepath.Join(t.TempDir(), "go")
	runs := filepath.Join(t.TempDir(), "runs")
	a := w.agentWith("patient", longer,
		"sh", "-c", fmt.Sprintf(`echo $$ >>%s; echo before; while ! [ -e %s ]; do sleep 0.02; done; seq 1 2000; echo after`, runs, file))
	id := w.trigger(a, "")
	w.eventually("it runs", func() bool { return w.text(id, "stdout") != "" })
	w.proxy.Cut()
	touch(t, file)
	w.until(id, "stale", func(s api.Session) bool { return s.Status == api.Stale })
	w.untilGone(runs)
	w.proxy.Mend()
	s := w.untilStatus(id, api.Complete)
	got := w.text(id, "stdout")
	if !strings.HasPrefix(got, "before\n1\n2\n") || !strings.HasSuffix(got, "1999\n2000\nafter\n") || strings.Count(got, "\n") != 2002 {
		t.Errorf("output of %d lines: %.40q … %.40q", strings.Count(got, "\n"), got, got[max(0, len(got)-40):])
	}
	if n := countLines(t, runs); n != 1 || s.Outcome != outcomeSuccess {
		t.Errorf("it ran %d times, outcome %q", n, s.Outcome)
	}
	w.untilDrained(a)
}

func TestOutage_ResultGoesToTheThreadWhenSomebodyElseHasTheSession(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	file := filepath.Join(t.TempDir(), "go")
	a := w.agentWith("taken", longer,
		"sh", "-c", fmt.Sprintf(`echo "fence $STINT_FENCE"; while ! [ -e %s ]; do sleep 0.02; done; echo "result $STINT_FENCE"`, file))
	id := w.trigger(a, "")
	w.eventually("it runs", func() bool { return w.text(id, "stdout") != "" })
	w.proxy.Cut()
	fence := strings.TrimSpace(strings.TrimPrefix(w.text(id, "stdout"), "fence "))
	touch(t, file)
	w.until(id, "stale", func(s api.Session) bool { return s.Status == api.Stale })
	direct := w.options()
	direct.URL, direct.StateDir, direct.Name = w.direct, filepath.Join(w.dir, "second"), "w2"
	w.start(direct)
	w.untilStatus(id, api.Complete)
	w.proxy.Mend()
	w.eventually("the late result is on the thread", func() bool {
		for _, it := range w.items(id) {
			if it.Kind == api.ItemLateResult && strings.Contains(it.Text, "result "+fence) {
				return true
			}
		}
		return false
	})
	s := w.untilStatus(id, api.Complete)
	if !strings.Contains(s.Result, "result ") || strings.Contains(s.Result, "result "+fence) {
		t.Errorf("the applied result is %q", s.Result)
	}
	w.untilDrained(a)
}

func TestOutage_ProxysErrorPagesAreWaitedOut(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agent("later", "true")
	w.proxy.Rule(func(string, int) workertest.Fault {
		return workertest.Fault{Status: 502, Body: "<h1>Bad gateway</h1>"}
	})
	w.start(w.options())
	w.eventually("it tries", func() bool { return w.proxy.Count("GET whoami") >= 3 })
	w.proxy.Rule(nil)
	w.untilStatus(w.trigger(a, ""), api.Complete)
	w.proxy.Rule(func(call string, _ int) workertest.Fault {
		return workertest.Fault{Status: 404, Body: "<h1>Not here</h1>"} // a proxy's, not the coordinator's
	})
	beats := w.proxy.Count("POST heartbeat")
	w.eventually("it goes on beating", func() bool { return w.proxy.Count("POST heartbeat") > beats+2 })
	w.proxy.Rule(nil)
	w.untilStatus(w.trigger(a, ""), api.Complete)
}

// calls are all that a session makes on its way from registration to its end.
func calls() []string {
	return []string{
		"GET whoami", "GET workspaces", "GET agents", "POST workers", "POST claim-next", "POST renew",
		"POST activities", "POST items", "POST complete", "POST heartbeat",
	}
}

func TestLost_EachCallUndeliveredOrUnansweredDoesNoHarm(t *testing.T) {
	t.Parallel()
	for _, fault := range []workertest.Fault{{Drop: true}, {LoseAnswer: true}} {
		t.Run(fmt.Sprintf("answer lost %v", fault.LoseAnswer), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			lost := map[string]bool{}
			for _, c := range calls() {
				lost[c] = true
			}
			w.proxy.Rule(func(call string, n int) workertest.Fault {
				if lost[call] && n < 2 {
					return fault
				}
				return workertest.Fault{}
			})
			runs := filepath.Join(t.TempDir(), "runs")
			// The command outlasts a renewal and prints in several batches.
			a := w.agentWith("once", longer,
				"sh", "-c", `echo run >>`+runs+`; for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done`)
			id := w.trigger(a, "")
			w.start(w.options())
			s := w.untilStatus(id, api.Complete)
			w.untilDrained(a)
			if got := w.text(id, "stdout"); got != "1\n2\n3\n4\n5\n6\n7\n8\n" {
				t.Errorf("output %q", got)
			}
			if n := countLines(t, runs); n != 1 || s.Fence != 1 {
				t.Errorf("it ran %d times, fence %d", n, s.Fence)
			}
			acts, err := w.client.Activities(t.Context(), id, api.Page{})
			w.must(err)
			started := 0
			for _, act := range acts.Items {
				if act.Type == api.ActivityProgress {
					started++
				}
			}
			if started != 1 {
				t.Errorf("%d activities for one start: %+v", started, acts.Items)
			}
			for _, c := range calls() {
				w.eventually(c+" was made again", func() bool { return w.proxy.Count(c) >= 3 })
			}
		})
	}
}

func TestLost_AnswersOfReleaseFailCancelAndHandIn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.proxy.Rule(func(call string, n int) workertest.Fault {
		return workertest.Fault{LoseAnswer: n < 2 && (call == "POST release" || call == "POST fail" || call == "POST claim" || call == "POST late-results")}
	})
	g := w.start(w.options())
	fails := w.trigger(w.agent("fails", "false"), "")
	w.untilStatus(fails, api.Failed)
	_, id, file := w.stamping("back", "stamp")
	g.end()
	w.untilStatus(id, api.Queued)
	w.quiet(file)
	if n := w.proxy.Count("POST release"); n != 3 {
		t.Errorf("%d releases were sent, want 3: two without an answer", n)
	}
}

func TestRefused_EntriesAreTriedOnceAndTheResultStillGoes(t *testing.T) {
	t.Parallel()
	for _, body := range []struct {
		status int
		code   api.Code
	}{{409, api.CodeClaimNotActive}, {413, api.CodeTooLarge}, {422, api.CodeInvalid}, {404, api.CodeNotFound}} {
		t.Run(fmt.Sprint(body.status), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			var complete int
			w.proxy.Rule(func(call string, n int) workertest.Fault {
				switch {
				case call == "POST items" || call == "POST activities":
					return workertest.Fault{Status: body.status, Body: fmt.Sprintf(`{"code":%q,"detail":"no"}`, body.code)}
				case call == "POST complete" && n < 3:
					complete++
					return workertest.Fault{Status: 503, Body: `{"code":"unavailable","detail":"later"}`}
				}
				return workertest.Fault{}
			})
			a := w.agent("mute", "sh", "-c", "echo one; sleep 0.5; echo two; sleep 0.5; echo three")
			g := w.start(w.options())
			id := w.trigger(a, "")
			s := w.untilStatus(id, api.Complete)
			if s.Fence != 1 || !strings.Contains(s.Result, "three") {
				t.Errorf("fence %d, result %q", s.Fence, s.Result)
			}
			if n := w.proxy.Count("POST items"); n > 3 {
				t.Errorf("%d tries for three batches that are refused for good", n)
			}
			g.end()
			if n := w.inState(); n != [2]int{} {
				t.Errorf("the state file has outbox entries and claims: %v", n)
			}
		})
	}
}

func TestRefused_UnfitResultIsSaidShorter(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.proxy.Rule(func(call string, n int) workertest.Fault {
		if call == "POST complete" && n == 0 {
			return workertest.Fault{Status: 413, Body: `{"code":"too_large","detail":"no"}`}
		}
		return workertest.Fault{}
	})
	w.start(w.options())
	s := w.untilStatus(w.trigger(w.agent("long", "echo", "hi"), ""), api.Complete)
	if s.Outcome != outcomeSuccess || !strings.Contains(s.Result, "too_large") {
		t.Errorf("outcome %q, result %q", s.Outcome, s.Result)
	}
}

// untilGone waits until the process whose number is in a file is gone.
func (w *fixture) untilGone(file string) {
	w.Helper()
	b, err := os.ReadFile(file)
	w.must(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	w.must(err)
	w.untilDead(workertest.AgentRun{Pid: pid})
}

// A request for work that arrives after it was made anew, for more agents, is the same request:
// what it would be granted would be run by nobody.
func TestRun_ARequestForWorkThatArrivesLate(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	deliver, dealtWith := make(chan struct{}), make(chan struct{})
	w.proxy.Rule(func(call string, n int) workertest.Fault {
		if call == "POST claim-next" && n == 0 {
			return workertest.Fault{Until: deliver, Rewrite: func(answer []byte) []byte { close(dealtWith); return answer }}
		}
		return workertest.Fault{}
	})
	o := w.options()
	o.Slots = 1
	folder, release := t.TempDir(), filepath.Join(t.TempDir(), "release")
	first := w.trigger(w.agent("first", "true"), "")
	w.start(o)
	w.eventually("it asks for work", func() bool { return w.proxy.Count("POST claim-next") == 1 })
	second := w.agentWith("second", func(in *api.AgentInput) { in.Run.WorkFolder = folder }, "sh", "-c", "until [ -e "+release+" ]; do sleep 0.05; done")
	s, _, err := w.client.CreateSession(w.Context(), second.Slug, api.SessionInput{Prompt: new(""), Priority: new(int64(5))}, "")
	w.must(err)
	w.untilStatus(s.ID, api.Active)
	close(deliver)
	<-dealtWith
	touch(t, release)
	w.untilStatus(s.ID, api.Complete)
	w.untilStatus(first, api.Complete)
}
