package server_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

const formType = "application/x-www-form-urlencoded"

func TestSignIn_LinkIsTradedOnceForACookie(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	link := d.link()
	nobody, form := servertest.With("Authorization", ""), servertest.With("Content-Type", formType)
	// A link is never consumed by GET, nor in any way other than by this form.
	for _, method := range []string{"GET", "HEAD"} {
		d.Do(method, "/signin?link="+url.QueryEscape(link), nil, nobody)
	}
	d.Refused(415, api.CodeUnsupportedType, "POST", "/signin", `{"link":"`+link+`"}`, nobody)
	d.Refused(415, api.CodeUnsupportedType, "POST", "/signin", "link="+link, nobody, servertest.With("Content-Type", "text/plain"))
	d.Refused(401, api.CodeUnauthenticated, "POST", "/signin?link="+url.QueryEscape(link), "x=1", nobody, form)
	d.Refused(413, api.CodeTooLarge, "POST", "/signin", "link="+strings.Repeat("x", 9<<10), nobody, form)

	// `stint open` posts from a file: its origin is null.
	a := d.Do("POST", "/signin", "link="+link+"&next=/sessions?status=active", nobody, form, noRedirect(d),
		servertest.With("Origin", "null"), servertest.With("Sec-Fetch-Site", "cross-site"), servertest.With("Accept", "text/html"))
	if a.Status != http.StatusSeeOther || a.Header.Get("Location") != "/sessions?status=active" {
		t.Fatalf("answered %d to %q: %s", a.Status, a.Header.Get("Location"), a.Body)
	}
	checkHeaders(t, "/signin", a)
	set := a.Header.Get("Set-Cookie")
	for _, part := range []string{"stint_session=stk_", "; Path=/", "; HttpOnly", "; SameSite=Lax", "; Expires="} {
		if !strings.Contains(set, part) {
			t.Errorf("the cookie %q has no %q", strings.Split(set, ";")[1:], part)
		}
	}
	if strings.Contains(set, "Domain") {
		t.Error("the cookie is not for this host alone")
	}
	cookie, _, _ := strings.Cut(set, ";")
	with := []servertest.Change{nobody, servertest.With("Cookie", cookie)}
	if a := d.Do("GET", "/", nil, with...); string(a.Body) != "hello owner in default" {
		t.Errorf("with the cookie: %d %s", a.Status, a.Body)
	}
	// The link is used up, and says so to a person in HTML.
	d.Refused(401, api.CodeUnauthenticated, "POST", "/signin", "link="+link, nobody, form)
	a = d.Do("POST", "/signin", "link="+link, nobody, form, servertest.With("Accept", "text/html"))
	if a.Status != 401 || !strings.Contains(string(a.Body), "used or older") || !strings.Contains(a.Header.Get("Content-Type"), "text/html") {
		t.Errorf("a used link answered %d %s", a.Status, a.Body)
	}
	checkHeaders(t, "/signin", a)
	// Signing in again ends what this browser had before.
	a = d.Do("POST", "/signin", "link="+d.link(), append(with, form, noRedirect(d))...)
	if a.Status != http.StatusSeeOther {
		t.Fatalf("the second sign-in answered %d", a.Status)
	}
	if a := d.Do("GET", "/api/v1/whoami", nil, with...); a.Status != 401 {
		t.Errorf("the cookie of before answered %d", a.Status)
	}
	for _, secret := range []string{link, strings.TrimPrefix(cookie, "stint_session="), d.Token} {
		if strings.Contains(d.Log.String(), secret) {
			t.Error("the log has a secret in it")
		}
	}
}

func TestSignIn_NextStaysHere(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	for next, want := range map[string]string{
		"": "/", "/agents": "/agents", "//evil.test": "/", "https://evil.test/": "/", `/\evil.test`: "/", "javascript:alert(1)": "/", "/a%0d%0aX: y": "/a%0d%0aX: y",
	} {
		form := url.Values{"link": {d.link()}, "next": {next}}
		a := d.Do("POST", "/signin", form.Encode(), servertest.With("Authorization", ""), servertest.With("Content-Type", formType), noRedirect(d))
		if a.Header.Get("Location") != want {
			t.Errorf("next %q led to %q, not %q", next, a.Header.Get("Location"), want)
		}
	}
}

func TestSignOut_EndsTheCookieAtOnce(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	cookie := d.cookie()
	browser := []servertest.Change{
		servertest.With("Authorization", ""), servertest.With("Cookie", cookie),
		servertest.With("Sec-Fetch-Site", "same-origin"), servertest.With("Origin", d.URL), servertest.With("Content-Type", formType), noRedirect(d),
	}
	if a := d.Do("GET", "/api/v1/whoami", nil, browser...); a.Status != 200 {
		t.Fatalf("before: %d", a.Status)
	}
	a := d.Do("POST", "/signout", "", browser...)
	if a.Status != http.StatusSeeOther || a.Header.Get("Location") != "/signin" || !strings.Contains(a.Header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("answered %d to %q with %q", a.Status, a.Header.Get("Location"), a.Header.Get("Set-Cookie"))
	}
	if a := d.Do("GET", "/api/v1/whoami", nil, browser...); a.Status != 401 {
		t.Errorf("after: %d", a.Status)
	}
	// It doesn't end a program's token.
	d.Do("POST", "/signout", nil)
	if a := d.Do("GET", "/api/v1/whoami", nil); a.Status != 200 {
		t.Errorf("the bearer token answered %d", a.Status)
	}
}

func TestSignIn_PageGoesOnWhenSignedIn(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	a := d.Do("GET", "/signin?next=/agents", nil, servertest.With("Cookie", d.cookie()), servertest.With("Authorization", ""))
	if a.Status != http.StatusSeeOther || a.Header.Get("Location") != "/agents" {
		t.Errorf("answered %d to %q", a.Status, a.Header.Get("Location"))
	}
	a = d.Do("GET", "/signin", nil, servertest.With("Authorization", ""))
	if a.Status != 200 || !strings.Contains(string(a.Body), "stint open") {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	if strings.Contains(string(a.Body), "style=") || strings.Contains(strings.ReplaceAll(string(a.Body), `<script src="/signin.js" defer>`, ""), "<script") {
		t.Errorf("the page would be stopped by its own content policy: %s", a.Body)
	}
}

// A real browser's cookie jar sends a host-only cookie to this host alone.
func TestSignIn_WorksWithACookieJar(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	resp, err := client.PostForm(d.URL+"/signin", url.Values{"link": {d.link()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != 200 || resp.Request.URL.Path != "/" {
		t.Errorf("ended at %s with %d", resp.Request.URL, resp.StatusCode)
	}
	other, err := url.Parse("http://localhost/")
	if err != nil {
		t.Fatal(err)
	}
	if len(jar.Cookies(other)) != 0 {
		t.Error("the cookie goes to another host")
	}
}

// A page of any site may post a link, so nobody can create one that would sign another's
// browser in as themselves: only the data directory's token can.
func TestSignIn_NobodyElseMakesLinks(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	d.named()
	invited := servertest.Must[api.Invitation](d.Server, 201, "POST", "invitations", m{"role": "member"})
	_, _, err := d.Accounts.Join(t.Context(), invited.Code, api.LoginInput{Login: "eve", Password: password}, account.From{Address: "192.0.2.9"})
	if err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{"eve", "ann"} {
		cookie := cookieIn(t, d.tries(login, password))
		if a := d.Do("GET", "/api/v1/whoami", nil, d.browser(cookie)...); a.Status != 200 {
			t.Fatalf("%s is not signed in: %d", login, a.Status)
		}
		a := d.Do("POST", "/api/v1/signin-links", nil, d.browser(cookie)...)
		if a.Status != 403 || a.Problem(t).Code != api.CodeForbidden || strings.Contains(string(a.Body), "stk_") {
			t.Errorf("%s's browser gets %d %s", login, a.Status, a.Body)
		}
	}
	link := servertest.Must[api.SignInLink](d.Server, 201, "POST", "/api/v1/signin-links", nil).Link
	a := d.Do("POST", "/signin", url.Values{"link": {link}}.Encode(), servertest.With("Authorization", ""), servertest.With("Content-Type", formType), noRedirect(d),
		servertest.With("Origin", "null"), servertest.With("Sec-Fetch-Site", "cross-site"))
	if a.Status != http.StatusSeeOther || a.Header.Get("Set-Cookie") == "" {
		t.Errorf("the file that “stint open” writes is answered %d %s", a.Status, a.Body)
	}
}
