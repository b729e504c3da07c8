package web

import (
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"stint/docs"
)

// Every document is there, says what its file says, and has no dead links.
func TestHelp_EveryDocumentIsShown(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	index := s.get("/help").Body.String()
	names, err := fs.Glob(docs.Files, "*.md")
	if err != nil || len(names) < 5 {
		t.Fatal(names, err)
	}
	link := regexp.MustCompile(`<a href="/help/([a-z-]+)"`)
	for _, name := range names {
		page := "/help/" + strings.TrimSuffix(name, ".md")
		if !strings.Contains(index, `href="`+page+`"`) {
			t.Errorf("the index doesn't lead to %s", page)
		}
		res := s.get(page)
		if res.Code != http.StatusOK || !strings.Contains(res.Body.String(), `class="prose"`) || strings.Contains(res.Body.String(), "\n| ") {
			t.Errorf("%s: status %d, or a table is left as it was written", page, res.Code)
		}
		for _, to := range link.FindAllStringSubmatch(res.Body.String(), -1) {
			if got := s.get("/help/" + to[1]); got.Code != http.StatusOK {
				t.Errorf("%s leads to %s: status %d", page, to[1], got.Code)
			}
		}
		source, err := docs.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.get(page + ".txt"); got.Code != http.StatusOK || got.Body.String() != string(source) {
			t.Errorf("%s.txt: status %d, or not the document", page, got.Code)
		}
	}
	for _, path := range []string{"/help/nothing", "/help/nothing.txt", "/api/docs/nothing"} {
		if got := s.get(path); got.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, got.Code)
		}
	}
}

func TestLLMs_EveryLinkLeadsSomewhere(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	text := s.get("/llms.txt").Body.String()
	links := regexp.MustCompile(`\]\((/[^)]+)\)`).FindAllStringSubmatch(text, -1)
	if !strings.HasPrefix(text, "# Stint\n") || len(links) < 7 {
		t.Fatalf("it says %s", text)
	}
	for _, to := range links {
		if to[1] == "/openapi.json" {
			continue // the server's own
		}
		if got := s.get(to[1]); got.Code != http.StatusOK {
			t.Errorf("%s: status %d", to[1], got.Code)
		}
	}
}

// The reference has a page for each operation and each schema of the document, and every link
// between them works.
func TestAPIDocs_EveryOperationAndSchema(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	ref, err := theReference()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range ref.Groups {
		for _, op := range g.Operations {
			names = append(names, op.ID)
		}
	}
	if len(names) < 50 {
		t.Errorf("only %d operations", len(names))
	}
	for _, schema := range ref.Schemas {
		names = append(names, schema.Name)
	}
	link := regexp.MustCompile(`href="/api/docs/([A-Za-z]+)"`)
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for _, name := range names {
		res := s.get("/api/docs/" + name)
		if res.Code != http.StatusOK {
			t.Errorf("%s: status %d", name, res.Code)
		}
		for _, to := range link.FindAllStringSubmatch(res.Body.String(), -1) {
			if !known[to[1]] {
				t.Errorf("%s leads to %s, which isn't there", name, to[1])
			}
		}
	}
	if body := s.get("/api/docs/Session").Body.String(); !strings.Contains(body, "<code>waitingFor</code>") {
		t.Error("a schema that is made of others doesn't show their fields")
	}
	body := s.get("/api/docs/createSession").Body.String()
	for _, want := range []string{"/api/v1/workspaces/{workspace}/agents/{agent}/sessions", "Idempotency-Key", "SessionInput", "curl -X POST", "415"} {
		if !strings.Contains(body, want) {
			t.Errorf("createSession doesn't say %q", want)
		}
	}
}

func TestHelp_EachDocumentIsInOneGroupOfTheIndex(t *testing.T) {
	t.Parallel()
	all, err := helpPages()
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, g := range helpGroups {
		if len(g.pages(all)) != len(g.names) {
			t.Errorf("%s names a document that isn't there", g.title)
		}
		for _, name := range g.names {
			times[name]++
		}
	}
	for _, p := range all {
		if times[p.Name] != 1 {
			t.Errorf("%s is in %d groups", p.Name, times[p.Name])
		}
	}
}
