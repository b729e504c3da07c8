package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A clock set back brings slots a second time. What fired stays fired.
func TestClockBack_SlotThatFiredNeverFiresAgain(t *testing.T) {
	t.Parallel()
	for _, o := range []api.Overlap{api.OverlapSkip, api.OverlapQueueOne, api.OverlapAllow, api.OverlapReplace}[:fewer(4)] {
		t.Run(string(o), func(t *testing.T) {
			w := enginetest.New(t, enginetest.Stride(30*time.Second), enginetest.With(func(c *engine.Config) { c.OutageAfter = 40 * time.Second }))
			a := w.Agent(scheduled("* * * * *", overlap(o)))
			k := w.Worker(a)
			finish := func() {
				k.Beat()
				for c := k.Next(); c != nil; c = k.Next() {
					must[api.Finished](t)(k.Complete(*c, ""))
				}
			}
			for range 30 {
				w.Advance(time.Minute)
				finish()
			}
			w.Jump(-20 * time.Minute)
			for range 40 {
				w.Advance(time.Minute)
				finish()
				w.Check()
			}
			got := fired(w, a.ID)
			if len(got) != 50 {
				t.Fatalf("%d slots fired, want each minute of 50 once: %s", len(got), story(w, a.ID))
			}
		})
	}
}

// What did not fire the first time is decided again, so that each slot keeps one verdict and
// the tick never trips over an old one.
func TestClockBack_OtherVerdictsAreGivenAnew(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *"))
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	for range 20 {
		w.Advance(30 * time.Second)
		k.Beat(c)
	}
	wantStory(t, w, a.ID, "skipped 09:01-09:10 x10")
	w.Jump(-5*time.Minute - 30*time.Second) // 09:04:30
	w.Advance(0)
	k.Beat(c)
	wantStory(t, w, a.ID, "skipped 09:01-09:04 x4")
	w.Advance(2 * time.Minute)
	wantStory(t, w, a.ID, "skipped 09:01-09:06 x6")
	must[api.Finished](t)(k.Complete(c, ""))
	w.Advance(time.Minute)
	wantStory(t, w, a.ID, "skipped 09:01-09:06 x6, fired 09:07-09:07 x1")
}

// A clock that was a year ahead for a while leaves no year of silence.
func TestClockBack_AYearAheadAndBackGoesOnFiring(t *testing.T) {
	for _, expr := range []string{"* * * * *", "@every 1m"} {
		t.Run(expr, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(scheduled(expr, overlap(api.OverlapAllow)))
			w.Advance(2 * time.Minute)
			w.Jump(365 * 24 * time.Hour)
			w.Advance(2 * time.Minute)
			w.Check()
			w.Jump(-365 * 24 * time.Hour)
			before := len(fired(w, a.ID))
			for range 10 {
				w.Advance(time.Minute)
				w.Check()
			}
			if n := len(fired(w, a.ID)) - before; n != 10 {
				t.Fatalf("%d slots fired in 10 minutes: %s", n, story(w, a.ID))
			}
		})
	}
}

// An outage in the repeated time folds what has no verdict and nothing else.
func TestClockBack_AnOutageInTheRepeatedTimeFoldsAroundWhatFired(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow)))
	w.Advance(3 * time.Minute)  // 09:01 to 09:03 fired
	w.Jump(4 * time.Minute)     // 09:04 to 09:07 folded into one
	w.Advance(2 * time.Minute)  // 09:08, 09:09
	w.Jump(-7 * time.Minute)    // 09:02
	w.Advance(30 * time.Second) // back at work at 09:02:30
	w.Check()
	wantStory(t, w, a.ID, "fired 09:01-09:01 x1, fired 09:02-09:02 x1, fired 09:03-09:03 x1, fired 09:07-09:07 x1, fired 09:08-09:08 x1, fired 09:09-09:09 x1")
	w.Jump(9 * time.Minute) // away until 09:11:30
	w.Advance(0)
	wantSlots(t, w, a.ID, map[string]int64{"fired": 7, "folded": 4})
	if got := fired(w, a.ID); len(got) != 7 {
		t.Fatalf("%d slots fired, want 7: 09:01 to 09:03, 09:07 to 09:09, 09:11", len(got))
	}
}

// "@every" counts from where the clock was set to. A row holds slots of one count only, or it
// couldn't be cut when the clock is set back into it.
func TestClockBack_ARowHoldsSlotsOfOneCountOnly(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("@every 7m"))
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	pass := func(d time.Duration) {
		for range d / time.Minute {
			w.Advance(time.Minute)
			k.Beat(c)
		}
	}
	pass(30 * time.Minute)
	wantStory(t, w, a.ID, "skipped 09:07-09:28 x4")
	w.Jump(-10 * time.Minute) // 09:20
	w.Advance(0)
	k.Beat(c)
	pass(30 * time.Minute)
	wantStory(t, w, a.ID, "skipped 09:07-09:14 x2, skipped 09:27-09:48 x4")
	w.Jump(-5 * time.Minute) // 09:45
	w.Advance(0)
	wantStory(t, w, a.ID, "skipped 09:07-09:14 x2, skipped 09:27-09:41 x3")
}

// What fired stands for nothing older if the agent doesn't catch up.
func TestClockBack_WithoutCatchUpOlderSlotsAreMissed(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow), func(in *api.AgentInput) { in.CatchUp = api.CatchUpNone }))
	w.Advance(3 * time.Minute)
	w.Jump(4 * time.Minute) // away until 09:07
	w.Advance(0)
	wantSlots(t, w, a.ID, map[string]int64{"fired": 4, "missed": 3, "folded": 0})
	w.Jump(-4 * time.Minute) // 09:03
	w.Advance(0)
	wantSlots(t, w, a.ID, map[string]int64{"fired": 4, "missed": 0, "folded": 0})
	w.Jump(6 * time.Minute) // away until 09:09
	w.Advance(0)
	wantSlots(t, w, a.ID, map[string]int64{"fired": 5, "missed": 4, "folded": 0})
}

// wantSlots counts the ledger's slots per verdict; older ones of a fired row are folded.
func wantSlots(t *testing.T, w *enginetest.Fixture, a api.AgentID, want map[string]int64) {
	t.Helper()
	got := map[string]int64{}
	for _, l := range w.Verdicts(a) {
		if l.Verdict == api.SlotFired {
			got["fired"]++
			got["folded"] += l.Count - 1
			continue
		}
		got[string(l.Verdict)] += l.Count
	}
	for v, n := range want {
		if got[v] != n {
			t.Fatalf("%d slots %s, want %d: %s", got[v], v, n, story(w, a))
		}
	}
}
