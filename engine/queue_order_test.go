package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// A session that its worker gives back is the next one again, however many were queued since;
// only one that says when goes to the back (contract 2.6).
func TestRelease_KeepsThePlaceInTheQueue(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent, in.QueueTimeoutSeconds = 5, 3600 })
	k := w.Worker(a)
	first := w.New(a).ID
	w.Advance(time.Second)
	second := w.New(a).ID
	c := k.Next()
	for range 14 { // longer than the queue time-out
		w.Advance(5 * time.Minute)
		k.Beat(*c)
	}
	later := w.New(a).ID
	must[api.Finished](t)(k.Release(*c))
	w.Advance(time.Second)
	w.Want(first, api.Queued) // its time-out counts from when it was given back
	if c = k.Next(); c.SessionID != first {
		t.Fatalf("the next one is %s, want %s", c.SessionID, first)
	}
	must[api.Finished](t)(k.Release(*c, func(in *api.ReleaseRequest) { in.NotBefore = api.Time{Time: w.Now().Add(time.Minute)} }))
	w.Advance(2 * time.Minute)
	w.Want(second, api.Failed) // nobody claimed it for an hour
	if c = k.Next(); c.SessionID != later {
		t.Fatalf("the next one is %s, want %s", c.SessionID, later)
	}
	if c = k.Next(); c.SessionID != first {
		t.Fatalf("the last one is %s, want %s", c.SessionID, first)
	}
}
