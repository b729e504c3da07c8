package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// linTaskVerbs are what the histories are recorded from: the engine's, or with a planted defect.
type linTaskVerbs struct {
	claim   func(engine.Caller, string, api.TaskClaimInput) (api.TaskHeld, error)
	renew   func(engine.Caller, string) (api.TaskHeld, error)
	extend  func(engine.Caller, string, api.TaskExtendInput) (api.TaskHeld, error)
	release func(engine.Caller, string) (api.TaskReleased, error)
}

func soundTasks(w *enginetest.Fixture) linTaskVerbs {
	ctx := context.Background()
	return linTaskVerbs{
		claim: func(c engine.Caller, ref string, in api.TaskClaimInput) (api.TaskHeld, error) {
			return w.ClaimTask(ctx, c, ref, in)
		},
		renew: func(c engine.Caller, ref string) (api.TaskHeld, error) { return w.RenewTask(ctx, c, ref) },
		extend: func(c engine.Caller, ref string, in api.TaskExtendInput) (api.TaskHeld, error) {
			return w.ExtendTask(ctx, c, ref, in)
		},
		release: func(c engine.Caller, ref string) (api.TaskReleased, error) { return w.ReleaseTask(ctx, c, ref) },
	}
}

// linPerson is one of the people who want the tasks.
type linPerson struct {
	t     testing.TB
	n     int
	r     *rand.Rand
	rec   *recorder
	w     *enginetest.Fixture
	verbs linTaskVerbs
	c     engine.Caller
	tasks []api.Task
	pace  int // the longest step of the clock, in milliseconds
}

func (p *linPerson) step() {
	if p.r.IntN(3) == 0 {
		p.rec.clock.Step(time.Duration(p.r.IntN(p.pace)) * time.Millisecond)
	}
	t := p.tasks[p.r.IntN(len(p.tasks))]
	call := linTaskCall{task: t.ID, by: p.c.Name}
	switch n := p.r.IntN(100); {
	case n < 10: // the timer's turn
		if _, err := p.w.Lapse(context.Background(), p.w.Now()); err != nil {
			p.t.Errorf("lapse: %v", err)
		}
		return
	case n < 50:
		seconds := int64(60 + 30*p.r.IntN(2))
		call.kind, call.seconds = "claim", seconds*1e6
		p.held(call, func() (api.TaskHeld, error) {
			return p.verbs.claim(p.c, t.Key, api.TaskClaimInput{LeaseSeconds: &seconds})
		})
	case n < 70:
		call.kind = "renew"
		p.held(call, func() (api.TaskHeld, error) { return p.verbs.renew(p.c, t.Key) })
	case n < 78:
		call.kind, call.seconds = "extend", 5e6
		p.held(call, func() (api.TaskHeld, error) { return p.verbs.extend(p.c, t.Key, api.TaskExtendInput{AddSeconds: 5}) })
	default:
		call.kind = "release"
		p.rec.record(p.n, call, func() any {
			got, err := p.verbs.release(p.c, t.Key)
			return p.answer(err, linTaskAnswer{did: got.Released})
		})
	}
}

func (p *linPerson) held(call linTaskCall, do func() (api.TaskHeld, error)) {
	p.rec.record(p.n, call, func() any {
		got, err := do()
		out := linTaskAnswer{at: got.ServerTime.UnixMicro(), did: got.Renewed}
		if got.Task.Lease != nil {
			out.expires = got.Task.Lease.ExpiresAt.UnixMicro()
		}
		if got.TookOverFrom != nil {
			out.was = got.TookOverFrom.Name
		}
		return p.answer(err, out)
	})
}

func (p *linPerson) answer(err error, out linTaskAnswer) linTaskAnswer {
	if err == nil {
		return out
	}
	e := refusal(err)
	if e == nil {
		p.t.Errorf("a call failed: %v", err)
		return linTaskAnswer{code: api.CodeInternal}
	}
	return linTaskAnswer{code: e.Code, holder: e.Holder, expires: api.Micros(e.ExpiresAt.Time)}
}

func linPeople(t testing.TB) (w *enginetest.Fixture, people []engine.Caller) {
	w = enginetest.Open(t, enginetest.With(func(c *engine.Config) { c.OutageAfter = 1000 * time.Hour }))
	for i := range linWorkers {
		people = append(people, w.Colleague(fmt.Sprint("Person ", i), api.Member))
	}
	return w, people
}

// taskHistory records the answers to people who want the same tasks at once.
func taskHistory(t testing.TB, w *enginetest.Fixture, people []engine.Caller, verbs linTaskVerbs, seed uint64) []porcupine.Operation {
	var tasks []api.Task
	for range linSessions {
		tasks = append(tasks, w.Task("one"))
	}
	rec := &recorder{clock: w.Clock}
	pace := []int{1000, 4000, 20000}[seed%3]
	var wg sync.WaitGroup
	for i, c := range people {
		p := &linPerson{t: t, n: i, r: rand.New(rand.NewPCG(seed, uint64(i))), rec: rec, w: w, verbs: verbs, c: c, tasks: tasks, pace: pace}
		wg.Go(func() {
			for range linSteps {
				p.step()
			}
		})
	}
	wg.Wait()
	return rec.ops
}

// What people do with the leases of tasks at the same time could have been done one after the
// other, each at the time that its answer says.
func TestLinearizable_LeasesOnTasks(t *testing.T) {
	t.Parallel()
	w, people := linPeople(t)
	ops, answers := 0, map[string]int{}
	for seed := range uint64(fewer(60) * *soak) {
		h := taskHistory(t, w, people, soundTasks(w), seed)
		ops += len(h)
		for _, op := range h {
			answers[op.Input.(linTaskCall).kind+" "+string(op.Output.(linTaskAnswer).code)]++
		}
		if got := porcupine.CheckOperationsTimeout(linTaskModel, h, 20*time.Second); got != porcupine.Ok {
			t.Fatalf("history %d of %d calls: %s", seed, len(h), got)
		}
	}
	w.Check()
	t.Logf("%d calls: %v", ops, answers)
}

// The checker has been seen to fail: each planted defect is caught.
func TestLinearizable_PlantedDefectsOfTasksAreCaught(t *testing.T) {
	for name, plant := range map[string]func(*enginetest.Fixture, *linTaskVerbs){
		"claim looks and then acts": func(w *enginetest.Fixture, v *linTaskVerbs) {
			v.claim = func(c engine.Caller, ref string, in api.TaskClaimInput) (api.TaskHeld, error) {
				return w.ClaimTaskLookThenAct(context.Background(), c, ref, in)
			}
		},
		"a renewal claims anew": func(_ *enginetest.Fixture, v *linTaskVerbs) {
			claim := v.claim
			v.renew = func(c engine.Caller, ref string) (api.TaskHeld, error) {
				return claim(c, ref, api.TaskClaimInput{LeaseSeconds: new(int64(60))})
			}
		},
		"a renewal promises more than it keeps": func(_ *enginetest.Fixture, v *linTaskVerbs) {
			renew := v.renew
			v.renew = func(c engine.Caller, ref string) (api.TaskHeld, error) {
				got, err := renew(c, ref)
				if got.Task.Lease != nil {
					got.Task.Lease.ExpiresAt.Time = got.Task.Lease.ExpiresAt.Add(time.Second)
				}
				return got, err
			}
		},
		"a release forgets to": func(w *enginetest.Fixture, v *linTaskVerbs) {
			release := v.release
			v.release = func(c engine.Caller, ref string) (api.TaskReleased, error) {
				t, err := w.Engine.Task(context.Background(), c, ref)
				if err != nil || t.Lease == nil || t.Lease.Holder.Name != c.Name {
					return release(c, ref)
				}
				return api.TaskReleased{Task: t, Released: true}, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, people := linPeople(t)
			verbs := soundTasks(w)
			plant(w, &verbs)
			for seed := range uint64(50) {
				if porcupine.CheckOperationsTimeout(linTaskModel, taskHistory(t, w, people, verbs, seed), 20*time.Second) == porcupine.Illegal {
					t.Logf("caught in history %d", seed)
					return
				}
			}
			t.Fatal("50 histories were found in order")
		})
	}
}
