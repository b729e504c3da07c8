package server_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

// door is what stands in front of a server: a real TLS listener with a proxy behind it.
type door struct {
	public  string // as the operator says it
	trusts  []string
	change  func(*httputil.ProxyRequest)    // of what is passed on
	instead http.HandlerFunc                // answers in place of the server
	around  func(http.Handler) http.Handler // of the proxy
	roots   func(*tls.Config)               // of the one who looks
}

// looked is what a doctor says of a server behind a door.
func looked(t *testing.T, o door) []api.Check {
	t.Helper()
	var back *url.URL
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(back)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
		if o.change != nil {
			o.change(r)
		}
	}}
	var handler http.Handler = proxy
	if o.instead != nil {
		handler = o.instead
	}
	if o.around != nil {
		handler = o.around(handler)
	}
	front := httptest.NewTLSServer(handler)
	t.Cleanup(front.Close)
	// The public name leads to the door, and its certificate is believed, as the world's would be.
	look := front.Client().Transport.(*http.Transport).Clone()
	look.DisableKeepAlives = true
	look.TLSClientConfig.ServerName = "example.com"
	if o.roots != nil {
		o.roots(look.TLSClientConfig)
	}
	t.Cleanup(look.CloseIdleConnections)
	if o.public == "" {
		o.public = "https://" + front.Listener.Addr().String()
	} else {
		o.public = strings.Replace(o.public, "front", front.Listener.Addr().String(), 1)
	}
	d := newFixture(t, servertest.Options{Server: func(s *server.Options) {
		s.Public, s.Outside = must(server.ParsePublic(o.public, nil, o.trusts)), look
	}})
	back = must(url.Parse(d.URL))
	got := servertest.Must[api.Examination](d.Server, 200, "GET", "doctor", nil)
	var out []api.Check
	for _, c := range got.Checks {
		if c.Name == api.CheckAddress {
			out = append(out, c)
		}
	}
	if bad := slices.ContainsFunc(out, func(c api.Check) bool { return !c.OK }); bad == got.Healthy {
		t.Errorf("healthy is %v with %+v", got.Healthy, got.Checks)
	}
	return out
}

// TestOutside_ProxiesAreMetAsABrowserWouldMeetThem puts proxies that do one thing wrong in
// front of a server.
func TestOutside_ProxiesAreMetAsABrowserWouldMeetThem(t *testing.T) {
	local := []string{"127.0.0.0/8"}
	whole := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kept := httptest.NewRecorder()
			next.ServeHTTP(kept, r)
			for name, values := range kept.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(kept.Code)
			_, _ = w.Write(kept.Body.Bytes())
		})
	}
	for name, row := range map[string]struct {
		door door
		code string
	}{
		"as it should be":      {door{trusts: local}, ""},
		"below a path":         {door{trusts: local, public: "https://front/stint"}, ""},
		"another host":         {door{trusts: local, change: func(r *httputil.ProxyRequest) { r.Out.Host = r.Out.URL.Host }}, api.FoundHostChanged},
		"a foreign host":       {door{trusts: local, change: func(r *httputil.ProxyRequest) { r.Out.Host = "backend" }}, api.FoundHostChanged},
		"nobody's request":     {door{trusts: local, change: func(r *httputil.ProxyRequest) { r.Out.Header.Del("X-Forwarded-For") }}, api.FoundNotForwarded},
		"a proxy not believed": {door{}, api.FoundNotTrusted},
		"a buffer":             {door{trusts: local, around: whole}, api.FoundBuffered},
		"the path taken off": {door{trusts: local, public: "https://front/stint", change: func(r *httputil.ProxyRequest) {
			r.Out.URL.Path = strings.TrimPrefix(r.Out.URL.Path, "/stint")
		}}, api.FoundPathChanged},
		"another program": {door{trusts: local, instead: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "It works!") }}, api.FoundForeign},
		"a redirect": {door{trusts: local, instead: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://front/login", http.StatusFound)
		}}, api.FoundForeign},
		"nobody":       {door{public: "https://127.0.0.1:1"}, api.FoundUnreachable},
		"no trust":     {door{trusts: local, roots: func(c *tls.Config) { c.RootCAs = nil }}, api.FoundUnreachable},
		"another name": {door{trusts: local, roots: func(c *tls.Config) { c.ServerName = "elsewhere.test" }}, api.FoundUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := looked(t, row.door)
			if len(got) != 1 || got[0].Code != row.code || got[0].OK != (row.code == "") || !got[0].OK && got[0].Mend == "" {
				t.Fatalf("it says %+v", got)
			}
			if strings.Contains(got[0].Detail, "127.0.0.1") {
				t.Errorf("it names an address: %s", got[0].Detail)
			}
		})
	}
}

// Nobody else gets a stream from /healthz, whatever name they send, and a look is good once.
func TestOutside_AForeignLookIsAnOrdinaryRequest(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	if a := d.Do("GET", "/healthz", nil, servertest.With("Stint-Look", "AAAAAAAAAAAAAAAAAAAAAAAAAA")); !strings.Contains(string(a.Body), `"status":"ok"`) {
		t.Errorf("it answers %d %s", a.Status, a.Body)
	}
}

// The certificate of the listener that httptest makes ends in 2084.
func TestOutside_SaysWhenTheCertificateEnds(t *testing.T) {
	d := newFixture(t, servertest.Options{Clock: func() time.Time { return time.Date(2084, 1, 25, 0, 0, 0, 0, time.UTC) }})
	front := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(front.Close)
	res, err := front.Client().Get(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := d.HTTP.Expiring(res.TLS); len(got) != 1 || got[0].Code != api.FoundCertificate || !strings.Contains(got[0].Detail, "2084-01-29") {
		t.Errorf("it says %+v", got)
	}
}
