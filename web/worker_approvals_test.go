package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"stint/api"
)

// allowed has a worker report what its owner allowed from now on.
func (s *fixture) allowed(worker string, all ...api.Approval) {
	s.Helper()
	k := s.workers[worker]
	err := s.ReportApprovals(context.Background(), k.Caller, k.ID, api.ApprovalsReport{InstanceID: k.Instance, State: "now", Approvals: all})
	if err != nil {
		s.Fatalf("report: %v", err)
	}
}

func TestWorkers_TheirOwnerListsAndRemovesWhatIsAllowedFromNowOn(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	page := workerURL(s.workers["backup"].ID)
	if text := readOut(t, s.get(page).Body.String()); !strings.Contains(text, "Allowed from now on") {
		t.Error("the page doesn't say that nothing is allowed from now on")
	}
	asked := s.sessions[api.Queued].ID
	s.allowed("backup", api.Approval{
		ID: "ok-aaaaaa", Area: api.AreaShell, Tool: "Bash", What: "git push <origin> *", Any: true, SessionID: asked, ApprovedBy: s.Owner.UserID,
		ApprovedAt: api.Time{Time: s.Now().Add(-3600e9)}, Uses: 7, LastUsedAt: api.Time{Time: s.Now().Add(-60e9)},
	})
	body := s.get(page).Body.String()
	wholePage(t, page, body)
	text := readOut(t, body)
	for _, words := range []string{"git push <origin> *", "with any one word that is no option", "shell, Bash", "approved by you", "used 7 times, last"} {
		if !strings.Contains(text, words) {
			t.Errorf("the page doesn't say %q: %s", words, text)
		}
	}
	if !strings.Contains(body, sessionURL(asked)) {
		t.Error("there is no way to the question")
	}
	if res := s.post(page + "/approvals/ok-aaaaaa/remove"); res.Code != http.StatusSeeOther || res.Header().Get("Location") != page+"#approvals" {
		t.Fatalf("remove: status %d to %s", res.Code, res.Header().Get("Location"))
	}
	body = s.get(page).Body.String()
	if !strings.Contains(readOut(t, body), "You asked to remove it") || strings.Contains(body, "/approvals/ok-aaaaaa/remove") {
		t.Error("the page doesn't say that its removal was asked")
	}
	if res := s.post(page + "/approvals/ok-bbbbbb/remove"); res.Code != http.StatusNotFound {
		t.Errorf("removing what isn't there: status %d", res.Code)
	}
	s.allowed("backup")
	if strings.Contains(s.get(page).Body.String(), "ok-aaaaaa") {
		t.Error("what the worker removed is listed")
	}
	s.allowed("backup", api.Approval{ID: "ok-cccccc", What: "make"})
	_, admin := s.joins(t, api.Admin)
	owner := s.Owner
	s.Owner = admin
	if body := s.get(page).Body.String(); strings.Contains(body, "ok-cccccc") || strings.Contains(body, "from now on") {
		t.Error("an admin sees what somebody else's worker may do from now on")
	}
	s.Owner = owner
}
