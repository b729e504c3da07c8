package worker

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/worker/proc"
	"stint/worker/workertest"
)

// begun counts how often the parrot's program was started.
func begun(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count("\n"+string(b), "\nstart ")
}

// A turn that has ended is a result, whatever happens before it is reported (contract 10.11):
// the work is done once, and its result is handed in.
func TestTurnEnd_IsDeliveredWhateverComesBeforeTheReport(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		then    func(w *fixture, g *guest, id api.SessionID) // once the turn has ended and the coordinator is cut off
		outcome string
	}{
		"an outage that outlasts the lease": {func(w *fixture, _ *guest, id api.SessionID) {
			w.until(id, "stale", func(s api.Session) bool { return s.Status == api.Stale })
			w.proxy.Mend()
		}, outcomeSuccess},
		"a shutdown": {func(w *fixture, g *guest, _ api.SessionID) {
			g.end()
			w.proxy.Mend()
			o := g.o
			o.at = nil
			w.start(o)
		}, outcomeSuccess},
		"what people say meanwhile": {func(w *fixture, _ *guest, id api.SessionID) {
			_, err := w.client.PostMessage(w.Context(), id, api.MessageInput{Text: "!say more"})
			w.must(err)
			w.until(id, "stale", func(s api.Session) bool { return s.Status == api.Stale })
			w.proxy.Mend()
		}, outcomeSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			a, o, file := w.talks("talker", brief)
			ended := make(chan struct{})
			var first atomic.Bool
			o.at = func(point string) {
				if point == "turn ended" && first.CompareAndSwap(false, true) {
					w.proxy.Cut()
					close(ended)
				}
			}
			g := w.start(o)
			id := w.trigger(a, "!say one")
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("no turn ends")
			}
			tt.then(w, g, id)
			s := w.untilStatus(id, api.Complete)
			if s.Outcome != tt.outcome || s.Result != "one" {
				t.Errorf("it ended as %q with %q", s.Outcome, s.Result)
			}
			if got := kinds(w.items(id), api.ItemText); !slices.Equal(got, []string{"text one"}) {
				t.Errorf("it said %q", got)
			}
			if n := begun(t, file); name != "what people say meanwhile" && n != 1 {
				t.Errorf("the program was started %d times", n)
			}
			if name != "what people say meanwhile" {
				return
			}
			// What was said after the turn is a separate session, which continues the
			// conversation.
			list, err := w.client.Sessions(t.Context(), api.SessionFilter{ThreadID: s.ThreadID}, api.Page{})
			w.must(err)
			next := w.untilStatus(list.Items[0].ID, api.Complete)
			if len(list.Items) != 2 || next.Result != "more" || next.AgentSessionID != s.AgentSessionID {
				t.Errorf("%d sessions, the newest is %+v", len(list.Items), next)
			}
		})
	}
}

// The worker is killed with -9 after a turn's end: its next process hands the result in.
func TestTurnEnd_IsDeliveredByTheNextProcess(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, _, file := w.talks("talker", func(in *api.AgentInput) { in.LeaseSeconds = 60 })
	first := w.spawn(func(c *childConfig) { c.Parrot, c.KillAt, c.KillOn = file, "turn ended", 1 })
	id := w.trigger(a, "!say one")
	first.wait()
	second := w.spawn(func(c *childConfig) { c.Parrot = file })
	s := w.untilStatus(id, api.Complete)
	if s.Result != "one" || s.Outcome != outcomeSuccess || s.Fence != 1 {
		t.Errorf("it ended as %+v", s)
	}
	if n := begun(t, file); n != 1 {
		t.Errorf("the program was started %d times", n)
	}
	second.signal(syscall.SIGTERM)
	second.wait()
}

// A conversation that is cut off in its second turn resumes with that one: the first turn's
// prompt isn't given again.
func TestTurnEnd_TheNextTurnAloneIsRepeated(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, _, file := w.talks("talker", func(in *api.AgentInput) { in.LeaseSeconds = 60 })
	first := w.spawn(func(c *childConfig) { c.Parrot, c.KillAt, c.KillOn = file, "turn begun", 1 })
	id := w.trigger(a, "!ask whether\n!say one")
	asked := w.untilStatus(id, api.AwaitingInput)
	_, err := w.client.PostMessage(t.Context(), id, api.MessageInput{Text: "!say two"})
	w.must(err)
	w.answer(asked, approve(true))
	first.wait()
	second := w.spawn(func(c *childConfig) { c.Parrot = file })
	s := w.untilStatus(id, api.Complete)
	if got := kinds(w.items(id), api.ItemText); !slices.Equal(got, []string{"text approved true ", "text one", "text two"}) || s.Result != "two" {
		t.Errorf("it said %q and ended with %q", got, s.Result)
	}
	second.signal(syscall.SIGTERM)
	second.wait()
}

// A new process delivers what the last one left before it asks for work of that agent, even
// while nothing would refuse it the session: a claim would do the work a second time.
func TestTurnEnd_IsDeliveredBeforeTheAgentIsServedAgain(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, file := w.talks("talker", brief)
	other := w.agent("other", "true")
	ended := make(chan struct{})
	o.at = func(point string) {
		if point == "turn ended" {
			w.proxy.Cut()
			close(ended)
		}
	}
	g := w.start(o)
	id := w.trigger(a, "!say one")
	<-ended
	g.end()
	w.until(id, "stale", func(s api.Session) bool { return s.Status == api.Stale })
	w.proxy.Mend()
	// What was left is neither fully taken up nor handed in until the new process was given
	// later work.
	served := make(chan struct{})
	o.at = func(point string) {
		if point == "swept" || point == "claim again" {
			<-served
		}
	}
	w.start(o)
	later := w.trigger(other, "")
	w.untilStatus(later, api.Complete)
	close(served)
	s := w.untilStatus(id, api.Complete)
	if n := begun(t, file); n != 1 || s.Result != "one" || s.Fence != 2 {
		t.Errorf("the program was started %d times; it ended with %q at fence %d", n, s.Result, s.Fence)
	}
}

// A worker that is given a session whose result it still holds, here because its clock stood
// still while the lease lapsed, hands the result in under the new claim.
func TestTurnEnd_ANewClaimOnTheSessionDeliversIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, file := w.talks("talker", brief)
	var stands atomic.Int64
	var again atomic.Bool
	o.boot = func() proc.BootTime {
		if at := stands.Load(); at != 0 {
			return proc.BootTime(at)
		}
		return proc.BootNow()
	}
	o.at = func(point string) {
		if point != "turn ended" || stands.Load() != 0 {
			return
		}
		stands.Store(int64(proc.BootNow()))
		w.proxy.Rule(func(call string, _ int) workertest.Fault {
			return workertest.Fault{Drop: !again.Load() && call != "POST claim-next"}
		})
	}
	w.start(o)
	id := w.trigger(a, "!say one")
	w.until(id, "claimed again", func(s api.Session) bool { return s.Fence > 1 })
	again.Store(true)
	s := w.untilStatus(id, api.Complete)
	if n := begun(t, file); n != 1 || s.Result != "one" || s.Fence != 2 {
		t.Errorf("the program was started %d times; it ended with %q at fence %d", n, s.Result, s.Fence)
	}
}
