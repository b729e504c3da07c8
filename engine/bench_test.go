package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
)

// bench is an engine on a real file at full durability, with one agent and a worker for each
// caller.
type bench struct {
	e       *engine.Engine
	store   *db.Store
	path    string
	c       engine.Caller
	agent   api.Agent
	workers []api.WorkerID
	later   *atomic.Int64 // how far the coordinator's clock is ahead of the machine's
}

func newBench(b *testing.B, workers int) *bench {
	b.Helper()
	ctx := context.Background()
	path := filepath.Join(b.TempDir(), "stint.db")
	later := &atomic.Int64{}
	store, err := db.Open(ctx, db.Options{Path: path, Clock: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	s := &bench{later: later, e: engine.New(store, engine.DefaultConfig()), store: store, path: path}
	people := account.New(store, account.DefaultConfig())
	token, _, err := people.EnsureOwner(ctx)
	if err != nil {
		b.Fatal(err)
	}
	who, err := people.Authenticate(ctx, token)
	if err != nil {
		b.Fatal(err)
	}
	if s.c, err = people.In(ctx, who, account.DefaultWorkspace); err != nil {
		b.Fatal(err)
	}
	s.agent = s.addAgent(b, "bench")
	for i := range workers {
		s.workers = append(s.workers, s.addWorker(b, "bench", fmt.Sprintf("w%d", i)))
	}
	return s
}

func (s *bench) addAgent(b *testing.B, slug string) api.Agent {
	b.Helper()
	in := engine.DefaultConfig().DefaultAgent()
	in.Slug, in.Run.Command, in.MaxConcurrent = slug, []string{"true"}, 1000
	a, err := s.e.CreateAgent(context.Background(), s.c, in)
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func (s *bench) addWorker(b *testing.B, agent, name string) api.WorkerID {
	b.Helper()
	r, err := s.e.RegisterWorker(context.Background(), s.c, agent, api.WorkerInput{Name: name, MaxConcurrent: 1000})
	if err != nil {
		b.Fatal(err)
	}
	return r.Worker.ID
}

// cycle creates a session, claims one, notes progress if asked, completes it.
func (s *bench) cycle(worker api.WorkerID, activity bool) error {
	ctx := context.Background()
	if _, _, err := s.e.CreateSession(ctx, s.c, "bench", api.SessionInput{Prompt: new("Say hello.")}, engine.Idempotency{}); err != nil {
		return err
	}
	claim, err := s.e.ClaimNext(ctx, s.c, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{worker}})
	if err != nil {
		return err
	}
	if claim == nil {
		return fmt.Errorf("nothing to claim")
	}
	proof := api.UnderClaim{ClaimID: claim.ClaimID}
	if activity {
		_, err := s.e.AddActivity(ctx, s.c, worker, claim.SessionID, api.ActivityInput{UnderClaim: proof, Type: api.ActivityProgress, Text: "half way"})
		if err != nil {
			return err
		}
	}
	_, err = s.e.Complete(ctx, s.c, worker, claim.SessionID, api.CompleteRequest{UnderClaim: proof, Result: "hello"})
	return err
}

// run shares n cycles among the callers.
func (s *bench) run(b *testing.B, callers, n int, do func(worker api.WorkerID) error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(s.workers[i]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func (s *bench) measure(b *testing.B, callers int, do func(worker api.WorkerID) error) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	s.run(b, callers, b.N, do)
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

// BenchmarkLifecycle is create, claim-next, activity, complete: four durable writes.
func BenchmarkLifecycle(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := newBench(b, callers)
			s.measure(b, callers, func(w api.WorkerID) error { return s.cycle(w, true) })
		})
	}
}

// BenchmarkClosedCycle is create, claim-next, complete: what a queue calls insert, work, done.
func BenchmarkClosedCycle(b *testing.B) {
	for _, callers := range []int{64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := newBench(b, callers)
			s.measure(b, callers, func(w api.WorkerID) error { return s.cycle(w, false) })
		})
	}
}

// fillQueue queues n sessions of an agent through the real verb.
func (s *bench) fillQueue(b *testing.B, agent string, n int) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				_, _, err := s.e.CreateSession(context.Background(), s.c, agent, api.SessionInput{Prompt: new("x")}, engine.Idempotency{})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// claimOne claims the best session and gives it back, and times only the claim.
func (s *bench) claimOne(b *testing.B, worker api.WorkerID) time.Duration {
	ctx := context.Background()
	start := time.Now()
	claim, err := s.e.ClaimNext(ctx, s.c, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{worker}})
	took := time.Since(start)
	if err != nil || claim == nil {
		b.Fatal(claim, err)
	}
	_, err = s.e.Complete(ctx, s.c, worker, claim.SessionID, api.CompleteRequest{UnderClaim: api.UnderClaim{ClaimID: claim.ClaimID}})
	if err != nil {
		b.Fatal(err)
	}
	return took
}
