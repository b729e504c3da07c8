package proc

import (
	"testing"
	"time"
)

func TestAlarm_RingsAtTheInstantAndCanBeMoved(t *testing.T) {
	t.Parallel()
	a, err := NewAlarm()
	if err != nil {
		t.Fatal(err)
	}
	a.Set(BootNow().Add(time.Hour))
	a.Set(0)
	at := BootNow().Add(30 * time.Millisecond)
	a.Set(at)
	await(t, "the alarm", a.C)
	if now := BootNow(); now < at {
		t.Errorf("it rang %v too early", at.Sub(now))
	}
	a.Set(1) // long ago
	await(t, "the late alarm", a.C)
	a.Close()
	a.Set(BootNow())
	a.Close()
}

func TestPlanEnding_KillComesBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	const s = time.Second
	stages := Stages{Interrupt: 10 * s, Term: 10 * s, Kill: 2 * s}
	now := BootTime(1000 * s)
	for _, tt := range []struct {
		name       string
		why        why
		deadline   time.Duration // from now, 0 none
		term, kill time.Duration
	}{
		{"asked", whyAsked, 0, 10 * s, 20 * s},
		{"far deadline", whyAsked, 100 * s, 10 * s, 20 * s},
		{"at its beginning", whyDeadline, 22 * s, 10 * s, 20 * s},
		{"cut short", whyDeadline, 15 * s, 6500 * time.Millisecond, 13 * s},
		{"very short", whyDeadline, 5 * s, 1500 * time.Millisecond, 3 * s},
		{"over", whyDeadline, -60 * s, -62 * s, -62 * s},
		{"exited", whyExited, 0, s / 4, 10*s + s/4},
		{"exited before a deadline", whyExited, 5 * s, s / 4, 3 * s},
	} {
		deadline := BootTime(0)
		if tt.deadline != 0 {
			deadline = now.Add(tt.deadline)
		}
		e := planEnding(tt.why, now, deadline, stages)
		if e.term.Sub(now) != tt.term || e.kill.Sub(now) != tt.kill {
			t.Errorf("%s: TERM %v, KILL %v", tt.name, e.term.Sub(now), e.kill.Sub(now))
		}
	}
}

// However late the guardian gets to run, TERM is sent before KILL, except at the deadline.
func TestEnding_LateSkipsNoGrace(t *testing.T) {
	t.Parallel()
	const s = time.Second
	stages := Stages{Interrupt: 10 * s, Term: 10 * s, Kill: 2 * s}
	now := BootTime(1000 * s)
	e := planEnding(whyAsked, now, 0, stages)
	if got := e.due(now); got != StageInterrupt {
		t.Errorf("at once: %v", got)
	}
	e.stage = StageInterrupt
	if got := e.due(now.Add(time.Hour)); got != StageTerm {
		t.Errorf("an hour late: %v", got)
	}
	e.stage = StageTerm
	if got := e.due(now.Add(time.Hour)); got != StageKill {
		t.Errorf("after TERM: %v", got)
	}
	e = planEnding(whyDeadline, now, now.Add(stages.Total()), stages)
	e.stage = StageInterrupt
	if got := e.due(now.Add(time.Hour)); got != StageKill {
		t.Errorf("past the deadline: %v", got)
	}
	if got := planEnding(whyAsked, now, 0, Stages{Kill: s}).due(now); got != StageKill {
		t.Errorf("without graces: %v", got)
	}
}

func TestOverdue_TakesASecondLook(t *testing.T) {
	t.Parallel()
	const s = time.Second
	o := overdue{stages: Stages{Interrupt: 10 * s, Term: 10 * s, Kill: 2 * s}}
	if o.at() != 0 || o.passed(1<<60) {
		t.Error("overdue with nothing due")
	}
	o.deadline = BootTime(100 * s)
	if got := o.at(); got != BootTime(99*s) {
		t.Errorf("by deadline at %v", time.Duration(got))
	}
	o.asked = BootTime(50 * s)
	if got := o.at(); got != BootTime(71*s) {
		t.Errorf("when asked at %v", time.Duration(got))
	}
	if o.passed(BootTime(70*s)) || o.passed(BootTime(71*s)) {
		t.Error("taken over without a second look")
	}
	if again := o.at(); again != BootTime(71*s).Add(secondLook) || !o.passed(again) {
		t.Error("not taken over at the second look")
	}
	o.killing = BootTime(71 * s)
	if got := o.limit(); got != BootTime(73*s).Add(killPatience) {
		t.Errorf("with KILL under way at %v", time.Duration(got))
	}
}

func TestParseStat_NameCanHoldAnything(t *testing.T) {
	t.Parallel()
	tail := " S 10 20 30 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 4711 1 2 3\n"
	for _, name := range []string{"sh", "a b", ") R 1 1 1 (", ":)", ""} {
		e, err := parseStat(7, []byte("7 ("+name+")"+tail))
		want := entry{ID: ID{Pid: 7, Start: 4711}, parent: 10, group: 20, session: 30, waits: true, name: name}
		if err != nil || e != want {
			t.Errorf("%q: %+v, %v", name, e, err)
		}
	}
	for _, bad := range []string{"", "7", "7 (sh)", "7 (sh) S 1 2"} {
		if _, err := parseStat(7, []byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	zombie := func(threads string) bool {
		e, err := parseStat(7, []byte("7 (x) Z 1 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 "+threads+" 0 9 0"))
		return err == nil && e.dead
	}
	if !zombie("1") || zombie("2") {
		t.Error("a zombie is dead when its last thread is")
	}
}

func TestHolds_WholeStringsOnly(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]bool{
		"M=1\x00": true, "A=2\x00M=1\x00B=3\x00": true, "A=2\x00M=1": true, "M=1": true,
		"M=12\x00": false, "XM=1\x00": false, "A=M=1\x00": false, "": false, "M=\x00": false,
	} {
		if got := holds([]byte(block), "M=1"); got != want {
			t.Errorf("%q: %v", block, got)
		}
	}
}
