package main

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"stint/api"
)

// below is a server whose public URL has a path, behind a proxy that speaks https and passes
// on nothing else.
type below struct {
	*browserFixture
	url string // the public one
}

func newBelow(t *testing.T) *below {
	t.Helper()
	var inner atomic.Pointer[url.URL]
	pass := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(inner.Load())
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}}
	mux := http.NewServeMux()
	mux.Handle("/stint/", pass)
	proxy := httptest.NewUnstartedServer(mux)
	proxy.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // readers leave, one may not trust it
	pass.ErrorLog = proxy.Config.ErrorLog
	proxy.StartTLS()
	t.Cleanup(proxy.Close)

	h := newHome(t)
	trusted := filepath.Join(h.dir, "proxy.pem")
	h.must(os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw}), 0o600))
	b := &below{browserFixture: &browserFixture{home: h}, url: proxy.URL + "/stint"}
	h.env = append(h.env, "SSL_CERT_FILE="+trusted, "STINT_BASE_URL="+b.url, "STINT_TRUSTED_PROXIES=127.0.0.1")
	b.program = h.serve(asIs, "serve")
	u, err := url.Parse(b.program.ready())
	h.must(err)
	inner.Store(u)
	b.client = b.program.client(nil)
	return b
}

// A browser, a program and a worker that only know a server by a public URL with a path: they
// sign in, work, and never ask for anything outside that path.
func TestBrowser_BelowAPath(t *testing.T) {
	d := newBelow(t)
	_, err := d.client.SetLogin(t.Context(), api.LoginInput{Login: "ann", Name: "Ann", Password: "correct horse battery"})
	d.must(err)
	d.agent("counter", counting)
	d.agent("short", "echo done")

	token, err := d.client.Token(t.Context())
	d.must(err)
	elsewhere := *d.home
	elsewhere.env = append(slices.Clone(d.env), "STINT_URL="+d.url+"/", "STINT_TOKEN="+token)
	elsewhere.start(asIs, "worker", "run", "--state-dir", filepath.Join(d.dir, "worker"))

	p := openTab(t, d.url)
	p.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
		return err
	})
	p.expect("favicon")
	p.goTo("/agents?after=a")
	p.until(`location.pathname === "/stint/signin" && document.querySelector("#password")`)
	p.fill("login", "ann")
	p.fill("password", "correct horse battery")
	p.submit("main form")
	p.until(`location.pathname + location.search === "/stint/agents?after=a"`)

	s := d.run("counter", api.SessionInput{Prompt: new("Count, please.")}, api.Active)
	p.goTo("/sessions/" + s.ID.String())
	p.until(`document.querySelector("#live").dataset.state === "live" && document.querySelector("#log-lines").innerText.includes("line 2")`)
	loaded := eval[float64](p, `performance.timeOrigin`)
	p.until(`document.querySelector("#log-lines").innerText.includes("line 9")`)
	if again := eval[float64](p, `performance.timeOrigin`); again != loaded {
		t.Error("the lines came by loading the page again")
	}
	p.goTo("/sessions/" + s.ID.String() + "/cancel")
	p.submit(`main form.ask`)
	p.until(`location.pathname === "/stint/sessions/` + s.ID.String() + `" && document.querySelector("#session-head .s-cancelled")`)
	// Links that the live stream put into the page lead below the path too.
	if beside := eval[string](p, `[...document.querySelectorAll("[href], [src], [action]")].map(e => e.getAttribute("href") ?? e.getAttribute("src") ?? e.getAttribute("action")).filter(a => a.startsWith("/") && !a.startsWith("/stint/")).join(" ")`); beside != "" {
		t.Errorf("the page leads to %s", beside)
	}
	p.goTo("/agents/new")
	p.fill("schedule", "30 2 * * *")
	p.until(`document.querySelector("#schedule-says").innerText.includes("02:30")`)

	login, said := d.beside(d.env, "login", "--url", d.url, "--name", "below", "--device")
	var code []string
	d.wait("a code", func() bool {
		code = shownCode.FindStringSubmatch(said())
		return code != nil
	})
	if code[1] != d.url+"/device" {
		t.Errorf("the code is to be typed at %s", code[1])
	}
	p.goTo("/device")
	p.fill("user_code", code[2])
	p.submit("main form")
	p.says("stint-cli/")
	eval[bool](p, `(b => { b.click(); return true })(document.querySelector("button[value=allow]"))`)
	p.says("The program goes on")
	if err := login(); err != nil {
		t.Fatalf("login ends with %v: %s", err, said())
	}
	for words, args := range map[string][]string{
		d.url: {"whoami"}, "complete after": {"run", "short", "--wait"}, d.url + "/invitation#": {"member", "invite", "viewer"}, d.url + "/hooks/": {"trigger-url", "open", "short"},
	} {
		cmd := exec.Command(d.self(), args...)
		cmd.Args[0], cmd.Env = "stint", d.env
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), words) {
			t.Errorf("stint %s: %v, it says %s", strings.Join(args, " "), err, out)
		}
	}
	p.goTo("/settings/account")
	p.submit("main form[action='/stint/signout']")
	p.until(`location.pathname === "/stint/signin"`)
}
