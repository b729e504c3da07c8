package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"stint/api"
)

// BenchmarkWriteWhilePruned measures how long writes take while a round of retention removes
// 20,000 old sessions, and for as long without one: at the 99th percentile they may take twice as
// long. Run it once, with -benchtime 1x.
func BenchmarkWriteWhilePruned(b *testing.B) {
	const callers, old = 8, 20_000
	for b.Loop() {
		s := newBench(b, 256)
		s.run(b, 256, old, func(w api.WorkerID) error { return s.cycle(w, true) })
		s.later.Store(int64(200 * day))
		s.workers = nil
		for i := range callers {
			s.workers = append(s.workers, s.addWorker(b, "bench", fmt.Sprintf("later-%d", i)))
		}
		ctx := context.Background()
		round := s.writesDuring(b, func(stop func()) {
			steps := 0
			for {
				next, err := s.e.Prune(ctx, s.store.Now())
				if err != nil {
					b.Error(err)
				}
				if steps++; err != nil || next.IsZero() {
					b.ReportMetric(float64(steps), "steps")
					stop()
					return
				}
				time.Sleep(next.Sub(s.store.Now()))
			}
		})
		took, with := round.took, round.p99
		without := s.writesDuring(b, func(stop func()) { time.Sleep(took); stop() })
		if gone, err := s.e.Sessions(ctx, s.c, api.SessionFilter{}, api.Page{}); err != nil || len(gone.Items) == 0 {
			b.Errorf("%d sessions are left (%v)", len(gone.Items), err)
		}
		b.ReportMetric(float64(with.Microseconds()), "µs-p99-with")
		b.ReportMetric(float64(without.p99.Microseconds()), "µs-p99-without")
		b.ReportMetric(float64(with)/float64(without.p99), "times")
		b.ReportMetric(took.Seconds(), "s-of-a-round")
	}
}

type measured struct{ took, p99 time.Duration }

// writesDuring has callers write one thing after the other while something is done, and says how
// long each write took.
func (s *bench) writesDuring(b *testing.B, do func(stop func())) (out measured) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for i := range s.workers {
		wg.Go(func() {
			var own []time.Duration
			for ctx.Err() == nil {
				began := time.Now()
				if err := s.cycle(s.workers[i], false); err != nil {
					b.Error(err)
					return
				}
				own = append(own, time.Since(began)/3) // create, claim, complete
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	began := time.Now()
	do(stop)
	out.took = time.Since(began)
	wg.Wait()
	slices.Sort(all)
	out.p99 = all[len(all)*99/100]
	return out
}
