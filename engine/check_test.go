package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

func TestCheck_AQuietLifeBreaksNoPromise(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.Schedule = "*/5 * * * *" })
	k := w.Worker(a)
	s := w.New(a)
	c := k.Claim(s.ID)
	w.Check()
	if _, err := k.Complete(c, "done"); err != nil {
		t.Fatal(err)
	}
	w.Advance(11 * time.Minute)
	w.Want(s.ID, api.Complete)
	if n := len(w.All(a.ID)); n != 2 {
		t.Fatalf("%d sessions", n)
	}
}
