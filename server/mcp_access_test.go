package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

// rpc posts one message of the protocol as a client after the handshake does.
func rpc(s *servertest.Server, body string, changes ...servertest.Change) servertest.Response {
	accepts := []servertest.Change{servertest.With("Accept", "application/json, text/event-stream"), servertest.With("Mcp-Protocol-Version", handshake)}
	return s.Do("POST", "/mcp", body, append(accepts, changes...)...)
}

const listAgents = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_agents","arguments":{}}}`

// A page of another origin, a name that was bound to this address, and whoever has no token get
// nowhere, on this machine too.
func TestMCP_TheDoor(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	a := rpc(d.Server, listAgents)
	if want := `"structuredContent":` + string(d.Do("GET", "agents", nil).Body); a.Status != 200 || !strings.Contains(string(a.Body), want) {
		t.Errorf("a right call answers %d %s", a.Status, a.Body)
	}
	none := servertest.With("Authorization", "")
	for name, c := range map[string]struct {
		status int
		change servertest.Change
	}{
		"a foreign Host":         {421, func(r *http.Request) { r.Host = "evil.example" }},
		"a name bound to us":     {421, func(r *http.Request) { r.Host = strings.Replace(d.Addr(), "127.0.0.1", "rebound.example", 1) }},
		"a foreign Origin":       {403, servertest.With("Origin", "https://evil.example")},
		"a null Origin":          {403, servertest.With("Origin", "null")},
		"another site's page":    {403, servertest.With("Sec-Fetch-Site", "cross-site")},
		"no token":               {401, none},
		"a wrong token":          {401, servertest.With("Authorization", "Bearer stint_key_nothing")},
		"a browser's cookie":     {401, func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Cookie", "stint_session="+d.Token) }},
		"a form":                 {415, servertest.With("Content-Type", "application/x-www-form-urlencoded")},
		"text":                   {415, servertest.With("Content-Type", "text/plain")},
		"a compressed body":      {415, servertest.With("Content-Encoding", "gzip")},
		"an unknown version":     {400, servertest.With("Mcp-Protocol-Version", "1999-01-01")},
		"a client of one format": {400, servertest.With("Accept", "text/html")},
	} {
		a := rpc(d.Server, listAgents, c.change)
		if a.Status != c.status {
			t.Errorf("%s: answered %d %s", name, a.Status, a.Body)
		}
		if told := a.Header.Get("WWW-Authenticate"); a.Status == 401 && !strings.Contains(told, `resource_metadata="`+d.URL+`/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: the challenge is %s", name, told)
		}
	}
	for _, method := range []string{"GET", "DELETE", "PUT"} {
		if a := d.Do(method, "/mcp", nil); a.Status != 405 || !strings.Contains(a.Header.Get("Allow"), "POST") {
			t.Errorf("%s answers %d, allows %q", method, a.Status, a.Header.Get("Allow"))
		}
	}
	if a := rpc(d.Server, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`); a.Status != 413 {
		t.Errorf("a body of more than 1 MiB: %d", a.Status)
	}
	if a := rpc(d.Server, `{"x`); a.Status != 400 {
		t.Errorf("a broken body: %d %s", a.Status, a.Body)
	}
	if a := d.Do("POST", "/mcp?workspace=default&colour=red", listAgents); a.Status != 422 {
		t.Errorf("an unknown parameter: %d", a.Status)
	}
}

// What a program may do is what its token may do with the API.
func TestMCP_Rights(t *testing.T) {
	c := newCastle(t)
	ask := func(who, tool string, args m) string {
		t.Helper()
		r, err := assistantOf(t, c.who[who], stateless).CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		if text := r.Content[0].(*sdk.TextContent).Text; r.IsError {
			code, _, _ := strings.Cut(text, ":")
			return code
		}
		return "+"
	}
	theirs := servertest.Must[api.Session](c.who["foreigner"], 201, "POST", "/api/v1/workspaces/elsewhere/agents/secret-agent/sessions", m{}).ID.String()
	run := servertest.Must[api.Whoami](c.who["run"], 200, "GET", "/api/v1/whoami", nil).SessionID.String()
	other := c.addSession().ID.String()
	for _, row := range []struct {
		tool string
		args m
		want string // of each of those below; the sessions are the owner's own
	}{
		{"list_agents", nil, "+ + + + + + forbidden forbidden user_token_required"},
		{"run_agent", m{"agent": "tidy"}, "forbidden + + + not_found forbidden + forbidden +"},
		{"get_session", m{"session": run}, "not_found not_found not_found + not_found + forbidden forbidden +"},
		{"get_session", m{"session": other}, "not_found not_found not_found + not_found + forbidden forbidden not_found"},
		{"read_output", m{"session": theirs}, "not_found not_found not_found not_found + not_found forbidden forbidden not_found"},
		{"wait_session", m{"session": run, "wait": 0}, "not_found not_found not_found + not_found + forbidden forbidden +"},
		{"cancel_session", m{"session": other}, "not_found not_found not_found + not_found forbidden forbidden + user_token_required"},
		{"say", m{"session": other, "text": "x"}, "not_found not_found not_found conflict not_found user_token_required user_token_required user_token_required user_token_required"},
		{"list_workers", nil, "+ + + + + user_token_required user_token_required user_token_required user_token_required"},
		{"status", nil, "+ + + + + user_token_required user_token_required user_token_required user_token_required"},
	} {
		for i, who := range strings.Fields("viewer member admin owner foreigner read trigger cancel run") {
			if row.tool == "cancel_session" {
				row.args = m{"session": c.addSession().ID.String()}
			}
			if got, want := ask(who, row.tool, row.args), strings.Fields(row.want)[i]; got != want {
				t.Errorf("%s %v by %s: %s, not %s", row.tool, row.args, who, got, want)
			}
		}
	}
	if sees := called[list](assistantOf(t, c.who["foreigner"], stateless), "list_agents", nil); len(sees.Items) != 1 || sees.Items[0]["slug"] != "secret-agent" {
		t.Errorf("somebody of another workspace sees %v", sees.Items)
	}
	// The address may name the workspace; one that isn't theirs is not found.
	if a := rpcIn(c.who["foreigner"], "default"); a.Status != 404 {
		t.Errorf("another workspace answers %d", a.Status)
	}
	if a := rpcIn(c.who["foreigner"], "elsewhere"); a.Status != 200 || !strings.Contains(string(a.Body), "secret-agent") {
		t.Errorf("their own workspace answers %d %s", a.Status, a.Body)
	}
}

func rpcIn(s *servertest.Server, workspace string) servertest.Response {
	return s.Do("POST", "/mcp?workspace="+workspace, listAgents, servertest.With("Accept", "application/json, text/event-stream"), servertest.With("Mcp-Protocol-Version", handshake))
}

// signsIn is a client of the protocol that finds out by itself how to sign a person in. Of the
// scopes that it is told of it asks for those that wants picks.
func (l *lobby) signsIn(wants func(told []string) []string) auth.OAuthHandler {
	l.tb.Helper()
	const there = "http://localhost:9999/oauth/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		Client: l.Client, ScopeFilter: wants,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "MCP client", RedirectURIs: []string{there}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			form := shown(l.look(strings.TrimPrefix(args.URL, l.URL)).Body)
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
		l.tb.Fatal(err)
	}
	return handler
}

// A program that knows only the address signs its person in, and gets a token that is for the
// tools alone.
func TestMCP_AProgramSignsItsPersonIn(t *testing.T) {
	l := newRegistry(t)
	handler := l.signsIn(nil)
	a := assist(t, &sdk.StreamableClientTransport{Endpoint: l.URL + "/mcp", DisableStandaloneSSE: true, OAuthHandler: handler}, stateless)
	if got := called[list](a, "list_agents", nil); got.Items == nil {
		t.Errorf("it reads %+v", got)
	}
	token := must(must(handler.TokenSource(t.Context())).Token()).AccessToken
	for path, want := range map[string]int{"agents": 401, "/api/v1/whoami": 401, "/": 401} {
		if a := l.As(token).Do("GET", path, nil); a.Status != want {
			t.Errorf("%s is answered %d", path, a.Status)
		}
	}
	if a := rpc(l.As(token), listAgents); a.Status != 200 {
		t.Errorf("the tools are answered %d", a.Status)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}, "client_id": {"stint-cli"}, "resource": {l.URL + "/mcp", l.URL}}
	if _, word, _ := l.trade(form); word != "invalid_target" {
		t.Errorf("two resources are answered %q", word)
	}
}

// A program that was allowed little asks its person for more when it needs it.
func TestMCP_AProgramAsksForMore(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		t.Run(version, func(t *testing.T) {
			l := newRegistry(t)
			var told [][]string
			handler := l.signsIn(func(scopes []string) []string {
				told = append(told, scopes)
				if len(told) == 1 {
					return []string{"read"}
				}
				return scopes
			})
			a := assist(t, &sdk.StreamableClientTransport{Endpoint: l.URL + "/mcp", DisableStandaloneSSE: true, OAuthHandler: handler}, version)
			called[list](a, "list_agents", nil)
			if got := called[api.Session](a, "run_agent", m{"agent": "tidy"}); got.Status != api.Queued {
				t.Errorf("a run is answered %+v", got)
			}
			called[list](a, "list_agents", nil)
			if got := fmt.Sprint(told); got != "[[read run tasks] [run]]" {
				t.Errorf("it was told of the scopes %s", got)
			}
		})
	}
}

// A program that asks for less gets less, after a refresh too, and its person is told.
func TestMCP_Scopes(t *testing.T) {
	l := newRegistry(t)
	c := l.registered("Reader", "https://a.test/cb")
	wish := l.wishOf(c, "https://a.test/cb")
	verifier := oauth2.GenerateVerifier()
	wish.Set("code_challenge", oauth2.S256ChallengeFromVerifier(verifier))
	wish.Set("resource", l.URL+"/mcp")
	wish.Set("scope", "run read")
	if page := l.look("/oauth/authorize?" + wish.Encode()); !strings.Contains(string(page.Body), "the tools at /mcp: read run") {
		t.Errorf("the person is told %s", page.Body)
	}
	wish.Set("scope", "read")
	wish.Set("decision", "allow")
	code := must(url.Parse(l.send("/oauth/authorize", wish).Header.Get("Location"))).Query().Get("code")
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {c.ClientID}, "redirect_uri": {"https://a.test/cb"}, "code": {code}, "code_verifier": {verifier}}
	_, _, a := l.trade(form)
	token := decoded[api.OAuthTokens](t, a)
	form = url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ClientID}, "refresh_token": {token.RefreshToken}, "scope": {"read"}}
	_, _, a = l.trade(form)
	next := decoded[api.OAuthTokens](t, a)
	for _, token := range []api.OAuthTokens{token, next} {
		if token.Scope != "read" {
			t.Errorf("the scope is %q", token.Scope)
		}
		reader := l.As(token.AccessToken)
		called[list](assistantOf(t, reader, stateless), "list_agents", nil)
		for tool, needs := range map[string]string{"run_agent": "run", "dispatch_task": "tasks run"} {
			a := rpc(reader, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`)
			want := `Bearer realm="stint", resource_metadata="` + l.URL + `/.well-known/oauth-protected-resource/mcp", scope="` + needs + `", error="insufficient_scope"`
			if told := a.Header.Get("WWW-Authenticate"); a.Status != 403 || told != want || !strings.Contains(string(a.Body), "scope “"+strings.Fields(needs)[0]+"”") {
				t.Errorf("%s is answered %d %s %s", tool, a.Status, told, a.Body)
			}
		}
		// What isn't one message is not looked into before it comes to the tool, which refuses too.
		a := rpc(reader, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_agent","arguments":{"agent":"tidy"}}}]`)
		if strings.Contains(string(a.Body), `"queued"`) {
			t.Errorf("a batch starts %s", a.Body)
		}
	}
	for scope, resource := range map[string]string{"read": l.URL, "everything": l.URL + "/mcp", "read everything": l.URL + "/mcp"} {
		wish.Set("scope", scope)
		wish.Set("resource", resource)
		if to := must(url.Parse(l.send("/oauth/authorize", wish).Header.Get("Location"))); to.Query().Get("error") != "invalid_scope" {
			t.Errorf("%s for %s is answered %s", scope, resource, to)
		}
	}
}

// Behind a proxy's path the metadata lies where RFC 9728 puts it.
func TestMCP_BelowAPath(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Public = must(server.ParsePublic("https://example.com/stint", nil, nil)) }})
	outside := func(r *http.Request) { r.Host = "example.com" }
	meta := servertest.Must[api.ProtectedResource](d.Server, 200, "GET", "/.well-known/oauth-protected-resource/stint/mcp", nil, outside)
	if meta.Resource != "https://example.com/stint/mcp" {
		t.Errorf("the metadata says %+v", meta)
	}
	a := d.Do("POST", "/stint/mcp", listAgents, outside, servertest.With("Accept", "*/*"), servertest.With("Mcp-Protocol-Version", handshake))
	if a.Status != 200 || !strings.Contains(string(a.Body), `"slug":"tidy"`) {
		t.Errorf("the tools answer %d %s", a.Status, a.Body)
	}
	a = d.Do("POST", "/stint/mcp", listAgents, outside, servertest.With("Authorization", ""))
	if told := a.Header.Get("WWW-Authenticate"); !strings.Contains(told, `"https://example.com/.well-known/oauth-protected-resource/stint/mcp"`) {
		t.Errorf("the challenge is %s", told)
	}
}
