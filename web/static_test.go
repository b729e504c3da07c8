package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestStatic_HashedNameIsCachedForAYear(t *testing.T) {
	res := get(t, Static(), AssetURL("stint.css"))
	if res.Code != http.StatusOK {
		t.Fatalf("status %d", res.Code)
	}
	if got := res.Header().Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("Cache-Control %q", got)
	}
	if got := res.Header().Get("Content-Type"); got != "text/css; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
}

func TestStatic_OtherNamesAreNotFound(t *testing.T) {
	for _, path := range []string{"/static/stint.css", "/static/stint.0000000000.css", "/static/", "/static/../doc.go", "/static/VENDORED.md"} {
		if res := get(t, Static(), path); res.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, res.Code)
		}
	}
}

func TestStatic_StyleSheetNamesItsFontsByHash(t *testing.T) {
	body := get(t, Static(), AssetURL("stint.css")).Body.String()
	used := regexp.MustCompile(`url\(([^)]+)\)`).FindAllStringSubmatch(body, -1)
	if len(used) != 2 {
		t.Fatalf("want the two fonts, found %v", used)
	}
	for _, u := range used {
		if res := get(t, Static(), StaticPrefix+u[1]); res.Code != http.StatusOK || res.Header().Get("Content-Type") != "font/woff2" {
			t.Errorf("%s: status %d, type %s", u[1], res.Code, res.Header().Get("Content-Type"))
		}
	}
}

func TestBudgets(t *testing.T) {
	size := func(pattern string) (raw, packed int) {
		names, err := filepath.Glob("static/" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, name := range names {
			body := readFile(t, name)
			var buf bytes.Buffer
			z := gzip.NewWriter(&buf)
			if _, err := z.Write(body); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			raw, packed = raw+len(body), packed+buf.Len()
		}
		return raw, packed
	}
	within := func(what string, got, most int) {
		t.Helper()
		t.Logf("%s: %d of %d bytes", what, got, most)
		if got > most {
			t.Errorf("%s takes %d bytes, the budget is %d", what, got, most)
		}
	}
	css, _ := size("stint.css")
	prose, _ := size("prose.css")
	talk, _ := size("talk.css")
	tasks, _ := size("tasks.css")
	changes, _ := size("changes.css")
	plots, _ := size("insights.css")
	js, jsPacked := size("*.js")
	fonts, _ := size("*.woff2")
	icons, _ := size("icons.svg")
	within("style", css, 30<<10)
	within("style of long texts", prose, 2<<10)
	within("style of conversations", talk, 6<<10)
	within("style of tasks", tasks, 3<<10)
	within("style of changes", changes, 3<<10)
	within("style of plots", plots, 1<<10)
	within("script", js, 130<<10)
	within("script, packed", jsPacked, 40<<10)
	within("fonts", fonts, 53<<10)
	within("icons", icons, 12<<10)
}

func TestVendored_FilesAreAsListed(t *testing.T) {
	list := string(readFile(t, "static/VENDORED.md"))
	rows := regexp.MustCompile("(?m)^\\| ([\\w.-]+) \\|.*\\| `([0-9a-f]{64})` \\|$").FindAllStringSubmatch(list, -1)
	if len(rows) != 6 {
		t.Fatalf("want 6 rows, read %d", len(rows))
	}
	for _, row := range rows {
		sum := sha256.Sum256(readFile(t, "static/"+row[1]))
		if got := hex.EncodeToString(sum[:]); got != row[2] {
			t.Errorf("%s has the sum %s", row[1], got)
		}
	}
}

// sources are the texts from which pages are made, by name.
func sources(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go") {
				continue
			}
			found[name] = string(readFile(t, name))
		}
	}
	if len(found) == 0 {
		t.Fatalf("nothing matches %v", patterns)
	}
	return found
}

func TestTemplates_HoldNothingThatThePolicyForbids(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"a style attribute":    regexp.MustCompile(`\sstyle\s*=`),
		"a style element":      regexp.MustCompile(`<style`),
		"a script in the page": regexp.MustCompile(`<script[^>]*>[^<]`),
		"an event attribute":   regexp.MustCompile(`\son[a-z]+\s*=\s*["{]`),
		"hx-on":                regexp.MustCompile(`hx-on`),
		"a js: value":          regexp.MustCompile(`["']js:`),
		"a trigger filter":     regexp.MustCompile(`hx-trigger="[^"]*\[`),
		"templ css or script":  regexp.MustCompile(`(?m)^(css|script) \w+\(`),
	}
	for name, text := range sources(t, "*.templ") {
		for what, pattern := range forbidden {
			if found := pattern.FindString(text); found != "" {
				t.Errorf("%s holds %s: %q", name, what, found)
			}
		}
	}
}

func TestIcons_EveryOneUsedIsInTheSprite(t *testing.T) {
	has := icons
	used := map[string]string{}
	for name, text := range sources(t, "*.templ", "*.go") {
		for _, m := range regexp.MustCompile(`@Icon\("([^"]+)"\)`).FindAllStringSubmatch(text, -1) {
			used[m[1]] = name
		}
		// Go tables and functions name icons as plain strings.
		for icon := range has {
			if strings.Contains(text, `"`+icon+`"`) {
				used[icon] = name
			}
		}
	}
	for _, look := range statusLooks {
		used[look.icon] = "words.go"
	}
	for _, look := range eventLooks {
		used[look.icon] = "session_words.go"
	}
	for _, p := range navigation {
		used[p.icon] = "layout.go"
	}
	for _, x := range themes {
		used[x.icon] = "layout.go"
	}
	for icon, name := range used {
		if !has[icon] {
			t.Errorf("%s uses the icon %s, which is not in the sprite", name, icon)
		}
	}
	for icon := range has {
		if used[icon] == "" {
			t.Errorf("the icon %s is in the sprite and nobody uses it", icon)
		}
	}
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	res := httptest.NewRecorder()
	h.ServeHTTP(res, httptest.NewRequest(http.MethodGet, path, nil))
	return res
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
