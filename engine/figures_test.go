package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func insights(t *testing.T, w *enginetest.Fixture, c engine.Caller, days int) engine.InsightsView {
	t.Helper()
	out, err := w.Insights(t.Context(), c, days, "")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFigures_EverySessionIsCountedOnceOnTheDayOfItsEnd(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	run := func(wait, lasts time.Duration, end func(api.Claim)) {
		t.Helper()
		s := w.New(a)
		w.Advance(wait)
		c := k.Claim(s.ID)
		w.Advance(lasts)
		end(c)
	}
	run(time.Minute, 3*time.Minute, func(c api.Claim) { must[api.Finished](t)(k.Complete(c, "done")) })
	w.Jump(24 * time.Hour)
	k.Beat()
	run(0, time.Minute, func(c api.Claim) { must[api.Finished](t)(k.Fail(c, "NO_LUCK")) })
	run(0, 2*time.Minute, func(c api.Claim) { must[api.Finished](t)(k.Fail(c, "NO_LUCK")) })
	waiting := w.New(a)
	must[api.Changed](t)(w.CancelSession(t.Context(), w.Owner, waiting.ID, api.CancelInput{}))

	got := insights(t, w, w.Owner, 7)
	if f := got.All; f.Complete != 1 || f.Failed != 2 || f.Cancelled != 1 || f.Started != 3 || f.Run != 6*time.Minute || f.Wait != time.Minute {
		t.Errorf("all are %+v", f)
	}
	if len(got.Days) != 7 || got.Days[5].Complete != 1 || got.Days[6].Failed != 2 || got.Days[6].Complete != 0 {
		t.Errorf("the days are %+v", got.Days)
	}
	if f := got.Agents; len(f) != 1 || f[0].Slug != a.Slug || f[0].Longest != 3*time.Minute || f[0].LongestSession != w.All(a.ID)[0].ID {
		t.Errorf("the agents are %+v", f)
	}
	if good, of := got.All.Judged(); good != 1 || of != 3 {
		t.Errorf("the successes are %d of %d", good, of)
	}
	if len(got.Failed) != 1 || got.Failed[0].Code != "NO_LUCK" || got.Failed[0].Count != 2 || got.Failed[0].Agents[0] != a.Slug {
		t.Errorf("the failures are %+v", got.Failed)
	}
	if today := insights(t, w, w.Owner, 1); today.All.Complete != 0 || today.All.Failed != 2 {
		t.Errorf("today alone is %+v", today.All)
	}
	if _, err := w.Insights(t.Context(), w.Owner, 0, ""); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("no day: %v", err)
	}
	if none, err := w.Insights(t.Context(), w.Owner, 7, "another"); err != nil || none.All.Runs() != 0 || len(none.Failed) != 0 || len(none.Among) != 1 {
		t.Errorf("another agent has %+v, %v", none.All, err)
	}
	later(w, 200*day)
	prune(t, w)
	if again := insights(t, w, w.Owner, engine.MostInsightDays); again.All.Runs() != 4 || again.All.Run != 6*time.Minute {
		t.Errorf("when the sessions are gone it is %+v", again.All)
	}
}

func TestFigures_LocalSessionsAreTheirOwnersAlone(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	must[api.Finished](t)(k.Fail(k.Claim(w.New(a).ID), "PRIVATE"))
	other := w.Colleague("Ada", api.Admin)
	if got := insights(t, w, other, 7); got.All.Runs() != 0 || len(got.Agents) != 0 || len(got.Failed) != 0 {
		t.Errorf("an admin sees %+v, %+v", got.All, got.Failed)
	}
}
