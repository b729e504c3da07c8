package web

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"stint/account"
	"stint/api"
	"stint/engine"
)

// pageAccess is the whole table of who may see and do what on the pages: viewer, member,
// admin, owner. + is allowed, 3 is 403, 4 is 404. The sessions are local ones of the owner's:
// nobody else sees them (contract 8.3).
var pageAccess = map[string]string{
	"GET /":                                                "+ + + +",
	"GET /inbox":                                           "+ + + +",
	"GET /sessions":                                        "+ + + +",
	"GET /sessions/{session}":                              "4 4 4 +",
	"GET /sessions/{session}/output.txt":                   "4 4 4 +",
	"GET /sessions/{session}/files/{file}":                 "4 4 4 4", // there is none
	"GET /sessions/{session}/{verb}":                       "4 4 4 +",
	"POST /sessions/{session}/{verb}":                      "4 4 4 +",
	"POST /sessions/{session}/answer":                      "4 4 4 +",
	"POST /sessions/{session}/say":                         "4 4 4 +",
	"POST /sessions/{session}/review":                      "4 4 4 +",
	"POST /sessions/{session}/review/send":                 "4 4 4 +",
	"POST /sessions/{session}/review/{comment}/drop":       "4 4 4 +",
	"POST /sessions/{session}/land":                        "4 4 4 +",
	"POST /sessions/{session}/landings/{landing}/withdraw": "4 4 4 +",
	"GET /run":                                            "3 + + +",
	"POST /run":                                           "3 + + +",
	"GET /agents":                                         "+ + + +",
	"GET /agents/new":                                     "3 3 + +",
	"POST /agents":                                        "3 3 + +",
	"GET /agents/{agent}":                                 "+ + + +",
	"GET /agents/{agent}/edit":                            "3 3 + +",
	"POST /agents/{agent}/edit":                           "3 3 + +",
	"GET /agents/{agent}/run":                             "3 + + +",
	"POST /agents/{agent}/run":                            "3 + + +",
	"GET /agents/{agent}/delete":                          "3 3 3 +",
	"POST /agents/{agent}/{verb}":                         "3 3 + +",
	"GET /agents/{agent}/triggers/{trigger}/close":        "3 3 3 +",
	"POST /agents/{agent}/triggers/{trigger}/close":       "3 3 3 +",
	"GET /tasks":                                          "+ + + +",
	"POST /tasks":                                         "3 + + +",
	"GET /tasks/new":                                      "3 + + +",
	"GET /tasks/export":                                   "+ + + +",
	"GET /tasks/export.{format}":                          "+ + + +",
	"GET /tasks/{task}":                                   "+ + + +",
	"GET /tasks/{task}/edit":                              "3 + + +",
	"POST /tasks/{task}/edit":                             "3 + + +",
	"POST /tasks/{task}/state":                            "3 + + +",
	"POST /tasks/{task}/comments":                         "3 + + +",
	"GET /tasks/{task}/dispatch":                          "3 + + +",
	"POST /tasks/{task}/dispatch":                         "3 + + +",
	"POST /tasks/{task}/{verb}":                           "3 + + +",
	"GET /search":                                         "+ + + +",
	"GET /ui/palette":                                     "+ + + +",
	"GET /schedules":                                      "+ + + +",
	"GET /insights":                                       "+ + + +",
	"GET /insights.csv":                                   "+ + + +",
	"GET /workers":                                        "+ + + +",
	"GET /workers/{worker}":                               "4 4 + +",
	"GET /workers/{worker}/edit":                          "4 4 3 +",
	"POST /workers/{worker}/edit":                         "4 4 3 +",
	"POST /workers/{worker}/approvals/{approval}/remove":  "4 4 4 +",
	"GET /workers/{worker}/{verb}":                        "4 4 + +",
	"POST /workers/{worker}/{verb}":                       "4 4 + +",
	"GET /settings":                                       "+ + + +",
	"GET /settings/members":                               "+ + + +",
	"POST /settings/members/invite":                       "3 3 3 +",
	"POST /settings/members/{user}/role":                  "3 3 3 +",
	"GET /settings/members/{user}/remove":                 "3 3 3 +",
	"POST /settings/members/{user}/remove":                "3 3 3 +",
	"POST /settings/invitations/{invitation}/revoke":      "3 3 3 +",
	"GET /settings/keys":                                  "3 + + +",
	"POST /settings/keys":                                 "3 + + +",
	"POST /settings/keys/{key}/revoke":                    "3 4 + +",
	"GET /settings/programs":                              "3 3 3 +",
	"POST /settings/programs/{program}/revoke":            "3 3 3 4",
	"GET /settings/account":                               "+ + + +",
	"POST /settings/account/login":                        "+ + + +",
	"POST /settings/account/sign-ins/{signin}/end":        "4 4 4 4",
	"POST /settings/account/sign-out-everywhere":          "+ + + +",
	"POST /settings/account/identities/{identity}/unlink": "4 4 4 4",
	"POST /settings/workspace":                            "+ + + +",
	"GET /settings/notifications":                         "+ + + +",
	"POST /settings/notifications":                        "+ + + +",
	"GET /settings/notifications/{channel}":               "4 4 4 +",
	"POST /settings/notifications/{channel}":              "4 4 4 +",
	"GET /settings/notifications/{channel}/delete":        "4 4 4 +",
	"POST /settings/notifications/{channel}/{verb}":       "4 4 4 +",
	"GET /settings/webhooks":                              "3 3 + +",
	"POST /settings/webhooks":                             "3 3 + +",
	"GET /settings/webhooks/{webhook}":                    "3 3 + +",
	"GET /settings/webhooks/{webhook}/delete":             "3 3 + +",
	"POST /settings/webhooks/{webhook}/{verb}":            "3 3 + +",
	"POST /settings/webhooks/{webhook}/deliveries/{delivery}/redeliver": "3 3 4 4",
	"GET /activity":                   "3 3 + +",
	"GET /system":                     "3 3 + +",
	"GET /system/support-bundle.json": "3 3 + +",
	"GET /activity/export.ndjson":     "3 3 + +",
	"GET /help":                       "+ + + +",
	"GET /help/{page}.txt":            "+ + + +",
	"GET /help/{page}":                "+ + + +",
	"GET /api/docs":                   "+ + + +",
	"GET /api/docs/{name}":            "+ + + +",
	"GET /llms.txt":                   "+ + + +",
	"GET /ui/stream":                  "+ + + +",
	"GET /ui/schedule":                "+ + + +",
	"POST /ui/preferences":            "+ + + +",
}

// anyForm is a part of a route's path that has one of several forms.
var anyForm = regexp.MustCompile(`\{(\w+):([^}]*)\}`)

func TestAccess_EveryPageForEveryRole(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	used := map[string]bool{}
	for i, role := range []api.Role{api.Viewer, api.Member, api.Admin, api.Owner} {
		who, caller := account.Identity{UserID: s.Owner.UserID, Name: s.Owner.Name}, s.Owner
		if role != api.Owner {
			who, caller = s.joins(t, role)
		}
		handler := New(Options{Engine: s.Engine, Accounts: s.Accounts, CallerOf: func(*http.Request) (engine.Caller, account.Identity, bool) { return caller, who, true }})
		for _, r := range routes {
			name := r.method + " " + anyForm.ReplaceAllString(r.path, "{$1}")
			want, ok := pageAccess[name]
			if !ok {
				t.Errorf("%s has no row in the table of access", name)
				continue
			}
			used[name] = true
			req := s.request(t, r)
			if strings.HasSuffix(req.URL.Path, "/stream") {
				continue // a stream doesn't end by itself; live_test.go covers it
			}
			res := httptest.NewRecorder()
			handler.ServeHTTP(res, req)
			got := map[int]string{http.StatusForbidden: "3", http.StatusNotFound: "4"}[res.Code]
			if got == "" && res.Code < 500 {
				got = "+"
			}
			if letter := strings.Fields(want)[i]; got != letter {
				t.Errorf("%s %s as %s: status %d, want %s", r.method, req.URL, role, res.Code, letter)
			}
		}
	}
	for name := range pageAccess {
		if !used[name] {
			t.Errorf("no route needs the row %s", name)
		}
	}
}

// request asks for what a route is about, with a valid form.
func (s *fixture) request(t *testing.T, r route) *http.Request {
	t.Helper()
	ctx := t.Context()
	viewer, _ := s.joins(t, api.Viewer)
	invitation, err := s.Invite(ctx, s.Owner, api.InvitationInput{Role: api.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.CreateKey(ctx, s.Owner, api.KeyInput{Name: "k", Scopes: api.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	hook, err := s.CreateWebhook(ctx, s.Owner, api.WebhookInput{URL: "https://example.org/", Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	in := engine.DefaultChannel()
	in.URL = "ntfy://ntfy.sh/topic"
	channel, err := s.CreateChannel(ctx, s.Owner, in)
	if err != nil {
		t.Fatal(err)
	}
	trigger, err := s.OpenTriggerURL(ctx, s.Owner, "log-summary", api.TriggerURLInput{})
	if err != nil {
		t.Fatal(err)
	}
	path := anyForm.ReplaceAllStringFunc(r.path, func(part string) string {
		if first, _, several := strings.Cut(anyForm.FindStringSubmatch(part)[2], "|"); several {
			return first
		}
		return part
	})
	session := s.sessions[api.Queued].ID.String()
	if strings.Contains(path, "/review") || strings.Contains(path, "/land") {
		j := s.reviewed(t)
		session = j.claim.SessionID.String()
		path = strings.NewReplacer("{comment}", j.drafts()[0].ID.String(), "{landing}", j.pendingFor(path)).Replace(path)
	}
	if strings.Contains(path, "{approval}") {
		s.allowed("backup", api.Approval{ID: "ok-aaaaaa", What: "git push origin *", Any: true})
	}
	path = strings.NewReplacer("{task}", "T-4", "{approval}", "ok-aaaaaa", "{session}", session, "{agent}", "log-summary", "{user}", viewer.UserID.String(),
		"{invitation}", invitation.ID.String(), "{key}", key.ID.String(), "{signin}", "tok_0000000000", "{identity}", "idn_0000000001", "{program}", "app_0000000001", "{webhook}", hook.ID.String(), "{channel}", channel.ID.String(), "{trigger}", trigger.ID.String(), "{worker}", s.workers["backup"].ID.String(), "{delivery}", "dlv_0000000001", "{page}", "states", "{page:[a-z-]+}", "states", "{name}", "createSession").Replace(path)
	form := formValues([]string{"role", "viewer", "agent", "log-summary", "workspace", "default", "name", "x", "title", "x", "state", "review", "text", "x", "verb", "push", "read", "true", "slug", "x", "command", "true", "url", "https://example.org/"})
	req := httptest.NewRequest(r.method, path, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}

// joins creates a user with a role.
func (s *fixture) joins(t *testing.T, role api.Role) (account.Identity, engine.Caller) {
	t.Helper()
	ctx := t.Context()
	i, err := s.Invite(ctx, s.Owner, api.InvitationInput{Role: role})
	if err != nil {
		t.Fatal(err)
	}
	who := s.User(string(role))
	if _, err := s.JoinAs(ctx, who, i.Code); err != nil {
		t.Fatal(err)
	}
	in, err := s.In(ctx, who, account.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	return who, in
}

func TestSettings_WhatIsShownOnceIsShownOnce(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	page := s.post("/settings/keys", "name", "ci", "trigger", "true").Body.String()
	if !strings.Contains(page, "stint_key_") || !strings.Contains(page, "Keep this key now") {
		t.Error("the new key isn't shown")
	}
	if again := s.get("/settings/keys").Body.String(); strings.Contains(again, "stint_key_") || !strings.Contains(again, "ci") {
		t.Error("the key is shown again, or isn't listed")
	}
	if page := s.post("/settings/keys", "name", "phone", "calendar", "true").Body.String(); !strings.Contains(page, "/calendar.ics?key=stint_key_") || strings.Contains(page, "Bearer KEY") {
		t.Error("a key for the calendar is not shown as its address")
	}
	refused(t, s.post("/settings/keys", "name", ""), "ust have 1 to 64 characters", "at least one of read")
	page = s.post("/settings/members/invite", "role", "member", "note", "Ben").Body.String()
	if !strings.Contains(page, "http://example.com/invitation#stint_inv_") {
		t.Error("the invitation's link isn't shown")
	}
	if again := s.get("/settings/members").Body.String(); strings.Contains(again, "stint_inv_") || !strings.Contains(again, "Ben") {
		t.Error("the link is shown again, or the invitation isn't listed")
	}
	refused(t, s.post("/settings/account/login", "login", "ann", "password", "short"), "at least 10 characters")
	wentTo(t, s.post("/settings/account/login", "login", "ann", "name", "Ann", "password", "correct horse battery"), "/settings/account")
	refused(t, s.post("/settings/account/login", "login", "ann", "current", "wrong", "password", "correct horse battery"), "not your password")
}

func TestSettings_LinkedAccounts(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	ctx, who := t.Context(), account.Identity{UserID: s.Owner.UserID, Name: s.Owner.Name}
	there := Provider{Name: "Acme", Issuer: "https://login.example.com"}
	pages := New(Options{Engine: s.Engine, Accounts: s.Accounts, Provider: there, CallerOf: func(*http.Request) (engine.Caller, account.Identity, bool) { return s.Owner, who, true }})
	look := func() string {
		res := httptest.NewRecorder()
		pages.ServeHTTP(res, httptest.NewRequest(http.MethodGet, "/settings/account", nil))
		wholePage(t, "/settings/account", res.Body.String())
		return res.Body.String()
	}
	if body := look(); !strings.Contains(body, "Link your account at Acme") {
		t.Error("there is no way to link")
	}
	secret, err := s.StartOIDCSignIn(ctx, account.OIDCSignIn{Purpose: account.PurposeLink, Who: who}, account.From{})
	if err != nil {
		t.Fatal(err)
	}
	back, err := s.EndOIDCSignIn(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Arrive(ctx, back, account.ExternalIdentity{Issuer: there.Issuer, Subject: "7", Email: "ann@example.com"}, who, account.From{}); err != nil {
		t.Fatal(err)
	}
	if body := look(); strings.Contains(body, "Link your account") || !strings.Contains(body, "ann@example.com") || !strings.Contains(body, "Unlink ann@example.com") {
		t.Error("the linked account isn't shown, or another can be linked")
	}
	account, err := s.Account(ctx, who)
	if err != nil {
		t.Fatal(err)
	}
	path := "/settings/account/identities/" + account.Identities[0].ID.String() + "/unlink"
	if res := s.post(path); res.Code != http.StatusConflict {
		t.Errorf("unlinking the only way in: status %d", res.Code)
	}
	wentTo(t, s.post("/settings/account/login", "login", "ann", "name", "Ann", "password", "correct horse battery"), "/settings/account")
	wentTo(t, s.post(path), "/settings/account")
	if body := look(); strings.Contains(body, "ann@example.com") {
		t.Error("it is shown as linked still")
	}
}

func TestSettings_ProgramsThatRegisteredThemselves(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	c, err := s.Register(t.Context(), account.Registration{Name: "<b>Evil</b>", Redirects: []string{"https://a.test/cb"}}, account.From{Address: "192.0.2.7"})
	if err != nil {
		t.Fatal(err)
	}
	body := s.get("/settings/programs").Body.String()
	wholePage(t, "/settings/programs", body)
	for _, want := range []string{"&lt;b&gt;Evil&lt;/b&gt;", "https://a.test/cb", "192.0.2.7", "signed in by nobody"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	wentTo(t, s.post("/settings/programs/"+c.ID+"/revoke"), "/settings/programs")
	if body := s.get("/settings/programs").Body.String(); strings.Contains(body, "Evil") {
		t.Error("it is still there")
	}
}
