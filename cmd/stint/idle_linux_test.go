package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
)

// BenchmarkIdleWorkers has five thousand workers of a coordinator hold their polls and beat
// every 30 s, with nothing to do, and reports what the coordinator uses meanwhile: the share
// of one core and its memory. Set STINT_TEST_BINARY to measure a built program, which has less
// in it.
func BenchmarkIdleWorkers(b *testing.B) {
	idles(b, 5000, []map[string]any{{"slug": "tidy", "type": "command", "run": map[string]any{"command": []string{"true"}}}},
		func(ctx context.Context, c *api.Client, w api.Worker, wait time.Duration) error {
			_, err := c.Poll(ctx, w.AgentID, w.ID, "boot", wait)
			return err
		})
}

// BenchmarkIdleSchedules has a thousand agents with a schedule of which none is due, and a
// hundred workers for the first hundred, which ask for claims as real ones do.
func BenchmarkIdleSchedules(b *testing.B) {
	var agents []map[string]any
	for i := range 1000 {
		agents = append(agents, map[string]any{
			"slug": fmt.Sprint("a", i), "type": "command", "run": map[string]any{"command": []string{"true"}}, "schedule": "0 0 1 1 *",
		})
	}
	idles(b, 100, agents, func(ctx context.Context, c *api.Client, w api.Worker, wait time.Duration) error {
		_, err := c.ClaimNext(ctx, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{w.ID}, InstanceID: "boot", WaitSeconds: int64(wait / time.Second)})
		return err
	})
}

// idles reports what a coordinator uses while workers, spread over its agents, hold requests
// and beat.
func idles(b *testing.B, crowd int, agents []map[string]any, ask func(context.Context, *api.Client, api.Worker, time.Duration) error) {
	const hold, beat, watched = time.Minute, 30 * time.Second, time.Minute
	h := newHome(b)
	tokens := h.people(3)
	p := h.serve(asIs, "serve")
	var owners []*api.Client
	for i, token := range tokens {
		// So much is not held for one person, nor for one address.
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i))}}
		c, err := api.NewClient(api.ClientConfig{URL: p.ready(), Token: token, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * crowd, DialContext: from.DialContext}})
		h.must(err)
		owners = append(owners, c)
	}
	for _, in := range agents {
		_, err := owners[0].CreateAgent(b.Context(), in)
		h.must(err)
	}
	var workers []api.Worker
	for i := range crowd {
		r, err := owners[i%len(owners)].RegisterWorker(b.Context(), agents[i%len(agents)]["slug"].(string), api.WorkerInput{Name: fmt.Sprint("w", i), InstanceID: "boot"})
		h.must(err)
		workers = append(workers, r.Worker)
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
	for i, w := range workers {
		c := owners[i%len(owners)]
		all.Go(func() {
			wait := max(time.Second, hold*time.Duration(i)/time.Duration(crowd)) // so that they don't all come at once for ever
			for ctx.Err() == nil {
				failed(ask(ctx, c, w, wait))
				wait = hold
			}
		})
		all.Go(func() {
			next := time.NewTimer(beat * time.Duration(i) / time.Duration(crowd))
			defer next.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-next.C:
				}
				_, err := c.Beat(ctx, w.AgentID, w.ID, api.Beat{InstanceID: "boot"})
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
		share := float64(p.processorTime()-used) / float64(time.Since(begun))
		b.ReportMetric(share*100, "%core")
		b.ReportMetric(share*60_000, "cpu-ms/min")
		b.ReportMetric(float64(most)/1e6, "MB")
	}
	b.ReportMetric(0, "ns/op")
}

// people makes a data directory with an owner and further members, and returns a bearer token
// of each.
func (h *home) people(n int) (tokens []string) {
	h.Helper()
	ctx := h.Context()
	h.must(h.data().prepare(false))
	store, err := db.Open(ctx, db.Options{Path: h.data().database(), Unsafe: db.Unsafe{Synchronous: "OFF"}})
	h.must(err)
	defer func() { h.must(store.Close()) }()
	all := account.New(store, account.DefaultConfig())
	token, _, err := all.EnsureOwner(ctx)
	h.must(err)
	h.must(h.data().writeToken(token))
	who, err := all.Owner(ctx)
	h.must(err)
	owner, err := all.In(ctx, who, account.DefaultWorkspace)
	h.must(err)
	for tokens = append(tokens, token); len(tokens) < n; tokens = append(tokens, token) {
		name := fmt.Sprint("member-", len(tokens))
		invited, err := all.Invite(ctx, owner, api.InvitationInput{Role: api.Member})
		h.must(err)
		cookie, _, err := all.Join(ctx, invited.Code, api.LoginInput{Name: name, Login: name, Password: "long enough for a member"}, account.From{})
		h.must(err)
		who, err := all.Authenticate(ctx, cookie)
		h.must(err)
		token, err = all.NewBearer(ctx, who.UserID)
		h.must(err)
	}
	return tokens
}
