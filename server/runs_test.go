package server_test

import (
	"testing"

	"stint/api"
	"stint/server/servertest"
)

// An agent speaks for its own session with the token that came with the claim, and needs to
// name neither claim nor process. The token ends with the claim.
func TestRun_TokenOverTheWire(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.running()
	agent := d.As(c.RunToken)
	if who := servertest.Must[api.Whoami](agent, 200, "GET", "/api/v1/whoami", nil); who.SessionID != c.SessionID || who.Name != "owner" {
		t.Errorf("it is %+v", who)
	}
	servertest.Must[api.Lease](agent, 200, "POST", d.at(c.SessionID, "/renew"), m{})
	servertest.Must[api.Lease](agent, 200, "POST", d.at(c.SessionID, "/extend"), m{"addSeconds": 60})
	servertest.Must[api.Activity](agent, 201, "POST", d.at(c.SessionID, "/activities"), m{"type": "progress", "text": "half"})
	servertest.Must[api.ItemsAnswer](agent, 200, "POST", d.at(c.SessionID, "/items"), m{"items": []m{{"kind": "text", "text": "hello"}}})
	servertest.Must[api.Session](agent, 200, "PATCH", d.at(c.SessionID, ""), m{"plan": "1. look", "externalUrl": "https://example.org/"})
	agent.Refused(403, api.CodeForbidden, "PATCH", d.at(c.SessionID, ""), m{"usage": m{"turns": 0}})
	agent.Refused(403, api.CodeForbidden, "POST", d.at(c.SessionID, "/activities"), m{"type": "policy_decision"})
	own := "sessions/" + c.SessionID.String()
	for _, path := range []string{own, own + "/items", own + "/activities", own + "/events", "agents/tidy/" + own} {
		if a := agent.Do("GET", path, nil); a.Status != 200 {
			t.Errorf("%s answered %d %s", path, a.Status, a.Body)
		}
	}
	started := servertest.Must[api.Session](agent, 201, "POST", "agents/tidy/sessions", m{"prompt": "and you"})
	if started.TriggeredBy != api.ByAgent || started.Parent != c.SessionID || started.Depth != 1 {
		t.Errorf("it started %+v", started)
	}
	for _, op := range []string{"/answer", "/cancel", "/stop", "/retry", "/archive"} {
		agent.Refused(403, api.CodeUserTokenRequired, "POST", own+op, m{})
	}
	for _, verb := range []string{"/complete", "/fail", "/release", "/claim"} {
		agent.Refused(403, api.CodeUserTokenRequired, "POST", d.at(c.SessionID, verb), with(proof(c), m{}))
	}
	// It counts as a sign-in neither in a browser nor for an invitation.
	if a := agent.Do("GET", "/oauth/authorize", nil); a.Status != 403 {
		t.Errorf("the consent page answered %d", a.Status)
	}
	// The token ends with the claim, at once.
	servertest.Must[api.Finished](d.Server, 200, "POST", d.at(c.SessionID, "/complete"), proof(c))
	agent.Refused(401, api.CodeUnauthenticated, "POST", d.at(c.SessionID, "/activities"), m{"type": "progress"})
	agent.Refused(401, api.CodeUnauthenticated, "GET", own, nil)
}
