//go:build eyes

package web

import (
	"net"
	"net/http"
	"stint/api"
	"testing"
	"time"
)

func TestEyes(t *testing.T) {
	s := newScene(t, time.Now().UTC())
	go func() {
		last := time.Now()
		for range time.Tick(200 * time.Millisecond) {
			s.Clock.Step(time.Since(last))
			last = time.Now()
			s.Turn()
			for _, k := range s.workers {
				_ = k
			}
		}
	}()
	go func() {
		for range time.Tick(900 * time.Millisecond) {
			for _, j := range s.running {
				s.print(j, time.Now().Format("15:04:05")+" \x1b[35mstill\x1b[0m reading\n")
				s.Engine.Beat(t.Context(), s.Owner, j.k.ID, beatOf(j))
			}
		}
	}()
	ln, err := net.Listen("tcp", "127.0.0.1:18902")
	if err != nil {
		t.Fatal(err)
	}
	http.Serve(ln, s.handler)
}

func beatOf(j *job) api.Beat { return api.Beat{InstanceID: j.k.Instance, ClaimIDs: []api.ClaimID{j.claim.ClaimID}} }
