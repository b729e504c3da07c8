package server_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

const password = "correct horse battery"

// named gives the owner a name and a password.
func (d *fixture) named() {
	d.tb.Helper()
	servertest.Must[api.Account](d.Server, 200, "POST", "/api/v1/account/login", m{"login": "ann", "name": "Ann", "password": password})
}

// tries signs in with a password and returns the answer.
func (d *fixture) tries(login, password string, more ...servertest.Change) servertest.Response {
	d.tb.Helper()
	changes := []servertest.Change{servertest.With("Authorization", ""), servertest.With("Content-Type", formType), noRedirect(d)}
	form := url.Values{"login": {login}, "password": {password}}
	return d.Do("POST", "/signin", form.Encode(), append(changes, more...)...)
}

// cookieIn is the Cookie header that an answer sets.
func cookieIn(t testing.TB, a servertest.Response) string {
	t.Helper()
	name, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	if a.Status != http.StatusSeeOther || !strings.Contains(name, "stint_session=") {
		t.Fatalf("answered %d %q %s", a.Status, name, a.Body)
	}
	return name
}

// browser are the headers of a page's own request with a cookie.
func (d *fixture) browser(cookie string) []servertest.Change {
	return []servertest.Change{
		servertest.With("Authorization", ""), servertest.With("Cookie", cookie), servertest.With("Sec-Fetch-Site", "same-origin"),
		servertest.With("Origin", d.URL),
	}
}

func TestPassword_SignsIn(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	d.named()
	cookie := cookieIn(t, d.tries(" ANN ", password, servertest.With("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")))
	if a := d.Do("GET", "/", nil, d.browser(cookie)...); string(a.Body) != "hello Ann in default" {
		t.Errorf("with the cookie: %d %s", a.Status, a.Body)
	}
	signIns := servertest.Must[api.List[api.SignIn]](d.Server, 200, "GET", "/api/v1/account/sign-ins", nil, d.browser(cookie)...)
	if s := signIns.Items[0]; s.Kind != "browser" || s.Label != "Firefox on Linux" || s.Address != "127.0.0.1" || !s.Current || s.LastUsedAt.IsZero() {
		t.Errorf("the newest sign-in is %+v", s)
	}
	// A page of another site can't sign a browser in as somebody else.
	for _, origin := range []string{"https://evil.test", "null"} {
		if a := d.tries("ann", password, servertest.With("Origin", origin), servertest.With("Sec-Fetch-Site", "cross-site")); a.Status != 403 {
			t.Errorf("from %s: %d", origin, a.Status)
		}
	}
	for _, secret := range []string{password, strings.TrimPrefix(cookie, "stint_session=")} {
		if strings.Contains(d.Log.String(), secret) {
			t.Error("the log has a secret in it")
		}
	}
}

// An unknown name and a wrong password can't be told apart, and guessing is soon stopped; a
// header that the client writes doesn't make it a different client.
func TestPassword_GuessesAreCounted(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	d.named()
	var bodies []string
	for _, login := range []string{"ann", "nobody-of-that-name"} {
		refused := 0
		for i := range 15 {
			a := d.tries(login, "wrong "+strconv.Itoa(i), servertest.With("X-Forwarded-For", "203.0.113."+strconv.Itoa(i)),
				servertest.With("Forwarded", "for=203.0.113."+strconv.Itoa(i)), servertest.With("X-Real-IP", "203.0.113."+strconv.Itoa(i)))
			switch {
			case i < 10 && a.Status == 401:
				e := a.Problem(t)
				bodies = append(bodies, string(e.Code)+e.Detail)
			case i >= 10 && a.Status == 429 && a.Problem(t).Code == api.CodeTooMany:
				refused++
				if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 61 {
					t.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
				}
			default:
				t.Fatalf("try %d as %s answered %d %s", i, login, a.Status, a.Body)
			}
		}
		if refused != 5 {
			t.Errorf("%d tries as %s were refused, not 5", refused, login)
		}
	}
	for _, b := range bodies {
		if b != bodies[0] {
			t.Fatalf("answers differ: %q and %q", bodies[0], b)
		}
	}
	if a := d.tries("ann", password); a.Status != 429 {
		t.Errorf("the right password within the minute answered %d", a.Status)
	}
	// A restart forgets none of it.
	d.Stop()
	again := newAgain(t, d)
	if a := again.tries("ann", password); a.Status != 429 {
		t.Errorf("after a restart: %d", a.Status)
	}
}

// newAgain serves the same file with a new server.
func newAgain(t *testing.T, d *fixture) *fixture {
	t.Helper()
	return &fixture{Server: servertest.New(t, servertest.Options{Path: d.Path, Token: d.Token}), tb: t}
}

// A hundred sign-ins at once are checked a few at a time; nobody gets in without the password,
// and the only other answers are 401 and 429.
func TestPassword_ManyAtOnce(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	d.named()
	var wg sync.WaitGroup
	var wrong, busy, other atomic.Int64
	for i := range 100 {
		wg.Go(func() {
			form := url.Values{"login": {"user-" + strconv.Itoa(i)}, "password": {"guess"}}
			a := d.Do("POST", "/signin", form.Encode(), servertest.With("Authorization", ""), servertest.With("Content-Type", formType))
			switch a.Status {
			case 401:
				wrong.Add(1)
			case 429:
				busy.Add(1)
			default:
				other.Add(1)
			}
		})
	}
	wg.Wait()
	if other.Load() != 0 || busy.Load() == 0 || wrong.Load() == 0 || wrong.Load() > 60 {
		t.Errorf("%d wrong, %d busy, %d other", wrong.Load(), busy.Load(), other.Load())
	}
}

func TestPassword_ChangeEndsOtherBrowsers(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	d.named()
	first, second := cookieIn(t, d.tries("ann", password)), cookieIn(t, d.tries("ann", password))
	change := func(current, next string) servertest.Response {
		return d.Do("POST", "/api/v1/account/login", m{"current": current, "password": next}, d.browser(first)...)
	}
	if a := change("wrong one", "another password"); a.Status != 422 || a.Problem(t).Fields[0].Field != "current" {
		t.Errorf("a wrong current password answered %d %s", a.Status, a.Body)
	}
	for _, bad := range []string{"short", "ann", strings.Repeat("x", 257)} {
		if a := change(password, bad); a.Status != 422 {
			t.Errorf("%q was taken: %d", bad, a.Status)
		}
	}
	if a := change(password, "another password"); a.Status != 200 {
		t.Fatalf("changing answered %d %s", a.Status, a.Body)
	}
	for cookie, want := range map[string]int{first: 200, second: 401} {
		if a := d.Do("GET", "/api/v1/whoami", nil, d.browser(cookie)...); a.Status != want {
			t.Errorf("a browser answered %d, not %d", a.Status, want)
		}
	}
	if a := d.Do("GET", "/api/v1/whoami", nil); a.Status != 200 {
		t.Errorf("the data directory's token answered %d", a.Status)
	}
	if a := d.tries("ann", password); a.Status != 401 {
		t.Errorf("the old password answered %d", a.Status)
	}
	cookieIn(t, d.tries("ann", "another password"))
}

func TestSetUp_OneOwnerAndNoOther(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	nobody, form, html := servertest.With("Authorization", ""), servertest.With("Content-Type", formType), servertest.With("Accept", "text/html")
	stay := noRedirect(d)
	post := func(code, login string, more ...servertest.Change) servertest.Response {
		v := url.Values{"code": {code}, "login": {login}, "password": {password}}
		return d.Do("POST", "/setup", v.Encode(), append([]servertest.Change{nobody, form, stay}, more...)...)
	}
	if a := d.Do("GET", "/setup", nil, nobody, html); a.Status != 200 || !strings.Contains(string(a.Body), `name="code"`) {
		t.Fatalf("the page answered %d %s", a.Status, a.Body)
	}
	if a := post("stk_guess", "eve"); a.Status != 401 {
		t.Errorf("a guessed code answered %d", a.Status)
	}
	if a := post(d.link(), "x"); a.Status != 422 {
		t.Errorf("a bad name answered %d", a.Status)
	}
	if a := post(d.link(), "eve", servertest.With("Sec-Fetch-Site", "cross-site")); a.Status != 403 {
		t.Errorf("another site's form answered %d", a.Status)
	}
	// A request through a proxy isn't from this machine.
	if a := post(d.link(), "eve", servertest.With("X-Forwarded-For", "203.0.113.9")); a.Status != 404 {
		t.Errorf("through a proxy: %d", a.Status)
	}
	// Two at once, each with a code: one owner.
	codes := []string{d.link(), d.link()}
	var done atomic.Int64
	var wg sync.WaitGroup
	for i, code := range codes {
		wg.Go(func() {
			if a := post(code, "owner-"+strconv.Itoa(i)); a.Status == http.StatusSeeOther {
				done.Add(1)
			}
		})
	}
	wg.Wait()
	if done.Load() != 1 {
		t.Errorf("%d set-ups were taken", done.Load())
	}
	for _, method := range []string{"GET", "POST"} {
		if a := d.Do(method, "/setup", "code="+d.link()+"&login=late&password="+url.QueryEscape(password), nobody, form); a.Status != 404 {
			t.Errorf("%s after it answered %d", method, a.Status)
		}
	}
}

func TestInvitation_WorksOnceForWhoeverHoldsIt(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	nobody, form := servertest.With("Authorization", ""), servertest.With("Content-Type", formType)
	invite := func() string {
		return servertest.Must[api.Invitation](d.Server, 201, "POST", "invitations", m{"role": "member", "note": "Ben"}).Code
	}
	join := func(code, login string, more ...servertest.Change) servertest.Response {
		v := url.Values{"code": {code}, "login": {login}, "password": {password}}
		return d.Do("POST", "/invitation", v.Encode(), append([]servertest.Change{nobody, form, noRedirect(d)}, more...)...)
	}
	code := invite()
	d.Do("GET", "/invitation?code="+code, nil, nobody) // a mail scanner's request uses nothing up
	ben := cookieIn(t, join(code, "ben"))
	if a := d.Do("GET", "/", nil, d.browser(ben)...); string(a.Body) != "hello ben in default" {
		t.Errorf("the new member sees %d %s", a.Status, a.Body)
	}
	for what, code := range map[string]string{"used": code, "guessed": "stint_inv_x", "empty": ""} {
		if a := join(code, "eve"); a.Status != 401 {
			t.Errorf("a %s code answered %d", what, a.Status)
		}
	}
	code = invite()
	if a := join(code, "ben"); a.Status != 422 {
		t.Errorf("a taken name answered %d", a.Status)
	}
	// It is still good for its holder; somebody who is already a member learns so, and it
	// stays good.
	if a := d.Do("POST", "/invitation", "code="+code, append(d.browser(ben), form, noRedirect(d))...); a.Status != 409 {
		t.Errorf("as a member already: %d %s", a.Status, a.Body)
	}
	cookieIn(t, join(code, "cleo"))
	foreigner := d.As(d.AddUser("elsewhere", api.Owner))
	servertest.Must[api.Workspace](foreigner, 200, "POST", "/api/v1/account/invitation", m{"code": invite()})
	servertest.Must[list](foreigner, 200, "GET", "agents", nil)
}

func TestMembers_RemovalEndsEverything(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	ben := d.As(d.AddUser(account.DefaultWorkspace, api.Member))
	who := servertest.Must[api.Whoami](ben, 200, "GET", "/api/v1/whoami", nil).UserID.String()
	// A lower role counts at once, and so does a higher one.
	servertest.Must[api.WorkspaceMember](d.Server, 200, "PATCH", "members/"+who, m{"role": "viewer"})
	ben.Refused(403, api.CodeForbidden, "POST", "agents/tidy/sessions", m{})
	servertest.Must[api.WorkspaceMember](d.Server, 200, "PATCH", "members/"+who, m{"role": "member"})
	ben.Refused(403, api.CodeForbidden, "PATCH", "members/"+who, m{"role": "owner"})
	session := servertest.Must[api.Session](ben, 201, "POST", "agents/tidy/sessions", m{"prompt": "secret"})
	w := servertest.Must[api.Registered](ben, 201, "POST", "agents/tidy/workers", m{"name": "ben's", "instanceId": instance, "types": []string{"command"}}).Worker
	key := d.As(servertest.Must[api.Key](ben, 201, "POST", "keys", m{"name": "ci", "scopes": []string{"read"}}).Key)
	servertest.Must[list](key, 200, "GET", "sessions", nil)
	at := "agents/tidy/workers/" + w.ID.String()
	c := servertest.Must[api.Claim](ben, 200, "POST", at+"/sessions/"+session.ID.String()+"/claim", m{"instanceId": instance})

	got := servertest.Must[api.MemberRemoved](d.Server, 200, "DELETE", "members/"+who, nil)
	if got.Sessions != 1 || got.Workers != 1 {
		t.Errorf("the removal ended %+v", got)
	}
	ben.Refused(401, api.CodeUnauthenticated, "GET", "/api/v1/whoami", nil)
	ben.Refused(401, api.CodeUnauthenticated, "POST", at+"/sessions/"+session.ID.String()+"/complete", m{"claimId": c.ClaimID.String(), "instanceId": instance})
	key.Refused(401, api.CodeUnauthenticated, "GET", "sessions", nil)
	d.Refused(404, api.CodeNotFound, "DELETE", "members/"+who, nil)
}

func TestKeys_AreGoodForTheirScopesOnly(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	made := servertest.Must[api.Key](d.Server, 201, "POST", "keys", m{"name": "ci", "scopes": []string{"trigger", "trigger"}})
	if len(made.Scopes) != 1 || !strings.HasPrefix(made.Key, "stint_key_") || !strings.HasSuffix(made.Key, made.Hint) {
		t.Errorf("made %+v", made)
	}
	key := d.As(made.Key)
	s := servertest.Must[api.Session](key, 201, "POST", "agents/tidy/sessions", m{"prompt": "by a key"})
	if s.TriggeredBy != api.ByUser {
		t.Errorf("triggered by %s", s.TriggeredBy)
	}
	key.Refused(403, api.CodeUserTokenRequired, "POST", "claim-next", m{})
	if a := key.Do("GET", "/", nil, servertest.With("Accept", "text/html")); a.Status != 403 {
		t.Errorf("a page answered %d", a.Status)
	}
	key.Refused(404, api.CodeNotFound, "GET", "/api/v1/workspaces/elsewhere", nil)
	listed := servertest.Must[api.List[api.Key]](d.Server, 200, "GET", "keys", nil).Items
	if len(listed) != 1 || listed[0].Key != "" || listed[0].LastUsedAt.IsZero() {
		t.Errorf("listed %+v", listed)
	}
	// One wrong character is noticed without reading the store.
	d.As(altered(made.Key, 20)).Refused(401, api.CodeUnauthenticated, "GET", "/api/v1/whoami", nil)
	servertest.Must[any](d.Server, 204, "DELETE", "keys/"+made.ID.String(), nil)
	key.Refused(401, api.CodeUnauthenticated, "GET", "/api/v1/whoami", nil)
	if strings.Contains(d.Log.String(), made.Key) {
		t.Error("the log has the key in it")
	}
}

// Behind a proxy: the public name is accepted, its cookie is secure and for this host alone,
// and the client's address is what a trusted proxy says.
func TestPublic_BehindAProxy(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) {
		p, err := server.ParsePublic("https://stint.example.com", nil, []string{"127.0.0.0/8", "10.0.0.0/8"})
		if err != nil {
			t.Fatal(err)
		}
		o.Web, o.Public = page(), p
	}})
	d.named()
	proxied := func(address string) servertest.Change {
		return func(r *http.Request) {
			r.Host = "stint.example.com"
			r.Header.Set("X-Forwarded-For", address)
		}
	}
	a := d.tries("ann", password, proxied("203.0.113.7"))
	set := a.Header.Get("Set-Cookie")
	if !strings.HasPrefix(set, "__Host-stint_session=") || !strings.Contains(set, "; Secure") || !strings.Contains(set, "; Path=/") {
		t.Fatalf("the cookie is %q", set)
	}
	cookie, _, _ := strings.Cut(set, ";")
	page := []servertest.Change{
		servertest.With("Authorization", ""), servertest.With("Cookie", cookie), proxied("203.0.113.7"), servertest.With("Origin", "https://stint.example.com"),
	}
	if a := d.Do("POST", "agents/tidy/sessions", `{}`, page...); a.Status != 201 {
		t.Errorf("a page's write answered %d %s", a.Status, a.Body)
	}
	if a := d.Do("POST", "agents/tidy/sessions", `{}`, append(page, servertest.With("Origin", "http://stint.example.com"))...); a.Status != 401 {
		t.Errorf("a write of the plain http origin answered %d", a.Status)
	}
	if a := d.Do("GET", "/api/v1/whoami", nil, servertest.With("Authorization", ""), servertest.With("Cookie", strings.Replace(cookie, "__Host-", "", 1))); a.Status != 200 {
		t.Errorf("on this machine the cookie has its plain name: %d", a.Status)
	}
	got := servertest.Must[api.List[api.SignIn]](d.Server, 200, "GET", "/api/v1/account/sign-ins", nil, page...)
	if got.Items[0].Address != "203.0.113.7" {
		t.Errorf("the address is %q", got.Items[0].Address)
	}
	// What the client itself wrote stands to the left of what a proxy added.
	for range 12 {
		a = d.tries("ann", "wrong", proxied("198.51.100."+strconv.Itoa(len(a.Body)%200)+", 203.0.113.8, 10.1.2.3"))
	}
	if a.Status != 429 {
		t.Errorf("the client's own X-Forwarded-For made it many clients: %d", a.Status)
	}
	if a := d.tries("ann", password, proxied("203.0.113.99")); a.Status != http.StatusSeeOther {
		t.Errorf("from another address the right password answered %d", a.Status)
	}
	if i := servertest.Must[api.Invitation](d.Server, 201, "POST", "invitations", m{"role": "viewer"}); !strings.HasPrefix(i.Link, "https://stint.example.com/invitation#") {
		t.Errorf("the invitation's link is %s", i.Link)
	}
	if _, err := netip.ParseAddr(got.Items[0].Address); err != nil {
		t.Error(err)
	}
}

// A wrong password is in the audit of the account's workspaces, an unknown name in the
// owner's, without what was typed; each once a minute, and in no stream.
func TestPassword_RefusalsAreInTheAudit(t *testing.T) {
	l := newLobby(t)
	l.named()
	for range 3 {
		l.tries("ann", "wrong")
		l.tries("hunter2-in-the-wrong-field", "wrong")
	}
	told := servertest.Must[api.List[api.AuditEntry]](l.Server, 200, "GET", "audit?type=sign_in_refused", nil)
	me := servertest.Must[api.Whoami](l.Server, 200, "GET", "/api/v1/whoami", nil)
	if len(told.Items) != 2 || told.Items[0].Data["knownName"] != false || told.Items[1].Data["user"] != me.UserID.String() || told.Items[1].Actor != "system" {
		t.Errorf("the audit says %+v", told.Items)
	}
	for _, path := range []string{"events?after=0&limit=200", "audit"} {
		a := l.Do("GET", path, nil)
		if a.Status != 200 || strings.Contains(string(a.Body), "hunter2") || path[0] == 'e' && strings.Contains(string(a.Body), "sign_in_refused") {
			t.Errorf("%s tells %s", path, a.Body)
		}
	}
	l.clock.step(61 * time.Second)
	l.tries("ann", "wrong")
	if told := servertest.Must[api.List[api.AuditEntry]](l.Server, 200, "GET", "audit?type=sign_in_refused", nil); len(told.Items) != 3 {
		t.Errorf("a minute later there are %d", len(told.Items))
	}
}
