package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// together starts n calls at the same instant and waits for all.
func together(n int, call func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			call(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

func TestRace_SixtyFourWorkersOnOneSessionHaveOneWinner(t *testing.T) {
	const n = 64
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = n })
	var workers []*enginetest.Worker
	for range n {
		workers = append(workers, w.Worker(a))
	}
	for range 20 * *soak {
		s := w.New(a)
		claims, errs := make([]api.Claim, n), make([]error, n)
		together(n, func(i int) { claims[i], errs[i] = workers[i].Try(s.ID) })
		winner := -1
		for i, err := range errs {
			if err == nil {
				if winner >= 0 {
					t.Fatalf("workers %d and %d both hold session %s", winner, i, s.ID)
				}
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("nobody won: %v", errs[0])
		}
		for i, err := range errs {
			if i == winner {
				continue
			}
			e := wantCode(t, err, api.CodeAlreadyClaimed)
			if e.Holder != workers[winner].Name || e.WorkerID != workers[winner].ID || !e.ExpiresAt.Equal(claims[winner].LeaseExpiresAt.Time) {
				t.Fatalf("a loser got %q until %s, the winner is %q until %s", e.Holder, e.ExpiresAt, workers[winner].Name, claims[winner].LeaseExpiresAt)
			}
		}
		must[api.Finished](t)(workers[winner].Complete(claims[winner], ""))
	}
}

// Fifty claims over ten sessions: each is won once, and nobody wins two of one.
func TestRace_EachOfTenSessionsIsWonOnce(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 100 })
	var workers []*enginetest.Worker
	for range 50 {
		workers = append(workers, w.Worker(a))
	}
	for range 10 * *soak {
		var sessions []api.SessionID
		for range 10 {
			sessions = append(sessions, w.New(a).ID)
		}
		got := make([]*api.Claim, 50)
		together(50, func(i int) {
			if i%2 == 0 {
				if c, err := workers[i].Try(sessions[i%10]); err == nil {
					got[i] = &c
				} else if refusal(err) == nil {
					t.Errorf("claim: %v", err)
				}
				return
			}
			got[i] = workers[i].Next()
		})
		won := map[api.SessionID]int{}
		for i, c := range got {
			if c == nil {
				continue
			}
			won[c.SessionID]++
			must[api.Finished](t)(workers[i].Complete(*c, ""))
		}
		for _, s := range sessions {
			if won[s] != 1 {
				t.Fatalf("session %s was won %d times", s, won[s])
			}
		}
		w.Check()
	}
}

// Claims race releases and cap edits; the cap is never passed.
func TestRace_CapHoldsWhateverIsClaimedAndGivenBackAtOnce(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 3 })
	var workers []*enginetest.Worker
	for range 16 {
		workers = append(workers, w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 1 }))
	}
	for range 40 {
		w.New(a)
	}
	var mu sync.Mutex
	running, most := 0, 0
	count := func(d int) {
		mu.Lock()
		defer mu.Unlock()
		running += d
		most = max(most, running)
	}
	together(16, func(i int) {
		for range 15 * *soak {
			c := workers[i].Next()
			if c == nil {
				continue
			}
			count(1)
			if _, err := workers[i].Renew(*c); err != nil {
				t.Errorf("renew: %v", err)
			}
			count(-1) // before the release is requested, so that at no moment too many are counted
			if _, err := workers[i].Release(*c); err != nil {
				t.Errorf("release: %v", err)
			}
		}
	})
	if most > 3 {
		t.Fatalf("%d claims at once, the cap is 3", most)
	}
}

// A finish, a cancel and the end of the lease meet: exactly one of them ends the session, the
// successful caller is the one in the row, and one event says so.
func TestRace_FinishCancelAndLapseEndASessionOnce(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent, in.MaxLapses = 100, 1 })
	k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 1000 })
	ends := map[string]int{}
	for round := range 200 * *soak {
		s := w.New(a)
		c := k.Claim(s.ID, lease(60))
		w.Clock.Step(59 * time.Second)
		if err := w.Alive(context.Background()); err != nil {
			t.Fatal(err)
		}
		var errs [4]error
		var cancelled api.Changed
		together(4, func(i int) {
			switch (i + round) % 4 { // the order in which they start varies
			case 0:
				_, errs[0] = k.Complete(c, "done")
			case 1:
				_, errs[1] = k.Fail(c, "AGENT_CRASHED")
			case 2:
				cancelled, errs[2] = w.CancelSession(context.Background(), w.Owner, s.ID, api.CancelInput{})
			case 3:
				w.Clock.Step(time.Second) // the lease ends somewhere among them
				_, errs[3] = w.Lapse(context.Background(), w.Now())
			}
		})
		got := w.Get(s.ID)
		won := map[api.Status]bool{api.Complete: errs[0] == nil, api.Cancelled: errs[2] == nil && cancelled.Changed}
		switch {
		case !got.Status.Terminal():
			t.Fatalf("round %d: the session is %s", round, got.Status)
		case errs[0] == nil && got.Status != api.Complete, errs[1] == nil && (got.Status != api.Failed || got.Error.Code != "AGENT_CRASHED"), won[api.Cancelled] && got.Status != api.Cancelled:
			t.Fatalf("round %d: the answers %v, %v, cancelled %v don't fit %s", round, errs[0], errs[1], cancelled.Changed, got.Status)
		case errs[0] == nil && errs[1] == nil:
			t.Fatalf("round %d: both finishes were accepted", round)
		}
		for i, err := range errs {
			if err != nil && refusal(err) == nil {
				t.Fatalf("round %d: call %d failed: %v", round, i, err)
			}
		}
		end := string(got.Status)
		if got.Error != nil {
			end += " " + got.Error.Code
		}
		ends[end]++
		if n := len(w.Tell("SELECT type FROM events WHERE session_id = ?1 AND type IN ('session_complete', 'session_error', 'session_cancelled')", s.ID)); n != 1 {
			t.Fatalf("round %d: %d events end the session", round, n)
		}
		k.Drain(c)
		if round%20 == 0 {
			w.Check()
		}
	}
	t.Logf("ends: %v", ends)
}

// The same keyed creation, twenty times at once: one session.
func TestRace_OneKeyMakesOneSession(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	for round := range 10 * *soak {
		ids := make([]api.SessionID, 20)
		together(20, func(i int) {
			s, _, err := w.CreateSession(context.Background(), w.Owner, a.Slug, api.SessionInput{Prompt: new("once")}, keyed(fmt.Sprintf("key %d", round)))
			if err != nil {
				t.Errorf("create: %v", err)
			}
			ids[i] = s.ID
		})
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("one key made sessions %s and %s", ids[0], id)
			}
		}
	}
	if n := len(w.All(a.ID)); n != 10**soak {
		t.Fatalf("%d sessions", n)
	}
}

// Two coordinators on one file race for one session.
func TestRace_TwoCoordinatorsGrantOneClaim(t *testing.T) {
	w := enginetest.New(t)
	other := w.Beside(0)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 100 })
	var workers []*enginetest.Worker
	for i := range 16 {
		k := w.Worker(a)
		if i%2 == 1 {
			k = k.Through(other)
		}
		workers = append(workers, k)
	}
	for range 20 * *soak {
		s := w.New(a)
		claims, errs := make([]api.Claim, 16), make([]error, 16)
		together(16, func(i int) { claims[i], errs[i] = workers[i].Try(s.ID) })
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				must[api.Finished](t)(workers[i].Complete(claims[i], ""))
				continue
			}
			wantCode(t, err, api.CodeAlreadyClaimed)
		}
		if winners != 1 {
			t.Fatalf("%d winners", winners)
		}
	}
}
