package server_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/provider"
	"stint/server/servertest"
)

const (
	publicBase = "/stint"
	publicURL  = "https://" + publicHost + publicBase
)

// subpathFixture is a fixture whose public URL has a path, with a provider and a person.
func subpathFixture(t *testing.T) (d *fixture, cookie string) {
	t.Helper()
	l := &lobby{clock: &clock{}}
	whole := through(t, provider.Config{Issuer: newCrook(t).URL, ClientID: "stint", Secret: clientSecret, Name: "Acme", Inside: true}, l.clock.now)
	d = newFixture(t, servertest.Options{Clock: l.clock.now, Server: func(o *server.Options) {
		whole(o)
		o.Web, o.Registers, o.Public = page(), true, must(server.ParsePublic(publicURL+"/", nil, []string{"127.0.0.0/8"}))
	}})
	d.named()
	return d, cookieIn(t, d.tries("ann", password, proxied("")))
}

// proxied is a request as the proxy passes it on: the public name, and the path
// below the base as the client asked for it.
func proxied(cookie string) servertest.Change {
	return func(r *http.Request) {
		r.Host, r.URL.Path = publicHost, publicBase+r.URL.Path
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		if cookie != "" {
			r.Header.Del("Authorization")
			r.Header.Set("Cookie", cookie)
			r.Header.Set("Origin", "https://"+publicHost)
			r.Header.Set("Accept", "text/html")
		}
	}
}

// A request by the public name is answered only below the base; on this machine the base may
// be left out.
func TestBase_WhereTheServerAnswers(t *testing.T) {
	d, _ := subpathFixture(t)
	noRedirect(d)
	plain := &http.Transport{} // the document says nothing about what is outside the base
	t.Cleanup(plain.CloseIdleConnections)
	d.Client.Transport = plain
	const well = "/.well-known/oauth-authorization-server"
	for path, want := range map[string]struct{ public, here int }{
		"/stint/healthz": {200, 200}, "/healthz": {404, 200}, "/stint": {200, 200}, "/stint/": {200, 200}, "/": {404, 200}, "/stintless": {404, 200},
		"/stint/stint/healthz": {200, 200}, "/stint%2Fhealthz": {404, 200},
		well + "/stint": {200, 200}, "/stint" + well: {200, 200}, well: {404, 200}, "/.well-known/oauth-protected-resource/stint": {200, 200},
		"/.well-known/other/stint": {404, 404},
	} {
		for host, want := range map[string]int{publicHost: want.public, d.Addr(): want.here} {
			a := d.Do("GET", path, nil, func(r *http.Request) { r.Host = host })
			if a.Status != want {
				t.Errorf("%s%s answered %d, not %d: %s", host, path, a.Status, want, a.Body)
			}
			if host == publicHost && want == 404 && !strings.HasPrefix(path, "/stint") && !strings.Contains(a.Problem(t).Detail, "below /stint alone") {
				t.Errorf("%s%s says %s", host, path, a.Body)
			}
		}
	}
	if a := d.Do("GET", "/stint/healthz", nil, func(r *http.Request) { r.Host = "evil.test" }); a.Status != http.StatusMisdirectedRequest {
		t.Errorf("a foreign name was answered %d", a.Status)
	}
}

var written = regexp.MustCompile(`\b(?:href|src|action|formaction)="(/[^"]*)"`)

// Every address that a browser or a program is given begins with the base.
func TestBase_EverythingThatGoesOutHasIt(t *testing.T) {
	d, cookie := subpathFixture(t)
	noRedirect(d)
	at := func(what, got, want string) {
		t.Helper()
		if !strings.HasPrefix(got, want) || strings.Contains(got, "/stint/stint") {
			t.Errorf("%s is %q, not %s…", what, got, want)
		}
	}
	a := d.tries("ann", password, proxied(""))
	at("where signing in leads", a.Header.Get("Location"), "/stint/")
	set := a.Header.Get("Set-Cookie")
	if !strings.HasPrefix(set, "__Host-stint_session=") || !strings.Contains(set, "; Path=/;") {
		t.Errorf("the cookie is %q", set)
	}
	stranger := []servertest.Change{proxied(""), servertest.With("Authorization", ""), servertest.With("Accept", "text/html")}
	at("where a stranger is led", d.Do("GET", "/sessions?status=error", nil, stranger...).Header.Get("Location"), "/stint/signin?next=%2Fsessions%3Fstatus")
	form := servertest.With("Content-Type", formType)
	a = d.Do("POST", "/signin?next=/sessions", url.Values{"login": {"ann"}, "password": {password}}.Encode(), proxied(""), form)
	at("where a stranger is led on", a.Header.Get("Location"), "/stint/sessions")

	challenge := oauth2.S256ChallengeOption(oauth2.GenerateVerifier())
	ask := (&oauth2.Config{ClientID: account.CLI, RedirectURL: loopback}).AuthCodeURL("st", challenge, oauth2.SetAuthURLParam("resource", publicURL))
	found := 0
	for _, path := range []string{"/device", "/signin/provider/link", "/invitation"} {
		found += addresses(t, path, d.Do("GET", path, nil, proxied(cookie)))
	}
	consent := d.Do("GET", "/", nil, proxied(cookie), func(r *http.Request) {
		r.URL.Path, r.URL.RawQuery = publicBase+"/oauth/authorize", strings.TrimPrefix(ask, "?")
	})
	found += addresses(t, "/oauth/authorize", consent)
	for _, path := range []string{"/signin", "/signin?next=/workers", "/invitation"} {
		found += addresses(t, path, d.Do("GET", path, nil, stranger...))
	}
	found += addresses(t, "a wrong password", d.Do("POST", "/signin", "login=ann&password=wrong", append(stranger, form)...))
	if found < 8*3 {
		t.Errorf("the pages have %d addresses", found)
	}
	answer := shown(consent.Body)
	answer.Set("decision", "allow")
	a = d.Do("POST", "/oauth/authorize", answer.Encode(), proxied(cookie), form)
	if to := must(url.Parse(a.Header.Get("Location"))); to.Query().Get("iss") != publicURL || to.Query().Get("code") == "" {
		t.Errorf("the consent answered %d to %s %s", a.Status, to, a.Body)
	}
	away := must(url.Parse(d.Do("GET", "/signin/provider", nil, stranger...).Header.Get("Location")))
	at("where the provider leads back", away.Query().Get("redirect_uri"), publicURL+"/signin/provider/callback")
	at("where signing out leads", d.Do("POST", "/signout", "", proxied(cookie), form).Header.Get("Location"), "/stint/signin")

	at("a new agent", d.Do("POST", servertest.Base+"/agents", m{"slug": "more", "run": m{"command": []string{"true"}}}, proxied("")).Header.Get("Location"), "/stint/api/v1/workspaces/default/agents/")
	at("a new session", d.Do("POST", servertest.Base+"/agents/tidy/sessions", m{}, proxied("")).Header.Get("Location"), "/stint/api/v1/workspaces/default/sessions/")
	at("a new workspace", d.Do("POST", "/api/v1/workspaces", m{"slug": "more", "name": "More"}, proxied("")).Header.Get("Location"), "/stint/api/v1/workspaces/more")
	at("an invitation", servertest.Must[api.Invitation](d.Server, 201, "POST", servertest.Base+"/invitations", m{"role": "viewer"}, proxied("")).Link, publicURL+"/invitation#")
	at("an invitation made here", servertest.Must[api.Invitation](d.Server, 201, "POST", "invitations", m{"role": "viewer"}).Link, publicURL+"/invitation#")
	if got := d.Do("POST", "agents", m{"slug": "plain", "run": m{"command": []string{"true"}}}).Header.Get("Location"); !strings.HasPrefix(got, "/api/v1/") {
		t.Errorf("on this machine a new agent is at %q", got)
	}
}

// addresses checks the addresses in a page and returns how many there are.
func addresses(t *testing.T, path string, a servertest.Response) int {
	t.Helper()
	if a.Status != 200 && a.Status != 401 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("%s answered %d %s", path, a.Status, a.Body)
	}
	all := written.FindAllSubmatch(a.Body, -1)
	for _, m := range all {
		if !strings.HasPrefix(string(m[1]), publicBase+"/") || strings.HasPrefix(string(m[1]), publicBase+publicBase) {
			t.Errorf("%s has %s", path, m[0])
		}
	}
	return len(all)
}

// Programs find everything through the metadata, whose addresses are those of RFC 8414 and RFC
// 9728 for an issuer with a path.
func TestBase_WhatProgramsAreTold(t *testing.T) {
	d, _ := subpathFixture(t)
	noRedirect(d)
	public := func(r *http.Request) { r.Host = publicHost }
	refused := d.Do("GET", "/api/v1/whoami", nil, proxied(""), servertest.With("Authorization", ""))
	metadata := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(refused.Header.Get("WWW-Authenticate"))
	if metadata == nil || metadata[1] != "https://"+publicHost+"/.well-known/oauth-protected-resource"+publicBase {
		t.Fatalf("a stranger gets %q", refused.Header.Get("WWW-Authenticate"))
	}
	resource := servertest.Must[api.ProtectedResource](d.Server, 200, "GET", strings.TrimPrefix(metadata[1], "https://"+publicHost), nil, public)
	if resource.Resource != publicURL || len(resource.AuthServers) != 1 || resource.AuthServers[0] != publicURL {
		t.Fatalf("the resource is %+v", resource)
	}
	meta := servertest.Must[api.AuthServer](d.Server, 200, "GET", "/.well-known/oauth-authorization-server"+publicBase, nil, public)
	for want, got := range map[string]string{
		"": meta.Issuer, "/oauth/authorize": meta.AuthorizationEndpoint, "/oauth/token": meta.TokenEndpoint, "/oauth/device": meta.DeviceEndpoint,
		"/oauth/revoke": meta.RevocationEndpoint, "/oauth/register": meta.RegistrationEndpoint,
	} {
		if got != publicURL+want {
			t.Errorf("%q is at %s", want, got)
		}
	}
	form, nobody := servertest.With("Content-Type", formType), servertest.With("Authorization", "")
	for resource, want := range map[string]int{
		publicURL: 200, publicURL + "/": 200, d.URL: 200, d.URL + publicBase: 200, "https://" + publicHost: 400, "https://" + publicHost + "/other": 400, d.URL + "/other": 400,
	} {
		a := d.Do("POST", "/oauth/device", url.Values{"client_id": {account.CLI}, "resource": {resource}}.Encode(), proxied(""), nobody, form)
		if a.Status != want || want == 200 && decoded[api.OAuthDevice](t, a).VerificationURI != publicURL+"/device" {
			t.Errorf("for %s the device gets %d %s", resource, a.Status, a.Body)
		}
	}
	for path, want := range map[string]string{"/openapi.json": `"servers":[{"url":"%"}]`, "/openapi.yaml": "\nservers:\n  - url: %\n"} {
		for says, changes := range map[string][]servertest.Change{"/": nil, publicBase: {proxied("")}} {
			if a := d.Do("GET", path, nil, changes...); a.Status != 200 || !strings.Contains(string(a.Body), strings.Replace(want, "%", says, 1)) {
				t.Errorf("%s doesn't say that its paths begin at %s", path, says)
			}
		}
	}
}

// A request from the server's own machine is shown the addresses that others have to call.
func TestBase_AddressesForOthersArePublicWhicheverWayTheyAreAskedFor(t *testing.T) {
	d, _ := subpathFixture(t)
	trigger := servertest.Must[api.TriggerURL](d.Server, 201, "POST", "/api/v1/workspaces/default/agents/tidy/trigger-urls", m{})
	if trigger.URL != publicURL+trigger.Path || trigger.Path == "" {
		t.Errorf("a trigger URL is shown as %q, its path as %q", trigger.URL, trigger.Path)
	}
	a := d.Do("POST", "/oauth/device", url.Values{"client_id": {account.CLI}}.Encode(), servertest.With("Authorization", ""), servertest.With("Content-Type", formType))
	if given := decoded[api.OAuthDevice](t, a); given.VerificationURI != publicURL+"/device" {
		t.Errorf("a code is to be typed at %q", given.VerificationURI)
	}
}
