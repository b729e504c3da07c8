package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"stint/api"
)

// BenchmarkIdleWorkers has five thousand workers of a coordinator hold their polls and beat
// every 30 s, with nothing to do, and reports what the coordinator uses meanwhile: the share
// of one core and its memory. Set STINT_TEST_BINARY to measure a built program, which has less
// in it.
func BenchmarkIdleWorkers(b *testing.B) {
	const crowd, hold, beat, watched = 5000, time.Minute, 30 * time.Second, time.Minute
	h := newHome(b)
	p := h.serve(asIs, "serve")
	token, err := h.data().readToken()
	h.must(err)
	c, err := api.NewClient(api.ClientConfig{URL: p.ready(), Token: token, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * crowd}})
	h.must(err)
	agent, err := c.CreateAgent(b.Context(), map[string]any{"slug": "tidy", "type": "command", "run": map[string]any{"command": []string{"true"}}})
	h.must(err)
	var ids []api.WorkerID
	for i := range crowd {
		r, err := c.RegisterWorker(b.Context(), "tidy", api.WorkerInput{Name: fmt.Sprint("w", i), InstanceID: "boot"})
		h.must(err)
		ids = append(ids, r.Worker.ID)
	}
	ctx, stop := context.WithCancel(b.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	failed := func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
			b.Error(err)
			stop()
		}
	}
	for i, id := range ids {
		all.Go(func() {
			wait := max(time.Second, hold*time.Duration(i)/crowd) // so that they don't all come at once for ever
			for ctx.Err() == nil {
				_, err := c.Poll(ctx, agent.ID, id, "boot", wait)
				failed(err)
				wait = hold
			}
		})
		all.Go(func() {
			next := time.NewTimer(beat * time.Duration(i) / crowd)
			defer next.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-next.C:
				}
				_, err := c.Beat(ctx, agent.ID, id, api.Beat{InstanceID: "boot"})
				failed(err)
				next.Reset(beat)
			}
		})
	}
	time.Sleep(70 * time.Second) // what it took to create them isn't part of their cost
	for b.Loop() {
		var most int64 // the latest round's figures are reported
		used, begun := p.processorTime(), time.Now()
		for time.Since(begun) < watched && ctx.Err() == nil {
			now, _ := p.memory()
			most = max(most, now)
			time.Sleep(200 * time.Millisecond)
		}
		b.ReportMetric(float64(p.processorTime()-used)/float64(time.Since(begun))*100, "%core")
		b.ReportMetric(float64(most)/1e6, "MB")
	}
	b.ReportMetric(0, "ns/op")
}
