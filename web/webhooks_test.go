package web

import (
	"regexp"
	"strings"
	"testing"

	"stint/engine"
)

func TestWebhooks_MadeTestedRotatedDeleted(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	refused(t, s.post("/settings/webhooks", "url", "nowhere", "types", "agent.nonsense"), "an address such as https", "is no type of message")
	page := s.post("/settings/webhooks", "url", "https://example.org/hook", "types", "agent.session_error, agent.session_complete", "description", "the pager").Body.String()
	secret := regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)
	first := secret.FindString(page)
	if first == "" || !strings.Contains(page, "Keep this secret now") {
		t.Fatal("the secret isn't shown")
	}
	list := s.get("/settings/webhooks").Body.String()
	if strings.Contains(list, "whsec_") || !strings.Contains(list, "the pager") || !strings.Contains(list, "agent.session_error, agent.session_complete") {
		t.Error("the list shows the secret, or not what the webhook is")
	}
	one := regexp.MustCompile(`/settings/webhooks/whk_\w+`).FindString(list)
	wentTo(t, s.post(one+"/test"), one)
	wentTo(t, s.post(one+"/disable"), one)
	wentTo(t, s.post(one+"/enable"), one)
	shown := s.get(one).Body.String()
	if !strings.Contains(shown, "stint.test") || !strings.Contains(shown, "waiting") || !strings.Contains(shown, "Enabled") {
		t.Errorf("the page of the webhook says %s", shown)
	}
	wholePage(t, one, shown)
	due, err := s.TakeDeliveries(t.Context(), s.Now(), 9, nil)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	if err := s.EndTry(t.Context(), due[0], engine.Sent{StatusCode: 503, Problem: "it answered 503", Answer: "<b>later</b>"}); err != nil {
		t.Fatal(err)
	}
	if shown = s.get(one).Body.String(); !strings.Contains(shown, "answered 503") {
		t.Error("the message's outcome isn't shown")
	}
	if second := secret.FindString(s.post(one + "/rotate").Body.String()); second == "" || second == first {
		t.Errorf("the new secret is %q", second)
	}
	wentTo(t, s.post(one+"/delete"), "/settings/webhooks")
}
