package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"stint/api"
)

// A session can be kept and let go of on its page; what retention took of it, and when, stands
// there too.
func TestRetention_OnTheSessionsPage(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	path := sessionURL(s.sessions[api.Complete].ID)
	prune := func() {
		t.Helper()
		if _, err := s.PruneAll(t.Context(), s.Owner, false); err != nil {
			t.Fatal(err)
		}
	}
	wentTo(t, s.post(path+"/keep"), path)
	if page := s.get(path).Body.String(); !strings.Contains(page, "Let go") || !strings.Contains(page, "It and its conversation stay") {
		t.Error("the page doesn't say that the session is kept")
	}
	s.Jump(200 * 24 * time.Hour)
	prune()
	if res := s.get(path); res.Code != http.StatusOK || strings.Contains(res.Body.String(), "was removed") {
		t.Errorf("the page of a kept session answers %d", res.Code)
	}
	wentTo(t, s.post(path+"/release"), path)
	prune()
	day := s.Clock.Now().Format(time.DateOnly)
	if res := s.get(path); res.Code != http.StatusGone || !strings.Contains(res.Body.String(), "removed on "+day) {
		t.Errorf("the page of a removed session answers %d: %s", res.Code, res.Body)
	}
}

func TestRetention_RemovedOutputIsTold(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	path := sessionURL(s.sessions[api.Complete].ID)
	s.Jump(31 * 24 * time.Hour)
	if _, err := s.PruneAll(t.Context(), s.Owner, false); err != nil {
		t.Fatal(err)
	}
	day := s.Clock.Now().Format(time.DateOnly)
	for view, want := range map[string]string{
		"output": "Its output was removed on " + day, "transcript": "Its output was removed on " + day, "timeline": "Its events were removed on " + day,
	} {
		if page := s.get(path + "?view=" + view).Body.String(); !strings.Contains(page, want) {
			t.Errorf("the view %s doesn't say %q", view, want)
		}
	}
	if res := s.get(path + "/output.txt"); res.Code != http.StatusGone {
		t.Errorf("the output as text answers %d", res.Code)
	}
}
