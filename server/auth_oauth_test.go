package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

// clock is a wall clock that a test sets.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

const loopback = "http://127.0.0.1:49152/callback"

// lobby is a fixture with a browser in which the owner is signed in.
type lobby struct {
	*fixture
	clock  *clock
	cookie string
}

func newLobby(t *testing.T) *lobby {
	t.Helper()
	l := &lobby{clock: &clock{}}
	l.fixture = newFixture(t, servertest.Options{Clock: l.clock.now, Server: func(o *server.Options) { o.Web = page() }})
	l.cookie = l.fixture.cookie()
	return l
}

// program is the client of golang.org/x/oauth2, configured from the metadata.
func (l *lobby) program() *oauth2.Config {
	l.tb.Helper()
	meta := servertest.Must[api.AuthServer](l.As(""), 200, "GET", "/.well-known/oauth-authorization-server", nil)
	return &oauth2.Config{ClientID: account.CLI, RedirectURL: loopback, Endpoint: oauth2.Endpoint{
		AuthURL: meta.AuthorizationEndpoint, TokenURL: meta.TokenEndpoint, DeviceAuthURL: meta.DeviceEndpoint, AuthStyle: oauth2.AuthStyleInParams,
	}}
}

func (l *lobby) ctx() context.Context {
	return context.WithValue(l.tb.Context(), oauth2.HTTPClient, l.Client)
}

// look opens a page as the browser, html or not.
func (l *lobby) look(path string, more ...servertest.Change) servertest.Response {
	l.tb.Helper()
	return l.Do("GET", path, nil, append(append(l.browser(l.cookie), servertest.With("Accept", "text/html"), noRedirect(l.fixture)), more...)...)
}

// send posts a form as the browser.
func (l *lobby) send(path string, form url.Values, more ...servertest.Change) servertest.Response {
	l.tb.Helper()
	changes := append(l.browser(l.cookie), servertest.With("Content-Type", formType), servertest.With("Accept", "text/html"), noRedirect(l.fixture))
	return l.Do("POST", path, form.Encode(), append(changes, more...)...)
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// shown are the hidden fields of a page's form.
func shown(page []byte) url.Values {
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(string(page), -1) {
		form.Add(m[1], strings.NewReplacer("&#43;", "+", "&amp;", "&").Replace(m[2]))
	}
	return form
}

// consents goes from the program's URL through the page to the answer.
func (l *lobby) consents(address string) url.Values {
	l.tb.Helper()
	page := l.look(strings.TrimPrefix(address, l.URL))
	if page.Status != 200 {
		l.tb.Fatalf("the consent page answered %d %s", page.Status, page.Body)
	}
	form := shown(page.Body)
	form.Set("decision", "allow")
	a := l.send("/oauth/authorize", form)
	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil || a.Status != http.StatusSeeOther || !strings.HasPrefix(to.String(), loopback+"?") {
		l.tb.Fatalf("the consent answered %d to %q %s", a.Status, to, a.Body)
	}
	return to.Query()
}

// signIn signs a program in by a code and returns its tokens.
func (l *lobby) signIn() *oauth2.Token {
	l.tb.Helper()
	p, verifier := l.program(), oauth2.GenerateVerifier()
	got := l.consents(p.AuthCodeURL("st", oauth2.S256ChallengeOption(verifier)))
	token, err := p.Exchange(l.ctx(), got.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		l.tb.Fatal(err)
	}
	return token
}

// trade posts to the token endpoint and returns the status and OAuth's word.
func (l *lobby) trade(form url.Values, more ...servertest.Change) (int, string, servertest.Response) {
	l.tb.Helper()
	changes := []servertest.Change{servertest.With("Authorization", ""), servertest.With("Content-Type", formType)}
	a := l.Do("POST", "/oauth/token", form.Encode(), append(changes, more...)...)
	word := regexp.MustCompile(`"error":"([a-z_]+)"`).FindStringSubmatch(string(a.Body))
	if word == nil {
		return a.Status, "", a
	}
	return a.Status, word[1], a
}

func (l *lobby) refresh(token string) (int, string, api.OAuthTokens) {
	l.tb.Helper()
	status, word, a := l.trade(url.Values{"grant_type": {"refresh_token"}, "client_id": {account.CLI}, "refresh_token": {token}})
	return status, word, decoded[api.OAuthTokens](l.tb, a)
}

// works reports whether a token is good.
func (l *lobby) works(token string) bool {
	l.tb.Helper()
	return l.As(token).Do("GET", "/api/v1/whoami", nil).Status == 200
}

// A program signs a person in as it would anywhere: it reads the metadata, sends the browser
// there with a challenge, exchanges the code, calls, refreshes, and ends it.
func TestOAuth_AProgramSignsIn(t *testing.T) {
	l := newLobby(t)
	refused := l.As("stint_at_nonsense").Do("GET", "agents", nil)
	metadata := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(refused.Header.Get("WWW-Authenticate"))
	if refused.Status != 401 || metadata == nil {
		t.Fatalf("a stranger gets %d %q", refused.Status, refused.Header.Get("WWW-Authenticate"))
	}
	resource := servertest.Must[api.ProtectedResource](l.As(""), 200, "GET", strings.TrimPrefix(metadata[1], l.URL), nil)
	if resource.Resource != l.URL || len(resource.AuthServers) != 1 || resource.AuthServers[0] != l.URL {
		t.Fatalf("the metadata says %+v", resource)
	}
	p, verifier := l.program(), oauth2.GenerateVerifier()
	here := oauth2.SetAuthURLParam("resource", resource.Resource)
	address := p.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier), here)
	page := l.look(strings.TrimPrefix(address, l.URL))
	for _, words := range []string{"Stint on the command line", "127.0.0.1:49152", "owner"} {
		if !strings.Contains(string(page.Body), words) {
			t.Errorf("the page doesn't say %q: %s", words, page.Body)
		}
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' http://127.0.0.1:49152;") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the page's policy is %q", policy)
	}
	got := l.consents(address)
	if got.Get("state") != "the state" || got.Get("iss") != l.URL {
		t.Errorf("the answer is %v", got)
	}
	token, err := p.Exchange(l.ctx(), got.Get("code"), oauth2.VerifierOption(verifier), here)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(token.Expiry); token.TokenType != "Bearer" || left < 14*time.Minute || left > 15*time.Minute {
		t.Errorf("the token is a %s for %v", token.TokenType, left)
	}
	me := l.As(token.AccessToken)
	if who := servertest.Must[api.Whoami](me, 200, "GET", "/api/v1/whoami", nil); who.Name != "owner" || who.KeyID != 0 {
		t.Errorf("the program acts as %+v", who)
	}
	// It is a user's own sign-in: it may run workers, which an API key may not.
	servertest.Must[api.Registered](me, 201, "POST", "agents/tidy/workers", m{"name": "w7", "instanceId": instance, "types": []string{"command"}})
	list := servertest.Must[api.List[api.SignIn]](l.Server, 200, "GET", "/api/v1/account/sign-ins", nil)
	if s := list.Items[0]; s.Kind != "program" || s.Label != "Stint on the command line" || s.Address != "127.0.0.1" || s.LastUsedAt.IsZero() {
		t.Errorf("the newest sign-in is %+v", s)
	}
	token.Expiry = time.Now()
	next, err := p.TokenSource(l.ctx(), token).Token()
	if err != nil || next.AccessToken == token.AccessToken || next.RefreshToken == token.RefreshToken {
		t.Fatalf("refreshing answered %v, %v", next, err)
	}
	if !l.works(next.AccessToken) {
		t.Error("the new token doesn't work")
	}
	// Nothing that is stored or logged can be used to sign in.
	file, err := os.ReadFile(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(l.Path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	stored := string(file) + string(wal) + l.Log.String()
	for _, secret := range []string{got.Get("code"), token.AccessToken, token.RefreshToken, next.AccessToken, next.RefreshToken, strings.TrimPrefix(l.cookie, "stint_session=")} {
		if strings.Contains(stored, secret) {
			t.Errorf("%.12s… is kept as it is", secret)
		}
	}
	form := url.Values{"client_id": {account.CLI}, "token": {next.RefreshToken}}
	a := l.Do("POST", "/oauth/revoke", form.Encode(), servertest.With("Authorization", ""), servertest.With("Content-Type", formType))
	if a.Status != 200 || l.works(next.AccessToken) {
		t.Errorf("revoking answered %d, and the token works: %t", a.Status, l.works(next.AccessToken))
	}
	if status, word, _ := l.refresh(next.RefreshToken); status != 400 || word != "invalid_grant" {
		t.Errorf("refreshing what was revoked answered %d %s", status, word)
	}
}

func (l *lobby) wish(change func(url.Values)) url.Values {
	form := url.Values{
		"response_type": {"code"}, "client_id": {account.CLI}, "redirect_uri": {loopback}, "state": {"st"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(strings.Repeat("v", 43))}, "code_challenge_method": {"S256"},
	}
	change(form)
	return form
}

// Whatever is wrong with a request, it yields no code: not on the page, and not when the form
// is sent without the page having been shown.
func TestOAuth_WishesThatAreRefused(t *testing.T) {
	l := newLobby(t)
	set := func(name string, values ...string) func(url.Values) {
		return func(f url.Values) { f[name] = values }
	}
	cases := map[string]struct {
		change func(url.Values)
		told   string // OAuth's word to the program; "" = only the person learns of it
	}{
		"another client":                 {set("client_id", "evil"), ""},
		"no client":                      {set("client_id"), ""},
		"two clients":                    {set("client_id", account.CLI, "evil"), ""},
		"no redirect":                    {set("redirect_uri"), ""},
		"two redirects":                  {set("redirect_uri", loopback, "https://evil.test/callback"), ""},
		"another path":                   {set("redirect_uri", "http://127.0.0.1:49152/callback/../x"), ""},
		"a query":                        {set("redirect_uri", loopback+"?x=1"), ""},
		"a fragment":                     {set("redirect_uri", loopback+"#x"), ""},
		"a longer host":                  {set("redirect_uri", "http://127.0.0.1.evil.example:49152/callback"), ""},
		"a user before the host":         {set("redirect_uri", "http://127.0.0.1:49152@evil.test/callback"), ""},
		"https elsewhere":                {set("redirect_uri", "https://evil.test/callback"), ""},
		"https here":                     {set("redirect_uri", "https://127.0.0.1:49152/callback"), ""},
		"an odd spelling":                {set("redirect_uri", "http://0x7f.1:49152/callback"), ""},
		"a name":                         {set("redirect_uri", "http://localhost:49152/callback"), ""},
		"a script":                       {set("redirect_uri", "javascript:alert(1)"), ""},
		"a port that is none":            {set("redirect_uri", "http://127.0.0.1:4915x/callback"), ""},
		"a backslash":                    {set("redirect_uri", `http://127.0.0.1:49152\@evil.test/callback`), ""},
		"implicit":                       {set("response_type", "token"), "unsupported_response_type"},
		"no response type":               {set("response_type"), "unsupported_response_type"},
		"a fragment's answer":            {set("response_mode", "fragment"), "invalid_request"},
		"no challenge":                   {set("code_challenge"), "invalid_request"},
		"a short challenge":              {set("code_challenge", "abc"), "invalid_request"},
		"a challenge of other letters":   {set("code_challenge", strings.Repeat("+", 43)), "invalid_request"},
		"plain":                          {set("code_challenge_method", "plain"), "invalid_request"},
		"no method":                      {set("code_challenge_method"), "invalid_request"},
		"two challenges":                 {set("code_challenge", strings.Repeat("A", 43), strings.Repeat("B", 43)), "invalid_request"},
		"a request object":               {set("request", "eyJ"), "request_not_supported"},
		"a request by address":           {set("request_uri", "http://169.254.169.254/"), "request_not_supported"},
		"another scope":                  {set("scope", "admin"), "invalid_scope"},
		"another resource":               {set("resource", "https://evil.test"), "invalid_target"},
		"another port's":                 {set("resource", "http://127.0.0.1:1"), "invalid_target"},
		"a resource below":               {set("resource", l.URL+"/elsewhere"), "invalid_target"},
		"its own and another's resource": {set("resource", l.URL, "https://evil.test"), "invalid_target"},
	}
	for name, c := range cases {
		form := l.wish(c.change)
		form.Set("decision", "allow")
		for way, a := range map[string]servertest.Response{"page": l.look("/oauth/authorize?" + form.Encode()), "form": l.send("/oauth/authorize", form)} {
			to := a.Header.Get("Location")
			switch {
			case c.told == "" && (a.Status != 400 || to != "" || strings.Contains(string(a.Body), "<form")):
				t.Errorf("%s, %s: answered %d to %q: %s", name, way, a.Status, to, a.Body)
			case c.told != "":
				u, err := url.Parse(to)
				if err != nil || a.Status != 303 || !strings.HasPrefix(to, loopback+"?") || u.Query().Get("error") != c.told ||
					u.Query().Get("state") != "st" || u.Query().Get("iss") != l.URL || u.Query().Has("code") {
					t.Errorf("%s, %s: answered %d to %q", name, way, a.Status, to)
				}
			}
		}
	}
	// And these are valid.
	for name, change := range map[string]func(url.Values){
		"as it is": set("x", "1"), "another port": set("redirect_uri", "http://127.0.0.1:50000/callback"),
		"IPv6": set("redirect_uri", "http://[::1]:50000/callback"), "no port": set("redirect_uri", "http://127.0.0.1/callback"),
		"its resource": set("resource", l.URL+"/"), "the scope": set("scope", "user"),
	} {
		if a := l.look("/oauth/authorize?" + l.wish(change).Encode()); a.Status != 200 {
			t.Errorf("%s: answered %d to %q", name, a.Status, a.Header.Get("Location"))
		}
	}
	// The person says no.
	a := l.send("/oauth/authorize", l.wish(set("decision", "deny")))
	if to := a.Header.Get("Location"); a.Status != 303 || !strings.Contains(to, "error=access_denied") || strings.Contains(to, "code=") {
		t.Errorf("no answered %d to %q", a.Status, to)
	}
}

// Only a person in their own browser can say yes: no page of another site, and no program that
// somebody signed in or gave a key.
func TestOAuth_OnlyAPersonSaysYes(t *testing.T) {
	l := newLobby(t)
	token := l.signIn().AccessToken
	key := servertest.Must[api.Key](l.Server, 201, "POST", "keys", m{"name": "k", "scopes": api.Scopes}).Key
	form := l.wish(func(f url.Values) { f.Set("decision", "allow") })
	bearer := func(s string) []servertest.Change {
		return []servertest.Change{servertest.With("Cookie", ""), servertest.With("Authorization", "Bearer "+s)}
	}
	for name, c := range map[string]struct {
		changes []servertest.Change
		status  int
	}{
		"a page of another site":    {[]servertest.Change{servertest.With("Origin", "https://evil.test"), servertest.With("Sec-Fetch-Site", "cross-site")}, 403},
		"another port":              {[]servertest.Change{servertest.With("Origin", "http://127.0.0.1:1"), servertest.With("Sec-Fetch-Site", "same-site")}, 403},
		"a file":                    {[]servertest.Change{servertest.With("Origin", "null"), servertest.With("Sec-Fetch-Site", "cross-site")}, 403},
		"nobody":                    {[]servertest.Change{servertest.With("Cookie", "")}, 401},
		"the program":               {bearer(token), 403},
		"the program, as a browser": {[]servertest.Change{servertest.With("Cookie", "stint_session="+token)}, 403},
		"a key":                     {bearer(key), 403},
		"the owner's token":         {bearer(l.Token), 403},
	} {
		for _, path := range []string{"/oauth/authorize", "/device"} {
			if a := l.send(path, form, c.changes...); a.Status != c.status || a.Header.Get("Location") != "" {
				t.Errorf("%s at %s: answered %d to %q", name, path, a.Status, a.Header.Get("Location"))
			}
		}
	}
	l.As(token).Refused(403, api.CodeUserTokenRequired, "POST", "/api/v1/signin-links", nil)
	// Somebody who isn't signed in is shown how to, and comes back with the whole request.
	path := "/oauth/authorize?" + l.wish(func(url.Values) {}).Encode()
	a := l.look(path, servertest.With("Cookie", ""))
	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil || a.Status != 303 || to.Path != "/signin" || to.Query().Get("next") != path {
		t.Errorf("a stranger was sent to %q", to)
	}
}

func decoded[T any](tb testing.TB, a servertest.Response) (out T) {
	tb.Helper()
	if a.Status == 200 {
		if err := json.Unmarshal(a.Body, &out); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

func (l *lobby) code(verifier string) string {
	l.tb.Helper()
	return l.consents(l.program().AuthCodeURL("st", oauth2.S256ChallengeOption(verifier))).Get("code")
}

// A code is good for one minute, one program, one address, one verifier, once.
func TestOAuth_CodesThatAreRefused(t *testing.T) {
	l := newLobby(t)
	verifier := oauth2.GenerateVerifier()
	good := func(code string) url.Values {
		return url.Values{"grant_type": {"authorization_code"}, "client_id": {account.CLI}, "redirect_uri": {loopback}, "code": {code}, "code_verifier": {verifier}}
	}
	cases := map[string]struct {
		change func(url.Values)
		word   string
		lives  bool // the code is still good
	}{
		"another verifier":     {func(f url.Values) { f.Set("code_verifier", oauth2.GenerateVerifier()) }, "invalid_grant", false},
		"no verifier":          {func(f url.Values) { f.Del("code_verifier") }, "invalid_grant", false},
		"another port":         {func(f url.Values) { f.Set("redirect_uri", "http://127.0.0.1:1/callback") }, "invalid_grant", false},
		"no redirect":          {func(f url.Values) { f.Del("redirect_uri") }, "invalid_grant", false},
		"another resource":     {func(f url.Values) { f.Set("resource", "https://evil.test") }, "invalid_target", true},
		"another client":       {func(f url.Values) { f.Set("client_id", "evil") }, "invalid_client", true},
		"a secret":             {func(f url.Values) { f.Set("code", f.Get("code")+"x") }, "invalid_grant", true},
		"two codes":            {func(f url.Values) { f.Add("code", "x") }, "invalid_request", true},
		"two verifiers":        {func(f url.Values) { f.Add("code_verifier", "x") }, "invalid_request", true},
		"the password grant":   {func(f url.Values) { f.Set("grant_type", "password") }, "unsupported_grant_type", true},
		"no grant":             {func(f url.Values) { f.Del("grant_type") }, "unsupported_grant_type", true},
		"a code as a refresh":  {func(f url.Values) { f.Set("grant_type", "refresh_token"); f.Set("refresh_token", f.Get("code")) }, "invalid_grant", true},
		"a code as a device's": {func(f url.Values) { f.Set("grant_type", api.GrantDevice); f.Set("device_code", f.Get("code")) }, "invalid_grant", true},
	}
	for name, c := range cases {
		code := l.code(verifier)
		form := good(code)
		c.change(form)
		if status, word, a := l.trade(form); status != 400 || word != c.word {
			t.Errorf("%s: answered %d %s", name, status, a.Body)
		}
		if _, word, _ := l.trade(good(code)); (word == "") != c.lives {
			t.Errorf("%s: afterwards the code is answered %q", name, word)
		}
	}
	old := l.code(verifier)
	l.clock.step(61 * time.Second)
	if _, word, _ := l.trade(good(old)); word != "invalid_grant" {
		t.Errorf("an old code answered %q", word)
	}
	if status, word, _ := l.trade(good(l.code(verifier)), servertest.With("Authorization", "Basic c3RpbnQtY2xpOg==")); status != 401 || word != "invalid_client" {
		t.Errorf("a secret in a header answered %d %s", status, word)
	}
	if status, _, a := l.trade(good(l.code(verifier)), servertest.With("Origin", "https://evil.test"), servertest.With("Sec-Fetch-Site", "cross-site")); status != 403 {
		t.Errorf("a page of another site got %d %s", status, a.Body)
	}
	// The second use of a code ends what the first one got, and is reported.
	code := l.code(verifier)
	_, _, a := l.trade(good(code))
	first := decoded[api.OAuthTokens](t, a)
	if !l.works(first.AccessToken) {
		t.Fatal("a good code's token doesn't work")
	}
	if _, word, _ := l.trade(good(code)); word != "invalid_grant" || l.works(first.AccessToken) {
		t.Errorf("the second use answered %q, the first one's token works: %t", word, l.works(first.AccessToken))
	}
	if _, word, _ := l.refresh(first.RefreshToken); word != "invalid_grant" {
		t.Errorf("… and its refresh token answers %q", word)
	}
	told := servertest.Must[api.List[api.AuditEntry]](l.Server, 200, "GET", "audit?type=program_token_reused", nil)
	if len(told.Items) != 1 || told.Items[0].Data["why"] != "a code was used twice" {
		t.Errorf("the audit says %+v", told.Items)
	}
}

// Unknown secrets are counted by the address of the connection.
func TestOAuth_UnknownSecretsAreCounted(t *testing.T) {
	l := newLobby(t)
	token := l.signIn()
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {account.CLI}, "redirect_uri": {loopback}, "code_verifier": {"v"}}
	for i := range 61 {
		form.Set("code", fmt.Sprint("stint_code_", i))
		status, _, a := l.trade(form, servertest.With("X-Forwarded-For", fmt.Sprint("203.0.113.", i)))
		if want := map[bool]int{true: 400, false: 429}[i < 60]; status != want || (status == 429) != (a.Header.Get("Retry-After") != "") {
			t.Fatalf("try %d answered %d %s", i, status, a.Body)
		}
	}
	if status, word, _ := l.refresh(token.RefreshToken); status != 200 {
		t.Errorf("meanwhile a good token answered %d %s", status, word)
	}
}
