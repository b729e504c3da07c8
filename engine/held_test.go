package engine_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// In a bubble time passes only while everybody waits, so a lost wake-up, and nothing else,
// shows as time that passed.
func bubble(t *testing.T, test func(t *testing.T, w *enginetest.Fixture), opts ...enginetest.Option) {
	synctest.Test(t, func(t *testing.T) {
		opts := append([]enginetest.Option{enginetest.Now(time.Now), enginetest.With(func(c *engine.Config) { c.MinLease = time.Second })}, opts...)
		w := enginetest.Open(t, opts...)
		ctx, cancel := context.WithCancel(context.Background())
		var loops sync.WaitGroup
		loops.Go(func() {
			if err := w.Engine.Run(ctx); err != nil {
				t.Errorf("run: %v", err)
			}
		})
		test(t, w)
		w.Check()
		cancel()
		loops.Wait()
	})
}

// waiter holds a request until it gets a claim, and says when.
func waiter(t *testing.T, wg *sync.WaitGroup, k *enginetest.Worker, took func(c *api.Claim, after time.Duration)) {
	begin := time.Now()
	wg.Go(func() {
		c, err := k.Hold(context.Background(), 60)
		if err != nil {
			t.Errorf("claim-next: %v", err)
		}
		took(c, time.Since(begin))
	})
}

func TestHeld_EachSessionReachesAWaiterAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 1000 })
		for round := range 20 * *soak {
			var wg sync.WaitGroup
			var mu sync.Mutex
			got := map[api.SessionID]int{}
			for range 20 {
				waiter(t, &wg, w.Worker(a), func(c *api.Claim, after time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					if c == nil || after > 0 {
						t.Errorf("round %d: got %v after %s", round, c, after)
						return
					}
					got[c.SessionID]++
				})
			}
			if round%2 == 0 {
				synctest.Wait() // all hold; otherwise they are on their way
			}
			together(20, func(int) { w.New(a) })
			wg.Wait()
			if len(got) != 20 {
				t.Fatalf("round %d: %d of 20 sessions were claimed", round, len(got))
			}
		}
	})
}

// Looking and registering race with the creation: nothing falls in between.
func TestHeld_NoWakeUpIsLostBetweenTheLookAndTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 1000 })
		k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 1000 })
		r := rand.New(rand.NewPCG(1, 2))
		for range 500 * *soak {
			var wg sync.WaitGroup
			delay := time.Duration(r.IntN(3)) * time.Microsecond
			var took time.Duration
			waiter(t, &wg, k, func(c *api.Claim, after time.Duration) { took = after })
			time.Sleep(delay)
			w.New(a)
			wg.Wait()
			if took > delay {
				t.Fatalf("a session created after %s was claimed after %s", delay, took)
			}
		}
	})
}

// A waiter for two agents that is woken for one and takes a session of the other leaves the
// first to those who wait only for that one.
func TestHeld_WakeUpThatWasNotUsedGoesOnToAnother(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a, b := w.Agent(), w.Agent()
		both, only := w.Worker(a), w.Worker(a)
		second := w.Worker(b, func(in *api.WorkerInput) { in.InstanceID = both.Instance })
		var wg sync.WaitGroup
		var got [2]*api.Claim
		wg.Go(func() {
			c, err := w.ClaimNext(context.Background(), w.Owner, api.ClaimNextRequest{
				WorkerIDs: []api.WorkerID{both.ID, second.ID}, InstanceID: both.Instance, WaitSeconds: 60,
			})
			if err != nil {
				t.Errorf("claim-next: %v", err)
			}
			got[0] = c
		})
		synctest.Wait()
		waiter(t, &wg, only, func(c *api.Claim, after time.Duration) {
			if got[1] = c; after > 0 {
				t.Errorf("the waiter was called after %s", after)
			}
		})
		synctest.Wait()
		if err := w.CreateBoth(context.Background(), w.Owner, a.Slug, b.Slug); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if got[0] == nil || got[0].Session.AgentID != b.ID || got[1] == nil || got[1].Session.AgentID != a.ID {
			t.Fatalf("the two waiters got %v and %v", got[0], got[1])
		}
	})
}

// A waiter whose client has gone, or that a session doesn't fit, uses up no wake-up.
func TestHeld_WaitersThatAreGoneOrDoNotFitPassTheWakeUpOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent, in.Labels = 1000, api.Labels{"gpu"} })
		ctx, cut := context.WithCancel(context.Background())
		var wg, gone sync.WaitGroup
		for i := range 30 {
			k := w.Worker(a, func(in *api.WorkerInput) {
				if i%3 == 2 {
					in.Labels = api.Labels{"gpu"}
				}
			})
			switch i % 3 {
			case 0:
				gone.Go(func() { _, _ = k.Hold(ctx, 60) })
			case 1:
				gone.Go(func() { _, _ = k.Hold(context.Background(), 60) })
			case 2:
				waiter(t, &wg, k, func(c *api.Claim, after time.Duration) {
					if c == nil || after > 0 {
						t.Errorf("got %v after %s", c, after)
					}
				})
			}
		}
		synctest.Wait()
		cut()
		together(10, func(int) { w.New(a) })
		wg.Wait()
		gone.Wait()
	})
}

// One session wakes about one waiter, not all of them.
func TestHeld_OneSessionDoesNotWakeEverybody(t *testing.T) {
	var transactions atomic.Int64 // each reads the clock
	now := func() time.Time {
		transactions.Add(1)
		return time.Now()
	}
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 1000 })
		var wg sync.WaitGroup
		for range 200 {
			waiter(t, &wg, w.Worker(a), func(*api.Claim, time.Duration) {})
		}
		synctest.Wait()
		before := transactions.Load()
		for range 20 {
			w.New(a)
			synctest.Wait()
		}
		if n := transactions.Load() - before; n > 100 {
			t.Errorf("20 sessions for 200 waiters made %d transactions", n)
		}
		for range 180 {
			w.New(a)
		}
		wg.Wait()
	}, enginetest.Now(now))
}

// Whatever opens, the waiter learns of it at once. Only delays that end with nothing happening
// may last until the waiter looks by itself.
func TestHeld_EveryGateThatOpensCallsTheWaiter(t *testing.T) {
	const moment = 100 * time.Millisecond
	ctx := context.Background()
	type heldFixture struct {
		w    *enginetest.Fixture
		a    api.Agent
		busy *enginetest.Worker // another worker, for what must run first
	}
	for name, set := range map[string]func(t *testing.T, s heldFixture) (open func()){
		"not before": func(t *testing.T, s heldFixture) func() {
			s.w.New(s.a, notBefore(s.w.Now().Add(20*time.Second)))
			return func() { time.Sleep(20 * time.Second) }
		},
		"resume": func(t *testing.T, s heldFixture) func() {
			s.w.New(s.a)
			s.w.Edit(s.a.ID, func(in *api.AgentInput) { in.Paused = true })
			return func() { s.w.Edit(s.a.ID, func(in *api.AgentInput) { in.Paused = false }) }
		},
		"cap raised": func(t *testing.T, s heldFixture) func() {
			s.busy.Claim(s.w.New(s.a).ID)
			s.w.New(s.a)
			return func() { s.w.Edit(s.a.ID, func(in *api.AgentInput) { in.MaxConcurrent = 2 }) }
		},
		"cap freed": func(t *testing.T, s heldFixture) func() {
			c := s.busy.Claim(s.w.New(s.a).ID)
			s.w.New(s.a)
			return func() { must[api.Finished](t)(s.busy.Complete(c, "")) }
		},
		"release": func(t *testing.T, s heldFixture) func() {
			c := s.busy.Claim(s.w.New(s.a).ID)
			return func() { must[api.Finished](t)(s.busy.Release(c)) }
		},
		"lapse": func(t *testing.T, s heldFixture) func() {
			s.busy.Claim(s.w.New(s.a).ID, lease(20))
			return func() { time.Sleep(20 * time.Second) }
		},
		"reclaim delay": func(t *testing.T, s heldFixture) func() {
			s.w.Edit(s.a.ID, func(in *api.AgentInput) { in.ReclaimDelaySeconds = 5 })
			s.busy.Claim(s.w.New(s.a).ID, lease(20))
			return func() { time.Sleep(25 * time.Second) }
		},
		"affinity": func(t *testing.T, s heldFixture) func() {
			c := s.busy.Claim(s.w.New(s.a).ID)
			must[api.Session](t)(s.busy.Resumable(c, "conversation"))
			time.Sleep(270 * time.Second)
			must[api.Lease](t)(s.busy.Renew(c))
			must[api.Finished](t)(s.busy.Release(c))
			time.Sleep(267 * time.Second)
			return func() { time.Sleep(33 * time.Second) }
		},
		"drained": func(t *testing.T, s heldFixture) func() {
			id := s.w.New(s.a).ID
			c := s.busy.Claim(id)
			must[api.Changed](t)(s.w.CancelSession(ctx, s.w.Owner, id, api.CancelInput{}))
			must[api.Retried](t)(s.w.RetrySession(ctx, s.w.Owner, id))
			return func() { s.busy.Drain(c) }
		},
		"after": func(t *testing.T, s heldFixture) func() {
			first := s.w.New(s.a)
			c := s.busy.Claim(first.ID)
			s.w.New(s.a, func(in *api.SessionInput) { in.After = first.ID })
			return func() { must[api.Finished](t)(s.busy.Complete(c, "")) }
		},
		"answer": func(t *testing.T, s heldFixture) func() {
			first := s.w.New(s.a)
			c := s.busy.Claim(first.ID)
			asked := must[api.Session](t)(s.busy.Ask(c, "May I?"))
			must[api.Finished](t)(s.busy.Release(c, func(in *api.ReleaseRequest) { in.Park = true }))
			return func() {
				must[api.Session](t)(s.w.AnswerPrompt(ctx, s.w.Owner, first.ID, api.AnswerInput{PromptID: asked.Prompted.ID, Answer: api.Answer{Text: "yes"}}))
			}
		},
		"stale answered": func(t *testing.T, s heldFixture) func() {
			first := s.w.New(s.a)
			c := s.busy.Claim(first.ID, lease(5))
			asked := must[api.Session](t)(s.busy.Ask(c, "May I?"))
			time.Sleep(6 * time.Second)
			return func() {
				must[api.Session](t)(s.w.AnswerPrompt(ctx, s.w.Owner, first.ID, api.AnswerInput{PromptID: asked.Prompted.ID, Answer: api.Answer{Text: "yes"}}))
			}
		},
		"retry": func(t *testing.T, s heldFixture) func() {
			first := s.w.New(s.a)
			must[api.Finished](t)(s.busy.Complete(s.busy.Claim(first.ID), ""))
			return func() { must[api.Retried](t)(s.w.RetrySession(ctx, s.w.Owner, first.ID)) }
		},
		"slot": func(t *testing.T, s heldFixture) func() {
			s.w.Edit(s.a.ID, func(in *api.AgentInput) { in.Schedule = "@every 1m" })
			time.Sleep(20 * time.Second)
			return func() { time.Sleep(40 * time.Second) }
		},
		"worker deleted": func(t *testing.T, s heldFixture) func() {
			s.busy.Claim(s.w.New(s.a).ID, lease(5))
			return func() {
				if err := s.w.DeleteWorker(ctx, s.w.Owner, s.busy.ID); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second) // its processes are gone by then
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.Fixture) {
				a := w.Agent()
				open := set(t, heldFixture{w, a, w.Worker(a)})
				k := w.Worker(a)
				var wg sync.WaitGroup
				var called time.Time
				wg.Go(func() {
					c, err := k.Hold(context.Background(), 60)
					if err != nil || c == nil {
						t.Errorf("got %v, %v", c, err)
					}
					called = time.Now()
				})
				synctest.Wait()
				begin := time.Now()
				open()
				opened := time.Now()
				wg.Wait()
				most := moment
				if name == "reclaim delay" || name == "affinity" {
					most += 15 * time.Second
				}
				if called.Sub(opened) > most || called.Before(begin) || opened.Sub(begin) > 0 && called.Before(opened) {
					t.Errorf("called %s after the gate had opened", called.Sub(opened))
				}
			})
		})
	}
}

// The end of the wait is an answer, not an error, and comes in time.
func TestHeld_WaitEndsWithNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		k := w.Worker(w.Agent())
		begin := time.Now()
		c, err := k.Hold(context.Background(), 30)
		if c != nil || err != nil || time.Since(begin) != 30*time.Second {
			t.Fatalf("got %v, %v after %s", c, err, time.Since(begin))
		}
	})
}
