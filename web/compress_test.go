package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// asked is the answer to a request with some headers, and its body unpacked.
func (s *fixture) asked(t *testing.T, path string, headers ...string) (res *httptest.ResponseRecorder, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res = httptest.NewRecorder()
	s.handler.ServeHTTP(res, r)
	if res.Header().Get("Content-Encoding") != "gzip" {
		return res, res.Body.String()
	}
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(all)
}

func TestCompress_PagesAloneThatNoOtherSiteAskedFor(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	for _, c := range []struct {
		site, takes string
		packed      bool
	}{
		{"same-origin", "gzip, deflate, br", true},
		{"none", "br;q=1.0, gzip;q=0.8", true},
		{"cross-site", "gzip", false},
		{"same-site", "gzip", false},
		{"", "gzip", false},
		{"same-origin", "", false},
		{"same-origin", "gzip;q=0", false},
		{"same-origin", "br", false},
	} {
		res, body := s.asked(t, "/sessions", "Sec-Fetch-Site", c.site, "Accept-Encoding", c.takes)
		if got := res.Header().Get("Content-Encoding") == "gzip"; got != c.packed || !strings.Contains(body, "</html>") {
			t.Errorf("from %q taking %q: packed %v", c.site, c.takes, got)
		}
		if vary := strings.Join(res.Header().Values("Vary"), ","); !strings.Contains(vary, "Accept-Encoding") || !strings.Contains(vary, "Sec-Fetch-Site") {
			t.Errorf("from %q taking %q: it varies by %q", c.site, c.takes, vary)
		}
	}
}

func TestCompress_FilesAreTheSameEitherWay(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	for _, name := range []string{"stint.css", "stint.js", "icons.svg", "geist.woff2", "favicon.svg"} {
		_, plain := s.asked(t, AssetURL(name))
		res, body := s.asked(t, AssetURL(name), "Accept-Encoding", "gzip")
		if body != plain || len(plain) == 0 {
			t.Errorf("%s differs when it is packed", name)
		}
		if got, want := res.Header().Get("Content-Encoding") == "gzip", name != "geist.woff2" && name != "favicon.svg"; got != want {
			t.Errorf("%s is packed: %v", name, got)
		}
	}
}

// What a reader's browser loads for a first page and for a further one.
func TestCompress_WithinItsBudget(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	wire := func(path string) int {
		res, _ := s.asked(t, path, "Sec-Fetch-Site", "same-origin", "Accept-Encoding", "gzip")
		if n := res.Result().ContentLength; n > 0 {
			return int(n)
		}
		t.Fatalf("%s answers %d without a length", path, res.Code)
		return 0
	}
	warm := 0
	for _, path := range []string{"/", "/inbox", "/sessions", "/agents", "/schedules", "/insights", "/tasks?view=board", "/workers"} {
		n := wire(path)
		t.Logf("%s: %d bytes", path, n)
		warm = max(warm, n)
	}
	cold := warm
	for _, name := range []string{"stint.css", "htmx.js", "hx-sse.js", "relative-time.js", "stint.js", "icons.svg", "geist.woff2", "geist-mono.woff2", "favicon.svg"} {
		cold += wire(AssetURL(name))
	}
	t.Logf("cold %d, warm %d bytes", cold, warm)
	if cold > 120<<10 || warm > 12<<10 {
		t.Errorf("a first page takes %d bytes over the wire, a further one %d; the budgets are %d and %d", cold, warm, 120<<10, 12<<10)
	}
}
