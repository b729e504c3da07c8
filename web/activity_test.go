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
	var odd strings.Builder
	drained := api.AuditEntry{Event: api.Event{Type: "claim_drained", Actor: "system", Data: api.EventData{"left": 2.0}}}
	if err := activitySentence(activityPage{}, drained).Render(t.Context(), &odd); err != nil || !strings.Contains(odd.String(), "Claim drained") || !strings.Contains(readOut(t, odd.String()), `"left":2`) {
		t.Errorf("an event without a sentence isn't shown by type and data: %v, %s", err, odd.String())
	}
	slots := readOut(t, s.get("/activity?type=slot_decided").Body.String())
	if !strings.Contains(slots, "The schedule fired a slot of ") || !strings.Contains(slots, " · due ") || strings.Contains(slots, "verdict") {
		t.Errorf("slots are shown as %s", slots)
	}
	if said, ok := phraseOf(api.AuditEntry{Event: api.Event{Type: api.EventSlotDecided, AgentID: 1, Data: api.EventData{"verdict": string(api.SlotMissed), "count": 5.0}}}); !ok || said.verb != "missed 5 slots of" {
		t.Errorf("missed slots are shown as %q", said.verb)
	}
	told := api.AuditEntry{Event: api.Event{Type: api.EventReported, SessionID: done.ID, Data: api.EventData{"workPath": true, "usage": true}}}
	if said, ok := phraseOf(told); !ok || said.verb != "sent news of" || (activityPage{}).facts(told) != "usage, where it works" {
		t.Errorf("what a worker reports in between is shown as %q, %q", said.verb, (activityPage{}).facts(told))
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
