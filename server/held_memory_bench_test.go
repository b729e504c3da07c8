package server_test

import (
	"runtime"
	"testing"
	"time"

	"stint/server"
	"stint/server/servertest"
)

// BenchmarkHeldMemory reports what a held poll and a live stream keep in memory, the heap's
// objects and the goroutines' stacks apart, over five thousand from another process, each on a
// connection of its own.
func BenchmarkHeldMemory(b *testing.B) {
	raiseFiles(b)
	const many = 5000
	for name, crowd := range map[string]load{"poll": {Polls: many}, "claim": {Polls: many, Claims: true}, "stream": {Connections: many}} {
		b.Run(name, func(b *testing.B) {
			d := newFixture(b, servertest.Options{Quiet: true, Server: func(o *server.Options) { o.Limits = noLimits() }})
			crowd.Used = true
			crowd.Kind, crowd.URL, crowd.Token, crowd.Waits = "crowd", d.URL, d.Token, []string{workerPath(d.worker)}
			for b.Loop() {
				heap, stack := d.keeps(b, crowd, many)
				b.ReportMetric(heap, "heap-B")
				b.ReportMetric(stack, "stack-B")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// keeps returns the bytes of heap and of stack that one of many held requests takes.
func (d *fixture) keeps(tb testing.TB, crowd load, many int) (heap, stack float64) {
	before := kept()
	gathered, _ := crowd.gather(tb)
	servertest.Wait(tb, "all to be held", func() bool { return d.HTTP.Holding() == many })
	during := kept()
	gathered()
	return float64(during.HeapAlloc-before.HeapAlloc) / float64(many), float64(during.StackInuse-before.StackInuse) / float64(many)
}

// kept is what is in use after the collector has run, stacks shrunk.
func kept() (m runtime.MemStats) {
	for range 6 {
		runtime.GC()
		time.Sleep(50 * time.Millisecond) // stacks shrink when their goroutines next may be preempted
	}
	runtime.ReadMemStats(&m)
	return m
}

// noLimits lets as much be held as the machine can.
func noLimits() server.Limits {
	all := server.Limit{Person: 1 << 20, Address: 1 << 20, All: 1 << 20}
	return server.Limits{Streams: all, Waits: all}
}
