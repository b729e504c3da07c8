package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func TestSchedule_ThatNeverFiresIsRefused(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	for _, expr := range []string{"0 0 30 2 *", "0 0 31 4 *", "* * * *", "* * * * * *", "61 * * * *", "*/0 * * * *", "*/90 * * * *", "TZ=UTC 0 2 * * *", "CRON_TZ=UTC", "TZ=0", "@every 0m", "@every 90", "@reboot", "garbage"} {
		in := engine.DefaultConfig().DefaultAgent()
		in.Slug, in.Run.Command, in.Schedule = "refused", []string{"true"}, expr
		_, err := w.CreateAgent(context.Background(), w.Owner, in)
		if e := wantCode(t, err, api.CodeInvalid); len(e.Fields) != 1 || e.Fields[0].Field != "schedule" {
			t.Errorf("creating %q blames %v", expr, e.Fields)
		}
		_, err = w.EditAgent(context.Background(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.Schedule = expr; return nil })
		if e := wantCode(t, err, api.CodeInvalid); len(e.Fields) != 1 || e.Fields[0].Field != "schedule" {
			t.Errorf("editing to %q blames %v", expr, e.Fields)
		}
	}
	for _, zone := range []string{"", "Local", "local", "utc", "Europe/london", "Mars/Base", "../../etc/passwd", "Europe/Berlin "} {
		_, err := w.EditAgent(context.Background(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.TimeZone = zone; return nil })
		if e := wantCode(t, err, api.CodeInvalid); len(e.Fields) != 1 || e.Fields[0].Field != "timeZone" {
			t.Errorf("zone %q blames %v", zone, e.Fields)
		}
	}
	w.Edit(a.ID, scheduled("0 0 29 2 *"))
}

// A damaged row harms only itself, and says so.
func TestTick_DamagedAgentsKeepNobodyFromFiring(t *testing.T) {
	w := enginetest.Open(t)
	var all []api.Agent
	for range 12 {
		all = append(all, w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow))))
	}
	w.Edit(all[4].ID, func(in *api.AgentInput) { in.Paused = true })
	if err := w.DeleteAgent(context.Background(), w.Owner, all[5].Slug); err != nil {
		t.Fatal(err)
	}
	w.Close()
	damage(t, w,
		"UPDATE agents SET schedule = 'garbage' WHERE id = "+number(all[0].ID),
		"UPDATE agents SET time_zone = 'Mars/Base' WHERE id = "+number(all[1].ID),
		"UPDATE agents SET schedule = '0 0 30 2 *' WHERE id = "+number(all[2].ID),
		"UPDATE agents SET anchor_at = "+fmt.Sprint(w.Clock.Now().AddDate(1, 0, 0).UnixMicro())+" WHERE id = "+number(all[3].ID),
	)
	w.Restart()
	w.Advance(time.Minute)
	for i, a := range all {
		want := 1
		if i < 3 || i == 4 || i == 5 {
			want = 0
		}
		n := w.Tell("SELECT CAST(COUNT(*) AS TEXT) FROM sessions WHERE agent_id = ?1", a.ID)[0]
		if n != fmt.Sprint(want) {
			t.Errorf("agent %d fired %s times, want %d", i, n, want)
		}
	}
	for i := range 3 {
		a := must[api.Agent](t)(w.Engine.Agent(context.Background(), w.Owner, all[i].ID.String()))
		if a.ScheduleError == "" {
			t.Errorf("agent %d does not say what is wrong", i)
		}
	}
	// The others' promises hold; reading can't repair one damaged row.
	w.Check()
}

func TestEdit_NeverFiresAPastSlot(t *testing.T) {
	changes := map[string]func(*api.AgentInput){
		"schedule": func(in *api.AgentInput) { in.Schedule = "58 8 * * *" },
		"zone":     func(in *api.AgentInput) { in.TimeZone = "Asia/Tokyo" },
		"resume":   func(in *api.AgentInput) { in.Paused = false },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(scheduled("0 12 * * *", func(in *api.AgentInput) { in.Paused = name == "resume" }))
			w.Jump(3 * 24 * time.Hour)
			w.Edit(a.ID, change)
			w.Advance(time.Minute)
			if got := fired(w, a.ID); len(got) != 0 {
				t.Fatalf("fired %v", got)
			}
			want := map[string]api.Verdict{"schedule": api.SlotMissed, "zone": api.SlotMissed, "resume": api.SlotPaused}[name]
			if got := w.Verdicts(a.ID); len(got) != 1 || got[0].Verdict != want || got[0].Count != 3 {
				t.Fatalf("the ledger is %+v", got)
			}
			b := must[api.Agent](t)(w.Engine.Agent(context.Background(), w.Owner, a.ID.String()))
			if !b.NextSlotAt.After(w.Now()) {
				t.Fatalf("the next slot is %s, which has passed", b.NextSlotAt)
			}
		})
	}
}

func TestEdit_OfAnythingElseAroundTheSlotLosesNothing(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow)))
	for i := range 18 * 10 {
		w.Jump(time.Second)
		w.Edit(a.ID, func(in *api.AgentInput) {
			in.Prompt, in.MaxConcurrent, in.Schedule = fmt.Sprintf("take %d", i), int64(i%3+1), " * * * * * "
		})
		if i%7 == 0 {
			w.Turn()
		}
	}
	w.Advance(time.Second)
	if n := len(fired(w, a.ID)); n != 3 {
		t.Fatalf("%d slots fired in 3 minutes, want 3", n)
	}
}

func TestTrigger_ManualRunIsNeverSwallowedAndMovesNoSlot(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("*/10 * * * *"))
	k := w.Worker(a)
	w.Advance(4 * time.Minute)
	c := k.Claim(w.New(a).ID)
	w.New(a)
	for range 15 {
		w.Advance(time.Minute)
		k.Beat(c)
	}
	wantStory(t, w, a.ID, "skipped 09:10-09:10 x1")
	must[api.Finished](t)(k.Complete(c, ""))
	w.Advance(2 * time.Minute)
	wantStory(t, w, a.ID, "skipped 09:10-09:10 x1, fired 09:20-09:20 x1")
}

// Contract 3.4: no trigger except the scheduler's is a whole second, whatever the clock says,
// and none is refused.
func TestTrigger_AtTheInstantOfASlotMeetsNoSlot(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow)))
	w.Jump(time.Minute)
	for range 5 {
		w.New(a)
	}
	w.Advance(0)
	w.New(a)
	seen := map[int64]bool{}
	for _, s := range w.All(a.ID) {
		at := s.TriggeredAt.UnixMicro()
		if seen[at] {
			t.Errorf("two sessions were triggered at %d", at)
		}
		seen[at] = true
		if s.TriggeredBy == api.ByUser && at%1_000_000 == 0 {
			t.Errorf("a person's trigger is the whole second %d", at)
		}
	}
	if len(seen) != 7 {
		t.Fatalf("%d sessions, want 7", len(seen))
	}
}

func TestResume_NotesWhatPassedAsPaused(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("*/10 * * * *", overlap(api.OverlapAllow)))
	w.Advance(11 * time.Minute)
	for _, pause := range []bool{true, false} {
		w.Edit(a.ID, func(in *api.AgentInput) { in.Paused = pause })
		w.Advance(35 * time.Minute)
	}
	wantStory(t, w, a.ID, "fired 09:10-09:10 x1, paused 09:20-09:40 x3, fired 09:50-09:50 x1, fired 10:00-10:00 x1, fired 10:10-10:10 x1, fired 10:20-10:20 x1")
}

// A slot that is due when its schedule changes still gets a verdict, by the schedule and the
// rules that it was due by.
func TestEdit_ADueSlotIsDecidedByTheOldSchedule(t *testing.T) {
	for name, edit := range map[string]func(*api.AgentInput){
		"schedule": func(in *api.AgentInput) { in.Schedule = "*/5 * * * *" },
		"zone":     func(in *api.AgentInput) { in.TimeZone = "Europe/Berlin" },
		"off":      func(in *api.AgentInput) { in.Schedule = "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(func(in *api.AgentInput) { in.Schedule, in.Overlap = "* * * * *", api.OverlapAllow })
			w.Advance(time.Minute)
			w.Jump(61 * time.Second) // 09:02 is due, and nothing was running
			after := w.Edit(a.ID, edit)
			w.Advance(10 * time.Second)
			got := w.Verdicts(a.ID)
			if len(got) != 2 || got[1].Verdict != api.SlotFired || got[1].Count != 1 || !got[1].LastSlot.Equal(enginetest.Start.Add(2*time.Minute)) {
				t.Errorf("the ledger is %+v", got)
			}
			if s := w.All(a.ID); len(s) != 2 {
				t.Errorf("%d sessions", len(s))
			}
			if after.Version != 2 {
				t.Errorf("it is version %d", after.Version)
			}
		})
	}
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.Schedule, in.CatchUp = "* * * * *", api.CatchUpNone })
	w.Jump(10*time.Minute + time.Second) // an outage: only the last slot is on time
	w.Edit(a.ID, func(in *api.AgentInput) { in.Schedule = "@hourly" })
	got := w.Verdicts(a.ID)
	if len(got) != 2 || got[0].Verdict != api.SlotMissed || got[0].Count != 9 || got[1].Verdict != api.SlotFired {
		t.Errorf("after an outage the ledger is %+v", got)
	}
}

func TestDelete_DueSlotsHaveAVerdict(t *testing.T) {
	for _, paused := range []bool{false, true} {
		w := enginetest.New(t)
		a := w.Agent(func(in *api.AgentInput) { in.Schedule, in.Paused = "* * * * *", paused })
		w.Jump(2*time.Minute + time.Second)
		if err := w.DeleteAgent(t.Context(), w.Owner, a.Slug); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{false: "missed", true: "paused"}[paused]
		var verdict string
		var n int
		ask(t, w, "SELECT verdict, slots FROM ledger", &verdict, &n)
		if verdict != want || n != 2 {
			t.Errorf("%d slots are %s, want 2 %s", n, verdict, want)
		}
	}
}
