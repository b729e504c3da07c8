package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/db"
	"stint/engine/enginetest"
)

// holdPages takes every connection that a page may take, until free is called.
func holdPages(t *testing.T, w *enginetest.Fixture) (free func()) {
	t.Helper()
	release := make(chan struct{})
	var all sync.WaitGroup
	for {
		took := make(chan bool, 1)
		all.Go(func() {
			err := w.Store.Read(context.Background(), func(*db.ReadTx) error {
				took <- true
				<-release
				return nil
			})
			if err != nil {
				took <- false // there is none left
			}
		})
		if !<-took {
			return func() { close(release); all.Wait() }
		}
	}
}

// However many pages are being read, for however long, what is due is done in time, what was
// freed reaches who waits for it, and who listens is told.
func TestTimers_GoOnWhilePagesHoldEveryConnection(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		ctx := context.Background()
		many := func(in *api.AgentInput) { in.MaxConcurrent = 100 }
		a := w.Agent(many)
		clock := w.Agent(many, func(in *api.AgentInput) { in.Schedule, in.Overlap = "@every 1m", api.OverlapAllow })
		brief := w.Agent(many, func(in *api.AgentInput) { in.QueueTimeoutSeconds = 30 })
		rests := w.Agent(many, func(in *api.AgentInput) { in.ReclaimDelaySeconds = 30 })
		k, rested := w.Worker(a), w.Worker(rests)
		webhookOf(t, w, w.Owner, "https://hooks.example/x")
		told := w.Follow(w.Owner, 0)
		defer told.Close()
		hear := func() (kinds []string) {
			for {
				b, err := told.Take(ctx, w.Owner)
				if err != nil {
					t.Fatal(err)
				}
				if b == nil {
					return kinds
				}
				for _, ev := range b.Events {
					kinds = append(kinds, ev.Type+" of "+ev.AgentID.String())
				}
			}
		}
		hear()

		w.New(brief)
		lapses := k.Claim(w.New(a).ID, lease(30))
		asks := w.Worker(a)
		c := asks.Claim(w.New(a).ID, lease(900))
		_, err := w.PatchSession(ctx, asks.Caller, asks.ID, c.SessionID, api.SessionPatch{
			UnderClaim: asks.Under(c.ClaimID), Status: api.AwaitingInput,
			Prompt: &api.PromptInput{Text: "May I?", DeadlineSeconds: 30, Default: &api.Answer{Text: "yes"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		rested.Claim(w.New(rests).ID, lease(20))
		later := w.New(a, notBefore(w.Now().Add(40*time.Second)))
		synctest.Wait()
		hear()
		free := holdPages(t, w)
		defer free()

		start := time.Now()
		var wg sync.WaitGroup
		waiter(t, &wg, w.Worker(a), func(c *api.Claim, after time.Duration) {
			if c == nil || c.SessionID != lapses.SessionID || after > 31*time.Second {
				t.Errorf("the waiter got %v after %s", c, after)
			}
		})
		wg.Wait()
		waiter(t, &wg, w.Worker(a), func(c *api.Claim, _ time.Duration) {
			if c == nil || c.SessionID != later.ID || time.Since(start) > 41*time.Second {
				t.Errorf("the waiter got %v after %s", c, time.Since(start))
			}
		})
		wg.Wait()
		waiter(t, &wg, w.Worker(rests), func(c *api.Claim, _ time.Duration) {
			if c == nil || time.Since(start) > 51*time.Second {
				t.Errorf("after its rest the session was claimed after %s: %v", time.Since(start), c)
			}
		})
		wg.Wait()
		time.Sleep(10 * time.Minute) // the workers have gone silent by then
		heard := hear()
		for _, want := range []string{
			"session_stale of " + a.ID.String(), "session_queued of " + a.ID.String(), "session_resumed of " + a.ID.String(),
			"session_error of " + brief.ID.String(), "session_created of " + clock.ID.String(), "worker_stale of " + a.ID.String(), "worker_offline of " + a.ID.String(),
		} {
			if !slices.Contains(heard, want) {
				t.Errorf("no %s was told within %s: %s", want, time.Since(start), strings.Join(heard, ", "))
			}
		}
		if n := slices.Index(heard, "session_created of "+clock.ID.String()); n >= 0 {
			fired := 0
			for _, kind := range heard[n:] {
				if kind == heard[n] {
					fired++
				}
			}
			if fired < 10 {
				t.Errorf("the schedule fired %d times in %s", fired, time.Since(start))
			}
		}
		if sent := sentTo(t, w); len(sent["https://hooks.example/x"]) == 0 {
			t.Error("nothing was delivered")
		}
	})
}
