package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"stint/api"
	"stint/server/servertest"
)

// brokenWorkspace has agents, a task that waits for another, and comments, two of them alike.
const brokenWorkspace = `{"version": 1,
"agents": [
  {"slug": "one", "schedule": "0 3 * * *", "run": {"command": ["true"]}},
  {"slug": "two", "run": {"command": ["true"]}}],
"tasks": [
  {"title": "First", "slug": "first", "assignee": "one", "comments": [{"text": "a"}, {"text": "b"}, {"text": "a"}]},
  {"title": "Same", "blockedBy": ["first"]},
  {"title": "Same", "description": "but different", "comments": [{"author": "Ann", "at": "2026-01-02T03:04:00Z", "text": "c"}]}]}`

const postsOfWorkspace = 9 // agents, tasks and comments

// broken is a network that ends at the nth POST: before it arrives, or before it is answered.
func broken(t *testing.T, s *servertest.Server, nth int64, arrives bool) *servertest.Server {
	t.Helper()
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	var posts atomic.Int64
	var dead atomic.Bool
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ends := r.Method == http.MethodPost && posts.Add(1) == nth
		if ends && arrives && !dead.Load() {
			pass.ServeHTTP(httptest.NewRecorder(), r)
		}
		if ends || dead.Load() {
			dead.Store(true)
			panic(http.ErrAbortHandler) // closes the connection
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(network.Close)
	other := *s
	other.URL = network.URL
	return &other
}

var writtenAt = regexp.MustCompile(`"at": *"[^"]*"`)

// An import of a workspace that breaks off, wherever that is, is whole after it is repeated, and
// has nothing twice.
func TestImportWorkspace_BrokenOffCanBeRepeated(t *testing.T) {
	t.Parallel()
	whole := func(h *home, s *servertest.Server) string {
		out, said, code := h.stint(s, s.Token, "", "export")
		if code != exitDone {
			t.Fatalf("an export ends with %d: %s", code, said)
		}
		return writtenAt.ReplaceAllString(out, "")
	}
	h := newHome(t)
	s := servertest.New(t, servertest.Options{})
	if out, said, code := h.stint(s, s.Token, brokenWorkspace, "import", "workspace", "-", "--create"); code != exitDone {
		t.Fatalf("it ends with %d and says %s %s", code, out, said)
	}
	want := whole(h, s)
	if n := strings.Count(want, `"text"`); n != 4 {
		t.Fatalf("%d comments came", n)
	}
	for nth := range int64(postsOfWorkspace) {
		for _, arrives := range []bool{false, true} {
			t.Run(fmt.Sprint(nth+1, arrives), func(t *testing.T) {
				h := newHome(t)
				s := servertest.New(t, servertest.Options{})
				_, said, code := h.stint(broken(t, s, nth+1, arrives), s.Token, brokenWorkspace, "import", "workspace", "-", "--create")
				if code != exitUnreachable {
					t.Errorf("it ends with %d and says %s", code, said)
				}
				if _, said, code := h.stint(s, s.Token, brokenWorkspace, "import", "workspace", "-", "--create"); code != exitDone {
					t.Fatalf("repeated it ends with %d and says %s", code, said)
				}
				if got := whole(h, s); got != want {
					t.Fatalf("repeated it has\n%s\nnot\n%s", got, want)
				}
			})
		}
	}
}

// A member exports and imports what they may, and the document and the import say what that
// leaves out.
func TestExport_OfAMemberSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := servertest.New(t, servertest.Options{})
	if _, said, code := h.stint(s, s.Token, brokenWorkspace, "import", "workspace", "-", "--create"); code != exitDone {
		t.Fatal(said)
	}
	servertest.Must[api.Webhook](s, 201, "POST", "webhooks", m{"url": "https://example.com/secret"})
	ann := s.AddUser("default", api.Member)
	file := filepath.Join(t.TempDir(), "all.json")
	_, said, code := h.stint(s, ann, "", "export", file)
	text, err := os.ReadFile(file)
	h.must(err)
	if code != exitDone || !strings.Contains(string(text), "the webhooks, and the channels of the workspace") || strings.Contains(string(text), "example.com") {
		t.Errorf("it ends with %d, says %s, and wrote %s", code, said, text)
	}
	out, said, code := h.stint(s, ann, "", "import", "workspace", file, "--create")
	if code != exitDone || !strings.Contains(said, "could not read the webhooks") || strings.Contains(out, arrivalMade) {
		t.Errorf("its import ends with %d and says %s %s", code, out, said)
	}
}
