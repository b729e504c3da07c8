package server_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/provider"
	"stint/server/servertest"
)

const clientSecret = "the-client-secret"

// abroad is a lobby with an external provider, a real one, over real HTTP.
type abroad struct {
	*lobby
	issuer string
}

func newAbroad(t *testing.T) *abroad {
	t.Helper()
	there := httptest.NewUnstartedServer(nil)
	a := &abroad{lobby: &lobby{clock: &clock{}}, issuer: "http://" + there.Listener.Addr().String() + "/"}
	there.Config.Handler = exampleop.SetupServer(a.issuer, storage.NewStorage(storage.NewUserStore(a.issuer)), nil, false)
	there.Start()
	t.Cleanup(there.Close)
	id := "stint at " + a.issuer
	a.fixture = newFixture(t, servertest.Options{Clock: a.clock.now, Server: through(t, provider.Config{
		Issuer: a.issuer, ClientID: id, Secret: clientSecret, Name: "Acme", Inside: true,
	}, a.clock.now)})
	storage.RegisterClients(storage.WebClient(id, clientSecret, a.URL+"/signin/provider/callback"))
	return a
}

// through makes a server that lets people sign in through a provider.
func through(t *testing.T, c provider.Config, now func() time.Time) func(*server.Options) {
	t.Helper()
	p, err := provider.New(c, now)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *server.Options) { o.Web, o.Provider = page(), p }
}

// surfer is a person's browser: it keeps cookies and follows redirects.
type surfer struct {
	*http.Client
	tb testing.TB
	at *url.URL // where it is
}

func newSurfer(tb testing.TB) *surfer {
	tb.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return &surfer{Client: &http.Client{Jar: jar, Transport: asBrowser{}}, tb: tb}
}

type asBrowser struct{}

func (asBrowser) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Accept", "text/html")
	if r.Method == http.MethodPost {
		r.Header.Set("Origin", "http://"+r.URL.Host)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (s *surfer) read(resp *http.Response, err error) (status int, body string) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.at = resp.Request.URL
	return resp.StatusCode, string(text)
}

func (s *surfer) open(address string) (int, string) {
	s.tb.Helper()
	return s.read(s.Get(address))
}

func (s *surfer) post(address string, form url.Values) (int, string) {
	s.tb.Helper()
	return s.read(s.PostForm(address, form))
}

// signsIn fills in the provider's form in the browser and comes back.
func (s *surfer) signsIn(name string) (int, string) {
	s.tb.Helper()
	if s.at.Path != "/login/username" {
		s.tb.Fatalf("the browser is at %s, not at the provider's form", s.at)
	}
	return s.post(s.at.Scheme+"://"+s.at.Host+"/login/username", url.Values{
		"username": {name}, "password": {"verysecure"}, "id": {s.at.Query().Get("authRequestID")},
	})
}

var onward = regexp.MustCompile(`<a class="button" href="([^"]+)"`)

// goesOn follows a page that leads to the provider.
func (s *surfer) goesOn(status int, body string) {
	s.tb.Helper()
	to := onward.FindStringSubmatch(body)
	if status != 200 || to == nil || !strings.Contains(body, `<meta http-equiv="refresh" content="0; url=http`) {
		s.tb.Fatalf("the page doesn't lead on: %d %s", status, body)
	}
	s.open(html.UnescapeString(to[1]))
}

// The two people whom the provider knows.
const (
	first  = "test-user@127.0.0.1"
	second = "test-user2"
)

func (a *abroad) through() (s *surfer, status int, body string) {
	a.tb.Helper()
	s = newSurfer(a.tb)
	s.open(a.URL + "/signin/provider?next=/agents%3Fx=1")
	status, body = s.signsIn(first)
	return s, status, body
}

func (a *abroad) audited(kind string) []api.AuditEntry {
	a.tb.Helper()
	return servertest.Must[api.List[api.AuditEntry]](a.Server, 200, "GET", "audit?type="+kind, nil).Items
}

// A person of a real provider: unknown at first, then linked by the owner, then
// signed in, then unlinked.
func TestProvider_LinkSignInUnlink(t *testing.T) {
	a := newAbroad(t)
	a.named()
	if status, body := newSurfer(t).open(a.URL + "/signin?next=/agents"); status != 200 || !strings.Contains(body, `href="/signin/provider?next=%2Fagents">Sign in with Acme`) {
		t.Errorf("the sign-in page: %d %s", status, body)
	}
	members := servertest.Must[list](a.Server, 200, "GET", "members", nil)
	s, status, body := a.through()
	if status != 403 || !strings.Contains(body, "Nobody here is linked to that account") || s.at.Path != "/signin/provider/callback" {
		t.Fatalf("an unknown person: %d at %s: %s", status, s.at, body)
	}
	if status, _ := s.open(a.URL + "/agents"); status != 200 || s.at.Path != "/signin" {
		t.Errorf("afterwards the browser is at %s with %d", s.at, status)
	}
	if again := servertest.Must[list](a.Server, 200, "GET", "members", nil); len(again.Items) != len(members.Items) {
		t.Errorf("there are %d members, before %d", len(again.Items), len(members.Items))
	}
	if told := a.audited("sign_in_refused"); len(told) != 1 || told[0].Data["issuer"] != a.issuer || told[0].Data["label"] != "test-user@zitadel.ch" {
		t.Errorf("the audit says %+v", told)
	}

	// The owner links: only with their password.
	owner := newSurfer(t)
	if status, body := owner.post(a.URL+"/signin", url.Values{"login": {"ann"}, "password": {password}}); status != 200 || body != "hello Ann in default" {
		t.Fatalf("with the password: %d %s", status, body)
	}
	if status, body := owner.open(a.URL + "/signin/provider/link"); status != 200 || !strings.Contains(body, `name="current"`) {
		t.Errorf("the page to link: %d %s", status, body)
	}
	if status, body := owner.post(a.URL+"/signin/provider/link", url.Values{"current": {"wrong"}}); status != 422 || !strings.Contains(body, "not your password") {
		t.Errorf("a wrong password: %d %s", status, body)
	}
	owner.goesOn(owner.post(a.URL+"/signin/provider/link", url.Values{"current": {password}}))
	if status, body := owner.signsIn(first); status != 200 || owner.at.Path != "/settings/account" || body != "hello Ann in default" {
		t.Fatalf("linking ended with %d at %s: %s", status, owner.at, body)
	}
	linked := servertest.Must[api.Account](a.Server, 200, "GET", "/api/v1/account", nil).Identities
	if len(linked) != 1 || linked[0].Issuer != a.issuer || linked[0].Label != "test-user@zitadel.ch" || !linked[0].LastUsedAt.IsZero() {
		t.Fatalf("linked are %+v", linked)
	}

	s, status, body = a.through()
	if status != 200 || body != "hello Ann in default" || s.at.RequestURI() != "/agents?x=1" {
		t.Fatalf("linked, the sign-in ended with %d at %s: %s", status, s.at, body)
	}
	if got := servertest.Must[api.Account](a.Server, 200, "GET", "/api/v1/account", nil); got.Identities[0].LastUsedAt.IsZero() {
		t.Error("its use isn't noted")
	}
	for kind, n := range map[string]int{"signed_in": 1, "identity_linked": 1, "sign_in_refused": 1} {
		if told := a.audited(kind); len(told) != n {
			t.Errorf("%d of %s are in the audit, not %d", len(told), kind, n)
		}
	}
	if got := a.Do("GET", "events?after=0&limit=200", nil); got.Status != 200 || strings.Contains(string(got.Body), "identity_linked") || strings.Contains(string(got.Body), "signed_in") {
		t.Errorf("the stream contains sign-ins: %s", got.Body)
	}

	// Nothing secret is stored or logged.
	secrets := []string{clientSecret}
	for _, b := range []*surfer{s, owner} {
		for _, c := range b.Jar.Cookies(must(url.Parse(a.URL))) {
			secrets = append(secrets, c.Value)
		}
	}
	stored := a.Log.String() + string(must(os.ReadFile(a.Path))) + string(must(os.ReadFile(a.Path+"-wal")))
	for _, secret := range secrets {
		if strings.Contains(stored, secret) {
			t.Errorf("%.8s… is kept as it is", secret)
		}
	}
	if strings.Contains(a.Log.String(), "code=") || strings.Contains(a.Log.String(), "state=") {
		t.Error("the log has an answer of the provider in it")
	}

	servertest.Must[any](a.Server, 204, "DELETE", "/api/v1/account/identities/"+linked[0].ID.String(), nil)
	a.Refused(404, api.CodeNotFound, "DELETE", "/api/v1/account/identities/"+linked[0].ID.String(), nil)
	if _, body := s.open(a.URL + "/agents"); s.at.Path != "/signin" {
		t.Errorf("after the unlinking the browser is at %s: %s", s.at, body)
	}
	if _, status, _ := a.through(); status != 403 {
		t.Errorf("after the unlinking the provider's sign-in answered %d", status)
	}
	if told := a.audited("identity_unlinked"); len(told) != 1 {
		t.Errorf("the audit has %d", len(told))
	}
}

// An invitation creates a user without a password; the provider's account joins no other user,
// and a member who was removed stays out.
func TestProvider_Invitation(t *testing.T) {
	a := newAbroad(t)
	invite := func() string {
		return servertest.Must[api.Invitation](a.Server, 201, "POST", "invitations", m{"role": "admin"}).Code
	}
	join := func(s *surfer, code string) (int, string) {
		return s.post(a.URL+"/invitation", url.Values{"code": {code}, "login": {""}, "password": {""}, "decision": {"provider"}})
	}
	if status, body := newSurfer(t).open(a.URL + "/invitation"); status != 200 || !strings.Contains(body, `name="decision" value="provider" formnovalidate>Join with Acme`) {
		t.Errorf("the page: %d %s", status, body)
	}
	if status, body := join(newSurfer(t), "stint_inv_guess"); status != 401 || !strings.Contains(body, "unknown, used") {
		t.Errorf("a guessed code: %d %s", status, body)
	}
	code := invite()
	s := newSurfer(t)
	s.goesOn(join(s, code))
	if status, body := s.signsIn(second); status != 200 || body != "hello Test User2 in default" {
		t.Fatalf("joining ended with %d at %s: %s", status, s.at, body)
	}
	ben := a.browser("stint_session=" + s.Jar.Cookies(must(url.Parse(a.URL)))[0].Value)
	me := servertest.Must[api.Account](a.Server, 200, "GET", "/api/v1/account", nil, ben...)
	if me.Login != "" || len(me.Identities) != 1 || me.Identities[0].LastUsedAt.IsZero() {
		t.Errorf("the new user is %+v", me)
	}
	// It is an interactive sign-in: what it sets to be run is stamped with it.
	servertest.Must[api.Agent](a.Server, 201, "POST", "agents", m{"slug": "bens", "run": m{"command": []string{"true"}}}, ben...)
	made := servertest.Must[api.Agent](a.Server, 200, "GET", "agents/bens", nil)
	if made.RunSetBy != me.Name {
		t.Errorf("the agent's run block was set by %s, not %s", made.RunSetBy, me.Name)
	}
	if got := a.Do("DELETE", "/api/v1/account/identities/"+me.Identities[0].ID.String(), nil, ben...); got.Status != 409 {
		t.Errorf("unlinking the only way in answered %d %s", got.Status, got.Body)
	}
	if status, _ := join(newSurfer(t), code); status != 401 {
		t.Errorf("a used code answered %d", status)
	}
	// The same person again: already a member. Then another, who replaces nobody.
	again := newSurfer(t)
	again.goesOn(join(again, invite()))
	if status, body := again.signsIn(second); status != 409 || !strings.Contains(body, "member of this workspace already") {
		t.Errorf("joining twice: %d %s", status, body)
	}
	owner := newSurfer(t)
	owner.post(a.URL+"/signin", url.Values{"link": {a.link()}})
	owner.goesOn(owner.post(a.URL+"/signin/provider/link", url.Values{}))
	if status, body := owner.signsIn(second); status != 409 || !strings.Contains(body, "linked to another user") || !strings.Contains(body, "Nothing was linked") {
		t.Errorf("linking somebody else's account: %d %s", status, body)
	}
	// A link that begins in one sign-in doesn't end in another.
	owner.goesOn(owner.post(a.URL+"/signin/provider/link", url.Values{}))
	form := owner.at
	owner.post(a.URL+"/signout", nil)
	owner.post(a.URL+"/signin", url.Values{"link": {a.link()}})
	owner.at = form
	if status, body := owner.signsIn(first); status != 401 || !strings.Contains(body, "not signed in any more") {
		t.Errorf("linking in another sign-in: %d %s", status, body)
	}

	servertest.Must[api.MemberRemoved](a.Server, 200, "DELETE", "members/"+me.UserID.String(), nil)
	s = newSurfer(t)
	s.open(a.URL + "/signin/provider")
	if status, _ := s.signsIn(second); status != 403 {
		t.Errorf("a removed member is answered %d", status)
	}
	s.goesOn(join(s, invite()))
	if status, body := s.signsIn(second); status != 200 || body != "hello Test User2 in default" {
		t.Errorf("invited anew: %d %s", status, body)
	}
	if got := servertest.Must[api.Account](a.Server, 200, "GET", "/api/v1/account", nil, a.browser("stint_session="+s.Jar.Cookies(must(url.Parse(a.URL)))[0].Value)...); got.UserID != me.UserID {
		t.Errorf("they are %s now, not %s", got.UserID, me.UserID)
	}
}

// The set-up link makes the provider's person the owner, once; nothing else does.
func TestProvider_SetUp(t *testing.T) {
	a := newAbroad(t)
	setUp := func(s *surfer, code string) (int, string) {
		return s.post(a.URL+"/setup", url.Values{"code": {code}, "decision": {"provider"}})
	}
	if status, _ := setUp(newSurfer(t), "stk_guess"); status != 401 {
		t.Errorf("a guessed code answered %d", status)
	}
	early := newSurfer(t)
	early.goesOn(setUp(early, a.link()))
	s := newSurfer(t)
	s.goesOn(setUp(s, a.link()))
	if status, body := s.signsIn(first); status != 200 || body != "hello Test User in default" {
		t.Fatalf("the set-up ended with %d at %s: %s", status, s.at, body)
	}
	if who := servertest.Must[api.Account](a.Server, 200, "GET", "/api/v1/account", nil); who.Name != "Test User" || len(who.Identities) != 1 {
		t.Errorf("the owner is %+v", who)
	}
	if status, body := early.signsIn(second); status != 404 {
		t.Errorf("whoever began earlier and comes later is answered %d %s", status, body)
	}
	if status, _ := setUp(newSurfer(t), a.link()); status != 404 {
		t.Errorf("afterwards the set-up answered %d", status)
	}
	if _, status, body := a.through(); status != 200 || body != "hello Test User in default" {
		t.Errorf("signing in: %d %s", status, body)
	}
}

// linked links an account at a provider to the fixture's user.
func (d *fixture) linked() api.IdentityID {
	d.tb.Helper()
	ctx, e := d.tb.Context(), d.Accounts
	who := must(e.Authenticate(ctx, d.Token))
	back := must(e.EndOIDCSignIn(ctx, must(e.StartOIDCSignIn(ctx, account.OIDCSignIn{Purpose: account.PurposeLink, Who: who}, account.From{}))))
	must(e.Arrive(ctx, back, account.ExternalIdentity{Issuer: "https://login.example.com", Subject: "s1"}, who, account.From{}))
	return must(e.Account(ctx, who)).Identities[0].ID
}
