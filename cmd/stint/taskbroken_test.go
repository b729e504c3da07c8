package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/server/servertest"
)

// flaw is what a coordinator's network does to the creation of a task.
type flaw int

const (
	passes  flaw = iota
	lost         // it never arrives, and from then on nothing does
	unheard      // it arrives, its answer doesn't, and from then on nothing arrives
	once         // only its first answer is lost
)

// flawed puts a network before a coordinator that fails at the nth creation of a task.
func flawed(t *testing.T, s *servertest.Server, nth int64, f flaw) *servertest.Server {
	t.Helper()
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	var made atomic.Int64
	var dead atomic.Bool
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/tasks") && made.Add(1) == nth
		switch {
		case dead.Load() || here && f == lost:
			dead.Store(true)
			panic(http.ErrAbortHandler) // closes the connection
		case here && (f == unheard || f == once):
			dead.Store(f == unheard)
			pass.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(network.Close)
	other := *s
	other.URL = network.URL
	return &other
}

const brokenFile = "title,key,blockedBy,slug,labels\nFive,a5,a4 a1,,\nOne,a1,,,x y\nTwo,a2,a1,two,\nThree,a3,a2,,\nFour,a4,a3,,\n"

// ofFile are the tasks as the file has them: their titles, and behind each what it waits for.
const ofFile = "One;Two<One;Three<Two;Four<Three;Five<One,Four"

// An import that breaks off halfway says what it has made, and that is true; it goes on where it
// ended, and nothing is made half or twice (contract 7.7).
func TestTaskImport_BrokenOffLeavesWhatItSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flaw    flaw
		said    int // tasks that the first attempt says that it made
		unknown int // … and those of which it doesn't know
	}{
		"not delivered":                     {lost, 2, 0},
		"delivered, and the answer is lost": {unheard, 2, 1},
		"the answer is lost once":           {once, 5, 0},
		"no fault":                          {passes, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			s := servertest.New(t, servertest.Options{})
			out, said, code := h.stint(flawed(t, s, 3, tt.flaw), s.Token, brokenFile, "task", "import", "-", "--json")
			var first imported
			h.must(json.Unmarshal([]byte(out), &first))
			if done := tt.said == 5; done != (code == exitDone) || done != (first.Resume == "") || len(first.Created) != tt.said {
				t.Fatalf("it ends with %d and says %s %s", code, out, said)
			}
			if there := tasksOf(s); len(strings.Split(there, ";")) != tt.said+tt.unknown || !strings.HasPrefix(ofFile, there) {
				t.Fatalf("it says that it made %d, and there are %s", tt.said, there)
			}
			if first.Resume == "" {
				return
			}
			if code != exitUnreachable || !strings.HasPrefix(said, `{"code":"unreachable"`) {
				t.Errorf("it ends with %d: %s", code, said)
			}
			if _, said, code := h.stint(s, s.Token, strings.Replace(brokenFile, "One", "Other", 1), "task", "import", "-", "--resume", first.Resume); code != exitUsage || !strings.Contains(said, "line 3 is not what it was") {
				t.Errorf("with another file it ends with %d: %s", code, said)
			}
			for range 2 {
				out, said, code = h.stint(s, s.Token, brokenFile, "task", "import", "-", "--resume", first.Resume)
				if there := tasksOf(s); code != exitDone || there != ofFile || strings.Count(out, "T-") != 5 {
					t.Fatalf("resumed it ends with %d, says %s %s, and there are %s", code, out, said, there)
				}
			}
		})
	}
}

// What is refused halfway, because somebody was quicker with a name, is told as what it is.
func TestTaskImport_ANameTakenMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := servertest.New(t, servertest.Options{})
	to, err := url.Parse(s.URL)
	h.must(err)
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // all names were looked up by now
			s.Do("POST", "tasks", m{"title": "Quicker", "slug": "two"})
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(network.Close)
	through := *s
	through.URL = network.URL
	out, said, code := h.stint(&through, s.Token, brokenFile, "task", "import", "-")
	if code != exitConflict || out != "T-2\n" || !strings.Contains(said, "line 4") || !strings.Contains(said, "4 tasks of the file are not made yet") {
		t.Fatalf("it ends with %d and says %s %s", code, out, said)
	}
	_, resume, _ := strings.Cut(strings.TrimSpace(said), "--resume ")
	out, said, code = h.stint(s, s.Token, brokenFile, "task", "import", "-", "--resume", resume)
	if there := tasksOf(s); code != exitDone || there != "Quicker;One;Three<Quicker;Four<Three;Five<One,Four" {
		t.Errorf("resumed it ends with %d, says %s %s, and there are %s", code, out, said, there)
	}
}

// tasksOf are the tasks of the default workspace, the oldest first.
func tasksOf(s *servertest.Server) string {
	list := servertest.Must[api.List[api.Task]](s, 200, "GET", "tasks?limit=200", nil)
	var out []string
	for _, t := range list.Items {
		line := t.Title
		for i, b := range t.BlockedBy {
			line += fmt.Sprint([]string{"<", ","}[min(i, 1)], b.Title)
		}
		out = append([]string{line}, out...)
	}
	return strings.Join(out, ";")
}
