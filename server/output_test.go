package server_test

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/server/servertest"
)

func (d *fixture) addItems(c api.Claim, items ...m) {
	d.tb.Helper()
	for _, item := range items {
		item["clientId"] = rand.Text()
	}
	servertest.Must[api.ItemsAnswer](d.Server, 200, "POST", d.at(c.SessionID, "/items"), with(proof(c), m{"items": items}))
}

// readOutput reads the output of a session part by part from a cursor on.
func (d *fixture) readOutput(id api.SessionID, cursor string) (text string, last api.Output) {
	d.tb.Helper()
	for last.Cursor = cursor; last.Text == "" || last.More; {
		last = servertest.Must[api.Output](d.Server, 200, "GET", "sessions/"+id.String()+"/output?cursor="+url.QueryEscape(last.Cursor), nil)
		if n := len(last.Text); n > 32<<10 || last.More && n < 32<<10-8 {
			d.tb.Fatalf("a part has %d bytes, more: %t", n, last.More)
		}
		if text += last.Text; !last.More {
			break
		}
	}
	return text, last
}

func TestOutput_IsTextInParts(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.running()
	if text, at := d.readOutput(c.SessionID, ""); text != "" || at.More || at.Status != api.Active {
		t.Errorf("before any output it is %q %+v", text, at)
	}
	long := strings.Repeat("héllo wörld\n", 4000)
	d.addItems(
		c,
		m{"kind": "text", "stream": "stdout", "text": "\x1b[32mok\x1b[0m and mid-line"},
		m{"kind": "text", "text": "I look."},
		m{"kind": "thinking", "text": "hm"},
		m{"kind": "tool_call", "tool": "bash", "callId": "1", "text": "{\"command\":\n\"ls\"}"},
		m{"kind": "tool_result", "tool": "bash", "callId": "1", "text": "no\nsuch", "failed": true},
		m{"kind": "text", "text": long},
	)
	want := "ok and mid-line\nI look.\n→ bash {\"command\": \"ls\"}\n✗ no such\n" + long
	text, at := d.readOutput(c.SessionID, "")
	if text != want {
		t.Errorf("it reads %d bytes, not the %d: %.200q", len(text), len(want), text)
	}
	if again, _ := d.readOutput(c.SessionID, at.Cursor); again != "" {
		t.Errorf("at the end there is %q", again)
	}
	servertest.Must[api.Finished](d.Server, 200, "POST", d.at(c.SessionID, "/complete"), with(proof(c), m{"result": "done"}))
	if _, at = d.readOutput(c.SessionID, at.Cursor); at.Status != api.Complete || at.More {
		t.Errorf("at the session's end it is %+v", at)
	}
	for _, cursor := range []string{"x", "1", "0.0", "1.-1", "01.0", "1.0 ", "9999999999999999999.0", "1.0.0"} {
		d.Refused(422, api.CodeInvalid, "GET", "sessions/"+c.SessionID.String()+"/output?cursor="+url.QueryEscape(cursor), nil)
	}
}

// A caller that waits for a session is answered when it ends, when it asks a person, and when the wait is
// over.
func TestSessions_AreWaitedFor(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.running()
	at := "sessions/" + c.SessionID.String()
	if s := servertest.Must[api.Session](d.Server, 200, "GET", at+"?wait=1", nil); s.Status != api.Active {
		t.Errorf("after a second it is %s", s.Status)
	}
	waited := func(act func()) api.Session {
		t.Helper()
		got := make(chan api.Session, 1)
		go func() { got <- servertest.Must[api.Session](d.Server, 200, "GET", at+"?wait=60", nil) }()
		servertest.Wait(t, "the request is held", func() bool { return d.HTTP.Holding() == 1 })
		act()
		select {
		case s := <-got:
			return s
		case <-time.After(20 * time.Second):
			t.Fatal("the wait doesn't end")
			return api.Session{}
		}
	}
	s := waited(func() {
		servertest.Must[api.Session](d.Server, 200, "PATCH", d.at(c.SessionID, ""), with(proof(c), m{"status": "awaiting_input", "prompt": m{"kind": "text", "text": "Which?"}}))
	})
	if s.Status != api.AwaitingInput || s.Prompted == nil {
		t.Errorf("the question ends the wait with %s", s.Status)
	}
	servertest.Must[api.Session](d.Server, 200, "POST", at+"/answer", m{"promptId": s.Prompted.ID.String(), "text": "the second"})
	s = waited(func() { servertest.Must[api.Finished](d.Server, 200, "POST", d.at(c.SessionID, "/complete"), proof(c)) })
	if s.Status != api.Complete {
		t.Errorf("the end ends the wait with %s", s.Status)
	}
	d.Refused(422, api.CodeInvalid, "GET", at+"?wait=61", nil)
}

func TestSchedules_AreListed(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	if got := servertest.Must[api.List[api.Agent]](d.Server, 200, "GET", "schedules", nil); got.Items == nil || len(got.Items) != 0 {
		t.Errorf("without a schedule there are %+v", got.Items)
	}
	for i := range 3 {
		servertest.Must[api.Agent](d.Server, 201, "POST", "agents", m{"slug": fmt.Sprintf("nightly-%d", i), "run": m{"command": []string{"true"}}, "schedule": "0 5 * * *"})
	}
	first := servertest.Must[api.List[api.Agent]](d.Server, 200, "GET", "schedules?limit=2", nil)
	rest := servertest.Must[api.List[api.Agent]](d.Server, 200, "GET", "schedules?limit=2&cursor="+first.NextCursor, nil)
	var slugs []string
	for _, a := range append(first.Items, rest.Items...) {
		slugs = append(slugs, a.Slug)
	}
	if fmt.Sprint(slugs) != "[nightly-2 nightly-1 nightly-0]" || rest.NextCursor != "" {
		t.Errorf("listed are %v", slugs)
	}
}

func TestStatus_SaysHowThingsStand(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	d.running()
	o := servertest.Must[api.Overview](d.Server, 200, "GET", "status", nil)
	if o.URL != d.URL || o.Version != "test" || o.User != "owner" || o.Sessions.ByStatus[api.Active] != 1 || len(o.Sessions.ByStatus) != len(api.Statuses) ||
		len(o.Agents) != 1 || len(o.Workers) != 1 || o.Inbox == nil {
		t.Errorf("it says %+v", o)
	}
}
