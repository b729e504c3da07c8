package engine_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// linEngine is what the histories are recorded from: the engine, or one with a planted defect.
type linEngine struct {
	claim    func(k *enginetest.Worker, s api.SessionID, lease int64) (api.Claim, error)
	renew    func(k *enginetest.Worker, c api.Claim) (api.Lease, error)
	complete func(k *enginetest.Worker, c api.Claim) (api.Finished, error)
}

func soundEngine(*enginetest.Fixture) linEngine {
	return linEngine{
		claim:    func(k *enginetest.Worker, s api.SessionID, n int64) (api.Claim, error) { return k.Try(s, lease(n)) },
		renew:    func(k *enginetest.Worker, c api.Claim) (api.Lease, error) { return k.Renew(c) },
		complete: func(k *enginetest.Worker, c api.Claim) (api.Finished, error) { return k.Complete(c, "done") },
	}
}

// recorder numbers the beginning and end of each call.
type recorder struct {
	mu    sync.Mutex
	ops   []porcupine.Operation
	ticks atomic.Int64
	clock *enginetest.Clock
}

// recorded is a call of a history.
type recorded interface {
	about() int64               // what it is on: what is on another thing is checked apart
	between(from, to int64) any // the same call, with the clock before and after it
}

func (r *recorder) record(client int, in recorded, call func() any) {
	from := r.clock.Now().UnixMicro()
	begin := r.ticks.Add(1)
	out := call()
	end := r.ticks.Add(1)
	done := in.between(from, r.clock.Now().UnixMicro())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: done, Call: begin, Output: out, Return: end})
}

// linClient is one worker process: it holds what it was granted, and keeps using claims that
// ended long ago.
type linClient struct {
	t       testing.TB
	n       int
	r       *rand.Rand
	rec     *recorder
	w       *enginetest.Fixture
	e       linEngine
	k       *enginetest.Worker
	targets []api.SessionID
	claims  []api.Claim
	pace    int // the longest step of the clock, in milliseconds
}

func (c *linClient) answer(err error, out linAnswer) linAnswer {
	if err == nil {
		return out
	}
	e := refusal(err)
	if e == nil {
		c.t.Errorf("a call failed: %v", err)
		return linAnswer{code: api.CodeInternal}
	}
	return linAnswer{code: e.Code, holder: e.WorkerID, expires: api.Micros(e.ExpiresAt.Time)}
}

func (c *linClient) step() {
	if c.r.IntN(3) == 0 {
		c.rec.clock.Step(time.Duration(c.r.IntN(c.pace)) * time.Millisecond)
	}
	switch n := c.r.IntN(200); {
	case n < 80:
		c.claim(c.targets[c.r.IntN(len(c.targets))])
	case n == 80:
		c.cancel(c.targets[c.r.IntN(len(c.targets))])
	case n < 100: // the timer's turn
		if _, err := c.w.Lapse(context.Background(), c.w.Now()); err != nil {
			c.t.Errorf("lapse: %v", err)
		}
	case len(c.claims) == 0:
	case n < 150:
		c.renew(c.held())
	case n < 196:
		c.finish("release", c.held())
	default:
		c.finish([]string{"complete", "fail"}[n%2], c.held())
	}
}

// held is mostly the newest claim, and now and then an old one.
func (c *linClient) held() api.Claim {
	if c.r.IntN(4) == 0 {
		return c.claims[c.r.IntN(len(c.claims))]
	}
	return c.claims[len(c.claims)-1]
}

func (c *linClient) claim(s api.SessionID) {
	const seconds = 60
	c.rec.record(c.n, linCall{kind: "claim", session: s, worker: c.k.ID, lease: seconds * 1e6}, func() any {
		got, err := c.e.claim(c.k, s, seconds)
		if err == nil {
			c.claims = append(c.claims, got)
		}
		return c.answer(err, linAnswer{at: got.ServerTime.UnixMicro(), fence: got.Fence, expires: got.LeaseExpiresAt.UnixMicro()})
	})
}

func (c *linClient) renew(held api.Claim) {
	c.rec.record(c.n, linCall{kind: "renew", session: held.SessionID, worker: c.k.ID, fence: held.Fence}, func() any {
		got, err := c.e.renew(c.k, held)
		return c.answer(err, linAnswer{at: got.ServerTime.UnixMicro(), expires: got.LeaseExpiresAt.UnixMicro()})
	})
}

func (c *linClient) finish(verb string, held api.Claim) {
	c.rec.record(c.n, linCall{kind: verb, session: held.SessionID, worker: c.k.ID, fence: held.Fence}, func() any {
		var got api.Finished
		var err error
		switch verb {
		case "complete":
			got, err = c.e.complete(c.k, held)
		case "fail":
			got, err = c.k.Fail(held, "AGENT_CRASHED")
		default:
			got, err = c.k.Release(held)
		}
		return c.answer(err, linAnswer{at: got.ServerTime.UnixMicro(), status: got.Session.Status})
	})
}

func (c *linClient) cancel(s api.SessionID) {
	c.rec.record(c.n, linCall{kind: "cancel", session: s}, func() any {
		got, err := c.w.CancelSession(context.Background(), c.w.Owner, s, api.CancelInput{})
		return c.answer(err, linAnswer{at: got.Session.EndedAt.UnixMicro(), changed: got.Changed})
	})
}

const (
	linWorkers  = 6
	linSessions = 3
	linSteps    = 40 // of each worker
)

// linFixture has room for any number of claims, so that only leases refuse.
func linFixture(t testing.TB) (*enginetest.Fixture, api.Agent, []*enginetest.Worker) {
	w := enginetest.Open(t, enginetest.With(func(c *engine.Config) { c.OutageAfter, c.OfflineAfter = 1000*time.Hour, 1000*time.Hour }))
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent, in.MaxLapses = 1000, 100 })
	var workers []*enginetest.Worker
	for range linWorkers {
		workers = append(workers, w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 1000 }))
	}
	return w, a, workers
}

// history records the answers to concurrent workers.
func history(t testing.TB, w *enginetest.Fixture, a api.Agent, workers []*enginetest.Worker, e linEngine, seed uint64) []porcupine.Operation {
	var targets []api.SessionID
	for range linSessions {
		targets = append(targets, w.New(a).ID)
	}
	rec := &recorder{clock: w.Clock}
	pace := []int{1000, 4000, 20000}[seed%3]
	var wg sync.WaitGroup
	for i, k := range workers {
		c := &linClient{t: t, n: i, r: rand.New(rand.NewPCG(seed, uint64(i))), rec: rec, w: w, e: e, k: k, targets: targets, pace: pace}
		wg.Go(func() {
			for range linSteps {
				c.step()
			}
		})
	}
	wg.Wait()
	return rec.ops
}

// Claims, renewals and finishes of concurrent workers are linearizable: they could have
// happened one after the other, each at the time that its answer says.
func TestLinearizable_ClaimsOfConcurrentWorkers(t *testing.T) {
	t.Parallel()
	w, a, workers := linFixture(t)
	ops, answers := 0, map[string]int{}
	for seed := range uint64(fewer(60) * *soak) {
		h := history(t, w, a, workers, soundEngine(w), seed)
		ops += len(h)
		for _, op := range h {
			answers[op.Input.(linCall).kind+" "+string(op.Output.(linAnswer).code)]++
		}
		if got := porcupine.CheckOperationsTimeout(linModel, h, 20*time.Second); got != porcupine.Ok {
			t.Fatalf("history %d of %d calls: %s", seed, len(h), got)
		}
	}
	w.Check()
	t.Logf("%d calls: %v", ops, answers)
}

// The checker has been seen to fail: each planted defect is caught.
func TestLinearizable_PlantedDefectsAreCaught(t *testing.T) {
	for name, plant := range map[string]func(*enginetest.Fixture) linEngine{
		"claim looks and then acts": func(w *enginetest.Fixture) linEngine {
			e := soundEngine(w)
			e.claim = func(k *enginetest.Worker, s api.SessionID, n int64) (api.Claim, error) {
				return w.ClaimLookThenAct(context.Background(), k.Caller, k.ID, s, api.ClaimRequest{InstanceID: k.Instance, LeaseSeconds: &n})
			}
			return e
		},
		"a lapsed lease is renewed": func(w *enginetest.Fixture) linEngine {
			e := soundEngine(w)
			e.renew = func(k *enginetest.Worker, c api.Claim) (api.Lease, error) {
				return w.RenewEvenLapsed(context.Background(), k.Caller, k.ID, c.SessionID, api.RenewRequest{UnderClaim: k.Under(c.ClaimID)})
			}
			return e
		},
		"complete under any claim": func(w *enginetest.Fixture) linEngine {
			e := soundEngine(w)
			e.complete = func(k *enginetest.Worker, c api.Claim) (api.Finished, error) {
				return w.CompleteUnderAny(context.Background(), k.Caller, c.SessionID)
			}
			return e
		},
		"a renewal promises more than it keeps": func(w *enginetest.Fixture) linEngine {
			e := soundEngine(w)
			e.renew = func(k *enginetest.Worker, c api.Claim) (api.Lease, error) {
				l, err := k.Renew(c)
				l.LeaseExpiresAt.Time = l.LeaseExpiresAt.Add(time.Second)
				return l, err
			}
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, workers := linFixture(t)
			e := plant(w)
			for seed := range uint64(50) {
				if porcupine.CheckOperationsTimeout(linModel, history(t, w, a, workers, e, seed), 20*time.Second) == porcupine.Illegal {
					t.Logf("caught in history %d", seed)
					return
				}
			}
			t.Fatal("50 histories were found in order")
		})
	}
}
