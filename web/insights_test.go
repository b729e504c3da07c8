package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

func TestInsights_SumUpWhatEnded(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	page := s.get("/insights").Body.String()
	wholePage(t, "/insights", page)
	for _, want := range []string{"Sessions that ended by day", "Why sessions failed", "<title>", "Usual length", `href="/insights.csv?days=30"`, "/sessions?q=status%3Aerror+code%3A"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	narrow := s.get("/insights?days=7&agent=backup").Body.String()
	if !strings.Contains(narrow, `<option value="backup" selected`) || strings.Contains(narrow, "/agents/log-summary\"") {
		t.Error("one agent's page shows another, or not itself")
	}
	csv := s.get("/insights.csv?days=7")
	if rows := strings.Split(strings.TrimSpace(csv.Body.String()), "\n"); len(rows) != 8 || !strings.HasPrefix(rows[0], "day,complete,") || !strings.HasPrefix(rows[7], s.Clock.Now().Format(time.DateOnly)+",") {
		t.Errorf("the CSV is\n%s", csv.Body)
	}
	for _, days := range []string{"0", "many", "1000"} {
		if res := s.get("/insights?days=" + days); res.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s days answer %d", days, res.Code)
		}
	}
}

func TestInsights_CountsWithoutASuccessOrAFailureHaveNoShare(t *testing.T) {
	w := enginetest.New(t)
	s := newStage(w)
	if page := s.get("/insights").Body.String(); !strings.Contains(page, "Nothing ended in these 30 days") {
		t.Error("an empty page doesn't say so")
	}
	waiting := w.New(w.Agent())
	if _, err := w.CancelSession(t.Context(), w.Owner, waiting.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	if page := s.get("/insights").Body.String(); strings.Contains(page, "NaN") || strings.Contains(page, "%</b>") || !strings.Contains(page, "1 session on one day") {
		t.Error("a cancelled session makes a share of successes")
	}
}
