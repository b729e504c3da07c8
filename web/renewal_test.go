package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"stint/api"
)

// older answers pages as if another version had drawn them, for as long as drawn is true.
func (s *fixture) older(t *testing.T, drawn *atomic.Bool) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !drawn.Load() || strings.HasPrefix(r.URL.Path, "/ui/") || strings.HasPrefix(r.URL.Path, StaticPrefix) {
			s.handler.ServeHTTP(w, r)
			return
		}
		page := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding") // so that what drew the page stands in it as it is
		s.handler.ServeHTTP(page, r)
		for name, values := range page.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(page.Code)
		_, _ = w.Write(bytes.ReplaceAll(page.Body.Bytes(), []byte(drawnBy), []byte("0123456789")))
	}))
	closeAfter(t, server)
	return server
}

func TestStream_TellsAPageThatAnotherVersionDrewIt(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	stream := s.streamOf(t, "/")
	if !strings.Contains(stream, drawnBy) {
		t.Fatalf("the page's stream %s doesn't say what drew it", stream)
	}
	s.listen(t, server, strings.ReplaceAll(stream, drawnBy, "0123456789"), "").until("#renewal", "Load it anew")
	s.New(s.agents["issue-triage"])
	if m := s.listen(t, server, stream, "").until("needs-count"); strings.Contains(m.html, "Load it anew") {
		t.Error("a page of this version is told to load itself anew")
	}
}

func TestBrowser_APageOfTheVersionBeforeIsLoadedAnew(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	var drawn atomic.Bool
	drawn.Store(true)
	server := s.older(t, &drawn)
	b := openTab(t, server)

	// Two versions that answer in turn don't have it load for ever.
	b.open("/")
	b.until("the page says that it is old", `document.querySelector('#renewal.toast')?.innerText.includes('Load it anew')`)
	if got := js[string](b, `sessionStorage.getItem('stint_renewed')`); got != drawnBy {
		t.Fatalf("the page was loaded anew for %q, not %q", got, drawnBy)
	}

	// What was typed stays until its person decides.
	js[bool](b, `sessionStorage.clear(), true`)
	asking := sessionURL(s.sessions[api.AwaitingInput].ID)
	b.open(asking)
	b.until("it was loaded anew once", `sessionStorage.getItem('stint_renewed') && document.querySelector('#renewal.toast')`)
	b.do(chromedp.SendKeys(chromedp.CSS("[name=text]"), "half an answer"))
	js[bool](b, `sessionStorage.clear(), true`)
	server.CloseClientConnections()
	b.allow("ERR_")
	b.allow("htmx")
	b.until("it hears again that it is old, and stays", `document.querySelector('#live').dataset.state === 'live' && !sessionStorage.getItem('stint_renewed')`)
	if got := js[string](b, `document.querySelector('[name=text]').value`); got != "half an answer" {
		t.Errorf("what was typed became %q", got)
	}

	// The version that answers now draws it.
	drawn.Store(false)
	js[bool](b, `sessionStorage.clear(), true`)
	js[bool](b, `document.querySelector('#renewal button').click(), true`)
	b.until("it is of this version", `document.querySelector('[hx-sse\\:connect*="`+drawnBy+`"]') && !document.querySelector('#renewal.toast')`)
}
