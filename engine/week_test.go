package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// timetables begin with the busiest one.
var timetables = []timetable{
	{expr: "* * * * *", zone: "UTC", elapsed: true, due: func(w wall) bool { return true }},
	{expr: "*/15 * * * *", zone: "America/New_York", elapsed: true, due: func(w wall) bool { return w.minute%15 == 0 }},
	{expr: "30 2 * * *", zone: "America/New_York", due: func(w wall) bool { return w.minute == 30 && w.hour == 2 }},
	{expr: "30 1 * * *", zone: "America/New_York", due: func(w wall) bool { return w.minute == 30 && w.hour == 1 }},
	{expr: "0 */2 * * *", zone: "America/New_York", elapsed: true, due: func(w wall) bool { return w.minute == 0 && w.hour%2 == 0 }},
	{expr: "*/5 1-3 * * *", zone: "America/New_York", due: func(w wall) bool { return w.minute%5 == 0 && w.hour >= 1 && w.hour <= 3 }},
	{expr: "0,20,40 * * * *", zone: "Australia/Lord_Howe", elapsed: true, due: func(w wall) bool { return w.minute%20 == 0 }},
	{expr: "0 9,13,17 * * mon-fri", zone: "Europe/Berlin", due: func(w wall) bool {
		return w.minute == 0 && (w.hour == 9 || w.hour == 13 || w.hour == 17) && w.weekday != time.Saturday && w.weekday != time.Sunday
	}},
	{expr: "@every 7m", every: 7 * time.Minute},
	{expr: "@every 90m", every: 90 * time.Minute},
	{expr: "45 23 8,31 * sun", zone: "Asia/Kathmandu", due: func(w wall) bool {
		return w.minute == 45 && w.hour == 23 && (w.day == 8 || w.day == 31 || w.weekday == time.Sunday)
	}},
}

// week is two coordinators on one file, agents with all kinds of schedules, and workers that
// take their time.
type week struct {
	*testing.T
	r      *rand.Rand
	a, b   *enginetest.Fixture
	agents []*expected
	hands  map[api.AgentID]*enginetest.Worker
	work   []job
	seen   map[string]int // how often each thing happened
}

const atOnce = 2 // sessions of one agent

// job is what a worker is doing.
type job struct {
	api.Claim
	k    *enginetest.Worker
	left int // minutes
}

// Two coordinators with clocks that differ, outages, a machine that sleeps, clocks that are
// set two hours forward and back, restarts: the ledger and the sessions are slot for slot what
// the oracle says.
func TestWeek_TwoCoordinatorsDecideEverySlotAsTheOracleDoes(t *testing.T) {
	lives := []struct {
		name  string
		start time.Time
		days  int
		skew  time.Duration
		all   []timetable
	}{
		{"a week in spring", time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), 7, 700 * time.Millisecond, timetables[1:]},
		{"a day in autumn", time.Date(2026, 10, 31, 18, 0, 0, 0, time.UTC), 1, -900 * time.Millisecond, timetables},
	}
	if raced {
		lives = lives[1:]
	}
	for _, c := range lives {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(*soak) {
				live(t, seed, c.start, c.days, c.skew, c.all)
			}
		})
	}
}

func live(t *testing.T, seed uint64, start time.Time, days int, skew time.Duration, all []timetable) {
	w := enginetest.Open(t, enginetest.With(func(c *engine.Config) {
		c.OutageAfter, c.AliveEvery, c.Grace = 5*time.Minute, time.Minute, 50*time.Second
		c.StaleAfter, c.OfflineAfter, c.AutoPauseAfter = 10000*time.Hour, 10000*time.Hour, 1e9
	}))
	w.Clock.Set(start)
	k := &week{T: t, r: rand.New(rand.NewPCG(seed, 7)), a: w, b: w.Beside(skew), hands: map[api.AgentID]*enginetest.Worker{}, seen: map[string]int{}}
	k.a.Turn()
	k.b.Turn()
	end := start.Add(time.Duration(days) * 24 * time.Hour)
	k.settle(all, start, end)
	for n := 0; w.Clock.Now().Before(end); n++ {
		k.happen()
		k.minute(n)
		if n%500 == 499 {
			k.compare()
		}
	}
	k.compare()
	w.Check()
	for _, x := range k.agents {
		for _, v := range x.verdicts {
			k.seen["slots "+string(v)]++
		}
	}
	t.Logf("seed %d: %v", seed, k.seen)
	if days < 7 {
		return // too short for all of it
	}
	for _, what := range []string{
		"outage", "clock forward", "clock back", "clock a little back", "restart", "manual run", "both at once", "claimed",
		"slots fired", "slots folded", "slots missed", "slots skipped",
	} {
		if k.seen[what] == 0 {
			t.Errorf("in this week there was no %q", what)
		}
	}
}

// settle creates the agents: each timetable with each overlap rule in turn.
func (k *week) settle(all []timetable, start, end time.Time) {
	overlaps := []api.Overlap{api.OverlapSkip, api.OverlapQueueOne, api.OverlapReplace, api.OverlapAllow}
	for i, tt := range all {
		agent := k.a.Agent(func(in *api.AgentInput) {
			in.Schedule, in.TimeZone = tt.expr, tt.zone
			if tt.zone == "" {
				in.TimeZone = "UTC"
			}
			in.Overlap, in.MaxConcurrent = overlaps[i%4], atOnce
			if i%3 == 1 {
				in.CatchUp = api.CatchUpNone
			}
			if i%3 == 2 {
				in.CatchUpWindowSeconds = 1800
			}
		})
		x := &expected{timetable: tt, in: agent.AgentInput, id: agent.ID, anchor: start, verdicts: map[int64]api.Verdict{}}
		if tt.every == 0 {
			x.all = tt.slotsOf(start.Add(-48*time.Hour), end.Add(48*time.Hour)) // the clock may be set back before the start
		}
		hand := k.a.Worker(agent)
		if i%2 == 1 {
			hand = hand.Through(k.b)
		}
		k.agents, k.hands[agent.ID] = append(k.agents, x), hand
	}
}

// happen is what disturbs a minute, now and then.
func (k *week) happen() {
	clock := k.a.Clock
	seconds := time.Duration(20+k.r.IntN(20)) * time.Second // never near a limit in minutes
	switch p := k.r.IntN(1000); {
	case p < 12:
		k.seen["outage"]++
		clock.Step(time.Duration(6+k.r.IntN(200))*time.Minute + seconds)
		if k.r.IntN(4) == 0 { // else the machine slept
			k.a.Restart()
			k.b.Restart()
		}
	case p < 15:
		k.seen["clock forward"]++
		clock.Step(2 * time.Hour)
	case p < 18:
		k.seen["clock back"]++
		clock.Step(-2*time.Hour - seconds)
		k.back()
	case p < 20:
		k.seen["clock a little back"]++
		clock.Step(-time.Duration(1+k.r.IntN(28)) * time.Second)
		k.back()
	case p < 23:
		k.seen["restart"]++
		if k.r.IntN(2) == 0 {
			k.a.Restart()
		} else {
			k.b.Restart()
		}
	case p < 33:
		k.seen["manual run"]++
		k.a.New(api.Agent{ID: k.agents[k.r.IntN(len(k.agents))].id})
	}
}

// back is the clock set back: the coordinator that notices first clamps the anchors.
func (k *week) back() {
	now := k.a.Clock.Now()
	for _, x := range k.agents {
		x.setBack(now)
	}
	k.a.Turn()
	k.b.Turn()
	for _, x := range k.agents {
		if due := x.pending(now); len(due) > 0 {
			k.Fatalf("slots are due right after the clock was set back: %v of %s from %s", due, x.expr, x.anchor)
		}
	}
}

// minute moves to the next whole minute: timers, slots, work.
func (k *week) minute(n int) {
	clock := k.a.Clock
	clock.Set(clock.Now().Truncate(time.Minute).Add(time.Minute))
	ctx := context.Background()
	for _, w := range []*enginetest.Fixture{k.a, k.b} {
		if err := w.Alive(ctx); err != nil {
			k.Fatal(err)
		}
	}
	w := []*enginetest.Fixture{k.a, k.b}[n%2]
	must[time.Time](k)(w.Lapse(ctx, w.Now()))
	if n%5 == 0 {
		must[time.Time](k)(w.Admit(ctx, w.Now()))
	}
	due := slices.ContainsFunc(k.agents, func(x *expected) bool { return len(x.pending(k.a.Now())) > 0 || len(x.pending(k.b.Now())) > 0 })
	if due || n%4 == 0 { // else a tick has nothing to do
		k.ticks()
	}
	k.labour()
}

// ticks has both coordinators tick: at once where the order can't matter, else one after the
// other. Each sees its own clock.
func (k *week) ticks() {
	first, second := k.a, k.b
	if k.r.IntN(2) == 0 {
		first, second = k.b, k.a
	}
	together := k.r.IntN(3) == 0
	for _, x := range k.agents {
		one, other := x.outlook(first.Now()), x.outlook(second.Now())
		together = together && (one == other || one == outlook{} || other == outlook{})
	}
	if !together {
		k.judged(first.Now(), first)
		k.judged(second.Now(), second)
		return
	}
	k.seen["both at once"]++
	k.judged(slices.MaxFunc([]time.Time{first.Now(), second.Now()}, time.Time.Compare), first, second)
}

// judged has coordinators tick, and judges the result.
func (k *week) judged(now time.Time, ticking ...*enginetest.Fixture) {
	before := map[api.AgentID]situation{}
	for _, x := range k.agents {
		if len(x.pending(now)) > 0 {
			before[x.id] = k.situation(x)
		}
	}
	var wg sync.WaitGroup
	for _, w := range ticking {
		wg.Go(func() {
			if _, err := w.Tick(context.Background(), w.Now()); err != nil {
				k.Error(err)
			}
		})
	}
	wg.Wait()
	if k.Failed() {
		k.FailNow()
	}
	for _, x := range k.agents {
		if s, due := before[x.id]; due {
			k.judge(x, now, s)
		}
	}
}

// situation reads the agent's rows.
func (k *week) situation(x *expected) situation {
	got := k.a.Tell(`SELECT (SELECT COUNT(*) FROM claims WHERE agent_id = ?1 AND drained = 0) || ' ' ||
  (SELECT COUNT(*) FROM sessions WHERE agent_id = ?1 AND triggered_by = 'scheduler' AND status IN ('pending', 'queued', 'stale')) || ' ' ||
  (SELECT COUNT(*) FROM claims c JOIN sessions s ON s.id = c.session_id WHERE c.agent_id = ?1 AND c.drained = 0 AND s.triggered_by = 'scheduler')`, x.id)[0]
	var busy, waiting, draining int
	if _, err := fmt.Sscan(got, &busy, &waiting, &draining); err != nil {
		k.Fatal(err)
	}
	return situation{busy > 0, waiting > 0, draining > 0}
}

// judge asks the oracle what the tick must have done, and checks.
func (k *week) judge(x *expected, now time.Time, s situation) {
	slot, held := x.tick(now, s)
	if slot.IsZero() {
		return
	}
	got := k.a.Tell("SELECT status FROM sessions WHERE agent_id = ?1 AND triggered_at = ?2 AND triggered_by = 'scheduler'", x.id, slot.UnixMicro())
	want := "queued"
	if held {
		want = "pending"
	}
	if len(got) != 1 || got[0] != want {
		k.Fatalf("%s (%s): slot %s at %s: sessions %v, want one that is %s; before %+v; ledger %v", x.expr, x.in.Overlap, slot, now, got, want, s, tail(k.a.Verdicts(x.id)))
	}
	k.seen["fired"]++
}

// labour is a minute of the workers' work.
func (k *week) labour() {
	var rest []job
	for _, j := range k.work {
		if j.left--; j.left > 0 || !k.finish(j) {
			rest = append(rest, j)
		}
	}
	k.work = rest
	doing := map[*enginetest.Worker]int{}
	for _, j := range k.work {
		doing[j.k]++
	}
	long := int64(4*60*60 - 10) // ends between minutes, whatever the skew
	for _, id := range k.a.Tell("SELECT DISTINCT CAST(agent_id AS TEXT) FROM sessions WHERE status IN ('queued', 'stale')") {
		n := must[int64](k)(strconv.ParseInt(id, 10, 64))
		hand := k.hands[api.AgentID(n)]
		if doing[hand] == atOnce {
			continue
		}
		c := hand.Next(func(in *api.ClaimNextRequest) { in.LeaseSeconds = &long })
		if c == nil {
			continue
		}
		if k.r.IntN(10) == 0 {
			must[api.Session](k)(hand.Ask(*c, "May I?"))
		}
		k.work = append(k.work, job{*c, hand, []int{1, 1, 2, 5, 40, 130}[k.r.IntN(6)]})
		k.seen["claimed"]++
	}
}

// finish ends a job; it returns false if its prompt had to be answered first.
func (k *week) finish(j job) bool {
	s := k.a.Get(j.SessionID)
	switch {
	case s.Status == api.AwaitingInput:
		must[api.Session](k)(k.a.AnswerPrompt(context.Background(), k.a.Owner, s.ID, api.AnswerInput{PromptID: s.Prompted.ID, Answer: api.Answer{Text: "yes"}}))
		return false
	case s.Status == api.Active && s.Fence == j.Fence:
		if _, err := j.k.Complete(j.Claim, ""); err != nil && refusal(err) == nil {
			k.Fatal(err)
		}
	default:
		j.k.Drain(j.Claim) // it was replaced
	}
	return true
}

// compare checks the ledger and the sessions against the oracle.
func (k *week) compare() {
	k.Helper()
	for _, x := range k.agents {
		if d := x.differs(k.a.Verdicts(x.id)); d != "" {
			k.Fatalf("%s in %s, overlap %s, catch up %s, at %s: %s", x.expr, x.zone, x.in.Overlap, x.in.CatchUp, k.a.Clock.Now(), d)
		}
		sessions := map[int64]bool{}
		for _, s := range fired(k.a, x.id) {
			sessions[s.Unix()] = true
		}
		n := 0
		for s, v := range x.verdicts {
			if v == api.SlotFired {
				if n++; !sessions[s] {
					k.Fatalf("%s: slot %s fired and has no session", x.expr, time.Unix(s, 0).UTC())
				}
			}
		}
		if n != len(sessions) {
			k.Fatalf("%s: %d slots fired, %d sessions exist", x.expr, n, len(sessions))
		}
	}
	k.seen["comparisons"]++
}

func tail(l []api.LedgerEntry) []api.LedgerEntry { return l[max(0, len(l)-3):] }
