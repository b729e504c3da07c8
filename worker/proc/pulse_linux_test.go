package proc

import (
	"testing"
	"time"
)

func TestAwake_TimeWithoutATickHardlyCounts(t *testing.T) {
	t.Parallel()
	a := NewAwake(time.Second)
	a.last = a.last.Add(-time.Hour) // nothing ticked: the process was stopped
	if got := a.Now(); got != 2*time.Second {
		t.Errorf("after an hour of standstill it is %v", got)
	}
	a.Tick()
	if got := a.Now(); got < 2*time.Second || got > 4*time.Second {
		t.Errorf("awake again it is %v", got)
	}
	for range 10 {
		a.last = a.last.Add(-time.Second)
		a.Tick()
	}
	if got := a.Now(); got < 12*time.Second {
		t.Errorf("10 s later it is %v", got)
	}
}

func TestSpec_FollowMovesTheDeadline(t *testing.T) {
	t.Parallel()
	out := newCollected()
	spec := testSpec(agentArgv("sleep", "x")...)
	near := BootNow().Add(spec.Stages.Total() + 1500*time.Millisecond)
	type move struct {
		at    BootTime
		moved chan struct{}
	}
	first, then := move{near, make(chan struct{})}, move{near.Add(time.Hour), make(chan struct{})}
	close(first.moved)
	asked := 0
	spec.Follow = func() (BootTime, <-chan struct{}) { // by Start, then by its one watch
		if asked++; asked <= 2 {
			return first.at, first.moved
		}
		return then.at, then.moved
	}
	p, err := Start(t.Context(), spec, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the agent", out.ready)
	alarm, err := NewAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer alarm.Close()
	alarm.Set(near.Add(-spec.Stages.Total() + 300*time.Millisecond))
	select {
	case <-p.Done():
		t.Fatalf("it ended at the deadline that had moved: %+v", p.Wait())
	case <-alarm.C:
	}
	if err := p.SetDeadline(BootNow().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	await(t, "the end", p.Done())
}
