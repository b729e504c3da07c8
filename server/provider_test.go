package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"stint/account"
	"stint/api"
	"stint/server/provider"
	"stint/server/servertest"
)

// crook is a provider that says whatever a test wants.
type crook struct {
	*httptest.Server
	key    *ecdsa.PrivateKey
	claims m
	sign   func(c *crook, claims []byte) string
	token  func(w http.ResponseWriter, r *http.Request, idToken string) // nil = as it should be
	asked  atomic.Int64
}

func newCrook(t *testing.T) *crook {
	t.Helper()
	c := &crook{key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	tell := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.MarshalWrite(w, v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		c.asked.Add(1)
		tell(w, m{
			"issuer": c.URL, "authorization_endpoint": c.URL + "/auth", "token_endpoint": c.URL + "/token", "jwks_uri": c.URL + "/keys",
			"id_token_signing_alg_values_supported":          []string{"ES256", "HS256", "none"},
			"authorization_response_iss_parameter_supported": true,
			"token_endpoint_auth_methods_supported":          []string{"client_secret_post"},
			"response_types_supported":                       []string{"code"},
			"subject_types_supported":                        []string{"public"},
			"code_challenge_methods_supported":               []string{"S256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		tell(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: c.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		sign := c.sign
		if sign == nil {
			sign = (*crook).signed
		}
		id := sign(c, must(json.Marshal(c.claims)))
		if c.token != nil {
			c.token(w, r, id)
			return
		}
		if r.PostFormValue("code") != "good" || r.PostFormValue("client_secret") != clientSecret || len(r.PostFormValue("code_verifier")) < 43 {
			w.WriteHeader(http.StatusBadRequest)
			tell(w, m{"error": "invalid_grant", "error_description": "leak of " + clientSecret})
			return
		}
		tell(w, m{"access_token": "x", "token_type": "Bearer", "id_token": id})
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

func (c *crook) signed(claims []byte) string { return compact(jose.ES256, c.key, claims) }

func compact(alg jose.SignatureAlgorithm, key any, claims []byte) string {
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k")))
	return must(must(signer.Sign(claims)).CompactSerialize())
}

// crooked is a lobby whose provider is a crook. Whoever gets in at all becomes a viewer, so
// that only the checks of the answer keep anybody out.
type crooked struct {
	*lobby
	*crook
}

func newCrooked(t *testing.T) *crooked {
	t.Helper()
	c := &crooked{lobby: &lobby{clock: &clock{}}, crook: newCrook(t)}
	c.fixture = newFixture(t, servertest.Options{
		Clock: c.clock.now, Accounts: func(cfg *account.Config) { cfg.ViewerDomains = []string{"example.test"} },
		Server: through(t, provider.Config{Issuer: c.crook.URL, ClientID: "stint", Secret: clientSecret, Name: "Acme", Inside: true}, c.clock.now),
	})
	return c
}

// leaves begins a sign-in: the browser's cookie and what the provider is asked.
func (c *crooked) leaves() (cookie string, asked url.Values) {
	c.tb.Helper()
	a := c.get("/signin/provider", "")
	to := must(url.Parse(a.Header.Get("Location")))
	cookie, _, _ = strings.Cut(a.Header.Get("Set-Cookie"), ";")
	if a.Status != 303 || !strings.HasPrefix(to.String(), c.crook.URL+"/auth?") || !strings.HasPrefix(cookie, "stint_oidc=") {
		c.tb.Fatalf("leaving answered %d to %s %s", a.Status, to, a.Body)
	}
	q := to.Query()
	c.claims = m{
		"iss": c.crook.URL, "aud": "stint", "sub": "s1", "nonce": q.Get("nonce"), "exp": c.clock.now().Add(time.Hour).Unix(), "iat": c.clock.now().Unix(),
		"name": "Eve\u202e\n ", "email": "eve@example.test", "email_verified": true,
	}
	return cookie, q
}

func (c *crooked) get(path, cookie string) servertest.Response {
	c.tb.Helper()
	return c.lobby.Do("GET", path, nil, servertest.With("Authorization", ""), servertest.With("Cookie", cookie), servertest.With("Accept", "text/html"),
		servertest.With("Sec-Fetch-Site", "cross-site"), noRedirect(c.fixture))
}

func (c *crooked) returns(cookie string, answer url.Values) servertest.Response {
	c.tb.Helper()
	return c.get("/signin/provider/callback?"+answer.Encode(), cookie)
}

// Whatever is wrong with an answer, it signs nobody in, on a page that says so, and nothing
// that the provider wrote is shown or logged.
func TestProvider_AnswersThatAreRefused(t *testing.T) {
	c := newCrooked(t)
	claim := func(name string, value any) func(*crooked, url.Values) {
		return func(c *crooked, _ url.Values) { c.claims[name] = value }
	}
	set := func(name string, values ...string) func(*crooked, url.Values) {
		return func(_ *crooked, q url.Values) { q[name] = values }
	}
	answers := func(token func(http.ResponseWriter, *http.Request, string)) func(*crooked, url.Values) {
		return func(c *crooked, _ url.Values) { c.crook.token = token }
	}
	signed := func(sign func(*crook, []byte) string) func(*crooked, url.Values) {
		return func(c *crooked, _ url.Values) { c.sign = sign }
	}
	for name, bad := range map[string]struct {
		change func(*crooked, url.Values)
		status int
	}{
		"another nonce":    {claim("nonce", "x"), 403},
		"no nonce":         {claim("nonce", nil), 403},
		"another audience": {claim("aud", "other"), 403},
		"two audiences":    {claim("aud", []string{"stint", "other"}), 403},
		"another party":    {claim("azp", "other"), 403},
		"expired":          {claim("exp", c.clock.now().Add(-time.Minute).Unix()), 403},
		"not yet good":     {claim("nbf", c.clock.now().Add(24*time.Hour).Unix()), 403},
		"another issuer":   {claim("iss", "https://other.test"), 403},
		"nobody":           {claim("sub", ""), 403},
		"a long subject":   {claim("sub", strings.Repeat("x", 256)), 403},
		"another's key": {signed(func(_ *crook, b []byte) string {
			return compact(jose.ES256, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), b)
		}), 403},
		"signed by the secret": {signed(func(_ *crook, b []byte) string {
			return compact(jose.HS256, []byte(strings.Repeat(clientSecret, 3)), b)
		}), 403},
		"not signed":          {signed(func(_ *crook, b []byte) string { return "eyJhbGciOiJub25lIn0." + string(b) + "." }), 403},
		"no ID token":         {signed(func(*crook, []byte) string { return "" }), 403},
		"a refused code":      {set("code", "stolen"), 403},
		"no code":             {set("code"), 403},
		"two codes":           {set("code", "good", "good"), 403},
		"an error":            {set("error", "access_denied"), 403},
		"an evil error":       {set("error", "<script>alert(1)</script>"), 403},
		"from another issuer": {set("iss", "https://other.test"), 403},
		"from no issuer":      {set("iss"), 403},
		"another state":       {set("state", "x"), 401},
		"no state":            {set("state"), 401},
		"two states":          {func(_ *crooked, q url.Values) { q.Add("state", "x") }, 401},
		"late":                {func(c *crooked, _ url.Values) { c.clock.step(11 * time.Minute) }, 401},
		"a failing server":    {answers(func(w http.ResponseWriter, _ *http.Request, _ string) { http.Error(w, clientSecret, 500) }), 502},
		"a redirect": {answers(func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}), 403},
		"no JSON": {answers(func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = w.Write([]byte(clientSecret)) }), 502},
	} {
		c.clock.step(2 * time.Minute)
		cookie, asked := c.leaves()
		answer := url.Values{"code": {"good"}, "state": {asked.Get("state")}, "iss": {c.crook.URL}}
		bad.change(c, answer)
		a := c.returns(cookie, answer)
		c.sign, c.crook.token = nil, nil
		if a.Status != bad.status || strings.Contains(a.Header.Get("Set-Cookie"), "stint_session") || a.Header.Get("Location") != "" {
			t.Errorf("%s: answered %d to %q with %q: %s", name, a.Status, a.Header.Get("Location"), a.Header.Get("Set-Cookie"), a.Body)
		}
		for _, leak := range []string{clientSecret, "<script>alert", "good"} {
			if strings.Contains(string(a.Body), leak) || leak == clientSecret && strings.Contains(c.Log.String(), leak) {
				t.Errorf("%s: %q gets out: %s", name, leak, a.Body)
			}
		}
	}
	if n := len(servertest.Must[list](c.lobby.Server, 200, "GET", "members", nil).Items); n != 1 {
		t.Errorf("there are %d members", n)
	}
	// And a good answer, once, in the browser that asked for it.
	cookie, asked := c.leaves()
	answer := url.Values{"code": {"good"}, "state": {asked.Get("state")}, "iss": {c.crook.URL}}
	other, _ := c.leaves()
	c.claims["nonce"] = asked.Get("nonce")
	for name, cookie := range map[string]string{"no cookie": "", "another browser's": other, "a made-up one": "stint_oidc=x"} {
		if a := c.returns(cookie, answer); a.Status != 401 || !strings.Contains(string(a.Body), "doesn&#39;t belong") {
			t.Errorf("with %s: %d %s", name, a.Status, a.Body)
		}
	}
	a := c.returns(cookie, answer)
	if set := strings.Join(a.Header.Values("Set-Cookie"), "\n"); a.Status != 303 || a.Header.Get("Location") != "/" || !strings.Contains(set, "stint_session=stk_") || !strings.Contains(set, "stint_oidc=; Path=/; Max-Age=0") {
		t.Fatalf("a good answer: %d %q %s", a.Status, set, a.Body)
	}
	if a := c.returns(cookie, answer); a.Status != 401 || !strings.Contains(string(a.Body), "used already") {
		t.Errorf("the same answer again: %d %s", a.Status, a.Body)
	}
	if asked.Get("code_challenge_method") != "S256" || asked.Get("redirect_uri") != c.lobby.URL+"/signin/provider/callback" || asked.Get("response_type") != "code" ||
		!strings.Contains(asked.Get("scope"), "openid") {
		t.Errorf("the provider is asked %v", asked)
	}
	if c.asked.Load() > 3 {
		t.Errorf("the metadata was asked for %d times", c.asked.Load())
	}
}

// A name or an address proves nothing: only the issuer and the subject do.
func TestProvider_NamesAndAddressesDecideNothing(t *testing.T) {
	c := newCrooked(t)
	servertest.Must[api.Account](c.lobby.Server, 200, "POST", "/api/v1/account/login", m{"login": "owner@example.test", "name": "Owner", "password": password})
	arrives := func(sub string, more m) servertest.Response {
		cookie, asked := c.leaves()
		c.claims["sub"], c.claims["name"], c.claims["email"], c.claims["preferred_username"] = sub, "Owner", "owner@example.test", "owner"
		for k, v := range more {
			c.claims[k] = v
		}
		return c.returns(cookie, url.Values{"code": {"good"}, "state": {asked.Get("state")}, "iss": {c.crook.URL}})
	}
	for name, verified := range map[string]any{"no": false, "as text": "true", "as number": 1, "not said": nil} {
		if a := arrives("x", m{"email_verified": verified}); a.Status != 403 {
			t.Errorf("verified %s: %d %s", name, a.Status, a.Body)
		}
	}
	for _, email := range []string{"owner@example.test.evil.test", "owner@evil.test@example.test", "example.test", "owner@sub.example.test"} {
		if a := arrives("x", m{"email": email}); a.Status != 403 {
			t.Errorf("%s: %d", email, a.Status)
		}
	}
	a := arrives("x", nil)
	cookie := ""
	for _, set := range a.Header.Values("Set-Cookie") {
		if name, _, _ := strings.Cut(set, ";"); strings.HasPrefix(name, "stint_session=") {
			cookie = name
		}
	}
	if a.Status != 303 || cookie == "" {
		t.Fatalf("a verified address of the domain: %d %s", a.Status, a.Body)
	}
	owner := servertest.Must[api.Account](c.lobby.Server, 200, "GET", "/api/v1/account", nil)
	me := servertest.Must[api.Account](c.lobby.Server, 200, "GET", "/api/v1/account", nil, c.browser(cookie)...)
	if me.UserID == owner.UserID || len(owner.Identities) != 0 {
		t.Errorf("the owner is %+v, who came is %+v", owner, me)
	}
	if a := c.lobby.Do("POST", "agents/tidy/sessions", m{}, c.browser(cookie)...); a.Status != 403 {
		t.Errorf("a viewer by domain starts a run: %d", a.Status)
	}
	members := servertest.Must[api.List[api.WorkspaceMember]](c.lobby.Server, 200, "GET", "members", nil).Items
	if len(members) != 2 || members[0].Role != api.Viewer || members[0].UserID != me.UserID {
		t.Errorf("the members are %+v", members)
	}
	// Another person with the same name and address is another user.
	if a := arrives("y", nil); a.Status != 303 {
		t.Errorf("another subject: %d", a.Status)
	}
	if n := len(servertest.Must[list](c.lobby.Server, 200, "GET", "members", nil).Items); n != 3 {
		t.Errorf("%d members, not 3", n)
	}
	if a := arrives("x", m{"email_verified": false, "email": "gone@other.test"}); a.Status != 303 {
		t.Errorf("the same subject with another address: %d", a.Status)
	}
}

// A provider that is down, or answers nothing useful, keeps nobody from starting or from
// signing in otherwise, and isn't asked over and over.
func TestProvider_Unreachable(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	other := newCrook(t)
	var reached atomic.Int64
	crooks := map[string]string{"nobody": gone.URL, "another's metadata": other.URL + "/"}
	for name, answer := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
		},
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) },
		"file: URLs": func(w http.ResponseWriter, r *http.Request) {
			_ = json.MarshalWrite(w, m{"issuer": "http://" + r.Host, "authorization_endpoint": "javascript:alert(1)", "token_endpoint": "file:///etc/passwd", "jwks_uri": "http://x/"})
		},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reached.Add(1)
			answer(w, r)
		}))
		t.Cleanup(s.Close)
		crooks[name] = s.URL
	}
	for name, issuer := range crooks {
		reached.Store(0)
		d := newFixture(t, servertest.Options{Server: through(t, provider.Config{Issuer: issuer, ClientID: "stint", Name: "Acme", Inside: true}, time.Now)})
		d.named()
		for range 3 {
			a := d.Do("GET", "/signin/provider", nil, servertest.With("Authorization", ""), servertest.With("Accept", "text/html"), noRedirect(d))
			if a.Status != 502 || !strings.Contains(string(a.Body), "Acme can&#39;t be reached now") || a.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s: answered %d %s", name, a.Status, a.Body)
			}
		}
		if reached.Load() > 1 {
			t.Errorf("%s: it was asked %d times", name, reached.Load())
		}
		cookieIn(t, d.tries("ann", password))
	}
	if other.asked.Load() > 1 {
		t.Errorf("a redirect was followed")
	}
}

// Inside addresses are reached only where the operator says so: not one connection is made, by
// whatever name.
func TestProvider_InnerAddressesAreRefused(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	var reached atomic.Int64
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	t.Setenv("HTTPS_PROXY", "http://"+ln.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "10.0.0.1", "169.254.169.254", "[fd00::1]"} {
		p, err := provider.New(provider.Config{Issuer: "https://" + host + ":" + port, ClientID: "stint"}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if to, err := p.Leave(t.Context(), "secret", "http://127.0.0.1/"); err == nil {
			t.Errorf("%s leads to %s", host, to)
		}
	}
	if reached.Load() != 0 {
		t.Errorf("%d connections were made", reached.Load())
	}
	for _, issuer := range []string{"http://login.example.com", "login.example.com", "https://user:secret@login.example.com", "https://user:sec/ret@login.example.com", "user:secret@login.example.com", "https://login.example.com?x=1", "ftp://login.example.com", ""} {
		if _, err := provider.New(provider.Config{Issuer: issuer, ClientID: "stint"}, time.Now); err == nil || strings.Contains(err.Error(), "ret@") {
			t.Errorf("%q as an issuer is answered with %v", issuer, err)
		}
	}
}

// Without a provider there is no way to one.
func TestProvider_None(t *testing.T) {
	l := newLobby(t)
	for _, path := range []string{"/signin/provider", "/signin/provider/callback?state=x", "/signin/provider/link"} {
		if a := l.look(path); a.Status != 404 {
			t.Errorf("%s answered %d", path, a.Status)
		}
	}
	for _, path := range []string{"/signin", "/invitation", "/setup"} {
		if a := l.look(path, servertest.With("Cookie", "")); strings.Contains(string(a.Body), "provider") {
			t.Errorf("%s speaks of a provider: %s", path, a.Body)
		}
	}
}
