package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"stint/api"
)

// timed are the pages of a fixture whose agents are started by schedules.
func timed(t *testing.T, more ...func(*api.AgentInput)) (*fixture, api.Agent) {
	t.Helper()
	s := newFixture(t, fixtureEnd)
	edits := append([]func(*api.AgentInput){func(in *api.AgentInput) {
		in.Slug, in.Name, in.Schedule, in.TimeZone, in.CatchUp = "nightly", "Nightly check", "0 3 * * *", "UTC", api.CatchUpNone
	}}, more...)
	return s, s.Agent(edits...)
}

func TestSchedules_SkipAndTakeBack(t *testing.T) {
	s, a := timed(t)
	page := s.get("/schedules").Body.String()
	wholePage(t, "/schedules", page)
	for _, want := range []string{"Nightly check", "At 03:00", `action="/agents/nightly/skip"`, "In the next 24 hours"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	wentTo(t, s.post("/agents/nightly/skip"), "/agents/nightly")
	if now, err := s.Engine.Agent(t.Context(), s.Owner, a.Slug); err != nil || !now.SkipUntil.Equal(now.NextSlotAt.Time) {
		t.Errorf("after the press it is skipped until %v (%v)", now.SkipUntil, err)
	}
	for path, want := range map[string]string{"/schedules": ">skipped<", "/agents/nightly": "Don&#39;t skip", "/": ">skipped<", "/activity": "had slots skipped of"} {
		if page := s.get(path).Body.String(); !strings.Contains(page, want) {
			t.Errorf("%s lacks %q", path, want)
		}
	}
	wentTo(t, s.post("/agents/nightly/unskip"), "/agents/nightly")
	if page := s.get("/schedules").Body.String(); strings.Contains(page, ">skipped<") {
		t.Error("what was taken back is still skipped")
	}
	s.Agent(func(in *api.AgentInput) { in.Slug = "bare" })
	if res := s.post("/agents/bare/skip"); res.Code != http.StatusConflict {
		t.Errorf("an agent without a schedule answers %d", res.Code)
	}
}

func TestSchedules_WhatDidNotRunIsInOnePlace(t *testing.T) {
	s, _ := timed(t)
	s.Agent(func(in *api.AgentInput) {
		in.Slug, in.Name, in.Schedule, in.TimeZone = "busy", "Busy", "* * * * *", "UTC"
	})
	s.Jump(50 * time.Hour)
	s.Advance(time.Minute)
	page := s.get("/schedules").Body.String()
	for _, want := range []string{"Didn&#39;t run in the last 7 days", "2 slots missed", "The coordinator was away", "Run now: nightly", "more than 200 slots in 24 hours"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	s.Jump(8 * 24 * time.Hour)
	if page := s.get("/schedules").Body.String(); strings.Contains(page, "2 slots missed") {
		t.Error("what didn't run is told for longer than a week")
	}
}
