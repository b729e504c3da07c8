package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

const day = 24 * time.Hour

// retaining changes what is kept.
func retaining(change func(*engine.Retention)) enginetest.Option {
	return enginetest.With(func(c *engine.Config) { change(&c.Retention) })
}

// prune runs a whole round of retention, step by step as the loop does.
func prune(t testing.TB, w *enginetest.Fixture) (steps int) {
	t.Helper()
	for {
		next, err := w.Prune(t.Context(), w.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		if steps++; next.IsZero() {
			return steps
		}
	}
}

// ran is a session that ran and printed a line.
func ran(t testing.TB, w *enginetest.Fixture, k *enginetest.Worker, a api.Agent) api.SessionID {
	t.Helper()
	s := w.New(a)
	c := k.Claim(s.ID)
	prints(t, w, k, c, "a line\n")
	must[api.Finished](t)(k.Complete(c, "done"))
	return s.ID
}

func prints(t testing.TB, w *enginetest.Fixture, k *enginetest.Worker, c api.Claim, text string) {
	t.Helper()
	_, err := w.AddItems(t.Context(), w.Owner, k.ID, c.Session.ID, api.ItemsRequest{UnderClaim: k.Under(c.ClaimID), Items: []api.ItemInput{{Kind: api.ItemText, Text: text}}})
	if err != nil {
		t.Fatal(err)
	}
}

func codeOf[T any](_ T, err error) api.Code { return api.CodeOf(err) }

// later lets days pass while nothing runs, and has the worker come back.
func later(w *enginetest.Fixture, d time.Duration) {
	w.Helper()
	w.Jump(d)
	w.Advance(0)
}

func TestPrune_RemovesAfterItsAgeWhatIsOfEachKind(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	id := ran(t, w, k, a)
	events := func() int { return len(w.Tell("SELECT seq FROM events WHERE session_id = ?", int64(id))) }
	had := events()

	later(w, 30*day)
	prune(t, w)
	if s := w.Get(id); !s.OutputRemovedAt.IsZero() || !s.EventsRemovedAt.IsZero() || events() != had {
		t.Errorf("after 30 days to the second something went: %+v", s)
	}
	w.Jump(time.Hour)
	prune(t, w)
	s := w.Get(id)
	if s.OutputRemovedAt.IsZero() || s.EventsRemovedAt.IsZero() || s.Result != "done" || events() != 0 {
		t.Errorf("after 30 days and an hour: %+v, %d events", s, events())
	}
	if n := w.Tell("SELECT COUNT(*) FROM items UNION ALL SELECT COUNT(*) FROM outputs"); !slices.Equal(n, []string{"0", "0"}) {
		t.Errorf("of its output is left: %v", n)
	}
	_, _, err := w.Items(t.Context(), w.Owner, id, 0, 10)
	if want := "The output of this session was removed on 2026-04-01"; api.CodeOf(err) != api.CodeGone || !strings.Contains(err.Error(), want) {
		t.Errorf("its output answers %v", err)
	}
	if code := codeOf(w.SessionEvents(t.Context(), w.Owner, id, api.Page{})); code != api.CodeGone {
		t.Errorf("its events answer %s", code)
	}
	must[engine.SessionPage](t)(w.SessionPageOf(t.Context(), w.Owner, id))

	later(w, 150*day)
	prune(t, w)
	_, err = w.Session(t.Context(), w.Owner, id)
	if want := "This session was removed on 2026-08-29"; api.CodeOf(err) != api.CodeGone || !strings.Contains(err.Error(), want) {
		t.Errorf("the session answers %v", err)
	}
	for _, table := range []string{"sessions", "claims", "items", "activities", "prompts", "messages", "threads", "late_results", "outputs"} {
		if n := w.Tell("SELECT COUNT(*) FROM " + table)[0]; n != "0" {
			t.Errorf("%s rows are left in %s", n, table)
		}
	}
	if got := w.Tell("SELECT complete || ' ' || failed || ' ' || day FROM figures"); !slices.Equal(got, []string{"1 0 20514"}) {
		t.Errorf("the figures are %v", got)
	}
	if got := w.Tell("SELECT DISTINCT type FROM events"); !slices.Contains(got, "agent_created") || !slices.Contains(got, "retention_pruned") {
		t.Errorf("the audit has %v", got)
	}
	later(w, 186*day)
	prune(t, w)
	if got := w.Tell("SELECT DISTINCT type FROM events"); slices.Contains(got, "agent_created") || !slices.Contains(got, "retention_pruned") {
		t.Errorf("after more than a year the audit has %v", got)
	}
}

// What runs, waits, or is kept stays, with all of its conversation, however old that is.
func TestPrune_LeavesWhatRunsWaitsOrIsKept(t *testing.T) {
	w := enginetest.New(t, retaining(func(r *engine.Retention) {
		for _, k := range engine.RetentionKinds {
			*k.In(r) = engine.RetentionLimit{Age: time.Hour, Count: 1, Bytes: 1}
		}
	}))
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 10; in.LeaseSeconds = 14400 })
	k := w.Worker(a)
	kept := ran(t, w, k, a)
	changed := must[api.Changed](t)(w.KeepSession(t.Context(), w.Owner, kept, true))
	if !changed.Changed || changed.Session.KeptAt.IsZero() {
		t.Errorf("kept: %+v", changed)
	}
	if again := must[api.Changed](t)(w.KeepSession(t.Context(), w.Owner, kept, true)); again.Changed {
		t.Error("keeping it twice changed something")
	}
	retried := ran(t, w, k, a) // its conversation goes on
	waiting := must[api.Retried](t)(w.RetrySession(t.Context(), w.Owner, retried)).Session.ID
	first := ran(t, w, k, a)
	again := must[api.Retried](t)(w.RetrySession(t.Context(), w.Owner, first)).Session.ID
	must[api.Finished](t)(k.Complete(k.Claim(again), ""))
	must[api.Changed](t)(w.KeepSession(t.Context(), w.Owner, again, true)) // keeps its conversation
	before := ran(t, w, k, a)
	follower := w.New(a, notBefore(w.Now().Add(400*day)), func(in *api.SessionInput) { in.After = before })
	old := ran(t, w, k, a)
	running := w.New(a)
	asking := w.New(a)
	later(w, 300*day)
	k2 := w.Worker(a)
	c := k2.Claim(running.ID)
	prints(t, w, k2, c, "still here\n")
	must[api.Session](t)(k2.Ask(k2.Claim(asking.ID), "May I?"))

	prune(t, w)
	for name, id := range map[string]api.SessionID{
		"kept": kept, "retried": retried, "waiting": waiting, "in a kept conversation": first, "kept retry": again, "what another runs after": before,
		"follower": follower.ID, "running": running.ID, "asking": asking.ID,
	} {
		s, err := w.Session(t.Context(), w.Owner, id)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name != "what another runs after" && !(s.OutputRemovedAt.IsZero() && s.EventsRemovedAt.IsZero()) {
			t.Errorf("%s: output removed %v, events removed %v", name, s.OutputRemovedAt, s.EventsRemovedAt)
		}
	}
	if code := codeOf(w.Session(t.Context(), w.Owner, old)); code != api.CodeGone {
		t.Errorf("the old one answers %q", code)
	}
	items, _, err := w.Items(t.Context(), w.Owner, kept, 0, 10)
	if err != nil || len(items) != 1 {
		t.Errorf("the kept one's output: %v, %v", items, err)
	}
	must[api.Changed](t)(w.KeepSession(t.Context(), w.Owner, kept, false))
	prune(t, w)
	if code := codeOf(w.Session(t.Context(), w.Owner, kept)); code != api.CodeGone {
		t.Errorf("let go, it answers %q", code)
	}
}

func TestPrune_KeepsTheNewestByCountAndByBytes(t *testing.T) {
	text := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		set                      func(*engine.Retention)
		sessions, output, events int // how many of ten each have theirs
	}{
		"three sessions of an agent":     {func(r *engine.Retention) { r.Sessions.Count = 3 }, 3, 3, 3},
		"the output of two":              {func(r *engine.Retention) { r.Output.Count = 2 }, 10, 2, 10},
		"the events of four":             {func(r *engine.Retention) { r.Events.Count = 4 }, 10, 10, 4},
		"5 KB of output":                 {func(r *engine.Retention) { r.Output.Bytes = 5500 }, 10, 5, 10},
		"4,500 B of sessions":            {func(r *engine.Retention) { r.Sessions.Bytes = 4500 }, 4, 4, 4},
		"1,300 B of events":              {func(r *engine.Retention) { r.Events.Bytes = 1300 }, 10, 10, 2},
		"nothing is old":                 {func(r *engine.Retention) {}, 10, 10, 10},
		"no limit at all":                {func(r *engine.Retention) { *r = engine.Retention{} }, 10, 10, 10},
		"more than there are, of a kind": {func(r *engine.Retention) { r.Sessions.Count, r.Output.Bytes = 11, 11000 }, 10, 10, 10},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := enginetest.New(t, retaining(c.set))
			a := w.Agent()
			k := w.Worker(a)
			var ids []api.SessionID
			for range 10 {
				s := w.New(a)
				cl := k.Claim(s.ID)
				prints(t, w, k, cl, text)
				must[api.Finished](t)(k.Complete(cl, ""))
				ids = append(ids, s.ID)
			}
			prune(t, w)
			if n := w.Tell("SELECT COUNT(*) FROM sessions")[0]; n != "10" {
				t.Fatalf("what ended within the hour went: %s are left", n)
			}
			w.Jump(2 * time.Hour)
			prune(t, w)
			var sessions, output, events int
			for i, id := range ids {
				s, err := w.Session(t.Context(), w.Owner, id)
				if err != nil {
					if api.CodeOf(err) != api.CodeGone || i >= 10-c.sessions {
						t.Errorf("session %d answers %v", i, err)
					}
					continue
				}
				sessions++
				if s.OutputRemovedAt.IsZero() {
					output++
				}
				if s.EventsRemovedAt.IsZero() {
					events++
				}
			}
			if sessions != c.sessions || output != c.output || events != c.events {
				t.Errorf("left are %d sessions, the output of %d, the events of %d; not %d, %d, %d", sessions, output, events, c.sessions, c.output, c.events)
			}
		})
	}
}

// A slot whose session is gone doesn't fire again, whatever happens to the clock and the anchor.
func TestPrune_ASlotDoesNotFireAgain(t *testing.T) {
	w := enginetest.New(t, retaining(func(r *engine.Retention) { r.Sessions.Age = time.Hour }))
	a := w.Agent(scheduled("0 10 * * *", overlap(api.OverlapAllow)))
	later(w, time.Hour)
	k := w.Worker(a)
	all := w.All(a.ID)
	if len(all) != 1 {
		t.Fatalf("%d sessions", len(all))
	}
	slot := all[0]
	must[api.Finished](t)(k.Complete(k.Claim(slot.ID), ""))
	w.Jump(6 * time.Hour)
	prune(t, w)
	if code := codeOf(w.Session(t.Context(), w.Owner, slot.ID)); code != api.CodeGone {
		t.Fatalf("the slot's session answers %q", code)
	}
	w.Clock.Set(slot.TriggeredAt.Add(-time.Minute)) // the clock is set back before the slot
	w.Restart()
	w.Advance(2 * time.Minute)
	if left := w.All(a.ID); len(left) != 0 {
		t.Errorf("it fired again: %+v", left)
	}
	fired := 0
	for _, v := range w.Verdicts(a.ID) {
		if v.Verdict == api.SlotFired {
			fired++
		}
	}
	if fired != 1 {
		t.Errorf("the ledger has %d slots that fired", fired)
	}
}

// Who might see a session learns when it went, and nobody else.
func TestPrune_OnlyWhoMightSeeASessionIsToldThatItIsGone(t *testing.T) {
	w := enginetest.New(t, retaining(func(r *engine.Retention) { r.Sessions.Age = time.Hour }))
	a := w.Agent()
	id := ran(t, w, w.Worker(a), a)
	cloud := w.Agent(func(in *api.AgentInput) { in.Slug, in.Mode = "clouds", api.Cloud })
	everybodys := ran(t, w, w.Worker(cloud), cloud)
	other := w.Colleague("Bo", api.Admin)
	_, _, err := w.CreateSession(t.Context(), w.Owner, a.Slug, api.SessionInput{Prompt: new("x")}, keyed("k"))
	if err != nil {
		t.Fatal(err)
	}
	w.Jump(3 * time.Hour)
	prune(t, w)
	for _, c := range []struct {
		who  engine.Caller
		id   api.SessionID
		want api.Code
	}{
		{w.Owner, id, api.CodeGone},
		{other, id, api.CodeNotFound},
		{w.Owner, everybodys, api.CodeGone},
		{other, everybodys, api.CodeGone},
		{w.Owner, id + 1, api.CodeNotFound},
	} {
		if code := codeOf(w.Session(t.Context(), c.who, c.id)); code != c.want {
			t.Errorf("session %s answers %s %q, not %q", c.id, c.who.Name, code, c.want)
		}
	}
	if code := codeOf(w.Thread(t.Context(), w.Owner, api.ThreadID(id))); code != api.CodeGone {
		t.Errorf("its conversation answers %q", code)
	}
	elsewhere := w.Owner
	elsewhere.WorkspaceID++
	if code := codeOf(w.Session(t.Context(), elsewhere, everybodys)); code != api.CodeNotFound {
		t.Errorf("another workspace is told %q", code)
	}
}

// What is gone takes a row a day and owner, whatever order it went in; what was kept in its midst
// and goes later says its own day.
func TestPrune_WhatIsGoneIsKeptInSpans(t *testing.T) {
	w := enginetest.New(t, retaining(func(r *engine.Retention) { r.Sessions.Age = time.Hour }))
	a := w.Agent(func(in *api.AgentInput) { in.Slug, in.Mode = "clouds", api.Cloud })
	mine := w.Agent()
	k, l := w.Worker(a), w.Worker(mine)
	var ids []api.SessionID
	var local api.SessionID
	for i := range 9 {
		ids = append(ids, ran(t, w, k, a))
		if i == 2 || i == 6 {
			local = ran(t, w, l, mine)
		}
	}
	for _, id := range []api.SessionID{ids[4], local} {
		must[api.Changed](t)(w.KeepSession(t.Context(), w.Owner, id, true))
	}
	spans := func(want int) {
		t.Helper()
		if n := figure(t, w, "SELECT COUNT(*) FROM removed_spans"); n != want {
			t.Errorf("%d spans, not %d: %v", n, want, w.Tell("SELECT owner_user_id || ': ' || first_id || ' to ' || last_id FROM removed_spans"))
		}
	}
	went := func(id api.SessionID, day string) {
		t.Helper()
		if _, err := w.Session(t.Context(), w.Owner, id); api.CodeOf(err) != api.CodeGone || !strings.Contains(err.Error(), day) {
			t.Errorf("session %s, gone on %s: %v", id, day, err)
		}
	}
	w.Jump(3 * time.Hour)
	prune(t, w)
	spans(4) // up to the one kept, up to the local one, the rest; and the other local one
	first := w.Now().UTC().Format(time.DateOnly)
	for _, id := range []api.SessionID{ids[4], local} {
		must[api.Changed](t)(w.KeepSession(t.Context(), w.Owner, id, false))
	}
	w.Jump(24 * time.Hour)
	prune(t, w)
	spans(6)
	for i, id := range ids {
		if i != 4 {
			went(id, first)
		}
	}
	second := w.Now().UTC().Format(time.DateOnly)
	went(ids[4], second)
	went(local, second)
}

// A reader of the log who was away for too long begins anew; one that wasn't misses nothing.
func TestPrune_ReadersOfTheLogAreToldWhatIsMissing(t *testing.T) {
	w := enginetest.New(t, retaining(func(r *engine.Retention) { r.Events.Age = day }))
	a := w.Agent()
	k := w.Worker(a)
	ran(t, w, k, a)
	_, place, err := w.EventRange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ran(t, w, k, a)
	later(w, 2*day)
	k2 := w.Worker(a)
	ran(t, w, k2, a)
	newest := must[[]api.Event](t)(w.Events(t.Context(), w.Owner, place, 1000))
	prune(t, w)
	if code := codeOf(w.Events(t.Context(), w.Owner, place, 1000)); code != api.CodeGone {
		t.Errorf("after an event that went the log answers %q", code)
	}
	whole, last, err := w.EventRange(t.Context())
	if err != nil || whole <= place || whole > last {
		t.Fatalf("the log is whole from %d to %d (%v)", whole, last, err)
	}
	for after, n := int64(0), 0; ; n++ { // from the beginning, one by one
		page := must[[]api.Event](t)(w.Events(t.Context(), w.Owner, after, 1))
		if len(page) == 0 {
			if n == 0 || after < newest[len(newest)-1].Seq {
				t.Errorf("one by one, %d events up to number %d were read", n, after)
			}
			break
		}
		after = page[0].Seq
	}
}

// A dry run counts what the next round removes, and removes nothing.
func TestPruneAll_DryRunSaysWhatWouldGo(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	for range 30 {
		ran(t, w, k, a)
	}
	w.Jump(100 * day)
	k = w.Worker(a)
	for range 5 {
		ran(t, w, k, a)
	}
	w.Jump(90 * day)
	was := w.Hash()
	dry := must[api.Pruned](t)(w.PruneAll(t.Context(), w.Owner, true))
	if w.Hash() != was {
		t.Error("a dry run changed something")
	}
	if dry.Sessions != 30 || dry.Output != 5 || dry.Events == 0 || !dry.Done {
		t.Errorf("a dry run says %+v", dry)
	}
	did := must[api.Pruned](t)(w.PruneAll(t.Context(), w.Owner, false))
	if did.Sessions != dry.Sessions || did.Output != dry.Output || did.Events != dry.Events || did.Audit != dry.Audit || did.Deliveries != dry.Deliveries || !did.Done {
		t.Errorf("it said %+v and did %+v", dry, did)
	}
	s := must[api.System](t)(w.System(t.Context(), w.Owner)).Retention
	if s.Removed == nil || *s.Removed != did.Removed || !s.NextAt.Equal(s.LookedAt.Add(time.Hour)) || len(s.Limits) != 5 || s.Limits[1].AgeSeconds != 180*86400 {
		t.Errorf("the system says %+v, %+v", s, s.Removed)
	}
	for _, who := range []struct {
		role api.Role
		dry  bool
		ok   bool
	}{{api.Admin, true, true}, {api.Admin, false, false}, {api.Member, true, false}} {
		_, err := w.PruneAll(t.Context(), w.Colleague(fmt.Sprint(who), who.role), who.dry)
		if (err == nil) != who.ok {
			t.Errorf("%v: %v", who, err)
		}
	}
}
