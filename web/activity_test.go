package web

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"stint/api"
)

var tags = regexp.MustCompile(`<[^>]*>|\s+`)

// readOut is a page's text, with single spaces.
func readOut(t *testing.T, page string) string {
	t.Helper()
	return html.UnescapeString(strings.Join(strings.Fields(tags.ReplaceAllString(page, " ")), " "))
}

func TestActivity_IsToldInSentences(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	done := s.sessions[api.Complete]
	page := s.get("/activity?session=" + done.ID.String() + "&type=session_complete").Body.String()
	wholePage(t, "/activity", page)
	text := readOut(t, page)
	if !strings.Contains(text, "completed a run of ") && !strings.Contains(text, "completed “") || strings.Contains(text, "orker worker") || strings.Contains(text, `"to"`) {
		t.Errorf("the completion is shown as %s", text)
	}
	for _, want := range []string{`href="` + sessionURL(done.ID) + `"`, `href="` + agentURL(done.AgentSlug) + `"`, ` UTC"`, "<time datetime="} {
		if !strings.Contains(page, want) {
			t.Errorf("the entry lacks %s", want)
		}
	}
	// An event without a sentence keeps its type and its data.
	odd := s.get("/activity?type=slot_decided").Body.String()
	if !strings.Contains(odd, "Slot decided") || !strings.Contains(readOut(t, odd), `"verdict":`) {
		t.Error("an event without a sentence isn't shown by type and data")
	}
	for _, kind := range []struct {
		e    api.AuditEntry
		want string
	}{
		{api.AuditEntry{Event: api.Event{Actor: "system"}, ActorName: "system"}, "Stint"},
		{api.AuditEntry{Event: api.Event{Actor: "scheduler"}, ActorName: "scheduler"}, "The schedule"},
		{api.AuditEntry{Event: api.Event{Actor: "wrk_1"}, ActorName: "worker worker-3tlk"}, "Worker-3tlk"},
		{api.AuditEntry{Event: api.Event{Actor: "wrk_1"}, ActorName: "worker desk"}, "Worker desk"},
		{api.AuditEntry{Event: api.Event{Actor: "usr_1"}, ActorName: "Ann"}, "Ann"},
	} {
		if got := doer(kind.e); got != kind.want {
			t.Errorf("%s is shown as %q, want %q", kind.e.ActorName, got, kind.want)
		}
	}
}
