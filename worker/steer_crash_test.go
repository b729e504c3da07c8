package worker

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/worker/workertest"
)

// The coordinator is killed with -9 in the middle of a message for the running turn: before its
// worker has read it, as it reads it, and before and after it hears that the turn has it. Whether it
// is back before the turn ends, or long after, the message is said once, its turn is done once, and
// the transcript shows once where it was taken in.
func TestSteer_AKilledCoordinatorLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(w *outside, told func()){
		"before it is read": func(w *outside, told func()) {
			w.proxy.Rule(func(call string, _ int) workertest.Fault { return workertest.Fault{Drop: call == "GET messages"} })
			told()
			w.kill()
		},
		"as it is read": func(w *outside, told func()) {
			w.onAnswer("GET messages", "!say now", false)
			told()
		},
		"as it is read, and the answer is lost": func(w *outside, told func()) {
			w.onAnswer("GET messages", "!say now", true)
			told()
		},
		"before it hears that the turn has it": func(w *outside, told func()) {
			w.proxy.Rule(killing(w, "PATCH sessions/id"))
			told()
		},
		"as it hears that the turn has it": func(w *outside, told func()) {
			w.onAnswer("PATCH sessions/id", "", false)
			told()
		},
		"as it hears that the turn has it, and the answer is lost": func(w *outside, told func()) {
			w.onAnswer("PATCH sessions/id", "", true)
			told()
		},
	} {
		for _, long := range []bool{false, true} {
			if long && (name == "before it is read" || strings.HasPrefix(name, "as it is read, and")) {
				continue // the turn waits for it, and ends with the lease
			}
			t.Run(map[bool]string{false: name, true: name + ", for long"}[long], func(t *testing.T) {
				t.Parallel()
				w := newOutside(t)
				a, o, _ := w.talks("talker", nil)
				ended := make(chan struct{}, 10)
				o.at = func(point string) {
					if point == "turn ended" {
						ended <- struct{}{}
					}
				}
				w.start(o)
				id := w.trigger(a, "!say one\n!take\n!say after")
				w.saidUntil(id, "one")
				w.until(id, "begun", func(s api.Session) bool { return s.AgentSessionID != "" })
				at(w, func() { w.tell(id, "!say now", true) })
				w.eventually("the coordinator is killed", w.dead)
				ahead := time.Duration(0)
				if long {
					<-ended
					ahead = 10 * time.Minute
				}
				w.proxy.Rule(nil)
				w.serve(ahead)
				w.steered(id)
			})
		}
	}
}

// steered waits for a session of three texts, the second one a message for the running turn, and
// requires that it was done, said and shown once.
func (w *fixture) steered(id api.SessionID) api.Session {
	w.Helper()
	s := w.untilStatus(id, api.Complete)
	got := kinds(w.items(id), api.ItemText)
	if !slices.Equal(got, []string{"text one", "text now", "text after"}) {
		w.Errorf("it said %q", got)
	}
	if shown := strings.Join(kinds(w.items(id), api.ItemStatus), "\n"); strings.Count(shown, "Taken in while it works: “!say now”") != 1 {
		w.Errorf("the transcript shows\n%s", shown)
	}
	if m, err := w.client.Messages(w.Context(), id, 0); err != nil || len(m.Items) != 1 || m.Items[0].TakenAt.IsZero() {
		w.Errorf("the messages are %+v, %v", m.Items, err)
	}
	if all, err := w.client.Sessions(w.Context(), api.SessionFilter{}, api.Page{}); err != nil || len(all.Items) != 1 || s.Result != "after" {
		w.Errorf("it went on in %d sessions, with %q, %v", len(all.Items), s.Result, err)
	}
	return s
}

// The lease is over before the coordinator hears that the turn has taken a message in and ended: the
// result finishes the session under a later claim, and the message makes no session of its own.
func TestSteer_ALapsedLeaseDoublesNothing(t *testing.T) {
	t.Parallel()
	w := newFixtureWith(t, func(c *engine.Config) { c.OutageAfter = 24 * time.Hour }) // a clock that goes on is none
	a, o, _ := w.talks("talker", nil)
	ended := make(chan struct{}, 10)
	o.at = func(point string) {
		if point == "turn ended" {
			ended <- struct{}{}
		}
	}
	w.start(o)
	id := w.trigger(a, "!say one\n!take\n!say after")
	w.saidUntil(id, "one")
	w.until(id, "begun", func(s api.Session) bool { return s.AgentSessionID != "" })
	w.proxy.Rule(func(call string, _ int) workertest.Fault { return workertest.Fault{Drop: call != "GET messages"} })
	w.tell(id, "!say now", true)
	<-ended
	w.ahead.Store(int64(12 * time.Hour))
	w.proxy.Rule(nil)
	if s := w.steered(id); s.Fence < 2 {
		t.Errorf("it was finished under claim %d", s.Fence)
	}
}

// onAnswer kills the coordinator when it answers a call with a text; lost says that nobody gets the
// answer.
func (w *outside) onAnswer(call, text string, lost bool) {
	w.proxy.Rule(func(c string, _ int) workertest.Fault {
		if c != call {
			return workertest.Fault{}
		}
		return workertest.Fault{Rewrite: func(body []byte) []byte {
			if !bytes.Contains(body, []byte(text)) {
				return body
			}
			w.kill()
			if lost {
				panic(http.ErrAbortHandler)
			}
			return body
		}}
	})
}

// Coordinator and worker are killed at once, as stint up is. The agent session is resumed and told
// once more of the message that its turn had, and that it had it; where that was taken in is shown
// once.
func TestSteer_BothKilledLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"before it hears that the turn has it": false, "as it hears that the turn has it, and the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOutside(t)
			a, _, file := w.talks("talker", func(in *api.AgentInput) { in.LeaseSeconds = 60 })
			first := w.spawn(func(c *childConfig) { c.Parrot = file })
			id := w.trigger(a, "!say one\n!take\n!hang")
			w.saidUntil(id, "one")
			w.until(id, "begun", func(s api.Session) bool { return s.AgentSessionID != "" })
			if lost {
				w.onAnswer("PATCH sessions/id", "", true)
			} else {
				w.proxy.Rule(killing(w, "PATCH sessions/id"))
			}
			w.tell(id, "!say now", true)
			w.eventually("the coordinator is killed", w.dead)
			first.signal(syscall.SIGKILL)
			first.wait()
			w.proxy.Rule(nil)
			w.serve(0)
			second := w.spawn(func(c *childConfig) { c.Parrot = file })
			defer second.signal(syscall.SIGKILL)
			// What the turn said of the message may have died with the worker.
			var got []string
			w.eventually("it is told and goes on", func() bool {
				got = slices.DeleteFunc(kinds(w.items(id), api.ItemText), func(said string) bool { return said == "text now" })
				return len(got) > 2
			})
			if want := []string{"text one", "text you were given already while you worked: it is the same one", "text one"}; !slices.Equal(got, want) {
				t.Errorf("it said %q, not %q", got, want)
			}
			if shown := strings.Join(kinds(w.items(id), api.ItemStatus), "\n"); strings.Count(shown, "Taken in while it works: “!say now”") != 1 {
				t.Errorf("the transcript shows\n%s", shown)
			}
			if m, err := w.client.Messages(t.Context(), id, 0); err != nil || len(m.Items) != 1 || m.Items[0].TakenAt.IsZero() {
				t.Errorf("the messages are %+v, %v", m.Items, err)
			}
		})
	}
}

// killing kills the coordinator before a call reaches it.
func killing(w *outside, call string) func(string, int) workertest.Fault {
	return func(c string, _ int) workertest.Fault {
		if c != call {
			return workertest.Fault{}
		}
		w.kill()
		return workertest.Fault{Drop: true}
	}
}
