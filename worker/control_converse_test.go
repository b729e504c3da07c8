package worker

import (
	"slices"
	"testing"

	"stint/api"
)

// A worker that is asked to stop while its agent asks a person something gives the session
// back, and its next process resumes the same agent session and asks again.
func TestSignal_StopWhileItAsksGivesBack(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	o.Agents = []string{a.Slug}
	g := w.start(o)
	id := w.trigger(a, "!say one\n!ask push\n!say two")
	was := w.untilStatus(id, api.AwaitingInput)
	w.signal(w.onlyWorker(a.Slug, 0), api.SignalStop)
	if code := g.wait(); code != ExitOK || g.err != nil {
		t.Errorf("exit code %d, %v", code, g.err)
	}
	w.untilDrained(a)
	if s := w.until(id, "given back", func(s api.Session) bool { return !s.Status.Running() }); s.Status.Terminal() || s.Lapses != 0 {
		t.Fatalf("it is %+v (%+v)", s, s.Error)
	}
	w.start(o)
	w.answer(w.untilStatus(id, api.AwaitingInput), approve(true))
	s := w.untilStatus(id, api.Complete)
	if s.AgentSessionID != was.AgentSessionID || s.Result != "two" || s.Lapses != 0 {
		t.Errorf("it went on as %+v", s)
	}
	if got := kinds(w.items(id), api.ItemText); !slices.Contains(got, "text approved true ") {
		t.Errorf("it said %q", got)
	}
}
