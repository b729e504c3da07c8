package server_test

import (
	"testing"

	"stint/api"
	"stint/server/servertest"
)

const classicPath = "/api/workspaces/default/agents/tidy/sessions"

type classicSession struct {
	ID                string  `json:"id"`
	Status            string  `json:"status"`
	TriggeredBy       string  `json:"triggered_by"`
	TriggeredByUserID *string `json:"triggered_by_user_id"`
	StartedAt         *string `json:"started_at"`
	CompletedAt       *string `json:"completed_at"`
	Error             *string `json:"error"`
}

type classicOne struct {
	Session classicSession `json:"session"`
}

// The statuses are the document's; the shapes are those of the first description.
func classicAnswers(d *fixture) {
	s, tb := d.Server, d.tb
	key := servertest.With("Idempotency-Key", "classic")
	made := servertest.Must[classicOne](s, 201, "POST", classicPath, m{"prompt": "a"}, key).Session
	if made.Status != "pending" || made.TriggeredBy != "user" || made.TriggeredByUserID == nil || made.CompletedAt != nil || made.StartedAt != nil {
		tb.Errorf("triggered: %+v", made)
	}
	if again := servertest.Must[classicOne](s, 200, "POST", classicPath, m{"prompt": "a"}, key).Session; again.ID != made.ID {
		tb.Errorf("the same key made another session: %+v", again)
	}
	s.Refused(422, api.CodeInvalid, "POST", classicPath, m{"prompt": "a", "priority": 5000})
	cancelled := servertest.Must[classicOne](s, 200, "POST", classicPath+"/"+made.ID+"/cancel", nil).Session
	if cancelled.Status != "failed" || cancelled.CompletedAt == nil {
		tb.Errorf("cancelled: %+v", cancelled)
	}
	s.Refused(409, api.CodeSessionTerminal, "POST", classicPath+"/"+made.ID+"/cancel", nil)
	running := d.running()
	s.Refused(409, api.CodeSessionRunning, "POST", classicPath+"/"+running.SessionID.String()+"/cancel", nil)
	servertest.Must[api.Finished](s, 200, "POST", d.at(running.SessionID, "/fail"), with(proof(running), m{"code": "AGENT_EXIT_NONZERO", "message": "exit 3"}))
	newest := servertest.Must[struct {
		Sessions []classicSession `json:"sessions"`
	}](s, 200, "GET", classicPath, nil).Sessions
	if len(newest) == 0 || newest[0].ID != running.SessionID.String() || newest[0].Status != "failed" ||
		newest[0].Error == nil || *newest[0].Error != "AGENT_EXIT_NONZERO: exit 3" || newest[0].StartedAt == nil {
		tb.Errorf("the list begins with %+v", newest)
	}
	s.Refused(422, api.CodeInvalid, "GET", classicPath+"?limit=7", nil)
}

func TestClassic_ListHasAtMostFifty(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	for range 60 {
		d.addSession()
	}
	got := servertest.Must[struct {
		Sessions []classicSession `json:"sessions"`
	}](d.Server, 200, "GET", classicPath, nil).Sessions
	if len(got) != 50 || got[0].ID <= got[49].ID {
		t.Errorf("%d sessions, from %s to %s", len(got), got[0].ID, got[len(got)-1].ID)
	}
}
