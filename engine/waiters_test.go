package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// A wake goes to one waiter that can use it and ends there: what others can't use costs them
// no look, and what nobody can use costs none at all.
func TestHeld_AWakeGoesToOneThatCanUseIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 1000 })
		gpu := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent, in.Labels = 1000, api.Labels{"gpu"} })
		busy := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 1000 })
		running := busy.Claim(w.New(a).ID)
		ctx, cut := context.WithCancel(context.Background())
		var held sync.WaitGroup
		got := make(chan *api.Claim, 1000)
		for range 100 {
			for _, of := range []api.Agent{a, gpu} {
				k := w.Worker(of)
				held.Go(func() {
					if c, _ := k.Hold(ctx, 60); c != nil {
						got <- c
					}
				})
			}
			lister := w.Worker(a)
			held.Go(func() { _, _ = w.Poll(ctx, lister.Caller, lister.ID, lister.Instance, 0, time.Minute) })
		}
		able := w.Worker(gpu, func(in *api.WorkerInput) { in.Labels = api.Labels{"gpu"} })
		held.Go(func() {
			if c, _ := able.Hold(ctx, 60); c != nil {
				got <- c
			}
		})
		synctest.Wait()
		looks := func(do func()) uint64 {
			before := w.Looks()
			do()
			synctest.Wait()
			return w.Looks() - before
		}
		if n := looks(func() { must[api.Finished](t)(busy.Complete(running, "")) }); n != 0 {
			t.Errorf("a complete with nothing to do made %d waiters look", n)
		}
		var s api.Session
		if n := looks(func() { s = w.New(gpu) }); n != 1 {
			t.Errorf("a session for one of 101 waiters made %d look", n)
		}
		if c := <-got; c.SessionID != s.ID || c.WorkerID != able.ID {
			t.Errorf("%s was claimed by %s", c.SessionID, c.WorkerID)
		}
		// Nobody left can use it, and then one comes that can.
		if n := looks(func() { s = w.New(gpu) }); n != 0 {
			t.Errorf("a session that nobody can have made %d waiters look", n)
		}
		if c, err := w.Worker(gpu, func(in *api.WorkerInput) { in.Labels = api.Labels{"gpu"} }).Hold(ctx, 60); err != nil || c == nil || c.SessionID != s.ID {
			t.Errorf("got %v, %v", c, err)
		}
		// Ten sessions go to ten waiters, one look each, in whatever order they come.
		if n := looks(func() { together(10, func(int) { w.New(a) }) }); n > 20 {
			t.Errorf("ten sessions made %d waiters look", n)
		}
		for range 10 {
			<-got
		}
		cut()
		held.Wait()
	})
}

// A full worker is considered again when one of its own places is free, and one whose folder
// was in use when that is free.
func TestHeld_AWorkerThatWasFullIsCalledWhenItHasAPlace(t *testing.T) {
	in := func(folder string) func(in *api.WorkerInput) {
		return func(in *api.WorkerInput) { in.FolderKey = folder }
	}
	for name, others := range map[string]func(in *api.WorkerInput){
		"its own place":          nil,
		"another's folder":       in("/work/here"),
		"another's folder above": in("/work"),
		"another's folder below": in("/work/here/below"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.Fixture) {
				a, b := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 9 }), w.Agent()
				k := w.Worker(a, func(in *api.WorkerInput) {
					in.MaxConcurrent = 1
					if others != nil {
						in.FolderKey = "/work/here"
					}
				})
				holder := k
				if others != nil {
					holder = w.Worker(b, others)
				}
				of := a
				if others != nil {
					of = b
				}
				running := holder.Claim(w.New(of).ID)
				var wg sync.WaitGroup
				var freed time.Time
				waiter(t, &wg, k, func(c *api.Claim, _ time.Duration) {
					if c == nil || time.Since(freed) > 0 {
						t.Errorf("got %v, %s after there was a place", c, time.Since(freed))
					}
				})
				synctest.Wait()
				w.New(a) // nobody can have it yet
				time.Sleep(time.Second)
				freed = time.Now()
				must[api.Finished](t)(holder.Complete(running, ""))
				wg.Wait()
			})
		})
	}
}

// A poll that comes while a session is created shows it at once, whichever was first.
func TestPoll_NoWakeUpIsLostBetweenTheLookAndTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 1000 })
		k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 1000 })
		r := rand.New(rand.NewPCG(3, 4))
		for range 500 * *soak {
			var wg sync.WaitGroup
			delay := time.Duration(r.IntN(3)) * time.Microsecond
			begin := time.Now()
			wg.Go(func() {
				out, err := w.Poll(context.Background(), k.Caller, k.ID, k.Instance, 0, time.Minute)
				if err != nil || len(out.Items) != 1 || time.Since(begin) > delay {
					t.Errorf("a session created after %s was shown after %s: %d, %v", delay, time.Since(begin), len(out.Items), err)
				}
			})
			time.Sleep(delay)
			s := w.New(a)
			wg.Wait()
			must[api.Finished](t)(k.Complete(k.Claim(s.ID), ""))
			if t.Failed() {
				return
			}
		}
	})
}

// However many sorts of sessions wait that nobody here can have, one that somebody can have
// reaches them at once.
func TestHeld_OneOfManyLanesReachesItsWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 1000 })
		label := func(i int) api.Labels { return api.Labels{fmt.Sprintf("at-%03d", i)} }
		const lanes = 100
		for i := range lanes {
			w.Edit(a.ID, func(in *api.AgentInput) { in.Labels = label(i) })
			if i < lanes-1 {
				w.New(a)
			}
			if i%10 != 9 {
				continue
			}
			var wg sync.WaitGroup
			waiter(t, &wg, w.Worker(a, func(in *api.WorkerInput) { in.Labels = label(i + 1000) }), func(c *api.Claim, _ time.Duration) {
				if c != nil {
					t.Errorf("lane %d went to a worker that it doesn't fit", i)
				}
			})
			waiter(t, &wg, w.Worker(a, func(in *api.WorkerInput) { in.Labels = label(lanes + i) }), func(c *api.Claim, after time.Duration) {
				if c == nil || after > 0 {
					t.Errorf("beside %d other lanes the waiter got %v after %s", i, c, after)
				}
			})
			synctest.Wait()
			w.Edit(a.ID, func(in *api.AgentInput) { in.Labels = label(lanes + i) })
			w.New(a)
			wg.Wait()
		}
	})
}
