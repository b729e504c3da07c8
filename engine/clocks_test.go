package engine_test

import (
	"context"
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

func lease(n int64) func(*api.ClaimRequest) {
	return func(in *api.ClaimRequest) { in.LeaseSeconds = &n }
}

// Contract 4.6: neither an outage nor a clock that is set forward frees running work.
func TestOutage_LeaseThatWasAliveGetsGraceOnce(t *testing.T) {
	for name, away := range map[string]time.Duration{"a minute": time.Minute, "two hours": 2 * time.Hour, "a year": 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent()
			k := w.Worker(a)
			s := w.New(a)
			c := k.Claim(s.ID, lease(60))
			w.Advance(30 * time.Second)
			w.Jump(away)
			w.Advance(0)
			w.Want(s.ID, api.Active)
			w.Advance(58 * time.Second)
			got, err := k.Renew(c)
			if err != nil {
				t.Fatalf("a renewal within the grace: %v", err)
			}
			if left := got.LeaseExpiresAt.Sub(w.Now()); left != time.Minute {
				t.Fatalf("renewed for %s, want a minute", left)
			}
			// Renewed, it gets grace again; without a renewal, no second one.
			k.Beat(c)
			w.Jump(away)
			w.Advance(0)
			w.Want(s.ID, api.Active)
			w.Advance(30 * time.Second)
			w.Jump(20 * time.Second)
			w.Advance(0)
			w.Want(s.ID, api.Active)
			w.Jump(20 * time.Second)
			w.Advance(0)
			w.Want(s.ID, api.Stale)
		})
	}
}

func TestOutage_LeaseThatWasOverBeforeGetsNone(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	k.Claim(s.ID, lease(60))
	w.Advance(59 * time.Second)
	w.Jump(2 * time.Second) // no outage: shorter than OutageAfter
	w.Advance(0)
	w.Want(s.ID, api.Stale)
}

// The same rule across a restart, where only the stored sign of life shows it.
func TestOutage_RestartKeepsWhatRan(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	c := k.Claim(s.ID, lease(60))
	w.Close()
	w.Jump(time.Hour)
	w.Restart()
	w.Advance(0)
	w.Want(s.ID, api.Active)
	if got := k.Beat(c); got.Claims[0].State != api.BeatRenewed {
		t.Fatalf("the beat says %s", got.Claims[0].State)
	}
	w.Advance(59 * time.Second)
	w.Want(s.ID, api.Active)
	w.Advance(2 * time.Second)
	w.Want(s.ID, api.Stale)
}

// A closed claim whose processes may still be there counts as alive like a lease: its worker
// learns of the cancel at its next beat, which an outage only delays.
func TestOutage_UndrainedClaimIsNotTakenForDrained(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	c := k.Claim(s.ID)
	must[api.Changed](t)(w.CancelSession(context.Background(), w.Owner, s.ID, api.CancelInput{}))
	again := must[api.Retried](t)(w.RetrySession(context.Background(), w.Owner, s.ID))
	w.Jump(2 * time.Hour)
	w.Advance(0)
	wantCode(t, second(k.Try(again.ID)), api.CodeNotReady)
	w.Advance(30 * time.Second)
	wantCode(t, second(k.Try(again.ID)), api.CodeNotReady)
	k.Drain(c)
	k.Claim(again.ID)
}

func TestOutage_UndrainedClaimGetsGraceOnce(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	k.Claim(s.ID)
	must[api.Changed](t)(w.CancelSession(context.Background(), w.Owner, s.ID, api.CancelInput{}))
	w.Jump(2 * time.Hour)
	w.Advance(30 * time.Second)
	w.Jump(40 * time.Second)
	w.Advance(0)
	if a := must[api.Agent](t)(w.Engine.Agent(context.Background(), w.Owner, a.ID.String())); a.Running != 0 {
		t.Fatalf("%d claims still count a second after the grace", a.Running)
	}
}

// Grace is for the claims of one outage; a worker that never comes back goes offline however
// often the coordinator restarts.
func TestOutage_SilentWorkerGoesOfflineAllTheSame(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	for range 60 {
		w.Jump(30 * time.Second)
		w.Advance(0)
	}
	got := must[api.Worker](t)(w.Engine.Worker(context.Background(), w.Owner, k.ID))
	if got.State != api.Offline {
		t.Fatalf("the worker is %s after 30 minutes without a beat", got.State)
	}
}

// Contract 4.6: a step backward clamps each expiry to now + the claim's own length.
func TestClockBack_LeaseKeepsItsOwnLength(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 10 })
	k := w.Worker(a)
	plain, extended, graced := w.New(a), w.New(a), w.New(a)
	k.Claim(graced.ID, lease(60))
	w.Advance(30 * time.Second)
	w.Jump(time.Hour)
	w.Advance(0) // graced runs for 60 s more
	k.Claim(plain.ID, lease(60))
	long := k.Claim(extended.ID, lease(60))
	must[api.Lease](t)(w.Extend(context.Background(), w.Owner, k.ID, extended.ID, api.ExtendRequest{UnderClaim: k.Under(long.ClaimID), AddSeconds: 540}))
	w.Advance(5 * time.Second)
	w.Jump(-2 * time.Hour)
	w.Advance(0)
	w.Check()
	for s, most := range map[api.SessionID]time.Duration{plain.ID: time.Minute, extended.ID: 10 * time.Minute, graced.ID: time.Minute} {
		got := w.Want(s, api.Active)
		if left := got.LeaseExpiresAt.Sub(w.Now()); left > most || left <= 0 {
			t.Errorf("session %s has %s left, want at most its own %s", s, left, most)
		}
	}
	w.Advance(61 * time.Second)
	w.Want(plain.ID, api.Stale)
	w.Want(graced.ID, api.Stale)
	w.Want(extended.ID, api.Active)
}

// Set back twice is the same as once.
func TestClockBack_DrainEndsInItsOwnTimeHoweverOftenTheClockIsSet(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	k.Claim(s.ID, lease(60))
	must[api.Changed](t)(w.CancelSession(context.Background(), w.Owner, s.ID, api.CancelInput{}))
	for range 3 {
		w.Jump(-2 * time.Hour)
		w.Advance(time.Second)
	}
	w.Advance(time.Minute)
	if a := must[api.Agent](t)(w.Engine.Agent(context.Background(), w.Owner, a.ID.String())); a.Running != 0 {
		t.Fatal("the cancelled claim still counts")
	}
}

// A delay meant to last seconds must not last hours because the clock was set.
func TestClockBack_DelaysKeepTheirLength(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.ReclaimDelaySeconds, in.MaxConcurrent = 30, 2 })
	k := w.Worker(a)
	other := w.Worker(a)
	s, resumable := w.New(a), w.New(a)
	k.Claim(s.ID, lease(60))
	c := k.Claim(resumable.ID)
	must[api.Session](t)(k.Resumable(c, "conversation"))
	must[api.Finished](t)(k.Release(c))
	w.Advance(61 * time.Second)
	w.Want(s.ID, api.Stale)
	w.Jump(-2 * time.Hour)
	w.Advance(31 * time.Second)
	other.Claim(s.ID)
	w.Advance(5 * time.Minute)
	other.Beat()
	other.Claim(resumable.ID)
}

// A session that was queued when its time came stays queued.
func TestClockBack_TimeThatHasComeHoldsNothingAgain(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a, notBefore(w.Now().Add(10*time.Second)))
	w.Advance(10 * time.Second)
	w.Jump(-time.Hour)
	w.Advance(0)
	if got := w.Want(s.ID, api.Queued); got.WaitingFor.Code != "ready" {
		t.Fatalf("waits for %v", got.WaitingFor)
	}
	k.Claim(s.ID)
}

func TestClockBack_BeatsFromTheFutureAreTakenBack(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	w.Jump(-2 * time.Hour)
	w.Advance(3 * time.Minute)
	if got := must[api.Worker](t)(w.Engine.Worker(context.Background(), w.Owner, k.ID)); got.State != api.WorkerStale {
		t.Fatalf("after 3 minutes of silence the worker is %s", got.State)
	}
	w.Advance(8 * time.Minute)
	if got := must[api.Worker](t)(w.Engine.Worker(context.Background(), w.Owner, k.ID)); got.State != api.Offline {
		t.Fatalf("after 11 minutes of silence the worker is %s", got.State)
	}
}
