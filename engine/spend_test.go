package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// spentOut is an agent whose daily limit is used up, its worker, and a session that waits. It
// is 09:00 UTC.
func spentOut(t *testing.T, opts ...enginetest.Option) (*enginetest.Fixture, *enginetest.Worker, api.SessionID) {
	t.Helper()
	w := enginetest.New(t, opts...)
	a := w.Agent(func(in *api.AgentInput) { in.DailySpendLimitMicros, in.MaxConcurrent = 1000, 5 })
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	_, err := w.Complete(t.Context(), w.Owner, k.ID, c.SessionID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Usage: &api.Usage{CostMicros: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	return w, k, w.New(a).ID
}

// However a worker asks, an agent over its limit runs nothing, and the session says until
// when.
func TestSpend_NoWayToAClaimGetsPastTheDaysLimit(t *testing.T) {
	w, k, waiting := spentOut(t)
	midnight := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)
	refused := wantCode(t, second(k.Try(waiting)), api.CodeNotReady)
	if refused.Gate != "spend_limit" || !refused.ExpiresAt.Equal(midnight) {
		t.Errorf("the claim is refused by %s until %s", refused.Gate, refused.ExpiresAt)
	}
	if c := k.Next(); c != nil {
		t.Errorf("claim-next granted session %s", c.SessionID)
	}
	list := must[api.PollAnswer](t)(w.Poll(t.Context(), k.Caller, k.ID, k.Instance, 0, 0))
	if len(list.Items) != 1 || list.Items[0].Claimable || list.Items[0].Session.WaitingFor.Code != "spend_limit" {
		t.Errorf("poll lists %+v", list.Items)
	}
	if got := w.Get(waiting).WaitingFor; got == nil || got.Code != "spend_limit" || !got.Until.Equal(midnight) {
		t.Errorf("it waits for %+v", got)
	}
}

func TestSpend_TheClaimInsideAFinishObeysTheDaysLimit(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.DailySpendLimitMicros, in.MaxConcurrent = 1000, 5 })
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	w.New(a)
	got, err := w.Complete(t.Context(), w.Owner, k.ID, c.SessionID, api.CompleteRequest{
		UnderClaim: k.Under(c.ClaimID), Usage: &api.Usage{CostMicros: 1000}, ClaimNext: &api.ClaimNextOf{WorkerIDs: []api.WorkerID{k.ID}},
	})
	if err != nil || got.Claim != nil {
		t.Fatalf("completed with %v and the claim %+v", err, got.Claim)
	}
}

// The gates still judge a session whose lane says that it fits, and one that they hold back
// starves nobody behind it.
func TestClaimNext_GoesOnBehindASessionThatItsGatesHoldBack(t *testing.T) {
	w := enginetest.Open(t) // not checked at the end: the damage is on purpose
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 5 })
	k := w.Worker(a)
	odd, behind := w.New(a), w.New(a)
	damage(t, w, `UPDATE sessions SET labels = 'gpu' WHERE id = `+number(odd.ID))
	wantCode(t, second(k.Try(odd.ID)), api.CodeWorkerNotEligible)
	if c := k.Next(); c == nil || c.SessionID != behind.ID {
		t.Fatalf("claim-next granted %+v, want session %s", c, behind.ID)
	}
}

// A clock that is set back over midnight neither lifts a limit nor forgets what was spent; one
// that was days ahead holds nothing back for longer than its own day.
func TestSpend_AClockSetBackOverMidnightLiftsNoLimit(t *testing.T) {
	w, k, waiting := spentOut(t)
	refusedUntil := func(end time.Time) {
		t.Helper()
		w.Turn()
		k.Beat()
		if c := k.Next(); c != nil {
			t.Fatalf("at %s claim-next granted session %s", w.Now(), c.SessionID)
		}
		if e := wantCode(t, second(k.Try(waiting)), api.CodeNotReady); e.Gate != "spend_limit" || !e.ExpiresAt.Equal(end) {
			t.Fatalf("at %s the claim is refused by %s until %s, want %s", w.Now(), e.Gate, e.ExpiresAt, end)
		}
		if a := must[api.Agent](t)(w.Engine.Agent(t.Context(), w.Owner, k.Agent.String())); a.SpentTodayMicros != 1000 {
			t.Fatalf("at %s it has spent %d", w.Now(), a.SpentTodayMicros)
		}
	}
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	w.Jump(day(1).Add(23 * time.Hour).Sub(w.Now()))
	refusedUntil(day(3))
	w.Jump(2 * time.Hour) // to the day of the spending, a second time
	refusedUntil(day(3))
	w.Jump(day(1).Add(-50 * time.Hour).Sub(w.Now()))
	refusedUntil(day(-1))
	w.Jump(day(-1).Sub(w.Now()))
	w.Turn()
	k.Beat()
	if c := k.Next(); c == nil || c.SessionID != waiting {
		t.Errorf("the next day its worker gets %+v", c)
	}
}
