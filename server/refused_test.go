package server_test

import (
	"net/http"
	"net/url"
	"testing"

	"stint/api"
	"stint/server/servertest"
)

// A cursor that no list returned is refused in the same way by all of them, naming the field;
// one that a list did return works.
func TestCursors_NonsenseIsRefusedEverywhere(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	d.addSession()
	d.addSession()
	session := "sessions/" + d.addSession().ID.String()
	channel := "channels/" + servertest.Must[api.Channel](d.Server, 201, "POST", "channels", m{"url": "ntfy://ntfy.sh/topic"}).ID.String()
	hook := "webhooks/" + servertest.Must[api.Webhook](d.Server, 201, "POST", "webhooks", m{"url": "https://example.test/x"}).ID.String()
	lists := []string{
		"sessions", "agents/tidy/sessions", "agents", "agents/tidy/ledger", "agents/tidy/workers", "workers", "members", "invitations", "keys", "audit",
		"webhooks", hook + "/deliveries", "channels", channel + "/deliveries", "agents/tidy/trigger-urls", session + "/activities", session + "/events",
		"/api/v1/account/sign-ins", "/api/v1/programs",
	}
	for _, list := range lists {
		for _, cursor := range []string{"nonsense", "0", "-5", "12", "1.", ".", "1.zz", "zzzzzzzzzzzzzzzzzz", "!!", "00.0", "9223372036854775807"} {
			e := d.Refused(http.StatusUnprocessableEntity, api.CodeInvalid, "GET", list+"?cursor="+url.QueryEscape(cursor), nil)
			if len(e.Fields) != 1 || e.Fields[0].Field != "cursor" {
				t.Errorf("%s with %q names %+v", list, cursor, e.Fields)
			}
		}
	}
	for path, field := range map[string]string{
		session + "/items?after=x": "after", session + "/items?before=1e3": "before", session + "/messages?after=x": "after", "events?after=x": "after",
	} {
		e := d.Refused(http.StatusUnprocessableEntity, api.CodeInvalid, "GET", path, nil)
		if len(e.Fields) != 1 || e.Fields[0].Field != field {
			t.Errorf("%s names %+v", path, e.Fields)
		}
	}
	first := servertest.Must[api.List[api.Session]](d.Server, 200, "GET", "sessions?limit=2", nil)
	rest := servertest.Must[api.List[api.Session]](d.Server, 200, "GET", "sessions?limit=2&cursor="+url.QueryEscape(first.NextCursor), nil)
	if len(rest.Items) != 1 || rest.Items[0].ID == first.Items[0].ID {
		t.Errorf("the second page has %d sessions", len(rest.Items))
	}
}

// A compressed body is refused on every path, whatever reads it.
func TestBody_CompressedIsRefused(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	for _, path := range []string{"agents/tidy/sessions", "agents/tidy/pause", "/oauth/token", "/signin", "/run", "/nowhere"} {
		for _, encoding := range []string{"gzip", "br", "identity, gzip", "x"} {
			got := d.Do("POST", path, `{}`, servertest.With("Content-Encoding", encoding))
			if got.Status != http.StatusUnsupportedMediaType || got.Header.Get("Accept-Encoding") != "identity" {
				t.Errorf("%s packed as %q is answered %d", path, encoding, got.Status)
			}
		}
	}
	servertest.Must[api.Session](d.Server, 201, "POST", "agents/tidy/sessions", `{}`, servertest.With("Content-Encoding", "identity"))
}

// A path with empty or dot segments isn't treated as another path: a write is never
// redirected.
func TestPaths_AWriteIsNeverSentOn(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	for _, path := range []string{
		"//api/v1/workspaces/default/agents/tidy/sessions", "/api//v1/workspaces/default/agents/tidy/sessions",
		"/api/v1/workspaces/default/./agents/tidy/sessions", "/api/v1/workspaces/default/x/../agents/tidy/sessions", "//run", "/agents/../run",
	} {
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			d.Refused(http.StatusNotFound, api.CodeNotFound, method, path, `{}`)
		}
	}
	for _, path := range []string{"//api/v1/workspaces/default/agents", "//api/v1/workspaces", "/x/../api/v1/whoami"} {
		d.Refused(http.StatusNotFound, api.CodeNotFound, "GET", path, nil)
	}
}

func TestExternalURL_HoldsNoPassword(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	claim := d.running()
	at := d.at(claim.SessionID, "")
	for _, address := range []string{"https://ann:secret@example.test/pr/1", "https://token@example.test/"} {
		e := d.Refused(http.StatusUnprocessableEntity, api.CodeInvalid, "PATCH", at, with(proof(claim), m{"externalUrl": address}))
		if len(e.Fields) != 1 || e.Fields[0].Field != "externalUrl" {
			t.Errorf("%s names %+v", address, e.Fields)
		}
	}
	servertest.Must[api.Session](d.Server, 200, "PATCH", at, with(proof(claim), m{"externalUrl": "https://example.test/@ann/1"}))
}
