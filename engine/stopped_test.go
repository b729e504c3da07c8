package engine_test

import (
	"fmt"
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// stopped runs one session of an agent that is stopped by a person and completes.
func stopped(t *testing.T, w *enginetest.Fixture, k *enginetest.Worker, id api.SessionID) {
	t.Helper()
	c := k.Claim(id)
	if _, err := w.StopSession(t.Context(), w.Owner, id); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Complete(t.Context(), w.Owner, k.ID, id, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID)}); err != nil {
		t.Fatal(err)
	}
	if s := w.Get(id); s.Status != api.Complete || !s.Stopped() {
		t.Fatalf("the session is %s with the outcome %q", s.Status, s.Outcome)
	}
}

// What a person stopped is complete, and its outcome says everywhere that it isn't done.
func TestStop_TheOutcomeIsInTheEventsOfTheEnd(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(conversing)
	k := w.Worker(a, conversingWorker)
	id := w.New(a).ID
	stopped(t, w, k, id)
	events, err := w.SessionEvents(t.Context(), w.Owner, id, api.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]any{}
	for _, ev := range events.Items {
		told[ev.Type] = ev.Data["outcome"]
	}
	for _, kind := range []string{"session_complete", "thread_completed"} {
		if told[kind] != api.OutcomeStopped {
			t.Errorf("%s has the outcome %v", kind, told[kind])
		}
	}
	if told["session_claimed"] != nil {
		t.Errorf("the claim has an outcome: %v", told["session_claimed"])
	}
}

// It doesn't count as a success: it makes up for no failure, and doesn't count in how long a
// run takes.
func TestStop_DoesNotMakeUpForAFailure(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *"))
	k := w.Worker(a)
	w.Advance(time.Minute)
	failed := w.All(a.ID)[0].ID
	c := k.Claim(failed)
	if _, err := w.Fail(t.Context(), w.Owner, k.ID, failed, api.FailRequest{UnderClaim: k.Under(c.ClaimID), Code: "AGENT_EXIT_NONZERO"}); err != nil {
		t.Fatal(err)
	}
	w.Advance(time.Minute)
	for _, s := range w.All(a.ID) {
		if s.Status == api.Queued {
			stopped(t, w, k, s.ID)
		}
	}
	if n := w.Tell("SELECT CAST(failures_in_row AS TEXT) FROM agents WHERE id = ?1", a.ID)[0]; n != "1" {
		t.Errorf("%s failures in a row are counted after a run that was stopped", n)
	}
	inbox, err := w.Inbox(t.Context(), w.Owner)
	if err != nil {
		t.Fatal(err)
	}
	if len(inbox.Items) != 1 || inbox.Items[0].Session == nil || inbox.Items[0].Session.ID != failed {
		t.Errorf("after it the inbox has %s", fmt.Sprint(inbox.Items))
	}
}

// Nor is a run a success if its agent still ran something when its turn ended.
func TestUnfinished_DoesNotMakeUpForAFailure(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *"))
	k := w.Worker(a)
	w.Advance(time.Minute)
	failed := w.All(a.ID)[0].ID
	c := k.Claim(failed)
	if _, err := w.Fail(t.Context(), w.Owner, k.ID, failed, api.FailRequest{UnderClaim: k.Under(c.ClaimID), Code: "AGENT_EXIT_NONZERO"}); err != nil {
		t.Fatal(err)
	}
	w.Advance(time.Minute)
	for _, s := range w.All(a.ID) {
		if s.Status != api.Queued {
			continue
		}
		c := k.Claim(s.ID)
		if _, err := w.Complete(t.Context(), w.Owner, k.ID, s.ID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Outcome: api.OutcomeUnfinished}); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Tell("SELECT CAST(failures_in_row AS TEXT) FROM agents WHERE id = ?1", a.ID)[0]; n != "1" {
		t.Errorf("%s failures in a row are counted after a run that was unfinished", n)
	}
	home, err := w.Home(t.Context(), w.Owner, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if home.Today[api.Complete] != 1 || home.Today[api.Failed] != 1 || home.TodayMarked != 1 {
		t.Errorf("the day has %v, of them unfinished %d", home.Today, home.TodayMarked)
	}
	inbox, err := w.Inbox(t.Context(), w.Owner)
	if err != nil {
		t.Fatal(err)
	}
	if len(inbox.Items) != 1 || inbox.Items[0].Session == nil || inbox.Items[0].Session.ID != failed {
		t.Errorf("after it the inbox has %s", fmt.Sprint(inbox.Items))
	}
}
