package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// workTakesTime is a clock on which each transaction takes a while, so that things come due
// while a timer is running.
func workTakesTime() time.Time {
	time.Sleep(400 * time.Microsecond)
	return time.Now()
}

// bunches are n instants from a start on: 1 to 10 ms apart, with a long pause after each few,
// so that the last of a bunch has nothing behind it that would make a timer look again by
// chance.
func bunches(start time.Time, n int) []time.Time {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	var out []time.Time
	for at := start; len(out) < n; at = at.Add(time.Second) {
		for range 2 + r.IntN(4) {
			at = at.Add(time.Millisecond + time.Duration(r.Int64N(int64(9*time.Millisecond))))
			out = append(out, at.Truncate(time.Millisecond))
		}
	}
	return out[:n]
}

const mostLate = 200 * time.Millisecond

// What comes due while a timer is running is not left until its next tick, whatever the timer
// is for.
func TestTimers_NothingThatFallsDueDuringTheWorkIsLeftLying(t *testing.T) {
	ctx := context.Background()
	for name, kind := range map[string]struct {
		n    int
		put  func(w *enginetest.Fixture, a api.Agent, k *enginetest.Worker, at time.Time) api.SessionID // something that is due at the instant
		wait time.Duration                                                                              // put this long before its instant; 0 = at the start
		done string                                                                                     // the event that the timer makes of it
	}{
		"not before": {1000, func(w *enginetest.Fixture, a api.Agent, _ *enginetest.Worker, at time.Time) api.SessionID {
			return w.New(a, func(in *api.SessionInput) { in.NotBefore = api.Time{Time: at} }).ID
		}, 0, "session_queued"},
		"lease": {100, func(w *enginetest.Fixture, a api.Agent, k *enginetest.Worker, _ time.Time) api.SessionID {
			return k.Claim(w.New(a).ID, lease(3)).SessionID
		}, 3 * time.Second, "session_stale"},
		"deadline": {100, func(w *enginetest.Fixture, a api.Agent, k *enginetest.Worker, _ time.Time) api.SessionID {
			c := k.Claim(w.New(a).ID, lease(900))
			_, err := w.PatchSession(ctx, k.Caller, k.ID, c.SessionID, api.SessionPatch{
				UnderClaim: k.Under(c.ClaimID), Status: api.AwaitingInput,
				Prompt: &api.PromptInput{Text: "May I?", DeadlineSeconds: 1, Default: &api.Answer{Text: "yes"}},
			})
			if err != nil {
				w.Fatalf("ask: %v", err)
			}
			return c.SessionID
		}, time.Second, "session_resumed"},
		"queue time-out": {100, func(w *enginetest.Fixture, a api.Agent, _ *enginetest.Worker, _ time.Time) api.SessionID {
			return w.New(a).ID
		}, 2 * time.Second, "session_error"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.Fixture) {
				a := w.Agent(func(in *api.AgentInput) {
					in.MaxConcurrent = 1000
					if name == "queue time-out" {
						in.QueueTimeoutSeconds = 2
					}
				})
				k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 1000 })
				instants := bunches(time.Now().Add(10*time.Second), kind.n)
				due := map[api.SessionID]time.Time{}
				for _, at := range instants {
					if kind.wait > 0 {
						time.Sleep(time.Until(at.Add(-kind.wait)))
						at = time.Now().Add(kind.wait)
					}
					due[kind.put(w, a, k, at)] = at
				}
				time.Sleep(time.Until(instants[kind.n-1]) + 10*time.Second)
				for id, at := range due {
					events := must[api.List[api.Event]](t)(w.SessionEvents(ctx, w.Owner, id, api.Page{Limit: 200}))
					found := false
					for _, ev := range events.Items {
						if found = ev.Type == kind.done; found {
							if late := ev.At.Sub(at); late > mostLate {
								t.Errorf("session %s came %s late", id, late)
							}
							break
						}
					}
					if !found {
						t.Errorf("session %s was left lying", id)
					}
				}
			}, enginetest.Now(workTakesTime), enginetest.With(func(c *engine.Config) { c.AutoPauseAfter = 1 << 30 }))
		})
	}
}
