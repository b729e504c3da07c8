package server_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/server/servertest"
)

func serveHandler(tb testing.TB, h http.Handler) string {
	tb.Helper()
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	hs := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(ln) }()
	tb.Cleanup(func() { _ = hs.Close(); <-done })
	return "http://" + ln.Addr().String()
}

// benchFixture is a coordinator at full durability with a worker for each connection.
func benchFixture(b *testing.B, workers int) (*fixture, []string) {
	b.Helper()
	d := newFixture(b, servertest.Options{Durable: true, Quiet: true})
	ids := []string{d.worker.ID.String()}
	for i := 1; i < workers; i++ {
		ids = append(ids, d.addWorker("tidy", fmt.Sprintf("bench-%d", i)).ID.String())
	}
	return d, ids
}

// BenchmarkHTTPLifecycle compares, in the same rounds, the requests/s of whole sessions
// (create, claim-next, activity, complete: four durable writes) with those of a handler that
// answers {}. Both clients are processes of their own.
func BenchmarkHTTPLifecycle(b *testing.B) {
	for _, connections := range []int{64, 256} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			d, workers := benchFixture(b, connections)
			life := load{URL: d.URL, Token: d.Token, Kind: "lifecycle", Connections: connections, Workers: workers, Agent: "tidy", Millis: 2000}
			empty := life
			empty.URL, empty.Kind = emptyServer(b), "empty"
			warm := life
			warm.Millis = 300
			warm.run(b)
			var lifes, empties, ratios, costs []float64
			for b.Loop() {
				e, l := empty.run(b), life.run(b)
				b.Logf("CPU µs a request, client + server: empty %.0f + %.0f, lifecycle %.0f + %.0f", e.Client*1e6/float64(e.Requests), e.Server*1e6/float64(e.Requests),
					l.Client*1e6/float64(l.Requests), l.Server*1e6/float64(l.Requests))
				empties, lifes = append(empties, e.perSecond()), append(lifes, l.perSecond())
				ratios = append(ratios, l.perSecond()/e.perSecond())
				costs = append(costs, e.cost()/l.cost())
			}
			b.ReportMetric(0, "ns/op") // an operation is a round, its time means nothing
			b.ReportMetric(median(empties), "empty-req/s")
			b.ReportMetric(median(lifes), "life-req/s")
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(costs), "cpu-ratio") // the same by CPU time, which other programs don't affect
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkClaimLatency reports how long it takes from POST session until the
// worker that waits in claim-next holds the claim.
func BenchmarkClaimLatency(b *testing.B) {
	d, workers := benchFixture(b, 1)
	l := load{URL: d.URL, Token: d.Token, Kind: "latency", Connections: 4, Workers: workers, Agent: "tidy", Rounds: 500}
	var all []int64
	for b.Loop() {
		all = append(all, l.run(b).Micros...)
	}
	slices.Sort(all)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(all[len(all)/2])/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100])/1000, "p99-ms")
}

// BenchmarkSignIns has a hundred people sign in with their passwords at once and reports this
// process's memory meanwhile, and how many were asked to wait.
func BenchmarkSignIns(b *testing.B) {
	const people = 100
	d := newFixture(b, servertest.Options{Quiet: true})
	for i := range people {
		one := d.As(d.AddUser(account.DefaultWorkspace, api.Member))
		servertest.Must[api.Account](one, 200, "POST", "/api/v1/account/login", m{"login": fmt.Sprintf("user-%d", i), "password": password})
	}
	debug.FreeOSMemory()
	var resident, waits []float64
	for b.Loop() {
		peak := make(chan float64)
		stop := make(chan struct{})
		go func() { peak <- residentWhile(stop) }()
		var told atomic.Int64
		var all sync.WaitGroup
		for i := range people {
			all.Go(func() {
				switch a := d.tries(fmt.Sprintf("user-%d", i), password); a.Status {
				case http.StatusSeeOther:
				case http.StatusTooManyRequests:
					told.Add(1)
				default:
					b.Errorf("signing in answered %d", a.Status)
				}
			})
		}
		all.Wait()
		close(stop)
		resident, waits = append(resident, <-peak), append(waits, float64(told.Load()))
	}
	b.ReportMetric(median(resident)/1e6, "MB")
	b.ReportMetric(median(waits), "told-to-wait")
}

// residentWhile is the most memory that this process had until stop is closed.
func residentWhile(stop <-chan struct{}) (most float64) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		most = max(most, resident())
		select {
		case <-stop:
			return most
		case <-tick.C:
		}
	}
}

// resident is how much of this process is in memory, in bytes; 0 if that can't be read.
func resident() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages float64
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return pages * float64(os.Getpagesize())
}
