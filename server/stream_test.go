package server_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

// reader follows the stream.
type reader struct {
	tb    testing.TB
	resp  *http.Response
	lines *bufio.Scanner
	stop  context.CancelFunc
}

// message is one server-sent event.
type message struct {
	id, kind, data string
	comment        bool
}

func openStream(tb testing.TB, s *servertest.Server, lastID string, changes ...servertest.Change) *reader {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+servertest.Base+"/events", nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Accept-Encoding", "gzip, br")
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	for _, change := range changes {
		change(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		stop()
		tb.Fatal(err)
	}
	r := &reader{tb: tb, resp: resp, lines: bufio.NewScanner(resp.Body), stop: stop}
	tb.Cleanup(r.close)
	return r
}

func (r *reader) close() {
	r.stop()
	_ = r.resp.Body.Close()
}

// next reads a message; false at the end of the stream.
func (r *reader) next() (message, bool) {
	var m message
	some := false
	for r.lines.Scan() {
		line := r.lines.Text()
		if line == "" {
			if some {
				return m, true
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			m.id, some = value, true
		case "event":
			m.kind, some = value, true
		case "data":
			m.data, some = value, true
		case "":
			m.comment, some = true, true
		}
	}
	return m, false
}

// event reads up to the next event.
func (r *reader) event() api.Event {
	r.tb.Helper()
	for {
		m, ok := r.next()
		if !ok {
			r.tb.Fatal("the stream ended")
		}
		if m.comment {
			continue
		}
		var e api.Event
		if err := json.Unmarshal([]byte(m.data), &e); err != nil || m.kind != "" || m.id != strconv.FormatInt(e.Seq, 10) {
			r.tb.Fatalf("%+v is no event: %v", m, err)
		}
		return e
	}
}

func TestStream_TellsEachEventOnceInOrder(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	r := openStream(t, d.Server, "")
	if r.resp.StatusCode != 200 || r.resp.Header.Get("Content-Type") != "text/event-stream" ||
		r.resp.Header.Get("X-Accel-Buffering") != "no" || r.resp.Header.Get("Content-Encoding") != "" || r.resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("answered %d %v", r.resp.StatusCode, r.resp.Header)
	}
	first := d.addSession()
	e := r.event()
	if e.SessionID != first.ID || e.Type == "" || e.Actor == "" || e.AgentID != d.agent.ID {
		t.Errorf("the first event is %+v", e)
	}
	const n = 500
	go func() {
		for range n {
			_, _, err := d.Engine.CreateSession(context.Background(), owner(d), "tidy", api.SessionInput{}, noKey)
			if err != nil {
				d.tb.Error(err)
				return
			}
		}
	}()
	for range n {
		got := r.event()
		if got.Seq != e.Seq+1 {
			t.Fatalf("event %d came after %d", got.Seq, e.Seq)
		}
		e = got
	}
}

func TestStream_ReplaysAfterReconnectAndRestart(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	r := openStream(t, d.Server, "0")
	seen := map[int64]bool{}
	var last int64
	read := func(until api.SessionID) {
		t.Helper()
		for {
			e := r.event()
			if seen[e.Seq] || e.Seq != last+1 {
				t.Fatalf("event %d came after %d", e.Seq, last)
			}
			seen[e.Seq], last = true, e.Seq
			if e.SessionID == until {
				return
			}
		}
	}
	read(d.addSession().ID)
	r.close()
	d.addSession() // while nobody listens
	missed := d.addSession()
	r = openStream(t, d.Server, itoa(last))
	read(missed.ID)

	before := d.addSession()
	addr := d.Addr()
	d.Stop()
	for {
		if _, ok := r.next(); !ok {
			break // the server told its streams to end
		}
	}
	again := servertest.New(t, servertest.Options{Path: d.Path, Token: d.Token, Addr: addr})
	d.Server = again
	r = openStream(t, d.Server, itoa(last))
	read(before.ID)
	read(d.addSession().ID)
	// By the query, for a reader that can't set the header.
	r = openStream(t, d.Server, "", func(req *http.Request) { req.URL.RawQuery = "after=" + itoa(last-1) })
	if e := r.event(); e.Seq != last {
		t.Errorf("after=%d began with %d", last-1, e.Seq)
	}
}

func TestStream_UnknownPlaceIsReset(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	for _, id := range []string{"999999", "nonsense", "-1", "9999999999999999999999"} {
		r := openStream(t, d.Server, id)
		m, ok := r.next()
		if !ok || m.kind != "reset" {
			t.Errorf("Last-Event-ID %s began with %+v", id, m)
		}
		made := d.addSession()
		if e := r.event(); e.SessionID != made.ID || m.id != itoa(e.Seq-1) {
			t.Errorf("after the reset at %s came %+v", m.id, e)
		}
		r.close()
	}
}

func TestStream_ShowsOnlyWhatTheCallerMaySee(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	other := d.As(d.AddUser("default", api.Admin))
	theirs := openStream(t, other, "0")
	foreign := openStream(t, d.As(d.AddUser("elsewhere2", api.Owner)), "0", func(r *http.Request) {
		r.URL.Path = "/api/v1/workspaces/elsewhere2/events"
	})
	mine := d.addSession()
	_, hidden, _ := d.stranger()
	shared := servertest.Must[api.Agent](d.Server, 201, "POST", "agents", m{"slug": "shared", "mode": "cloud", "run": m{"command": []string{"true"}}})
	for {
		e := theirs.event()
		if e.SessionID == mine.ID || e.SessionID == hidden.ID {
			t.Fatalf("somebody else's stream shows %+v", e)
		}
		if e.AgentID == shared.ID {
			break
		}
	}
	foreign.stop()
	if m, ok := foreign.next(); ok && !m.comment {
		t.Errorf("another workspace's stream shows %+v", m)
	}
}

func TestStream_EndsSoonAfterTheRights(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	cookie := d.cookie()
	browser := func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Cookie", cookie) }
	r := openStream(t, d.Server, "", browser)
	d.addSession()
	r.event()
	// Revoked behind the server's back, as another process would.
	if err := d.Accounts.SignOut(t.Context(), strings.TrimPrefix(cookie, "stint_session=")); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for {
		if _, ok := r.next(); !ok {
			break
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the stream lived on for %v", took)
	}
	if r := openStream(t, d.Server, "", browser); r.resp.StatusCode != 401 {
		t.Errorf("coming back answered %d", r.resp.StatusCode)
	}
}

func TestStream_SlowReaderStopsNobody(t *testing.T) {
	d := newFixture(t, servertest.Options{SmallBuffers: true})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", d.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn, "GET "+servertest.Base+"/events?after=0 HTTP/1.1\r\nHost: "+d.Addr()+"\r\nAuthorization: Bearer "+d.Token+"\r\nAccept: text/event-stream\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	quick := openStream(t, d.Server, "")
	in := owner(d)
	const n = 500 // some 100 kB of events, far more than the slow connection's buffers hold
	for range n {
		_, _, err := d.Engine.CreateSession(t.Context(), in, "tidy", api.SessionInput{}, noKey)
		if err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		quick.event()
	}
}

func TestStream_OtherMethodsAndTypes(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	if a := d.Do("HEAD", "events", nil, servertest.With("Accept", "text/event-stream")); a.Status != 200 {
		t.Errorf("HEAD answered %d", a.Status)
	}
	a := d.Do("GET", "events", nil, servertest.With("Accept", "application/json"))
	if a.Status != 200 || !bytes.HasPrefix(a.Body, []byte(`{"items":[`)) {
		t.Errorf("JSON answered %d %s", a.Status, a.Body)
	}
	d.Refused(422, api.CodeInvalid, "GET", "events?after=x", nil, servertest.With("Accept", "text/event-stream"))
	d.Refused(404, api.CodeNotFound, "GET", "/api/v1/workspaces/nowhere/events", nil, servertest.With("Accept", "text/event-stream"))
}

func TestHeld_EachUserHasACap(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) {
		o.Limits.Streams = server.Limit{Person: 3, Address: 5, All: 6}
		o.Limits.Waits = server.Limit{Person: 3, Address: 9, All: 9}
	}})
	var open []*reader
	for range 3 {
		open = append(open, openStream(t, d.Server, ""))
	}
	a := d.Do("GET", "events", nil, servertest.With("Accept", "text/event-stream"))
	if a.Status != 429 || a.Header.Get("Retry-After") == "" || a.Problem(t).Code != api.CodeTooMany {
		t.Errorf("the fourth stream answered %d %v", a.Status, a.Header)
	}
	_, raw := rawRequest(t, d, "GET "+servertest.Base+"/events HTTP/1.1\r\nAccept: text/event-stream", "")
	resp := must(http.ReadResponse(raw, nil))
	defer resp.Body.Close()
	if resp.StatusCode != 429 || !resp.Close {
		t.Errorf("a connection on which nothing is held stays open, after %s", resp.Status)
	}
	// Streams take no worker's place, and no user another's, until one address, or all
	// together, have as many as allowed.
	wait := m{"workerIds": []string{d.worker.ID.String()}, "instanceId": instance, "wait": 1}
	servertest.Must[any](d.Server, 204, "POST", "claim-next", wait)
	other, third := d.As(d.AddUser("default", api.Viewer)), d.As(d.AddUser("default", api.Viewer))
	for range 2 {
		if r := openStream(t, other, ""); r.resp.StatusCode != 200 {
			t.Errorf("another user's stream answered %d", r.resp.StatusCode)
		}
	}
	if a := third.Do("GET", "events", nil, servertest.With("Accept", "text/event-stream")); a.Status != 429 || !strings.Contains(string(a.Body), "from your address") {
		t.Errorf("the sixth stream from one address answered %d %s", a.Status, a.Body)
	}
	// A place that was left is free again.
	open[0].close()
	servertest.Wait(t, "the place to be free", func() bool {
		r := openStream(t, d.Server, "")
		defer r.close()
		return r.resp.StatusCode == 200
	})
}
