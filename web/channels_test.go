package web

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stint/api"
	"stint/engine"
)

func TestChannels_MadeTestedChangedRemoved(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	refused(t, s.post("/settings/notifications", "kind", "slack", "description", "a phone"), "Is missing", "name at least one", "a phone")
	res := s.post("/settings/notifications", "url", "ntfy://ntfy.sh/topic-secret", "description", "my phone", "tell-needs_you", "true", "tell-failing", "true")
	one := regexp.MustCompile(`/settings/notifications/chn_\w+`).FindString(res.Header().Get("Location"))
	list := s.get("/settings/notifications?kind=smtp").Body.String()
	if !strings.Contains(list, "my phone") || !strings.Contains(list, "a question waits for an answer; failures in a row") || !strings.Contains(list, "smtp://USER:PASSWORD@") {
		t.Errorf("the list is %s", list)
	}
	wholePage(t, one, s.get(one).Body.String())
	refused(t, s.post(one, "tell-failed", "true", "quietFrom", "22:00", "timeZone", "Mars"), "Is missing: quiet hours have a beginning and an end", "Mars", "22:00")
	wentTo(t, s.post(one, "description", "my phone", "tell-failed", "true", "tell-needs_you", "true", "quietFrom", "22:00", "quietTo", "07:00", "digestAt", "08:00", "timeZone", "Europe/Berlin"), one)
	if page := s.get(one).Body.String(); !strings.Contains(page, "once a day, at 08:00 · nothing from 22:00 to 07:00 · Europe/Berlin") || !strings.Contains(page, `value="22:00"`) {
		t.Errorf("the page says %s", page)
	}
	heldBack(t, s)
	if page := s.get(one).Body.String(); !strings.Contains(page, "held back for the digest of 2026-03-04 08:00 Europe/Berlin") {
		t.Errorf("the page doesn't say what is held back: %s", page)
	}
	to := s.post(one + "/test").Header().Get("Location")
	outcome := func(sent engine.Sent, to string) string {
		due, err := s.TakeDeliveries(t.Context(), s.Now(), 9, nil)
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		if err := s.EndTry(t.Context(), due[0], sent); err != nil {
			t.Fatal(err)
		}
		return s.get(to).Body.String()
	}
	if page := outcome(engine.Sent{StatusCode: 500, Problem: "it answered 500", Answer: "<b>no</b>"}, to); !strings.Contains(page, "The test didn&#39;t arrive") || !strings.Contains(page, "&lt;b&gt;no") {
		t.Errorf("after a test that failed the page says %s", page)
	}
	if page := outcome(engine.Sent{StatusCode: 200}, s.post(one+"/test").Header().Get("Location")); !strings.Contains(page, "The test arrived") {
		t.Errorf("after a test the page says %s", page)
	}
	wentTo(t, s.post(one+"/disable"), one)
	wentTo(t, s.post(one, "description", "old phone", "tell-failed", "true", "details", "true"), one)
	refused(t, s.post(one, "url", "", "description", "old phone"), "name at least one")
	shown := s.get(one).Body.String()
	if !strings.Contains(shown, "old phone") || strings.Contains(shown, "topic-secret") || !strings.Contains(shown, "Disabled") {
		t.Errorf("the page says %s", shown)
	}
	wentTo(t, s.post(one+"/enable"), one)
	wholePage(t, one+"/delete", s.get(one+"/delete").Body.String())
	wentTo(t, s.post(one+"/delete"), "/settings/notifications")
}

// heldBack makes something happen that channels tell, and lets them look whether they may.
func heldBack(t *testing.T, s *fixture) {
	t.Helper()
	a := s.Agent()
	k := s.Worker(a)
	if _, err := k.Ask(k.Claim(s.New(a).ID), "may I?"); err != nil {
		t.Fatal(err)
	}
	if err := s.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if due, err := s.TakeDeliveries(t.Context(), s.Now(), 9, nil); err != nil || len(due) != 0 {
		t.Fatal(due, err)
	}
}

// The pages of channels have no fault of accessibility, also after a test and with an error,
// and work on a phone.
func TestBrowser_ChannelsHaveNoAccessibilityFault(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	in := engine.DefaultChannel()
	in.URL, in.QuietFrom, in.QuietTo, in.DigestAt, in.TimeZone = "ntfy://ntfy.sh/topic", "00:00", "23:59", "08:00", "America/Argentina/ComodRivadavia"
	c, err := s.CreateChannel(t.Context(), s.Owner, in)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.TestChannel(t.Context(), s.Owner, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	due, err := s.TakeDeliveries(t.Context(), s.Now(), 9, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range due {
		if err := s.EndTry(t.Context(), a, engine.Sent{Problem: "no answer within " + (10 * time.Second).String(), Answer: strings.Repeat("long", 100)}); err != nil {
			t.Fatal(err)
		}
	}
	heldBack(t, s)
	b := openTab(t, s.serve(t))
	b.haveNoFault(t, []string{"/settings/notifications", "/settings/notifications?kind=smtp", channelURL(c.ID), channelURL(c.ID) + "?test=" + d.ID.String(), channelURL(c.ID) + "/delete"})
	b.do(chromedp.EmulateViewport(390, 844))
	for _, path := range []string{"/settings/notifications?kind=smtp", channelURL(c.ID)} {
		b.open(path)
		if wide := js[string](b, sideways); wide != "" {
			t.Errorf("%s is wider than a phone: %s", path, wide)
		}
	}
}

func TestToldWords_AMessageThatWasTriedIsHeldBackNoMore(t *testing.T) {
	t.Parallel()
	d := api.ChannelDelivery{State: api.DeliveryWaiting, HeldBack: "until 11:42"}
	if got := toldWords(d); got != "waiting · held back until 11:42" {
		t.Errorf("before its first try it is %q", got)
	}
	d.Tries, d.StatusCode, d.Problem = 2, 500, "it answered 500 Internal Server Error"
	if got := toldWords(d); got != "waiting · 2 tries · it answered 500 Internal Server Error" {
		t.Errorf("after two tries it is %q", got)
	}
}
