package engine_test

import (
	"context"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func notBefore(at time.Time) func(*api.SessionInput) {
	return func(in *api.SessionInput) { in.NotBefore = api.Time{Time: at} }
}

// The gate has opened, but its timer hasn't run yet: a claim must not fail.
func TestClaim_PendingSessionWhoseTimeHasComeIsClaimed(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a, notBefore(w.Now().Add(10*time.Second)))
	wantCode(t, second(k.Try(s.ID)), api.CodeNotReady)
	w.Jump(11 * time.Second)
	if got := w.Get(s.ID); got.WaitingFor == nil || got.WaitingFor.Code != "ready" {
		t.Fatalf("waits for %v, want ready", got.WaitingFor)
	}
	k.Claim(s.ID)
	w.Want(s.ID, api.Active)
}

func second[T any](_ T, err error) error { return err }

// An agent that changes its mode leaves its older sessions to the workers of the mode that
// they were created in.
func TestClaim_LocalSessionIsNeverGivenToACloudWorker(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	local := w.Worker(a)
	s := w.New(a)
	w.Edit(a.ID, func(in *api.AgentInput) { in.Mode = api.Cloud })
	cloud := w.Worker(a)
	wantCode(t, second(cloud.Try(s.ID)), api.CodeWorkerNotEligible)
	if c := cloud.Next(); c != nil {
		t.Fatalf("a cloud worker was given the local session %s", c.SessionID)
	}
	if c := local.Next(); c == nil || c.SessionID != s.ID {
		t.Fatalf("the local worker was given %v, want session %s", c, s.ID)
	}
}

// A retry of a session is created in its agent's present mode, with an owner that fits it.
func TestRetry_SessionOfAnotherModeHasTheOwnerOfItsOwn(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	must[api.Finished](t)(k.Complete(k.Claim(s.ID), ""))
	w.Edit(a.ID, func(in *api.AgentInput) { in.Mode = api.Cloud })
	again := must[api.Retried](t)(w.RetrySession(context.Background(), w.Owner, s.ID))
	if again.Mode != api.Cloud || again.OwnerUserID != 0 {
		t.Fatalf("the retry is %s and owned by %q", again.Mode, again.OwnerUserID)
	}
	must[api.Changed](t)(w.CancelSession(context.Background(), w.Owner, again.ID, api.CancelInput{}))
	w.Edit(a.ID, func(in *api.AgentInput) { in.Mode = api.Local })
	third := must[api.Retried](t)(w.RetrySession(context.Background(), w.Owner, again.ID))
	if third.Mode != api.Local || third.OwnerUserID != w.Owner.UserID {
		t.Fatalf("the second retry is %s and owned by %q", third.Mode, third.OwnerUserID)
	}
}

// The coordinator sets the minimum lease; an agent created before must not get stuck because
// of it, and may be edited.
func TestClaim_AgentsLeaseBelowTheLeastIsLifted(t *testing.T) {
	w := enginetest.New(t, enginetest.With(func(c *engine.Config) { c.MinLease = time.Second }))
	a := w.Agent(func(in *api.AgentInput) { in.LeaseSeconds = 5 })
	w.Reconfigure(func(c *engine.Config) { c.MinLease = time.Minute })
	w.Edit(a.ID, func(in *api.AgentInput) { in.Name = "Old" })
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	if c.LeaseSeconds != 60 {
		t.Fatalf("a lease of %d s, want the least, 60", c.LeaseSeconds)
	}
}

// A lease that nobody chose is never refused, whatever the coordinator's bounds are.
func TestAgent_DefaultLeaseIsTheCoordinators(t *testing.T) {
	w := enginetest.New(t, enginetest.With(func(c *engine.Config) {
		c.MinLease, c.DefaultLease, c.MaxLease = time.Second, 2*time.Second, 6*time.Second
	}))
	if a := w.Agent(); a.LeaseSeconds != 2 {
		t.Fatalf("a new agent's lease is %d s, want the coordinator's default, 2", a.LeaseSeconds)
	}
}

func TestAgent_LeaseBelowTheLeastIsRefused(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.LeaseSeconds = 60 })
	for _, n := range []int64{-1, 0, 1, 59} {
		in := engine.DefaultConfig().DefaultAgent()
		in.Slug, in.Run.Command, in.LeaseSeconds = "short", []string{"true"}, n
		_, err := w.CreateAgent(context.Background(), w.Owner, in)
		if e := wantCode(t, err, api.CodeInvalid); len(e.Fields) != 1 || e.Fields[0].Field != "leaseSeconds" {
			t.Errorf("creating with %d s blames %v", n, e.Fields)
		}
		_, err = w.EditAgent(context.Background(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.LeaseSeconds = n; return nil })
		if e := wantCode(t, err, api.CodeInvalid); len(e.Fields) != 1 || e.Fields[0].Field != "leaseSeconds" {
			t.Errorf("editing to %d s blames %v", n, e.Fields)
		}
	}
}

// A waiting run behind the gate overlap is checked again when the rule changes.
func TestEdit_OverlapRuleThatHoldsNothingBackLetsTheWaitingRunGo(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) {
		in.Schedule, in.Overlap, in.MaxConcurrent = "* * * * *", api.OverlapQueueOne, 2
	})
	k := w.Worker(a)
	k.Claim(w.New(a).ID)
	w.Advance(time.Minute)
	all := w.All(a.ID)
	waiting := all[len(all)-1]
	if waiting.WaitingFor == nil || waiting.WaitingFor.Code != "overlap" {
		t.Fatalf("waits for %v, want overlap", waiting.WaitingFor)
	}
	w.Edit(a.ID, func(in *api.AgentInput) { in.Overlap = api.OverlapReplace })
	w.Want(waiting.ID, api.Queued)
}

// What comes with a finish must not make the finish fail.
func TestComplete_StandsThoughTheNextClaimIsRefused(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	gone := w.Worker(a)
	if err := w.DeleteWorker(context.Background(), w.Owner, gone.ID); err != nil {
		t.Fatal(err)
	}
	s := w.New(a)
	c := k.Claim(s.ID)
	got, err := w.Complete(context.Background(), w.Owner, k.ID, s.ID, api.CompleteRequest{
		UnderClaim: k.Under(c.ClaimID), Result: "kept", ClaimNext: &api.ClaimNextOf{WorkerIDs: []api.WorkerID{gone.ID}},
	})
	if err != nil || got.Claim != nil {
		t.Fatalf("got %v and claim %v", err, got.Claim)
	}
	if s := w.Want(s.ID, api.Complete); s.Result != "kept" {
		t.Fatalf("the result is %q", s.Result)
	}
}

// A new process of a worker takes over live claims, and none that have lapsed.
func TestRegister_LapsedClaimIsNotHandedOver(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	lease := int64(60)
	k.Claim(s.ID, func(in *api.ClaimRequest) { in.LeaseSeconds = &lease })
	w.Advance(55 * time.Second)
	w.Jump(6 * time.Second)
	got := must[api.Registered](t)(w.RegisterWorker(context.Background(), w.Owner, a.ID.String(), api.WorkerInput{
		Name: k.Name, InstanceID: "next", PreviousInstanceID: k.Instance,
	}))
	if len(got.Claims) != 0 {
		t.Fatalf("handed over a claim that lapsed at %s", got.Claims[0].LeaseExpiresAt)
	}
	w.Want(s.ID, api.Stale)
}

// A row that can't be ended must not keep every other lease alive.
func TestLapse_OneBrokenClaimHoldsUpNobody(t *testing.T) {
	w := enginetest.Open(t) // not checked at the end: the damage is on purpose
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 10 })
	k := w.Worker(a)
	broken, sound := w.New(a), w.New(a)
	first := k.Claim(broken.ID)
	k.Claim(sound.ID)
	damage(t, w, `UPDATE sessions SET status = 'queued' WHERE id = `+number(first.SessionID))
	for range 200 { // no beats: the leases are over after 15 minutes
		w.Clock.Step(5 * time.Second)
		_ = w.Alive(context.Background())
		_, _ = w.Lapse(context.Background(), w.Now())
	}
	w.Want(sound.ID, api.Stale)
}

// The reason that people read for a waiting session is true of the workers that could take it.
func TestWaitingFor_CountsTheWholeProcessAndItsSilence(t *testing.T) {
	w := enginetest.New(t)
	a, b := w.Agent(), w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 3 })
	one := func(in *api.WorkerInput) { in.ProcessID, in.ProcessSlots = "prc-desk", 2 }
	forA, forB := w.Worker(a, one), w.Worker(b, one)
	says := func(id api.SessionID) string {
		t.Helper()
		got := w.Get(id).WaitingFor
		if got == nil {
			t.Fatal("the session doesn't wait")
		}
		return got.Code
	}
	var held []api.Claim
	for range 2 {
		held = append(held, forB.Claim(w.New(b).ID))
	}
	s := w.New(a)
	if got := says(s.ID); got != "worker_full" {
		t.Errorf("with both slots of the process busy it says %q", got)
	}
	must[api.Finished](t)(forB.Complete(held[0], ""))
	if got := says(s.ID); got != "ready" {
		t.Errorf("with a free slot it says %q", got)
	}
	w.Jump(3 * time.Minute)
	must[time.Time](t)(w.Lapse(context.Background(), w.Now()))
	if got := says(s.ID); got != "worker_silent" {
		t.Errorf("with its only worker silent for 3 minutes it says %q", got)
	}
	forA.Claim(s.ID) // a worker that asks is alive
}
