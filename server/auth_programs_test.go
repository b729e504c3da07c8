package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

// newRegistry is a lobby where programs may register themselves.
func newRegistry(t *testing.T) *lobby {
	t.Helper()
	l := &lobby{clock: &clock{}}
	l.fixture = newFixture(t, servertest.Options{Clock: l.clock.now, Server: func(o *server.Options) { o.Web, o.Registers = page(), true }})
	l.cookie = l.fixture.cookie()
	return l
}

func (l *lobby) register(body any) servertest.Response {
	l.tb.Helper()
	return l.Do("POST", "/oauth/register", body, servertest.With("Authorization", ""))
}

// registered is a program with this name that takes answers there.
func (l *lobby) registered(name string, redirects ...string) api.OAuthRegistration {
	l.tb.Helper()
	return servertest.Must[api.OAuthRegistration](l.As(""), 201, "POST", "/oauth/register", m{"client_name": name, "redirect_uris": redirects})
}

// The client of the MCP SDK finds its way from a 401 to a call using only what the server
// says: resource metadata, server metadata, registration, code, token.
func TestRegister_TheSDKsClientFindsItsWay(t *testing.T) {
	l := newRegistry(t)
	const there = "http://localhost:9999/oauth/callback"
	var page []byte
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		Client: l.Client,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "MCP client", RedirectURIs: []string{there}, GrantTypes: []string{"authorization_code", "refresh_token"}, Scope: "user",
		}},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			a := l.look(strings.TrimPrefix(args.URL, l.URL))
			page = a.Body
			form := shown(a.Body)
			form.Set("decision", "allow")
			to, err := url.Parse(l.send("/oauth/authorize", form).Header.Get("Location"))
			if err != nil || !strings.HasPrefix(to.String(), there+"?") {
				return nil, fmt.Errorf("the consent leads to %q: %v", to, err)
			}
			q := to.Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() *http.Request {
		return must(http.NewRequestWithContext(t.Context(), "GET", l.URL+servertest.Base+"/agents", nil))
	}
	req := ask()
	resp := must(l.Client.Do(req))
	if resp.StatusCode != 401 {
		t.Fatalf("a stranger is answered %d", resp.StatusCode)
	}
	if err := handler.Authorize(t.Context(), req, resp); err != nil {
		t.Fatal(err)
	}
	source := must(handler.TokenSource(t.Context()))
	token := must(source.Token())
	req = ask()
	token.SetAuthHeader(req)
	resp = must(l.Client.Do(req))
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("the call is answered %d", resp.StatusCode)
	}
	for _, words := range []string{"Calls itself", "MCP client", "a program on this machine, localhost:9999", "registered itself", "any program on your machine can wait"} {
		if !strings.Contains(string(page), words) {
			t.Errorf("the page doesn't say %q: %s", words, page)
		}
	}
	signIns := servertest.Must[api.List[api.SignIn]](l.Server, 200, "GET", "/api/v1/account/sign-ins", nil)
	if s := signIns.Items[0]; s.Kind != "program" || s.Label != "MCP client" {
		t.Errorf("the newest sign-in is %+v", s)
	}
	if told := servertest.Must[api.List[api.AuditEntry]](l.Server, 200, "GET", "audit?type=program_signed_in", nil).Items; len(told) != 1 || told[0].Data["name"] != "MCP client" {
		t.Errorf("the audit says %+v", told)
	}

	// An owner sees it, and revokes it: its tokens end at once, and so does its registration.
	all := servertest.Must[api.List[api.RegisteredProgram]](l.Server, 200, "GET", "/api/v1/programs", nil).Items
	if len(all) != 1 || all[0].Name != "MCP client" || all[0].SignIns != 1 || all[0].LastUsedAt.IsZero() || !slices.Equal(all[0].RedirectURIs, []string{there}) ||
		all[0].ExpiresAt.Sub(l.clock.now()) < 365*24*time.Hour {
		t.Fatalf("registered are %+v", all)
	}
	servertest.Must[any](l.Server, 204, "DELETE", "/api/v1/programs/"+all[0].ID.String(), nil)
	l.Refused(404, api.CodeNotFound, "DELETE", "/api/v1/programs/"+all[0].ID.String(), nil)
	if l.works(token.AccessToken) {
		t.Error("a token of a revoked program works")
	}
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {all[0].ID.String()}, "refresh_token": {token.RefreshToken}}
	if status, word, _ := l.trade(form); status != 400 || word != "invalid_client" {
		t.Errorf("its refresh answered %d %s", status, word)
	}
	if told := servertest.Must[api.List[api.AuditEntry]](l.Server, 200, "GET", "audit?type=program_revoked", nil).Items; len(told) != 1 || told[0].Data["name"] != "MCP client" {
		t.Errorf("the audit says %+v", told)
	}
}

// A registration creates public clients with answers to https and to this machine; whatever
// else it says is ignored or refused, and harms nobody.
func TestRegister_WhatIsTakenAndRefused(t *testing.T) {
	l := newRegistry(t)
	refused := map[string]any{
		"nothing": m{}, "no addresses": m{"redirect_uris": []string{}}, "not an object": []string{}, "a number": m{"redirect_uris": 1}, "broken": `{"redirect_uris":`,
		"implicit": m{"redirect_uris": []string{"https://a.test/cb"}, "response_types": []string{"token"}},
		"many":     m{"redirect_uris": strings.Fields("https://a.test/1 https://a.test/2 https://a.test/3 https://a.test/4 https://a.test/5 https://a.test/6")},
	}
	for _, uri := range []string{
		"http://a.test/cb", "http://192.168.1.1/cb", "http://127.0.0.2/cb", "http://127.1/cb", "http://0x7f.1/cb", "http://2130706433/cb", "http://localhost.evil.test/cb",
		"http://[::ffff:127.0.0.1]/cb", "http://127.0.0.1@evil.test/cb", "https://user:pw@a.test/cb", "https://a.test/cb#x", "https://a.test/cb?x=1", "https://a.test/cb\n",
		"javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "cursor://cb", "app:/cb", "//a.test/cb", "/cb", "", "https://", "https:///cb", "https:a.test/cb",
		"https://a.test;script-src/cb", "https://a.test,evil.test/cb", "https://a.test'/cb", "https://*/cb", "https://a.test\\@evil.test/cb", "https://a b.test/cb",
		"https://a..test/cb", "https://-a.test/cb", "https://a.test:123456/cb", "HTTPS://a.test/cb", "https://A.test/cb", "https://" + strings.Repeat("a", 510) + "/",
	} {
		refused[uri] = m{"redirect_uris": []string{"https://a.test/cb", uri}}
	}
	for name, body := range refused {
		a := l.register(body)
		got := decodedAs[api.OAuthRefusal](t, a)
		if a.Status != 400 || got.Error != "invalid_redirect_uri" && got.Error != "invalid_client_metadata" {
			t.Errorf("%q: answered %d %s", name, a.Status, a.Body)
		}
	}
	if n := len(servertest.Must[list](l.Server, 200, "GET", "/api/v1/programs", nil).Items); n != 0 {
		t.Fatalf("%d are registered", n)
	}
	for _, uri := range []string{"https://a.test/cb", "https://a.test", "https://a.test:8443/a/b-c_d.e~f%20", "http://127.0.0.1/cb", "http://[::1]:80/cb", "http://localhost:3000/cb", "https://xn--bcher-kva.test/"} {
		got := l.registered("x", uri)
		if got.AuthMethod != "none" || got.RedirectURIs[0] != uri || !strings.HasPrefix(got.ClientID, "app_") {
			t.Errorf("%s: registered %+v", uri, got)
		}
		l.clock.step(7 * time.Second)
	}
	l.clock.step(time.Minute)
	resp := must(http.Post(l.URL+"/oauth/register", "application/json", strings.NewReader(`{"redirect_uris": ["https://a.test/cb"],
		"token_endpoint_auth_method": "client_secret_basic", "logo_uri": "http://169.254.169.254/", "jwks_uri": "http://127.0.0.1/", "software_statement": "eyJ",
		"client_id": "stint-cli", "client_secret": "mine", "scope": "everything", "of nobody's": {"use": [1]}}`)))
	defer resp.Body.Close()
	var got m
	if err := json.UnmarshalRead(resp.Body, &got); err != nil || resp.StatusCode != 201 {
		t.Fatal(resp.Status, err)
	}
	if got["token_endpoint_auth_method"] != "none" || got["client_secret"] != nil || got["client_id"] == "stint-cli" || got["scope"] != "user" || got["client_name"] != "A program without a name" {
		t.Errorf("what claims much gets %v", got)
	}
	for evil, want := range map[string]string{
		"<script>alert(1)</script>": "&lt;script&gt;alert(1)&lt;/script&gt;", "Stint\u202eenil dnammoc\u200b\x1b[2J": "Stintenil dnammoc",
		strings.Repeat("W", 1000): strings.Repeat("W", 64), "a\r\n\tb\u00a0c": "a bc",
	} {
		c := l.registered(evil, "https://a.test/cb")
		page := string(l.look("/oauth/authorize?" + l.wishOf(c, "https://a.test/cb").Encode()).Body)
		if !strings.Contains(page, "<dd>"+want+"</dd>") || strings.Contains(page, "<script>a") || !strings.Contains(page, "<dd>a.test</dd>") || !strings.Contains(page, "know the place where the answer goes") {
			t.Errorf("the consent to %q says %s", evil, page)
		}
		l.clock.step(10 * time.Second)
	}
}

func decodedAs[T any](tb testing.TB, a servertest.Response) T {
	tb.Helper()
	a.Status = 200
	return decoded[T](tb, a)
}

func (l *lobby) wishOf(c api.OAuthRegistration, redirect string) url.Values {
	return l.wish(func(f url.Values) { f.Set("client_id", c.ClientID); f.Set("redirect_uri", redirect) })
}

// A registered program's answers go where it registered, on this machine to any port; its
// codes, tokens and device codes work for no other program.
func TestRegister_ItsOwnAndNoOthers(t *testing.T) {
	l := newRegistry(t)
	here, web := l.registered("here", "http://localhost:1234/cb", "http://127.0.0.1/cb"), l.registered("web", "https://a.test/cb")
	for redirect, want := range map[string]int{
		"http://localhost:1234/cb": 200, "http://localhost:50000/cb": 200, "http://localhost/cb": 200, "http://127.0.0.1:50000/cb": 200, "http://[::1]:50000/cb": 400,
		"http://localhost:50000/cb/": 400, "http://localhost:50000/cb?x": 400, "http://localhost.evil.test:50000/cb": 400, "http://localhost:5x/cb": 400, "https://localhost:1234/cb": 400,
		"http://localhost@evil.test/cb": 400, "https://a.test/cb": 400, "http://localhost:/cb": 400,
	} {
		a := l.look("/oauth/authorize?" + l.wishOf(here, redirect).Encode())
		if a.Status != want || a.Header.Get("Location") != "" {
			t.Errorf("%s: answered %d to %q", redirect, a.Status, a.Header.Get("Location"))
		}
	}
	for _, redirect := range []string{"https://a.test:444/cb", "https://a.test/cb/", "https://b.a.test/cb", "http://a.test/cb"} {
		if a := l.look("/oauth/authorize?" + l.wishOf(web, redirect).Encode()); a.Status != 400 {
			t.Errorf("%s: answered %d", redirect, a.Status)
		}
	}
	page := l.look("/oauth/authorize?" + l.wishOf(web, "https://a.test/cb").Encode())
	if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' https://a.test;") {
		t.Errorf("the page's policy is %q", policy)
	}
	// Its code works for no other program, and only for the resource that was asked for.
	verifier := oauth2.GenerateVerifier()
	code := func(change func(url.Values)) string {
		form := l.wishOf(web, "https://a.test/cb")
		form.Set("code_challenge", oauth2.S256ChallengeFromVerifier(verifier))
		form.Set("decision", "allow")
		change(form)
		return must(url.Parse(l.send("/oauth/authorize", form).Header.Get("Location"))).Query().Get("code")
	}
	trade := func(code, client string, change func(url.Values)) (string, api.OAuthTokens) {
		form := url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "redirect_uri": {"https://a.test/cb"}, "code": {code}, "code_verifier": {verifier}}
		change(form)
		_, word, a := l.trade(form)
		return word, decoded[api.OAuthTokens](t, a)
	}
	as := func(url.Values) {}
	here2 := func(f url.Values) { f.Set("resource", l.URL) }
	for _, other := range []string{here.ClientID, account.CLI} {
		if word, _ := trade(code(as), other, as); word != "invalid_grant" {
			t.Errorf("as %s the code is answered %q", other, word)
		}
	}
	if word, _ := trade(code(here2), web.ClientID, func(f url.Values) { f.Set("resource", "https://other.test") }); word != "invalid_target" {
		t.Errorf("for another resource the code is answered %q", word)
	}
	word, tokens := trade(code(here2), web.ClientID, here2)
	if word != "" || !l.works(tokens.AccessToken) {
		t.Fatalf("its own code is answered %q", word)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {here.ClientID}, "refresh_token": {tokens.RefreshToken}}
	if _, word, _ := l.trade(form); word != "invalid_grant" {
		t.Errorf("another's refresh is answered %q", word)
	}
	// A code that people type can be sent to them: unknown programs get none.
	a := l.Do("POST", "/oauth/device", url.Values{"client_id": {web.ClientID}}.Encode(), servertest.With("Authorization", ""), servertest.With("Content-Type", formType))
	if a.Status != 400 || !strings.Contains(string(a.Body), "unauthorized_client") {
		t.Errorf("its device grant answered %d %s", a.Status, a.Body)
	}
	// A code that was issued before the program was revoked is worth nothing afterwards.
	late := code(as)
	servertest.Must[any](l.Server, 204, "DELETE", "/api/v1/programs/"+web.ClientID, nil)
	if word, _ := trade(late, web.ClientID, as); word != "invalid_client" {
		t.Errorf("after the revocation its code is answered %q", word)
	}
	if l.works(tokens.AccessToken) {
		t.Error("after the revocation its token works")
	}
}

// A registration that nobody has signed in ends after a day and makes room for new ones; one
// address may make ten a minute.
func TestRegister_Limits(t *testing.T) {
	l := newRegistry(t)
	body := m{"redirect_uris": []string{"https://a.test/cb"}}
	first := l.registered("first", "https://a.test/cb")
	for i := range 12 {
		if a := l.register(body); (a.Status == 201) != (i < 9) || a.Status != 201 && a.Status != 429 {
			t.Errorf("registration %d answered %d", i+2, a.Status)
		}
	}
	for range 5 {
		l.clock.step(time.Minute)
		for range 10 {
			l.register(body)
		}
	}
	l.clock.step(time.Minute)
	if a := l.register(body); a.Status != 429 || a.Header.Get("Retry-After") == "" {
		t.Errorf("the 61st in an hour answered %d", a.Status)
	}
	for range 2 {
		l.clock.step(time.Hour)
		for range 5 {
			for range 10 {
				l.register(body)
			}
			l.clock.step(time.Minute)
		}
	}
	all := servertest.Must[api.List[api.RegisteredProgram]](l.Server, 200, "GET", "/api/v1/programs?limit=200", nil).Items
	if len(all) != 100 {
		t.Errorf("%d are kept", len(all))
	}
	if a := l.look("/oauth/authorize?" + l.wishOf(first, "https://a.test/cb").Encode()); a.Status != 400 {
		t.Errorf("the oldest is still there: %d", a.Status)
	}
	newest := api.OAuthRegistration{ClientID: all[0].ID.String()}
	if a := l.look("/oauth/authorize?" + l.wishOf(newest, "https://a.test/cb").Encode()); a.Status != 200 {
		t.Errorf("the newest is gone: %d", a.Status)
	}
	l.clock.step(25 * time.Hour)
	l.cookie = l.fixture.cookie()
	if a := l.look("/oauth/authorize?" + l.wishOf(newest, "https://a.test/cb").Encode()); a.Status != 400 {
		t.Errorf("after a day it is still there: %d", a.Status)
	}
}

// Off is off: no endpoint, and none in the metadata.
func TestRegister_OnlyWhereTheOperatorSaysSo(t *testing.T) {
	off, on := newLobby(t), newRegistry(t)
	if a := off.register(m{"redirect_uris": []string{"https://a.test/cb"}}); a.Status != 404 {
		t.Errorf("off, it answered %d", a.Status)
	}
	const path = "/.well-known/oauth-authorization-server"
	if a := off.Do("GET", path, nil); strings.Contains(string(a.Body), "registration") {
		t.Errorf("off, the metadata says %s", a.Body)
	}
	meta := servertest.Must[api.AuthServer](on.Server, 200, "GET", path, nil)
	if meta.RegistrationEndpoint != on.URL+"/oauth/register" || meta.ClientMetadataDocument {
		t.Errorf("on, the metadata says %+v", meta)
	}
}
