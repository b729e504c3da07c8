package server_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// cookie signs a browser in and returns its Cookie header.
func (d *fixture) cookie() string {
	d.tb.Helper()
	a := d.Do("POST", "/signin", "link="+d.link(), servertest.With("Authorization", ""), servertest.With("Content-Type", "application/x-www-form-urlencoded"), noRedirect(d))
	if a.Status != http.StatusSeeOther {
		d.tb.Fatalf("signing in answered %d %s", a.Status, a.Body)
	}
	name, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	return name
}

func (d *fixture) link() string {
	d.tb.Helper()
	who, err := d.Accounts.Owner(d.tb.Context())
	if err != nil {
		d.tb.Fatal(err)
	}
	link, err := d.Accounts.NewLink(d.tb.Context(), who)
	if err != nil {
		d.tb.Fatal(err)
	}
	return link
}

// noRedirect makes the client show redirects instead of following them.
func noRedirect(d *fixture) servertest.Change {
	d.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(*http.Request) {}
}

func TestHost_ForeignNamesAreMisdirected(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	port := d.Addr()[strings.LastIndexByte(d.Addr(), ':'):]
	paths := []string{"/", "/healthz", "/readyz", "/signin", "/signin.css", "/openapi.json", "/static/app.css", "/api/v1/whoami", servertest.Base + "/events", servertest.Base + "/agents", "/nowhere"}
	for _, host := range []string{"evil.test", "evil.test" + port, "127.0.0.1", "127.0.0.1:1", "localhost.evil.test" + port, "stint.localhost.evil.test" + port, "[::2]" + port} {
		for _, path := range paths {
			for _, method := range []string{"GET", "POST"} {
				a := d.Do(method, path, nil, func(r *http.Request) { r.Host = host })
				if a.Status != http.StatusMisdirectedRequest || a.Problem(t).Code != api.CodeMisdirected {
					t.Errorf("%s %s for %s answered %d", method, path, host, a.Status)
				}
			}
		}
	}
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]", "stint.localhost", "STINT.localhost"} {
		if a := d.Do("GET", "/api/v1/whoami", nil, func(r *http.Request) { r.Host = host + port }); a.Status != 200 {
			t.Errorf("%s answered %d", host, a.Status)
		}
	}
}

func TestHost_MissingInHTTP10(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	raw := func(request string) string {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", d.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	if got := raw("GET /healthz HTTP/1.0\r\n\r\n"); !strings.Contains(got, "421") {
		t.Errorf("no Host answered %q", got)
	}
	if got := raw("GET /healthz HTTP/1.0\r\nHost: " + d.Addr() + "\r\n\r\n"); !strings.Contains(got, "200") {
		t.Errorf("HTTP/1.0 with Host answered %q", got)
	}
	if got := raw("GET http://evil.test/healthz HTTP/1.1\r\nHost: " + d.Addr() + "\r\n\r\n"); !strings.Contains(got, "421") {
		t.Errorf("an absolute foreign target answered %q", got)
	}
}

func TestOrigin_ForeignWritesAreRefused(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	cookie := d.cookie()
	own := "http://" + d.Addr()
	otherPort := "http://127.0.0.1:1"
	type probe struct {
		name         string
		site, origin string
		bearer       int // the status with a bearer token
		cookie       int // the status with a cookie
	}
	probes := []probe{
		{"a program", "", "", 201, 401},
		{"our page", "same-origin", own, 201, 201},
		{"our page in an old browser", "", own, 201, 201},
		{"typed by hand", "none", "", 201, 401},
		{"cross-site", "cross-site", "https://evil.test", 403, 403},
		{"cross-site without Origin", "cross-site", "", 403, 403},
		{"same-site", "same-site", "http://other.localhost", 403, 403},
		{"another port", "same-site", otherPort, 403, 403},
		{"another port in an old browser", "", otherPort, 403, 403},
		{"a sandbox or a file", "cross-site", "null", 403, 403},
		{"null in an old browser", "", "null", 403, 403},
		{"the other scheme in an old browser", "", "https://" + d.Addr(), 201, 401},
		{"a lie about the site", "cross-site", own, 403, 403},
		{"an unknown site", "same", own, 403, 403},
	}
	for _, p := range probes {
		headers := []servertest.Change{servertest.With("Sec-Fetch-Site", p.site), servertest.With("Origin", p.origin)}
		a := d.Do("POST", "agents/tidy/sessions", `{}`, headers...)
		if a.Status != p.bearer {
			t.Errorf("%s with a bearer token answered %d, not %d: %s", p.name, a.Status, p.bearer, a.Body)
		}
		headers = append(headers, servertest.With("Authorization", ""), servertest.With("Cookie", cookie))
		if a = d.Do("POST", "agents/tidy/sessions", `{}`, headers...); a.Status != p.cookie {
			t.Errorf("%s with a cookie answered %d, not %d: %s", p.name, a.Status, p.cookie, a.Body)
		}
		if p.cookie == 201 {
			continue
		}
		// The same holds for every method that changes something, on pages too.
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "BREW"} {
			for _, path := range []string{"/agents/new", "agents/tidy", "/signout", "/nowhere"} {
				if a := d.Do(method, path, nil, headers...); a.Status != p.cookie {
					t.Errorf("%s: %s %s with a cookie answered %d", p.name, method, path, a.Status)
				}
			}
		}
	}
	if a := d.Do("GET", "sessions", nil, servertest.With("Authorization", ""), servertest.With("Cookie", cookie)); a.Status != 200 {
		t.Errorf("reading with the cookie answered %d", a.Status)
	}
}

func TestSignIn_NeededEverywhere(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	// Known, unknown and wrong-method paths look alike to somebody who isn't signed in.
	paths := []string{
		"/api/v1/whoami", "/api/v1/nowhere", "/api/", "/api/v2/x", servertest.Base + "/agents", servertest.Base + "/agents/tidy",
		servertest.Base + "/nowhere", "/api/v1/workspaces/nowhere/agents", "/openapi.json", "/openapi.yaml", "/", "/sessions", "/static/app.css", "/metrics", "/nowhere", "//", "/api//v1",
	}
	owner := d.Token
	bad := map[string]servertest.Change{
		"nothing":         servertest.With("Authorization", ""),
		"wrong token":     servertest.With("Authorization", "Bearer stk_wrong"),
		"empty token":     servertest.With("Authorization", "Bearer "),
		"another scheme":  servertest.With("Authorization", "Basic b3duZXI6"+owner),
		"token alone":     servertest.With("Authorization", owner),
		"token in lower":  servertest.With("Authorization", "Bearer "+strings.ToLower(owner)),
		"token and more":  servertest.With("Authorization", "Bearer "+owner+" x"),
		"two tokens":      func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer x", "Bearer " + owner} },
		"token as cookie": func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Cookie", "stint_session=x") },
		"token in query":  func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + owner },
		"bad token beside a good cookie": func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer stk_wrong")
			r.Header.Set("Cookie", "stint_session="+owner)
		},
	}
	for what, change := range bad {
		first := map[string]string{} // by method
		for _, path := range paths {
			for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PUT"} {
				a := d.Do(method, path, nil, change)
				if a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") == "" {
					t.Fatalf("%s: %s %s answered %d", what, method, path, a.Status)
				}
				e := a.Problem(t)
				if first[method] == "" {
					first[method] = e.Detail
				}
				if e.Code != api.CodeUnauthenticated || e.Detail != first[method] {
					t.Fatalf("%s: %s %s tells itself apart: %s", what, method, path, e.Detail)
				}
				checkHeaders(t, method+" "+path, a)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/signin", "/signin.css", "/signin.woff2"} {
		if a := d.Do("GET", path, nil, bad["nothing"]); a.Status != 200 {
			t.Errorf("%s answered %d", path, a.Status)
		}
	}
	if a := d.Do("GET", "/api/v1/whoami", nil, servertest.With("Authorization", "bearer "+owner)); a.Status != 200 {
		t.Errorf("the scheme in lower case answered %d", a.Status)
	}
}

func checkHeaders(t *testing.T, what string, a servertest.Response) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %s is %q, not %q", what, name, got, want)
		}
	}
	policy := a.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("%s: the content policy is %q", what, policy)
	}
	if a.Header.Get("Stint-Request-Id") == "" {
		t.Errorf("%s carries no request id", what)
	}
	if a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%s lets other origins read", what)
	}
}

func TestMethods_WrongOnesAreToldTheRightOnes(t *testing.T) {
	d := measuredFixture(t)
	c := d.running()
	fill := strings.NewReplacer("{workspace}", "default", "{agent}", "tidy", "{session}", c.SessionID.String(),
		"{worker}", d.worker.ID.String(), "{thread}", c.Session.ThreadID.String())
	methods := map[string][]string{}
	for _, op := range servertest.Operations() {
		methods[op.Path] = append(methods[op.Path], op.Method)
	}
	for template, has := range methods {
		path := fill.Replace(template)
		want := map[string]bool{"OPTIONS": true}
		for _, m := range has {
			want[m] = true
			want["HEAD"] = want["HEAD"] || m == "GET"
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if want[method] && method != "HEAD" && method != "OPTIONS" {
				continue
			}
			a := d.Do(method, path, nil)
			checkHeaders(t, method+" "+path, a)
			switch {
			case method == "HEAD" && want["HEAD"]:
				if template == servertest.Base {
					continue
				}
				if get := d.Do("GET", path, nil); a.Status != get.Status || a.Header.Get("Content-Type") != get.Header.Get("Content-Type") || len(a.Body) > 0 {
					t.Errorf("HEAD %s answered %d %q, GET %d %q", path, a.Status, a.Header.Get("Content-Type"), get.Status, get.Header.Get("Content-Type"))
				}
				continue
			case method == "OPTIONS":
				if a.Status != http.StatusNoContent {
					t.Errorf("OPTIONS %s answered %d", path, a.Status)
				}
			case a.Status != http.StatusMethodNotAllowed:
				t.Errorf("%s %s answered %d", method, path, a.Status)
			case method != "HEAD" && a.Problem(t).Code != api.CodeMethodNotAllowed:
				t.Errorf("%s %s is no problem of its kind: %s", method, path, a.Body)
			}
			allow := map[string]bool{}
			for _, name := range strings.Split(a.Header.Get("Allow"), ", ") {
				allow[name] = true
			}
			for name := range want {
				if want[name] && !allow[name] {
					t.Errorf("%s %s: Allow is %q and lacks %s", method, path, a.Header.Get("Allow"), name)
				}
			}
			if allow[method] && method != "OPTIONS" {
				t.Errorf("%s %s: Allow lists the refused method", method, path)
			}
		}
	}
	for _, path := range []string{"/api/v1/nowhere", "/api", servertest.Base + "/", servertest.Base + "//agents", servertest.Base + "/agents/", servertest.Base + "/agents/tidy/../tidy", "/api/v1/workspaces/default/agents/tidy/sessions/x/y"} {
		a := d.Do("GET", path, nil)
		checkHeaders(t, path, a)
		if a.Status != 404 || a.Problem(t).Code != api.CodeNotFound {
			t.Errorf("%s answered %d", path, a.Status)
		}
	}
}

// page is a dashboard that says who is looking.
func page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, who, ok := server.CallerOf(r)
		switch {
		case r.URL.Path == "/panic":
			panic("a page panicked with secret-in-the-panic")
		case !ok:
			http.Error(w, "who?", http.StatusTeapot)
		case r.URL.Path == "/static/app.css":
			w.Header().Set("Cache-Control", "max-age=60")
		default:
			_, _ = w.Write([]byte("hello " + who.Name + " in " + in.Workspace))
		}
	})
}

func TestWeb_IsBehindTheSameDoor(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	cookie := d.cookie()
	browser := []servertest.Change{servertest.With("Authorization", ""), servertest.With("Cookie", cookie), servertest.With("Accept", "text/html,*/*")}
	a := d.Do("GET", "/sessions", nil, browser...)
	if a.Status != 200 || string(a.Body) != "hello owner in default" {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	checkHeaders(t, "/sessions", a)
	if policy := a.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:") {
		t.Errorf("a page's content policy is %q", policy)
	}
	if a := d.Do("GET", "/static/app.css", nil, browser...); a.Header.Get("Cache-Control") != "max-age=60" {
		t.Errorf("a page can't set its caching: %q", a.Header.Get("Cache-Control"))
	}
	// A person is shown the sign-in, and returns to the page they wanted.
	stranger := []servertest.Change{servertest.With("Authorization", ""), servertest.With("Accept", "text/html")}
	a = d.Do("GET", "/sessions?status=active", nil, stranger...)
	if a.Status != http.StatusSeeOther || a.Header.Get("Location") != "/signin?next=%2Fsessions%3Fstatus%3Dactive" {
		t.Errorf("answered %d to %q", a.Status, a.Header.Get("Location"))
	}
	// A fragment or a script isn't redirected.
	if a := d.Do("GET", "/sessions", nil, append(stranger, servertest.With("HX-Request", "true"))...); a.Status != 401 {
		t.Errorf("a fragment answered %d", a.Status)
	}
	if a := d.Do("GET", "/api/v1/whoami", nil, stranger...); a.Status != 401 {
		t.Errorf("the API answered %d", a.Status)
	}
	if _, _, ok := server.CallerOf(must(http.NewRequestWithContext(context.Background(), "GET", "/", nil))); ok {
		t.Error("a request from nowhere has a caller")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestPanic_IsAnsweredWithoutItsStack(t *testing.T) {
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) { o.Web = page() }})
	a := d.Do("GET", "/panic", nil)
	e := a.Problem(t)
	id := a.Header.Get("Stint-Request-Id")
	if a.Status != 500 || e.Code != api.CodeInternal || !strings.Contains(string(a.Body), `"requestId":"`+id+`"`) {
		t.Errorf("answered %d %s", a.Status, a.Body)
	}
	for _, leak := range []string{"secret-in-the-panic", "goroutine", ".go:"} {
		if strings.Contains(string(a.Body), leak) {
			t.Errorf("the answer tells %q: %s", leak, a.Body)
		}
	}
	checkHeaders(t, "/panic", a)
	if log := d.Log.String(); !strings.Contains(log, id) || !strings.Contains(log, "secret-in-the-panic") || !strings.Contains(log, "requests_test.go") {
		t.Error("the log has not the panic, its stack and the request's id")
	}
	if a := d.Do("GET", "/healthz", nil); a.Status != 200 {
		t.Errorf("after it /healthz answered %d", a.Status)
	}
}

func TestRoles_TooLowIsForbidden(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	viewer := d.As(d.AddUser(account.DefaultWorkspace, api.Viewer))
	viewer.Refused(403, api.CodeForbidden, "POST", "agents/tidy/sessions", m{})
	viewer.Refused(403, api.CodeForbidden, "PATCH", "agents/tidy", m{"name": "mine"})
	viewer.Refused(403, api.CodeForbidden, "DELETE", "agents/tidy", nil)
	servertest.Must[list](viewer, 200, "GET", "agents", nil)
	// Another user's local session is not there at all.
	mine := d.running()
	member := d.As(d.AddUser(account.DefaultWorkspace, api.Admin))
	member.Refused(404, api.CodeNotFound, "GET", "sessions/"+mine.SessionID.String(), nil)
	member.Refused(404, api.CodeNotFound, "POST", "sessions/"+mine.SessionID.String()+"/cancel", nil)
	member.Refused(404, api.CodeNotFound, "POST", d.at(mine.SessionID, "/complete"), proof(mine))
	if got := servertest.Must[list](member, 200, "GET", "sessions", nil); len(got.Items) != 0 {
		t.Errorf("the list shows another's local session: %v", got.Items)
	}
}
