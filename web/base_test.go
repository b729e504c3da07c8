package web

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const base = "/stint"

// below serves a handler to requests that came below the base.
func below(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(WithBase(r.Context(), base)))
	})
}

// leads reports whether an attribute holds an address.
func leads(key string) bool {
	switch key {
	case "href", "src", "action", "formaction", "poster", "cite", "data", "hx-get", "hx-post", "hx-put", "hx-patch", "hx-delete", "hx-push-url", "hx-replace-url", "hx-sse:connect":
		return true
	}
	return false
}

// based fails for every address in an answer that lacks the base, and returns the links.
func based(t *testing.T, asked string, res *httptest.ResponseRecorder) (links []string) {
	t.Helper()
	check := func(where, address string) {
		if strings.HasPrefix(address, "/") && !strings.HasPrefix(address, base+"/") || strings.HasPrefix(address, base+base) {
			t.Errorf("%s: %s is %q", asked, where, address)
		}
	}
	check("Location", res.Header().Get("Location"))
	for _, c := range res.Result().Cookies() {
		if c.Path != "/" {
			t.Errorf("%s: the cookie %s is for %q", asked, c.Name, c.Path)
		}
	}
	if !strings.HasPrefix(res.Header().Get("Content-Type"), "text/html") {
		return nil
	}
	doc, err := html.Parse(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", asked, err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if n.Type != html.ElementNode || !leads(a.Key) {
				continue
			}
			check("<"+n.Data+" "+a.Key+">", a.Val)
			if a.Key == "href" && strings.HasPrefix(a.Val, base) {
				links = append(links, strings.Split(a.Val, "#")[0])
			}
		}
	}
	return links
}

// Below a path of the public URL every address in an answer begins with it, on every page and
// in the answer to every form, whoever asks.
func TestBase_EveryAddressBeginsWithIt(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	s.handler = below(s.handler)
	linked := map[string]string{}
	for _, path := range append(s.paths(), "/nowhere", "/agents/nobody") {
		for _, to := range based(t, path, s.get(path)) {
			linked[to] = path
		}
	}
	for to, from := range linked {
		path := strings.TrimPrefix(to, base)
		if strings.HasPrefix(path, "/openapi.") || strings.HasPrefix(path, "/api/v1/") {
			continue // the server's
		}
		if res := s.get(path); res.Code != http.StatusOK && res.Code != http.StatusSeeOther {
			t.Errorf("%s leads to %s: status %d", from, to, res.Code)
		}
	}
	if len(linked) < 60 {
		t.Errorf("only %d links were found", len(linked))
	}
	sent := 0
	for _, r := range routes {
		req := s.request(t, r)
		if strings.HasSuffix(r.path, "/stream") {
			continue
		}
		res := httptest.NewRecorder()
		s.handler.ServeHTTP(res, req)
		based(t, r.method+" "+req.URL.String(), res)
		if res.Header().Get("Location") != "" {
			sent++
		}
	}
	if sent < 15 {
		t.Errorf("only %d forms sent the browser on", sent)
	}
	if text := s.get("/llms.txt").Body.String(); strings.Contains(text, "](/") && strings.Count(text, "](/") != strings.Count(text, "]("+base+"/") {
		t.Errorf("the map for programs leads out: %s", text)
	}
}

// A page leads back to where the form was, with the base removed and added once.
func TestBase_BackIsWhereTheFormWas(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	for from, want := range map[string]string{
		"http://example.com/stint/sessions?q=a": "/stint/sessions?q=a", "http://example.com/stint": "/stint/", "http://example.com/stint/": "/stint/",
		"http://example.com/other/page": "/stint/", "http://example.com/stintless": "/stint/", "http://example.com/stint//evil.test": "/stint/",
		"http://evil.test/stint/sessions": "/stint/", "": "/stint/",
	} {
		r := httptest.NewRequest(http.MethodPost, "/ui/preferences", strings.NewReader("theme=dark"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Referer", from)
		res := httptest.NewRecorder()
		below(s.handler).ServeHTTP(res, r)
		if got := res.Header().Get("Location"); got != want {
			t.Errorf("from %q it leads to %q, not %q", from, got, want)
		}
	}
}

// addressed finds where a template begins to write an address.
var addressed = regexp.MustCompile(`\b(?:href|src|action|formaction|poster|hx-(?:get|post|put|patch|delete|push-url|replace-url|sse:connect))\??=(.*)`)

// Templates write every address through at, even on pages that the tests don't open.
func TestBase_TemplatesWriteAddressesInOneWay(t *testing.T) {
	files, err := filepath.Glob("*.templ")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range addressed.FindAllStringSubmatch(string(text), -1) {
			found++
			if !strings.HasPrefix(m[1], "{ at(ctx, ") && !strings.HasPrefix(m[1], `"#`) && !strings.HasPrefix(m[1], "{ templ.URL(p.Session.ExternalURL) }") && !strings.HasPrefix(m[1], "{ templ.URL(l.URL) }") {
				t.Errorf("%s: %s", file, m[0])
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d addresses were found", found)
	}
}
