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

// offers are what the pages offer: to a viewer, a member, an admin, an owner. + is there, -
// isn't. If the page itself is refused nothing is checked. CLOUD, LOCAL, OPEN and DONE stand
// for an agent of either mode and for a cloud session of an owner's that waits, and one that
// has ended.
var offers = []struct{ page, action, who string }{
	{"/", "/agents/new", "- - + +"},
	{"/", "/run", "- + + +"},
	{"/", "/activity", "- - + +"},
	{"/agents", "/agents/new", "- - + +"},
	{"/agents", "/agents/LOCAL/run", "- + + +"},
	{"/agents", "/agents/CLOUD/run", "- - + +"},
	{"/agents/LOCAL", "/agents/LOCAL/run", "- + + +"},
	{"/agents/LOCAL", "/agents/LOCAL/edit", "- - + +"},
	{"/agents/LOCAL", "/agents/LOCAL/pause", "- - + +"},
	{"/agents/LOCAL", "/agents/LOCAL/delete", "- - - +"},
	{"/agents/CLOUD", "/agents/CLOUD/run", "- - + +"},
	{"/sessions", "/run", "- + + +"},
	{"/sessions/OPEN", "/sessions/OPEN/cancel", "- - + +"},
	{"/sessions/OPEN", "/agents/CLOUD/run", "- - - -"},
	{"/sessions/DONE", "/sessions/DONE/retry", "- - + +"},
	{"/sessions/DONE", "/sessions/DONE/archive", "- - + +"},
	{"/sessions/DONE", "/sessions/DONE/keep", "- - + +"},
	{"/settings/account", "/settings/account/login", "+ + + +"},
	{"/settings/account", "/settings/keys", "- + + +"},
	{"/settings/account", "/settings/webhooks", "- - + +"},
	{"/settings/account", "/settings/notifications", "+ + + +"},
	{"/settings/account", "/system", "- - + +"},
	{"/system", "/system/support-bundle.json", "- - + +"},
	{"/settings/account", "/settings/programs", "- - - +"},
	{"/settings/members", "/settings/members/invite", "- - - +"},
	{"/settings/keys", "/settings/keys", "- + + +"},
	{"/help", "/activity", "- - + +"},
	{"/nothing", "/activity", "- - + +"},
}

var target = regexp.MustCompile(`(href|action)="([^"#?]*)`)

// What a page offers to people is what they may do: no more, so that nobody is refused after
// the fact, and no less.
func TestOffers_AreWhatTheReaderMayDo(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	a := s.Agent(func(in *api.AgentInput) { in.Slug, in.Mode, in.RunsAsUserID = "cloudy", api.Cloud, 0 })
	open, done := s.New(a), s.New(a)
	if _, err := s.CancelSession(t.Context(), s.Owner, done.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	named := strings.NewReplacer("CLOUD", "cloudy", "LOCAL", "log-summary", "OPEN", open.ID.String(), "DONE", done.ID.String())
	for i, role := range []api.Role{api.Viewer, api.Member, api.Admin, api.Owner} {
		who, caller := account.Identity{UserID: s.Owner.UserID, Name: s.Owner.Name}, s.Owner
		if role != api.Owner {
			who, caller = s.joins(t, role)
		}
		handler := New(Options{Engine: s.Engine, Accounts: s.Accounts, CallerOf: func(*http.Request) (engine.Caller, account.Identity, bool) { return caller, who, true }})
		ask := func(method, path string) *httptest.ResponseRecorder {
			req := httptest.NewRequest(method, path, nil)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			res := httptest.NewRecorder()
			handler.ServeHTTP(res, req)
			return res
		}
		looked := map[string]bool{}
		for _, row := range offers {
			page, action := named.Replace(row.page), named.Replace(row.action)
			res := ask(http.MethodGet, page)
			if res.Code == http.StatusForbidden {
				continue
			}
			body, want := res.Body.String(), strings.Fields(row.who)[i] == "+"
			shown := false
			for _, m := range target.FindAllStringSubmatch(body, -1) {
				shown = shown || m[2] == action
				if m[1] == "href" && strings.HasPrefix(m[2], "/") && !looked[m[2]] && !strings.HasPrefix(m[2], "/openapi") && !strings.HasPrefix(m[2], StaticPrefix) {
					looked[m[2]] = true
					if to := ask(http.MethodGet, m[2]); to.Code == http.StatusForbidden {
						t.Errorf("%s leads a %s to %s, which refuses them", page, role, m[2])
					}
				}
			}
			if shown != want {
				t.Errorf("%s offers a %s %s: %v, want %v", page, role, action, shown, want)
			}
		}
	}
}

func TestRefused_WhatWasWrittenIsThereAgain(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	agent := []string{"slug", "x", "description", "a long thought", "mode", "local", "type", "command"}
	for role, posts := range map[api.Role][]string{
		api.Viewer: {"/agents", "/agents/backup/edit", "/agents/backup/run", "/run", "/settings/webhooks", "/settings/members/invite"},
		api.Member: {"/agents", "/agents/backup/edit", "/settings/members/invite"},
	} {
		s.Owner.Role = role
		for _, path := range posts {
			res := s.post(path, append(agent, "agent", "backup", "prompt", "a long thought", "note", "a long thought", "url", "https://example.org/", "password", "my pass phrase")...)
			body := res.Body.String()
			if res.Code != http.StatusForbidden || !strings.Contains(body, "a long thought") || strings.Contains(body, "my pass phrase") {
				t.Errorf("%s as %s: status %d, kept %v", path, role, res.Code, strings.Contains(body, "a long thought"))
			}
			wholePage(t, path, body)
		}
	}
}
