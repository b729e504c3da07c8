package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A session that no worker can keep isn't passed round for ever: it rests ever longer, and
// ends in an error that says why (contract 10.11). A finished turn resets the count.
func TestRelease_AgainAndAgainRestsAndEnds(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	id := w.New(a).ID
	begin := w.Now()
	giveBack := func() {
		t.Helper()
		var c *api.Claim
		for c = k.Next(); c == nil; c = k.Next() {
			g := w.Get(id).WaitingFor
			if g == nil || g.Code != "reclaim_delay" || !strings.Contains(g.Sentence, "in a row") {
				t.Fatalf("it waits for %+v", g)
			}
			w.Advance(g.Until.Sub(w.Now()))
			k.Beat()
		}
		must[api.Finished](t)(k.Release(*c, func(in *api.ReleaseRequest) { in.Reason = "lease_not_kept" }))
	}
	for range 3 {
		giveBack()
	}
	if w.Now().Sub(begin) > 0 {
		t.Errorf("three times took %v", w.Now().Sub(begin))
	}
	c := k.Next()
	must[api.Session](t)(w.PatchSession(context.Background(), k.Caller, k.ID, id, api.SessionPatch{UnderClaim: k.Under(c.ClaimID), TurnEnded: true}))
	must[api.Finished](t)(k.Release(*c))
	if s := w.Get(id); s.Releases != 1 {
		t.Errorf("after a finished turn it was given back %d times", s.Releases)
	}
	n := int64(1)
	for ; !w.Get(id).Status.Terminal(); n++ {
		giveBack()
	}
	s := w.Want(id, api.Failed)
	if s.Error.Code != "released_repeatedly" || !strings.Contains(s.Error.Message, "20 times") || !strings.Contains(s.Error.Message, "lease_not_kept") || n != 20 {
		t.Errorf("after %d times it ended as %+v", n, s.Error)
	}
	if took := w.Now().Sub(begin); took < 30*time.Minute || took > 2*time.Hour {
		t.Errorf("that took %v", took)
	}
}

// Waiting for a limit whose end was named doesn't count, however often it happens.
func TestRelease_UntilANamedEndIsNotCounted(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	id := w.New(a).ID
	giveBack := func(after time.Duration, named bool) api.Session {
		t.Helper()
		c := k.Claim(id)
		f := must[api.Finished](t)(k.Release(c, func(in *api.ReleaseRequest) {
			in.Reason, in.NotBefore, in.Named = "usage_limit", api.Time{Time: w.Now().Add(after)}, named
		}))
		if f.Session.Status == api.Pending {
			w.Advance(after)
			k.Beat()
		}
		return f.Session
	}
	for n := range 25 {
		if s := giveBack(5*time.Minute, true); s.Status != api.Pending || s.Releases != 0 {
			t.Fatalf("the %dth time it is %s after %d releases, %+v", n+1, s.Status, s.Releases, s.Error)
		}
	}
	if s := giveBack(4*time.Minute, true); s.Releases != 1 {
		t.Errorf("a short wait counts %d", s.Releases)
	}
	if s := giveBack(time.Hour, false); s.Releases != 2 {
		t.Errorf("a wait for nothing named counts %d", s.Releases)
	}
}

// Tries that failed are counted for the session, and never fall.
func TestTries_StayWithTheSession(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	id := w.New(a).ID
	c := k.Claim(id)
	for _, n := range []int64{2, 1} {
		must[api.Session](t)(w.PatchSession(context.Background(), k.Caller, k.ID, id, api.SessionPatch{UnderClaim: k.Under(c.ClaimID), Tries: n}))
	}
	must[api.Finished](t)(k.Release(c))
	if c = k.Claim(id); c.Session.Tries != 2 {
		t.Errorf("the next claim says %d", c.Session.Tries)
	}
	must[api.Finished](t)(k.Fail(c, "AGENT_EXIT_NONZERO"))
	if again := must[api.Retried](t)(w.RetrySession(context.Background(), w.Owner, id)); again.Tries != 0 {
		t.Errorf("a retry begins with %d", again.Tries)
	}
}

// A request that a frozen worker left open is not given the session that it has just lost, nor
// any other; with the worker's next sign of life it is (contract 4.7).
func TestHeld_AFrozenWorkersRequestGetsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 2 })
		k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 2 })
		first := k.Claim(w.New(a).ID, lease(20))
		var wg sync.WaitGroup
		var got *api.Claim
		var after time.Duration
		waiter(t, &wg, k, func(c *api.Claim, d time.Duration) { got, after = c, d })
		time.Sleep(25 * time.Second) // frozen: nothing comes from it
		w.Want(first.SessionID, api.Stale)
		time.Sleep(20 * time.Second)
		w.Want(first.SessionID, api.Stale)
		k.Beat()
		wg.Wait()
		if got == nil || got.SessionID != first.SessionID || after != 45*time.Second {
			t.Fatalf("it got %+v after %v", got, after)
		}
	})
}

// Stale is silent too: what is queued then waits for a worker that answers.
func TestHeld_AStaleWorkersRequestGetsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent()
		k := w.Worker(a)
		var wg sync.WaitGroup
		waiter(t, &wg, k, func(c *api.Claim, _ time.Duration) {
			if c != nil {
				t.Errorf("it got %+v", c)
			}
		})
		time.Sleep(20 * time.Second)
		id := w.New(a).ID
		synctest.Wait()
		w.Want(id, api.Queued)
		wg.Wait()
		if c := k.Next(); c == nil { // its own new request is a sign of life
			t.Error("a new request gets nothing")
		}
	}, enginetest.With(func(c *engine.Config) { c.BeatEvery, c.StaleAfter = 5*time.Second, 15*time.Second }))
}

// Leases and clocks that a worker can't work with are refused when it registers and
// when the agent is edited, with the figures (contract 10.11).
func TestClocks_ThatCannotWorkAreRefused(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.LeaseSeconds = 60 })
	in := api.WorkerInput{Name: "slow", InstanceID: "one", StagingSeconds: 31}
	refused := func(err error, field, figures string) {
		t.Helper()
		e := (*api.Error)(nil)
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != field || !strings.Contains(e.Fields[0].Detail, figures) {
			t.Errorf("answered %v", err)
		}
	}
	_, err := w.RegisterWorker(context.Background(), w.Owner, a.Slug, in)
	refused(err, "stagingSeconds", "a lease of 1m0s is too short for a worker that takes up to 31s to end what it runs: it has to be at least 1m2s")
	in.StagingSeconds = 580
	w.Edit(a.ID, func(in *api.AgentInput) { in.LeaseSeconds = 3600 })
	_, err = w.RegisterWorker(context.Background(), w.Owner, a.Slug, in)
	refused(err, "stagingSeconds", "offline after 10m0s")
	in.StagingSeconds = 31
	must[api.Registered](t)(w.RegisterWorker(context.Background(), w.Owner, a.Slug, in))
	edit := func(lease int64) error {
		_, err := w.EditAgent(context.Background(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.LeaseSeconds = lease; return nil })
		return err
	}
	refused(edit(61), "leaseSeconds", "at least 1m2s")
	if err := edit(62); err != nil {
		t.Error(err)
	}
}

// A claim doesn't ask for a lease that its own worker can't keep.
func TestClaim_ALeaseTooShortForItsWorkerIsRefused(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.LeaseSeconds = 600 })
	k := w.Worker(a, func(in *api.WorkerInput) { in.StagingSeconds = 200 })
	s, asked := w.New(a), int64(399)
	_, err := k.Try(s.ID, func(in *api.ClaimRequest) { in.LeaseSeconds = &asked })
	if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != api.CodeInvalidLease || !strings.Contains(e.Detail, "at least 400 seconds") || !strings.Contains(e.Detail, "200") {
		t.Errorf("a claim is answered %v", err)
	}
	_, err = w.ClaimNext(t.Context(), k.Caller, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{k.ID}, InstanceID: k.Instance, RequestID: "r", LeaseSeconds: &asked})
	if api.CodeOf(err) != api.CodeInvalidLease {
		t.Errorf("claim-next is answered %v", err)
	}
	w.Want(s.ID, api.Queued)
	asked = 400
	if c := k.Claim(s.ID, func(in *api.ClaimRequest) { in.LeaseSeconds = &asked }); c.LeaseSeconds != 400 {
		t.Errorf("a lease of %d s", c.LeaseSeconds)
	}
}

// A request for work has one claim. Made again it may name other workers of its process, while
// the first one is still under way: what a second claim held would be run by nobody.
func TestClaimNext_OneClaimOfARequest(t *testing.T) {
	w := enginetest.New(t)
	process := func(in *api.WorkerInput) { in.InstanceID = "one" }
	a, b := w.Agent(), w.Agent()
	k, l := w.Worker(a, process), w.Worker(b, process)
	other := w.Worker(a)
	w.New(a)
	want := w.New(b).ID
	request := func(in *api.ClaimNextRequest) { in.RequestID = "r" }
	c := l.Next(request)
	if c == nil || c.SessionID != want {
		t.Fatalf("the first time it gets %+v", c)
	}
	for name, again := range map[string]*enginetest.Worker{"the same worker": l, "another of the process": k} {
		if got := again.Next(request); got == nil || got.ClaimID != c.ClaimID || got.WorkerID != l.ID {
			t.Errorf("%s is answered %+v, before %+v", name, got, c)
		}
	}
	if got := other.Next(request); got == nil || got.SessionID == want {
		t.Errorf("another process's request of the same name is answered %+v", got)
	}
	must[api.Finished](t)(l.Complete(*c, ""))
	w.New(a)
	if got := k.Next(request); got != nil && got.ClaimID == c.ClaimID {
		t.Error("a claim that is over is answered again")
	}
}
