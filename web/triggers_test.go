package web

import (
	"net/http"
	"strings"
	"testing"

	"stint/api"
)

func TestTriggers_AreOnTheAgentsPageForThoseWhoMayCloseThem(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	if page := s.get("/agents/backup").Body.String(); !strings.Contains(page, "stint trigger-url open backup") {
		t.Error("the page doesn't say how to open one")
	}
	made, err := s.OpenTriggerURL(t.Context(), s.Owner, "backup", api.TriggerURLInput{Description: "the <forge>"})
	if err != nil {
		t.Fatal(err)
	}
	closing := triggerURL("backup", made.ID)
	page := s.get("/agents/backup").Body.String()
	wholePage(t, "/agents/backup", page)
	for _, want := range []string{"the &lt;forge&gt;", "opened by You", "never used", `href="` + closing + `"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, made.Secret) || strings.Contains(page, made.Path) {
		t.Error("the page shows what was to be shown once")
	}
	if _, other := s.joins(t, api.Admin); other.Role == api.Admin {
		mine := s.Owner
		s.Owner = other // for whom the agent doesn't run
		if page := s.get("/agents/backup").Body.String(); strings.Contains(page, "Trigger URLs") {
			t.Error("another admin sees the addresses of a local agent")
		}
		s.Owner = mine
	}
	ask := s.get(closing).Body.String()
	wholePage(t, closing, ask)
	if !strings.Contains(ask, "Close address") || strings.Contains(ask, made.Secret) {
		t.Error("the question isn't asked")
	}
	wentTo(t, s.post(closing), "/agents/backup")
	if res := s.post(closing); res.Code != http.StatusNotFound {
		t.Errorf("closed twice: status %d", res.Code)
	}
	if res := s.get(closing); res.Code != http.StatusNotFound {
		t.Errorf("the question about a closed one: status %d", res.Code)
	}
	if page := s.get("/agents/backup").Body.String(); strings.Contains(page, "forge") {
		t.Error("a closed one is still listed")
	}
}
