package worker

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"stint/api"
	"stint/worker/workertest"
)

func (w *fixture) tell(id api.SessionID, text string, now bool) api.Message {
	w.Helper()
	got, err := w.client.PostMessage(w.Context(), id, api.MessageInput{Text: text, Now: now})
	w.must(err)
	return *got.Message
}

func (w *fixture) saidUntil(id api.SessionID, texts ...string) {
	w.Helper()
	for i := range texts {
		texts[i] = "text " + texts[i]
	}
	var got []string
	defer func() {
		if w.Failed() {
			w.Logf("it said %q", got)
		}
	}()
	w.eventually("it said "+strings.Join(texts, ", "), func() bool {
		got = kinds(w.items(id), api.ItemText)
		return slices.Equal(got, texts)
	})
}

// A message for now is taken in by the running turn, before an older one that waits; each once,
// and the transcript shows where.
func TestSteer_TheRunningTurnTakesItIn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	w.start(o)
	id := w.trigger(a, "!say one\n!take\n!say after\n!ask go on?")
	w.saidUntil(id, "one")
	w.tell(id, "!say waits", false)
	now := w.tell(id, "!say now", true)
	if !now.Now || !now.TakenAt.IsZero() {
		t.Errorf("it answers %+v", now)
	}
	w.saidUntil(id, "one", "now", "after")
	w.eventually("it is known to be taken in", func() bool {
		got, err := w.client.Messages(t.Context(), id, 0)
		return err == nil && len(got.Items) == 2 && got.Items[0].TakenAt.IsZero() && !got.Items[1].TakenAt.IsZero()
	})
	w.answer(w.untilStatus(id, api.AwaitingInput), approve(true))
	s := w.untilStatus(id, api.Complete)
	got := kinds(w.items(id), api.ItemText)
	if want := []string{"text one", "text now", "text after", "text approved true ", "text waits"}; !slices.Equal(got, want) {
		t.Errorf("it said %q, not %q", got, want)
	}
	shown := kinds(w.items(id), api.ItemMessage, api.ItemStatus, api.ItemText)
	at := slices.Index(shown, "status Taken in while it works: “!say now”")
	if at < 0 || at > slices.Index(shown, "text waits") || at < slices.Index(shown, "message !say now") || slices.Contains(shown[at+1:], shown[at]) {
		t.Errorf("the transcript is\n%s", strings.Join(shown, "\n"))
	}
	all, err := w.client.Sessions(t.Context(), api.SessionFilter{}, api.Page{})
	w.must(err)
	if th, err := w.client.Thread(t.Context(), s.ThreadID); err != nil || len(all.Items) != 1 || th.LastConsumed == 0 {
		t.Errorf("it went on in %d sessions; the thread is %+v, %v", len(all.Items), th, err)
	}
}

// What comes too late for the turn, or for a type that can't, is an ordinary message of the next.
func TestSteer_TooLateIsTheNextTurns(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	w.start(o)
	id := w.trigger(a, "!say one\n!ask go on?\n!say two")
	asked := w.untilStatus(id, api.AwaitingInput)
	w.tell(id, "!say three", true)
	w.answer(asked, approve(true))
	w.untilStatus(id, api.Complete)
	if got := kinds(w.items(id), api.ItemText); !slices.Equal(got, []string{"text one", "text approved true ", "text two", "text three"}) {
		t.Errorf("it said %q", got)
	}
}

// The worker is killed with -9 while a turn runs that was given messages. The next process resumes
// the agent session and gives it each once more, told that it had or may have had it: it may have
// forgotten what it was doing. A message that the turn was not given is an ordinary one.
func TestSteer_AKilledWorkerLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, _, file := w.talks("talker", func(in *api.AgentInput) { in.LeaseSeconds = 60 })
	first := w.spawn(func(c *childConfig) { c.Parrot = file })
	id := w.trigger(a, "!say one\n!take\n!drop\n!hang")
	w.saidUntil(id, "one")
	w.tell(id, "!say taken", true)
	w.saidUntil(id, "one", "taken")
	w.tell(id, "!say dropped", true)
	w.saidUntil(id, "one", "taken", "dropped")
	w.tell(id, "!say never given", false)
	first.signal(syscall.SIGKILL)
	first.wait()
	// The second turn begins as the first did, and waits at its "!take" for what isn't there.
	second := w.spawn(func(c *childConfig) { c.Parrot = file })
	defer second.signal(syscall.SIGKILL)
	w.saidUntil(id, "one", "taken", "dropped",
		"you were given already while you worked: it is the same one; you may have been given already while you worked: if you were, it is the same one", "one")
	got, err := w.client.Messages(t.Context(), id, 0)
	w.must(err)
	if len(got.Items) != 3 || got.Items[0].TakenAt.IsZero() || !got.Items[1].TakenAt.IsZero() || !got.Items[2].TakenAt.IsZero() {
		t.Errorf("the messages are %+v", got.Items)
	}
	_, err = w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
	if b, err := os.ReadFile(file); err != nil || strings.Count(string(b), "start ") != 2 {
		t.Errorf("it ran as\n%s, %v", b, err)
	}
}

// Whatever gets lost on the way, the running turn takes a message in once.
func TestSteer_LostCallsDoNoHarm(t *testing.T) {
	t.Parallel()
	for _, fault := range []workertest.Fault{{Drop: true}, {LoseAnswer: true}} {
		t.Run(fmt.Sprintf("answer lost %v", fault.LoseAnswer), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.proxy.Rule(func(call string, n int) workertest.Fault {
				if n < 2 && (call == "GET messages" || call == "PATCH sessions/id") {
					return fault
				}
				return workertest.Fault{}
			})
			a, o, _ := w.talks("talker", nil)
			w.start(o)
			id := w.trigger(a, "!say one\n!take\n!say after")
			w.saidUntil(id, "one")
			w.tell(id, "!say now", true)
			w.untilStatus(id, api.Complete)
			if got := kinds(w.items(id), api.ItemText); !slices.Equal(got, []string{"text one", "text now", "text after"}) {
				t.Errorf("it said %q", got)
			}
			if got, err := w.client.Messages(t.Context(), id, 0); err != nil || got.Items[0].TakenAt.IsZero() {
				t.Errorf("the message is %+v, %v", got, err)
			}
			if all, err := w.client.Sessions(t.Context(), api.SessionFilter{}, api.Page{}); err != nil || len(all.Items) != 1 {
				t.Errorf("it went on in %d sessions, %v", len(all.Items), err)
			}
		})
	}
}
