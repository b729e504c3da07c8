package engine_test

import (
	"math"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A number that no session can have used is refused everywhere, by its name; the session
// continues and can still be finished.
func TestUsage_NonsenseIsRefusedAtEachDoor(t *testing.T) {
	s := newTalk(t)
	under := s.k.Under(s.c.ClaimID)
	for want, u := range map[string]api.Usage{
		"usage.costMicros":                    {CostMicros: math.MaxInt64},
		"usage.turns":                         {Turns: -1},
		"usage.inputTokens":                   {InputTokens: api.MaxUsage + 1},
		"usage.outputTokens usage.costMicros": {OutputTokens: math.MinInt64, CostMicros: -1},
	} {
		_, err := s.patch(func(in *api.SessionPatch) { in.Usage = &u })
		if got := fields(t, err); got != want {
			t.Errorf("patch: refused for %q, want %q", got, want)
		}
		_, err = s.w.Complete(t.Context(), s.w.Owner, s.k.ID, s.c.SessionID, api.CompleteRequest{UnderClaim: under, Usage: &u})
		if got := fields(t, err); got != want {
			t.Errorf("complete: refused for %q, want %q", got, want)
		}
		_, err = s.w.Fail(t.Context(), s.w.Owner, s.k.ID, s.c.SessionID, api.FailRequest{UnderClaim: under, Code: "X", Usage: &u})
		if got := fields(t, err); got != want {
			t.Errorf("fail: refused for %q, want %q", got, want)
		}
	}
	most := api.Usage{InputTokens: api.MaxUsage, OutputTokens: api.MaxUsage, CostMicros: api.MaxUsage, Turns: api.MaxUsage}
	done, err := s.w.Complete(t.Context(), s.w.Owner, s.k.ID, s.c.SessionID, api.CompleteRequest{UnderClaim: under, Usage: &most})
	if err != nil || done.Session.Usage != most {
		t.Errorf("completed with %+v, %v", done.Session.Usage, err)
	}
}

// Whatever an agent's day has added up to, the next finish is accepted.
func TestUsage_NoSumOfADayFailsAFinish(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 3 })
	k := w.Worker(a)
	spend := func(cost int64) int64 {
		t.Helper()
		c := k.Claim(w.New(a).ID)
		_, err := w.Complete(t.Context(), w.Owner, k.ID, c.SessionID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Result: "precious", Usage: &api.Usage{CostMicros: cost}})
		if err != nil {
			t.Fatal(err)
		}
		now, err := w.Engine.Agent(t.Context(), w.Owner, a.Slug)
		if err != nil {
			t.Fatal(err)
		}
		return now.SpentTodayMicros
	}
	if got := spend(5); got != 5 {
		t.Fatalf("spent %d", got)
	}
	damage(t, w, "UPDATE agents SET spent_on_day = 9223372036854775800")
	w.Restart()
	for _, cost := range []int64{6, 5, api.MaxUsage} {
		got := spend(cost)
		if want := int64(math.MaxInt64); cost != 6 && got != want || cost == 6 && got != want-1 {
			t.Errorf("after %d more, spent %d", cost, got)
		}
	}
}

// The daily limit holds in whatever zone the day is counted.
func TestSpend_ANewZoneLiftsNoLimit(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.DailySpendLimitMicros = 1000 })
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	_, err := w.Complete(t.Context(), w.Owner, k.ID, c.SessionID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Usage: &api.Usage{CostMicros: 5000}})
	if err != nil {
		t.Fatal(err)
	}
	waiting := w.New(a).ID
	// It is 09:00 UTC: the same day in Kiritimati, the day before in Pago Pago.
	for _, zone := range []string{"Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"} {
		w.Edit(a.ID, func(in *api.AgentInput) { in.TimeZone = zone })
		if got := w.Get(waiting).WaitingFor; got == nil || got.Code != "spend_limit" {
			t.Errorf("in %s it waits for %+v", zone, got)
		}
		if now, _ := w.Engine.Agent(t.Context(), w.Owner, a.Slug); now.SpentTodayMicros != 5000 {
			t.Errorf("in %s it has spent %d today", zone, now.SpentTodayMicros)
		}
	}
}

// An address that was stored with a name and password in it is shown without them.
func TestExternalURL_IsToldWithoutItsPassword(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	s := w.New(a)
	damage(t, w, "UPDATE sessions SET external_url = 'https://ann:secret@example.test/pr/1'")
	page := must[engine.SessionPage](t)(w.SessionPageOf(t.Context(), w.Owner, s.ID))
	for _, got := range []api.Session{must[api.Session](t)(w.Engine.Session(t.Context(), w.Owner, s.ID)), page.Session.Session} {
		if got.ExternalURL != "https://example.test/pr/1" {
			t.Errorf("the session names %s", got.ExternalURL)
		}
	}
}
