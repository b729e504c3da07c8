package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"stint/api"
)

// fixtureEnd is when the history of the tests' fixture ends.
var fixtureEnd = time.Date(2026, 3, 3, 10, 7, 30, 0, time.UTC)

func formValues(pairs []string) url.Values {
	out := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out.Add(pairs[i], pairs[i+1])
	}
	return out
}

// paths are the addresses of every page, in every form that it takes.
func (s *fixture) paths() []string {
	out := []string{
		"/", "/inbox", "/sessions", "/sessions?status=error", "/sessions?status=nonsense&agent=backup&by=scheduler&q=round", "/sessions?q=no+such+thing",
		"/tasks", "/tasks?state=todo,done&label=docs&assignee=me&holder=any&priority=p1&q=nothing", "/tasks?state=nonsense", "/tasks?view=board", "/tasks?view=board&assignee=docs-links", "/tasks?view=next",
		"/tasks/T-1", "/tasks/T-2", "/tasks/T-3", "/tasks/T-6", "/tasks/new", "/tasks/T-2/edit", "/tasks/T-4/dispatch", "/tasks/T-3/dispatch", "/tasks/export",
		"/run", "/agents", "/agents?after=backup", "/agents/new", "/agents/new?from=hello", "/schedules", "/search", "/search?q=back", "/search?q=nothing+at+all", "/schedules?span=7d", "/insights", "/insights?days=7&agent=backup", "/workers", "/settings/members", "/settings/keys", "/settings/programs", "/settings/account",
		"/settings/webhooks", "/settings/notifications", "/settings/notifications?kind=smtp", "/system", "/activity", "/activity?type=session_cancelled&agent=log-summary", "/help", "/help/states", "/api/docs", "/api/docs/createSession", "/api/docs/listAgents", "/api/docs/Session", "/api/docs/Phase",
		workerURL(s.workers["backup"].ID), workerURL(s.workers["log-summary"].ID),
		workerURL(s.workers["backup"].ID) + "/restart", workerURL(s.workers["backup"].ID) + "/stop", workerURL(s.workers["backup"].ID) + "/forget", workerURL(s.workers["backup"].ID) + "/edit",
		"/agents/log-summary", "/agents/log-summary/edit", "/agents/log-summary/run", "/agents/log-summary/delete", "/agents/issue-triage", "/agents/new?from=ask",
	}
	for _, status := range api.Statuses {
		base := sessionURL(s.sessions[status].ID)
		out = append(out, base, base+"?view=timeline", base+"?view=input", base+"?view=json", base+"/cancel", base+"/stop")
	}
	return out
}

func TestPages_AreWhole(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	linked := map[string]string{}
	for _, path := range s.paths() {
		res := s.get(path)
		if res.Code != http.StatusOK {
			t.Fatalf("%s: status %d: %s", path, res.Code, res.Body)
		}
		if got := res.Header().Get("Content-Security-Policy"); got != PagePolicy {
			t.Errorf("%s: policy %q", path, got)
		}
		if n := res.Body.Len(); n > 60<<10 {
			t.Errorf("%s: %d bytes, at most 60 KiB", path, n)
		}
		for _, to := range wholePage(t, path, res.Body.String()) {
			linked[to] = path
		}
	}
	for to, from := range linked {
		if strings.HasPrefix(to, "/ui/stream") || to == "/" || strings.HasPrefix(to, "/openapi.") || strings.HasPrefix(to, "/api/v1/") { // the last two are the server's
			continue
		}
		if res := s.get(to); res.Code != http.StatusOK && res.Code != http.StatusSeeOther {
			t.Errorf("%s leads to %s: status %d", from, to, res.Code)
		}
	}
	if len(linked) < 60 {
		t.Errorf("only %d links were found", len(linked))
	}
}

// wholePage checks what every page must have, and returns where it leads within the dashboard.
func wholePage(t *testing.T, path, page string) (links []string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	ids := map[string]int{}
	count := map[string]int{}
	var refers []string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		if n.Data == "script" && attr(n, "src") == "" {
			t.Errorf("%s: a script without src", path)
		}
		if n.Data == "title" && n.Parent.Data == "head" && (n.FirstChild == nil || !strings.HasSuffix(n.FirstChild.Data, "stint")) {
			t.Errorf("%s: no title", path)
		}
		if n.Data == "th" && attr(n, "scope") == "" {
			t.Errorf("%s: a table head without scope", path)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				ids[a.Val]++
			case a.Key == "style", strings.HasPrefix(a.Key, "on"), strings.HasPrefix(a.Key, "hx-on"):
				t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
			case a.Key == "for", a.Key == "aria-describedby", a.Key == "aria-labelledby", a.Key == "data-dialog", a.Key == "list":
				refers = append(refers, strings.Fields(a.Val)...)
			case a.Key == "href", a.Key == "src", a.Key == "action":
				switch {
				case n.Data == "form" && attr(n, "method") == "post":
				case strings.HasPrefix(a.Val, "/"):
					links = append(links, strings.Split(a.Val, "#")[0])
				case strings.HasPrefix(a.Val, "#"):
					refers = append(refers, a.Val[1:])
				case !strings.HasPrefix(a.Val, "https://example.test/"):
					t.Errorf("%s: <%s %s=%q> leads elsewhere", path, n.Data, a.Key, a.Val)
				}
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s: the id %s stands %d times", path, id, n)
		}
	}
	for _, id := range refers {
		if ids[id] == 0 {
			t.Errorf("%s: refers to #%s, which isn't there", path, id)
		}
	}
	for _, tag := range []string{"h1", "main", "nav"} {
		if count[tag] == 0 || (tag != "nav" && count[tag] > 1) {
			t.Errorf("%s: %d <%s>", path, count[tag], tag)
		}
	}
	slices.Sort(links)
	return slices.Compact(links)
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func TestPages_WhatPeopleAndAgentsWriteIsText(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	const evil = `"><svg onload=alert(1)>'</script><script>alert(2)</script><a href="javascript:alert(3)">x</a>`
	a := s.Agent(func(in *api.AgentInput) {
		in.Slug, in.Name, in.Description, in.Prompt, in.Instructions = "evil", evil[:80], evil, evil, evil
		in.Run.Command = []string{"sh", "-c", evil}
		in.Schedule = "@every 1h"
	})
	k := s.Worker(a, func(in *api.WorkerInput) { in.Name = `<img src=x onerror=alert(1)>` })
	one := s.New(a, func(in *api.SessionInput) { in.Title, in.Prompt, in.UntrustedContext = evil, new(evil), evil })
	j := &job{k: k, claim: k.Claim(one.ID)}
	plan, link := evil, "https://example.test/?q=%22%3E"
	if _, err := s.PatchSession(t.Context(), s.Owner, k.ID, one.ID, api.SessionPatch{UnderClaim: k.Under(j.claim.ClaimID), Plan: &plan, ExternalURL: &link}); err != nil {
		t.Fatal(err)
	}
	s.print(j, evil+"\n", "\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07\n")
	if _, err := k.Ask(j.claim, evil); err != nil {
		t.Fatal(err)
	}
	base := sessionURL(one.ID)
	for _, path := range []string{
		"/", "/sessions", "/sessions?q=" + url.QueryEscape(evil), "/agents", "/agents/evil", "/agents/evil/edit", "/agents/evil/run", "/search?q=" + url.QueryEscape(evil), "/schedules", "/insights", "/workers",
		base, base + "?view=timeline", base + "?view=input", base + "?view=json", base + "/cancel", "/ui/schedule?schedule=" + url.QueryEscape(evil),
		"/sessions/" + url.PathEscape(evil), "/agents/" + url.PathEscape(evil), "/" + url.PathEscape(evil),
	} {
		res := s.get(path)
		doc, err := html.Parse(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			if n.Data == "script" && !strings.HasPrefix(attr(n, "src"), StaticPrefix) || n.Data == "img" {
				t.Errorf("%s: <%s> got through", path, n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || strings.HasPrefix(strings.TrimSpace(strings.ToLower(a.Val)), "javascript:") {
					t.Errorf("%s: <%s %s=%q> got through", path, n.Data, a.Key, a.Val)
				}
			}
		}
	}
	if _, err := k.Complete(j.claim, evil); err == nil {
		wholePage(t, base, s.get(base).Body.String())
	}
}

func TestPages_SayWhyASessionWaits(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	for status, want := range map[api.Status]string{
		api.Queued: "The agent is at its limit", api.Pending: "told not to start before", api.Stale: "The worker is offline",
		api.Failed: "AGENT_EXIT_NONZERO", api.AwaitingInput: "Which log shall I read first?",
	} {
		if page := s.get(sessionURL(s.sessions[status].ID)).Body.String(); !strings.Contains(page, want) {
			t.Errorf("the page of the %s session doesn't say %q", status, want)
		}
	}
}

func TestPages_SignedOutAndUnknown(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	for path, want := range map[string]int{
		"/sessions/ses_0000000000": 404, "/sessions/agt_0000000000": 404, "/sessions/x": 404, "/agents/nobody": 404, "/nothing": 404,
		"/sessions/" + s.sessions[api.Active].ID.String() + "/retry": 405, "/ui/stream?page=nothing": 404,
	} {
		res := s.get(path)
		if res.Code != want {
			t.Errorf("%s: status %d, want %d", path, res.Code, want)
		}
		if res.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: no policy", path)
		}
		if !strings.Contains(res.Body.String(), "<h1>") {
			t.Errorf("%s: no page that says so: %s", path, res.Body)
		}
	}
	s.revoke()
	for _, path := range []string{"/", "/sessions", "/ui/stream?page=home", "/nothing"} {
		if res := s.get(path); res.Code != http.StatusUnauthorized || strings.Contains(res.Body.String(), "backup") {
			t.Errorf("%s signed out: status %d", path, res.Code)
		}
	}
}

func TestSessions_PagesFollowEachOther(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	a := s.agents["issue-triage"]
	for range 130 {
		s.New(a)
	}
	seen := map[string]bool{}
	path, pages := "/sessions?agent=issue-triage", 0
	row := regexp.MustCompile(`id="row-(ses_\w+)"`)
	next := regexp.MustCompile(`href="(/sessions\?[^"]+)" rel="next"`)
	for path != "" {
		page := s.get(path).Body.String()
		pages++
		for _, m := range row.FindAllStringSubmatch(page, -1) {
			if seen[m[1]] {
				t.Errorf("%s is shown twice", m[1])
			}
			seen[m[1]] = true
		}
		path = ""
		if m := next.FindStringSubmatch(page); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if pages != 3 || len(seen) != 133 {
		t.Errorf("%d sessions on %d pages, want 133 on 3", len(seen), pages)
	}
}

func TestOutput_CanBeReadBackWhole(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.running[0]
	var want strings.Builder
	want.WriteString(s.get(sessionURL(j.claim.SessionID) + "/output.txt").Body.String())
	for range 14 {
		var texts []string
		for i := range 50 {
			text := strings.Repeat("x", i) + "\n"
			texts = append(texts, "\x1b[32m"+text+"\x1b[0m")
			want.WriteString(text)
		}
		s.print(j, texts...)
	}
	res := s.get(sessionURL(j.claim.SessionID) + "/output.txt")
	if res.Body.String() != want.String() {
		t.Errorf("%d bytes of %d came back", res.Body.Len(), want.Len())
	}
	if got := res.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	// Page by page, every line once.
	path, lines := sessionURL(j.claim.SessionID), 0
	earlier := regexp.MustCompile(`id="log-earlier" href="([^"]+)"`)
	for path != "" {
		page := s.get(path).Body.String()
		lines += strings.Count(page, "<p data-n")
		if len(page) > 60<<10 {
			t.Errorf("%s: %d bytes, at most 60 KiB", path, len(page))
		}
		path = ""
		if m := earlier.FindStringSubmatch(page); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if want := strings.Count(want.String(), "\n"); lines < want-2 || lines > want {
		t.Errorf("%d lines on all pages, want %d less overwritten ones", lines, want)
	}
}

func TestPreferences(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	post := func(referer string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/ui/preferences", strings.NewReader("theme=dark"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Referer", referer)
		res := httptest.NewRecorder()
		s.handler.ServeHTTP(res, r)
		return res
	}
	res := post("http://example.com/sessions?q=a")
	if got := res.Header().Get("Location"); got != "/sessions?q=a" {
		t.Errorf("back to %q", got)
	}
	for _, elsewhere := range []string{"https://evil.test/x", "http://example.com//evil.test/x", "javascript:alert(1)", ""} {
		if got := post(elsewhere).Header().Get("Location"); got != "/" {
			t.Errorf("from %q back to %q", elsewhere, got)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/workers", nil)
	r.Header.Set("Cookie", res.Header().Get("Set-Cookie"))
	r.AddCookie(&http.Cookie{Name: "stint_zone", Value: "Europe%2FBerlin"})
	r.AddCookie(&http.Cookie{Name: "stint_keys", Value: "off"})
	page := httptest.NewRecorder()
	s.handler.ServeHTTP(page, r)
	if !strings.Contains(page.Body.String(), `data-theme="dark"`) || !strings.Contains(page.Body.String(), `data-keys="off"`) {
		t.Error("the page isn't drawn as chosen")
	}
	bad := prefsOf(&http.Request{Header: http.Header{"Cookie": {`stint_theme="><script>; stint_zone=Local; stint_density=huge`}}}, time.UTC)
	if bad.theme != "auto" || bad.zone != time.UTC || bad.density != "auto" {
		t.Errorf("nonsense was taken: %+v", bad)
	}
}
