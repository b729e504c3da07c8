package engine_test

import (
	"slices"
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// queuedEvents are the reasons with which a session was announced as claimable.
func queuedEvents(t testing.TB, w *enginetest.Fixture, s api.SessionID) []string {
	t.Helper()
	list := must[api.List[api.Event]](t)(w.SessionEvents(t.Context(), w.Owner, s, api.Page{Limit: 200}))
	var out []string
	for _, ev := range list.Items {
		if reason, ok := ev.Data["reason"].(string); ok && ev.Type == "session_queued" {
			out = append(out, reason)
		}
	}
	return out
}

// After the time that a session reserves for the worker that could resume it, any other may
// have it, and it is announced.
func TestLift_TheTimeOfTheWorkerThatCouldResumeIsOver(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 2 })
	first, other := w.Worker(a), w.Worker(a)
	s := w.New(a).ID
	c := first.Claim(s)
	must[api.Session](t)(first.Resumable(c, "conversation"))
	must[api.Finished](t)(first.Release(c))
	w.Advance(4 * time.Minute)
	if got := queuedEvents(t, w, s); len(got) != 0 {
		t.Fatalf("before its time it is announced for %v", got)
	}
	w.Advance(time.Minute)
	if got := queuedEvents(t, w, s); !slices.Equal(got, []string{"affinity"}) {
		t.Errorf("it is announced as claimable for %v", got)
	}
	if c := other.Next(); c == nil || c.SessionID != s {
		t.Errorf("the other worker gets %+v", c)
	}
}

// The pause after a lapse, the end of the day, a higher limit and a resume each announce which
// sessions can be claimed from then on.
func TestLift_EachGateThatIsLiftedIsSaid(t *testing.T) {
	w, k, s := spentOut(t)
	want := func(reasons ...string) {
		t.Helper()
		if got := queuedEvents(t, w, s); !slices.Equal(got, reasons) {
			t.Fatalf("it was announced for %v, want %v", got, reasons)
		}
	}
	must[api.Agent](t)(w.EditAgent(t.Context(), w.Owner, k.Agent.String(), func(in *api.AgentInput) error { in.DailySpendLimitMicros = 500; return nil }))
	want()
	w.Clock.Step(15 * time.Hour) // to midnight
	w.Turn()
	want("spend_limit")
	k.Beat()
	if _, _, err := w.PauseAgent(t.Context(), w.Owner, k.Agent.String(), ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.ResumeAgent(t.Context(), w.Owner, k.Agent.String()); err != nil {
		t.Fatal(err)
	}
	want("agent_changed", "spend_limit")
	if c := k.Next(); c == nil || c.SessionID != s {
		t.Errorf("the next day its worker gets %+v", c)
	}
}

// A new rule that forbids what the old one forbade releases nothing.
func TestEdit_ARuleThatForbidsItTooLetsNothingGo(t *testing.T) {
	for _, rule := range []api.Overlap{api.OverlapSkip, api.OverlapQueueOne, api.OverlapAllow} {
		w := enginetest.New(t)
		a := w.Agent(func(in *api.AgentInput) {
			in.Schedule, in.Overlap, in.MaxConcurrent = "* * * * *", api.OverlapQueueOne, 2
		})
		k := w.Worker(a)
		running := k.Claim(w.New(a).ID)
		w.Advance(time.Minute)
		k.Beat(running)
		all := w.All(a.ID)
		waits := all[len(all)-1].ID
		w.Want(waits, api.Pending)
		w.Edit(a.ID, func(in *api.AgentInput) { in.Overlap = rule })
		if rule == api.OverlapAllow {
			w.Want(waits, api.Queued)
			continue
		}
		if got := w.Want(waits, api.Pending).WaitingFor; got.Code != "overlap" {
			t.Errorf("under %s it waits for %+v", rule, got)
		}
		must[api.Finished](t)(k.Complete(running, ""))
		w.Want(waits, api.Queued)
	}
}

// What the ledger says about a skipped slot is true of the session that it names.
func TestLedger_SaysWhatIsInTheWay(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *"))
	w.Advance(2 * time.Minute)
	rows := w.Verdicts(a.ID)
	first, last := rows[0], rows[len(rows)-1]
	if last.Verdict != api.SlotSkipped || last.SessionID != first.SessionID || last.Reason != "An earlier run has not begun: no worker has taken it." {
		t.Errorf("with no worker: %+v", last)
	}
	k := w.Worker(a)
	c := k.Claim(first.SessionID)
	w.Advance(time.Minute)
	k.Beat(c)
	rows = w.Verdicts(a.ID)
	if last = rows[len(rows)-1]; last.SessionID != first.SessionID || last.Reason != "An earlier run still lasts." {
		t.Errorf("while it runs: %+v", last)
	}
	w.Advance(11 * time.Minute) // its worker is silent
	rows = w.Verdicts(a.ID)
	if last = rows[len(rows)-1]; last.SessionID != first.SessionID || last.Reason != "An earlier run lost its worker and waits to be taken up again." {
		t.Errorf("after its worker was lost: %+v", last)
	}
}

// What workers gave back too often rests, and is offered again when that is over.
func TestLift_OffersWhatWasGivenBackWhenItsRestIsOver(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k, s := w.Worker(a), w.New(a)
	for range 20 {
		c, err := k.Try(s.ID)
		if err != nil {
			break
		}
		must[api.Finished](t)(k.Release(c))
	}
	if why := w.Get(s.ID).WaitingFor; why == nil || why.Until.IsZero() {
		t.Fatalf("it doesn't rest but waits for %+v", why)
	}
	w.Advance(10 * time.Minute)
	if told := queuedEvents(t, w, s.ID); !slices.Contains(told, "reclaim_delay") {
		t.Errorf("it was offered because of %v", told)
	}
}
