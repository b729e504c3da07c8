package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

// heldKinds are the requests that may be held, by name.
func (d *fixture) heldKinds() map[string]waits {
	at := servertest.Base + workerPath(d.worker)
	return map[string]waits{
		"stream": {path: servertest.Base + "/events", accept: "text/event-stream"},
		"poll":   {path: at + "/sessions?wait=60&instanceId=" + instance},
		"signal": {path: at + "?wait=60&instanceId=" + instance},
		"claim":  {path: servertest.Base + "/claim-next", body: fmt.Sprintf(`{"workerIds":[%q],"instanceId":%q,"wait":60}`, d.worker.ID, instance)},
	}
}

// come has readers come, be told of something, and go again without a word.
func (d *fixture) come(kind waits, many int) {
	d.tb.Helper()
	ctx, leave := context.WithCancel(d.tb.Context())
	defer leave()
	var all sync.WaitGroup
	for range many {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.Addr())
		if err != nil {
			d.tb.Fatal(err)
		}
		if _, err := io.WriteString(conn, kind.text(d.Addr(), d.Token)); err != nil {
			d.tb.Fatal(err)
		}
		all.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		})
	}
	servertest.Wait(d.tb, "all to be held", func() bool { return d.HTTP.Holding() == many })
	for range 5 {
		s := servertest.Must[api.Session](d.Server, 201, "POST", "agents/other/sessions", m{})
		servertest.Must[api.Session](d.Server, 200, "POST", "sessions/"+s.ID.String()+"/cancel", m{})
	}
	leave()
	all.Wait()
	servertest.Wait(d.tb, "all to be gone", func() bool { return d.HTTP.Holding() == 0 })
}

// rounds has crowds come and go, and returns by how much each of those who came has made the
// heap and the number of goroutines grow.
func (d *fixture) rounds(kind waits, many, rounds int) (objects, bytes, goroutines float64) {
	for range 3 {
		d.come(kind, many) // pools and caches fill
	}
	base := d.settled(0)
	for range rounds {
		d.come(kind, many)
	}
	after := d.settled(base.goroutines)
	came := float64(many * rounds)
	return float64(after.objects-base.objects) / came, float64(after.bytes-base.bytes) / came, float64(after.goroutines-base.goroutines) / came
}

type inUse struct{ objects, bytes, goroutines int }

// settled is what is in use once connections that were closed have been noticed: their
// goroutines end after the requests do.
func (d *fixture) settled(goroutines int) (u inUse) {
	d.tb.Helper()
	d.Client.CloseIdleConnections()
	last := 0
	servertest.Wait(d.tb, "goroutines to end", func() bool {
		u.goroutines = runtime.NumGoroutine()
		done := u.goroutines <= goroutines || goroutines == 0 && u.goroutines == last
		last = u.goroutines
		return done
	})
	m := kept()
	u.objects, u.bytes = int(m.Mallocs-m.Frees), int(m.HeapAlloc)
	return u
}

// Of readers who came and went, nothing stays.
func TestHeld_WhoHasLeftLeavesNothing(t *testing.T) {
	d := newFixture(t, servertest.Options{Quiet: true})
	d.addAgent("other", 10)
	for name, kind := range d.heldKinds() {
		t.Run(name, func(t *testing.T) {
			var objects, bytes, goroutines float64
			for range 3 { // what the coordinator itself begins to keep meanwhile isn't there each time
				objects, bytes, goroutines = d.rounds(kind, 100, 10)
				if objects <= 1 && bytes <= 100 && goroutines <= 0 {
					return
				}
			}
			t.Errorf("each reader left %.2f objects of %.0f bytes, and %.3f goroutines", objects, bytes, goroutines)
		})
	}
}

// BenchmarkComeAndGo is the long form: of each kind forty thousand readers, in crowds of two
// thousand.
func BenchmarkComeAndGo(b *testing.B) {
	raiseFiles(b)
	d := newFixture(b, servertest.Options{Quiet: true, Server: func(o *server.Options) { o.Limits = noLimits() }})
	d.addAgent("other", 10)
	for name, kind := range d.heldKinds() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				objects, bytes, goroutines := d.rounds(kind, 2000, 20)
				b.ReportMetric(objects, "objects-left")
				b.ReportMetric(bytes, "B-left")
				b.ReportMetric(goroutines, "goroutines-left")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
