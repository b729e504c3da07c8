package web

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"stint/api"
)

// reader reads a live stream message by message.
type reader struct {
	t        *testing.T
	messages chan message
}

type message struct{ id, html string }

// listen opens the stream that a page names, as of when the page was drawn.
func (s *fixture) listen(t *testing.T, server *httptest.Server, streamURL, lastID string) *reader {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+streamURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("stream: status %d, headers %v", res.StatusCode, res.Header)
	}
	r := &reader{t: t, messages: make(chan message, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(r.messages)
		var m message
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
			case "id":
				m.id = value
			case "data":
				m.html += value + "\n"
			case "":
				if m.html != "" {
					r.messages <- m
				}
				m = message{}
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		for range r.messages {
		}
		<-done
		if err := res.Body.Close(); err != nil {
			t.Errorf("close the stream: %v", err)
		}
	})
	return r
}

// until reads messages until one holds every text.
func (r *reader) until(texts ...string) message {
	r.t.Helper()
	limit := time.After(30 * time.Second)
	var last string
	for {
		select {
		case m, ok := <-r.messages:
			if !ok {
				r.t.Fatalf("the stream ended before %q came; last was %s", texts, last)
			}
			last = m.html
			all := true
			for _, text := range texts {
				all = all && strings.Contains(m.html, text)
			}
			if all {
				return m
			}
		case <-limit:
			r.t.Fatalf("no message with %q came; last was %s", texts, last)
		}
	}
}

// serve answers over a real connection. It closes after all readers have gone.
func (s *fixture) serve(t *testing.T) *httptest.Server {
	server := httptest.NewServer(s.handler)
	closeAfter(t, server)
	return server
}

// closeAfter closes a server at the test's end, including streams that a browser still holds.
func closeAfter(t *testing.T, server *httptest.Server) {
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
}

// streamOf is the stream that a page connects to.
func (s *fixture) streamOf(t *testing.T, path string) string {
	t.Helper()
	m := regexp.MustCompile(`hx-sse:connect="([^"]+)"`).FindStringSubmatch(s.get(path).Body.String())
	if m == nil {
		t.Fatalf("%s has no stream", path)
	}
	return html.UnescapeString(m[1])
}

func TestStream_HomeShowsWhatHappens(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	home := s.listen(t, server, s.streamOf(t, "/"), "")
	// What happens before the stream's first look makes it send the whole page.
	s.New(s.agents["issue-triage"], func(in *api.SessionInput) { in.Title = "Quite new" })
	home.until("Quite new")
	made := s.New(s.agents["issue-triage"], func(in *api.SessionInput) { in.Title = "Brand new" })
	m := home.until(`hx-target="#next"`, "Brand new")
	if strings.Contains(m.html, `hx-target="#recent"`) {
		t.Error("a band that didn't change was sent")
	}
	// Readers who come back later get what they missed, and nothing if there is nothing.
	if _, err := s.CancelSession(t.Context(), s.Owner, made.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	late := s.listen(t, server, s.streamOf(t, "/"), m.id)
	late.until(`hx-target="#recent"`, "Brand new")
}

func TestStream_EveryPageIsAlive(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	active := s.sessions[api.Active]
	base := sessionURL(active.ID)
	readers := map[string]*reader{}
	for _, path := range []string{"/inbox", "/sessions", "/sessions?status=active", "/agents", "/agents/log-summary", "/schedules", "/workers", base, base + "?view=timeline"} {
		readers[path] = s.listen(t, server, s.streamOf(t, path), "")
	}
	if _, err := s.CancelSession(t.Context(), s.Owner, active.ID, api.CancelInput{Reason: "not needed"}); err != nil {
		t.Fatal(err)
	}
	row := `hx-target="#row-` + active.ID.String()
	readers["/sessions"].until(row, "Cancelled", `hx-target="#state-chips"`)
	readers["/sessions?status=active"].until(row, "Cancelled")
	readers["/agents"].until(`hx-target="#agent-list"`)
	readers["/agents/log-summary"].until(`hx-target="#agent-recent"`, "Cancelled")
	readers["/workers"].until(`hx-target="#worker-list"`)
	readers[base].until(`hx-target="#session-head"`, "s-cancelled")
	readers[base+"?view=timeline"].until(`hx-target="#timeline"`, "Cancelled by you")
	if _, err := s.CancelSession(t.Context(), s.Owner, s.sessions[api.AwaitingInput].ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	readers["/inbox"].until(`hx-target="#inbox"`, "2 things wait for you")
	s.New(s.agents["backup"])
	readers["/sessions"].until(`hx-target="#newer"`, "1 new")
}

func TestStream_OutputIsAppendedAndAnOpenLineGoesOn(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	j := s.running[0]
	path := sessionURL(j.claim.SessionID)
	s.print(j, "loading  10%")
	stream := s.streamOf(t, path)
	page := s.get(path).Body.String()
	block := regexp.MustCompile(`<div id="(o\d+)">(?:<p[^>]*><span>[^<]*</span></p>)*<p[^>]*><span>loading  10%</span></p></div>`).FindStringSubmatch(page)
	if block == nil {
		t.Fatalf("the open line isn't on the page: %s", page)
	}
	r := s.listen(t, server, stream, "")
	s.print(j, "\rloading  60%")
	m := r.until(`hx-target="#`+block[1]+`" hx-swap="outerHTML"`, "loading  60%")
	if strings.Contains(m.html, "10%") {
		t.Error("the overwritten text is still there")
	}
	s.print(j, "\rloading 100%\n", "done <b>\n")
	r.until("loading 100%", "done &lt;b&gt;")
	s.print(j, "next\n")
	last := r.until(`hx-target="#log-lines" hx-swap="beforeend"`, "next")
	// A reader that comes back gets each line once, from where it was.
	s.print(j, "after the gap\n")
	back := s.listen(t, server, stream, last.id)
	got := back.until("after the gap")
	if strings.Contains(got.html, ">next<") {
		t.Error("a line came twice")
	}
}

func TestStream_AFloodIsCutAndSaysSo(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	j := s.running[0]
	stream := s.streamOf(t, sessionURL(j.claim.SessionID))
	for range 4 {
		var texts []string
		for range 400 {
			texts = append(texts, strings.Repeat("flood ", 60)+"\n")
		}
		s.print(j, texts...)
	}
	s.print(j, "the last line\n")
	m := s.listen(t, server, stream, "").until("left out here", "the last line")
	if len(m.html) > 300<<10 {
		t.Errorf("one update of %d bytes", len(m.html))
	}
}

func TestStream_EndsWithTheReadersRights(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	r := s.listen(t, server, s.streamOf(t, "/"), "")
	s.revoke()
	s.New(s.agents["backup"], func(in *api.SessionInput) { in.Title = "Not for them" })
	limit := time.After(30 * time.Second)
	for {
		select {
		case m, ok := <-r.messages:
			if !ok {
				return
			}
			if strings.Contains(m.html, "Not for them") {
				t.Fatal("the stream sent what its reader may no longer see")
			}
		case <-limit:
			t.Fatal("the stream goes on")
		}
	}
}

func TestSettled_ForgetsOnlyWhatTicks(t *testing.T) {
	a := settled([]byte(`<time><relative-time datetime="x">3 min ago</relative-time></time><b>4:07</b><i data-since="12">3s</i><i data-until="99">0:07</i>`))
	b := settled([]byte(`<time><relative-time datetime="x">4 min ago</relative-time></time><b>4:06</b><i data-since="13">4s</i><i data-until="99">0:06</i>`))
	if string(a) != string(b) {
		t.Errorf("%s is not %s", a, b)
	}
	if string(settled([]byte(`<p class="s-active">3 min ago</p>`))) != `<p class="s-active">3 min ago</p>` {
		t.Error("more than ticking parts was forgotten")
	}
}
