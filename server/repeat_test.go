package server_test

import (
	"net/http"
	"testing"
	"time"

	"stint/api"
	"stint/server/servertest"
)

// docs/worker-protocol.md says which of a worker's calls may be repeated: the second one
// changes nothing and gets the same answer.
func TestWorkerVerbs_SentAgainChangeNothing(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	for name, c := range map[string]struct {
		verb, method string
		body         m
		status       int
	}{
		"claim":      {verb: "/claim", body: m{"claimId": nil}, status: 200},
		"renew":      {verb: "/renew", status: 200},
		"items":      {verb: "/items", body: m{"items": []m{{"kind": "text", "text": "a", "clientId": "1"}, {"kind": "text", "text": "b", "clientId": "2"}}}, status: 200},
		"activities": {verb: "/activities", body: m{"type": "progress", "text": "half way", "key": "k1"}, status: 201},
		"report":     {method: "PATCH", body: m{"plan": "a plan", "externalUrl": "https://a.test/", "usage": m{"costMicros": 5}, "tries": 1, "turnEnded": true}, status: 200},
		"complete":   {verb: "/complete", body: m{"result": "fine"}, status: 200},
		"fail":       {verb: "/fail", body: m{"code": "X", "message": "no"}, status: 200},
		"release":    {verb: "/release", body: m{"reason": "busy"}, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			claim := d.running()
			body := with(proof(claim), c.body)
			if name == "claim" {
				delete(body, "claimId")
			}
			method := c.method
			if method == "" {
				method = "POST"
			}
			var after [2]members
			for i := range after {
				servertest.Must[members](d.Server, c.status, method, d.at(claim.SessionID, c.verb), body)
				after[i] = d.all(claim.SessionID)
			}
			for what, was := range after[0] {
				// A claim that is claimed again is renewed.
				if string(after[1][what]) != string(was) && what != ".leaseExpiresAt" {
					t.Errorf("sent again it made of %s\n%s\n%s", what, was, after[1][what])
				}
			}
		})
	}
}

// The two that must not be repeated say so: a lease that was extended twice is longer, and an
// open question isn't asked a second time.
func TestWorkerVerbs_ThatCannotBeSentAgain(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	claim := d.running()
	extend := func() api.Lease {
		return servertest.Must[api.Lease](d.Server, 200, "POST", d.at(claim.SessionID, "/extend"), with(proof(claim), m{"addSeconds": 60}))
	}
	if first, second := extend(), extend(); second.LeaseExpiresAt.Sub(first.LeaseExpiresAt.Time) != time.Minute {
		t.Errorf("extended to %v and then to %v", first.LeaseExpiresAt, second.LeaseExpiresAt)
	}
	ask := with(proof(claim), m{"status": "awaiting_input", "prompt": m{"kind": "text", "text": "Which one?"}})
	servertest.Must[api.Session](d.Server, 200, "PATCH", d.at(claim.SessionID, ""), ask)
	d.Refused(http.StatusConflict, api.CodePromptOpen, "PATCH", d.at(claim.SessionID, ""), ask)
}

// all is everything visible of a session: itself with its question, its output and its
// activities.
func (d *fixture) all(id api.SessionID) members {
	d.tb.Helper()
	out := members{}
	for _, part := range []string{"", "/items", "/activities"} {
		for name, value := range servertest.Must[members](d.Server, http.StatusOK, "GET", "sessions/"+id.String()+part, nil) {
			out[part+"."+name] = value
		}
	}
	return out
}
