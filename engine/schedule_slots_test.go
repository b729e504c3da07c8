package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

func scheduled(expr string, change ...func(*api.AgentInput)) func(*api.AgentInput) {
	return func(in *api.AgentInput) {
		in.Schedule = expr
		for _, c := range change {
			c(in)
		}
	}
}

func overlap(o api.Overlap) func(*api.AgentInput) {
	return func(in *api.AgentInput) { in.Overlap = o }
}

// fired lists the slots that made a session, in order.
func fired(w *enginetest.Fixture, a api.AgentID) (out []time.Time) {
	for _, s := range w.All(a) {
		if s.TriggeredBy == api.ByScheduler {
			out = append(out, s.TriggeredAt.Time)
		}
	}
	return out
}

// story is the ledger in short: "fired 09:05 x1".
func story(w *enginetest.Fixture, a api.AgentID) string {
	var out []string
	for _, l := range w.Verdicts(a) {
		out = append(out, fmt.Sprintf("%s %s-%s x%d", l.Verdict, l.FirstSlot.Format("15:04"), l.LastSlot.Format("15:04"), l.Count))
	}
	return strings.Join(out, ", ")
}

func wantStory(t testing.TB, w *enginetest.Fixture, a api.AgentID, want string) {
	t.Helper()
	if got := story(w, a); got != want {
		t.Fatalf("the ledger says\n%s\nwant\n%s", got, want)
	}
}

func TestTick_RunExistsWithinASecondOfItsTime(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("*/5 * * * *", overlap(api.OverlapAllow)))
	w.Advance(11 * time.Minute)
	all := w.All(a.ID)
	if len(all) != 2 {
		t.Fatalf("%d sessions, want 2", len(all))
	}
	for _, s := range all {
		if late := s.CreatedAt.Sub(s.TriggeredAt.Time); late < 0 || late > time.Second {
			t.Errorf("the run of %s was made %s late", s.TriggeredAt, late)
		}
	}
}

func TestTick_AfterAnHourAwayOneRunAndNoStampede(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow)))
	w.Advance(time.Minute)
	w.Jump(time.Hour + time.Second)
	for range 10 {
		w.Advance(5 * time.Second)
	}
	wantStory(t, w, a.ID, "fired 09:01-09:01 x1, fired 09:02-10:01 x60")
	w.Advance(9 * time.Second)
	if n := len(fired(w, a.ID)); n != 3 {
		t.Fatalf("%d runs a minute later, want 3", n)
	}
}

func TestTick_AfterAYearAwayOneRunAndOneRow(t *testing.T) {
	for _, o := range []api.Overlap{api.OverlapSkip, api.OverlapQueueOne, api.OverlapAllow, api.OverlapReplace} {
		t.Run(string(o), func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(scheduled("* * * * *", overlap(o)))
			w.Advance(30 * time.Second)
			w.Close()
			w.Jump(365 * 24 * time.Hour)
			w.Restart()
			w.Advance(0)
			w.Advance(0)
			list := w.Verdicts(a.ID)
			if len(list) != 1 || list[0].Verdict != api.SlotFired || list[0].Count != 525600 || list[0].Folded != 525599 {
				t.Fatalf("the ledger is %s", story(w, a.ID))
			}
			if n := len(w.All(a.ID)); n != 1 {
				t.Fatalf("%d sessions, want 1", n)
			}
		})
	}
}

func TestTick_ASecondTickFiresNothing(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow)))
	w.Jump(time.Minute)
	for range 5 {
		w.Turn()
	}
	before := w.Hash()
	w.Turn()
	if w.Hash() != before {
		t.Error("a tick with nothing due changed something")
	}
	if n := len(w.All(a.ID)); n != 1 {
		t.Fatalf("%d sessions, want 1", n)
	}
}

func TestRestart_OverTheSlotFiresItOnce(t *testing.T) {
	for _, c := range []struct {
		catchUp api.CatchUp
		away    time.Duration // from a second before the slot
		want    string
	}{
		{api.CatchUpLatest, 2 * time.Second, "fired 09:02-09:02 x1"},
		{api.CatchUpLatest, 71 * time.Second, "fired 09:02-09:02 x1"},
		{api.CatchUpLatest, 5 * time.Hour, "fired 09:02-09:02 x1"},
		{api.CatchUpNone, 2 * time.Second, "fired 09:02-09:02 x1"},
		{api.CatchUpNone, 61 * time.Second, "fired 09:02-09:02 x1"}, // 60 s late is on time
		{api.CatchUpNone, 71 * time.Second, "missed 09:02-09:02 x1"},
	} {
		t.Run(fmt.Sprintf("%s away %s", c.catchUp, c.away), func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(scheduled("2 9 * * *", func(in *api.AgentInput) { in.CatchUp = c.catchUp }))
			w.Advance(time.Minute + 59*time.Second)
			w.Close()
			w.Jump(c.away)
			w.Restart()
			w.Advance(10 * time.Minute)
			wantStory(t, w, a.ID, c.want)
		})
	}
}

func TestCatchUp_WindowPartsWhatFiresFromWhatIsMissed(t *testing.T) {
	for _, c := range []struct {
		away time.Duration
		want string
	}{
		{9 * time.Minute, "fired 09:01-09:01 x1"},
		{12 * time.Minute, "missed 09:01-09:01 x1"},
	} {
		w := enginetest.New(t)
		a := w.Agent(scheduled("1 9 * * *", func(in *api.AgentInput) { in.CatchUpWindowSeconds = 600 }))
		w.Jump(c.away)
		w.Advance(0)
		wantStory(t, w, a.ID, c.want)
	}
}

// Without catching up, what came before a slot that is on time is missed, even where slots are
// counted from the anchor.
func TestCatchUp_NoneMissesTheOlderSlotsAndFiresTheOneOnTime(t *testing.T) {
	for expr, want := range map[string]string{
		"*/5 * * * *": "missed 09:05-09:25 x5, fired 09:30-09:30 x1",
		"@every 5m":   "missed 09:07-09:27 x5, fired 09:32-09:32 x1",
	} {
		t.Run(expr, func(t *testing.T) {
			w := enginetest.New(t)
			w.Jump(2 * time.Minute)
			a := w.Agent(scheduled(expr, func(in *api.AgentInput) { in.CatchUp = api.CatchUpNone }))
			w.Jump(28*time.Minute + 20*time.Second)
			if expr == "@every 5m" {
				w.Jump(2 * time.Minute)
			}
			w.Advance(0)
			wantStory(t, w, a.ID, want)
		})
	}
}

func TestTick_JitterDelaysTheStartAndNotTheSlot(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("*/5 * * * *", overlap(api.OverlapAllow), func(in *api.AgentInput) { in.JitterSeconds = 120 }))
	w.Advance(30*time.Minute + time.Second)
	later := 0
	for _, s := range w.All(a.ID) {
		if s.TriggeredAt.Unix()%300 != 0 {
			t.Errorf("the slot moved to %s", s.TriggeredAt)
		}
		delay := s.NotBefore.Sub(s.TriggeredAt.Time)
		if delay < 0 || delay > 120*time.Second {
			t.Errorf("a delay of %s", delay)
		}
		if delay > 0 {
			later++
		}
	}
	if later == 0 {
		t.Error("no run was delayed")
	}
	w.Advance(3 * time.Minute)
	for _, s := range w.All(a.ID) {
		if s.Status != api.Queued {
			t.Errorf("the run of %s is %s after its delay", s.TriggeredAt, s.Status)
		}
	}
}

func TestReads_ChangeNothingAroundASlot(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow)))
	ctx := context.Background()
	w.Advance(time.Minute)
	w.Jump(58 * time.Second)
	before := w.Hash()
	for range 50 {
		w.Jump(50 * time.Millisecond)
		must[api.List[api.Agent]](t)(w.Agents(ctx, w.Owner, api.Page{}))
		must[api.Agent](t)(w.Engine.Agent(ctx, w.Owner, a.Slug))
		must[api.SchedulePreview](t)(w.Preview(ctx, a.Schedule, a.TimeZone, w.Now(), 5))
		must[api.List[api.LedgerEntry]](t)(w.Ledger(ctx, w.Owner, a.Slug, api.Page{}))
		must[api.List[api.Session]](t)(w.Sessions(ctx, w.Owner, api.SessionFilter{}, api.Page{}))
		must[[]api.Event](t)(w.Events(ctx, w.Owner, 0, 1000))
	}
	if w.Hash() != before {
		t.Fatal("reading changed something")
	}
	w.Advance(0)
	if n := len(fired(w, a.ID)); n != 2 {
		t.Fatalf("%d slots fired, want 2", n)
	}
}

// The slot's session survives the loss of its worker: it is claimed again, and
// the slot is not fired again.
func TestSlot_LostRunIsClaimedAgainAndNotFiredAgain(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("1 9 * * *"))
	k := w.Worker(a)
	w.Advance(time.Minute)
	s := w.All(a.ID)[0]
	k.Claim(s.ID)
	w.Close()
	w.Jump(20 * time.Minute)
	w.Restart()
	w.Advance(2 * time.Minute)
	w.Want(s.ID, api.Stale)
	k.Beat()
	if c := k.Claim(s.ID); c.Fence != 2 {
		t.Fatalf("the second claim has fence %d", c.Fence)
	}
	wantStory(t, w, a.ID, "fired 09:01-09:01 x1")
}
