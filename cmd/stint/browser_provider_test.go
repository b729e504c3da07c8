package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

// A real browser, with its content policy and its cookie rules in force, goes to a real
// provider on another site and comes back: to link, and then to sign in.
func TestBrowser_SignsInThroughAProvider(t *testing.T) {
	there := httptest.NewUnstartedServer(nil)
	issuer := "http://" + there.Listener.Addr().String() + "/"
	there.Config.Handler = exampleop.SetupServer(issuer, storage.NewStorage(storage.NewUserStore(issuer)), nil, false)
	there.Start()
	t.Cleanup(there.Close)

	h := newHome(t)
	secret := filepath.Join(h.dir, "client-secret")
	h.must(os.WriteFile(secret, []byte("acme's secret\n"), 0o600))
	h.env = append(h.env, "STINT_OIDC_ISSUER="+issuer, "STINT_OIDC_CLIENT_ID="+issuer, "STINT_OIDC_CLIENT_SECRET_FILE="+secret, "STINT_OIDC_NAME=Acme",
		"STINT_OIDC_INSIDE=true")
	p := h.serve(asIs, "up")
	d := &browserFixture{home: h, program: p, client: p.client(nil)}
	page := d.browse()
	storage.RegisterClients(storage.WebClient(issuer, "acme's secret", page.base+"/signin/provider/callback"))
	page.expect("foreign request: "+issuer, "favicon")
	page.theme("light") // and without moving from page to page: one of them redirects at once
	click := func(selector string) {
		page.until(`document.querySelector("` + selector + `")`)
		eval[bool](page, `(e => { e.click(); return true })(document.querySelector("`+selector+`"))`)
	}
	atProvider := func() {
		page.until(`location.pathname === "/login/username" && document.querySelector("form")`)
		eval[bool](page, `(f => { f.username.value = "test-user@127.0.0.1"; f.password.value = "verysecure"; f.submit(); return true })(document.querySelector("form"))`)
	}

	page.goTo("/settings/account")
	click("a[href='/signin/provider/link']")
	page.says("You sign in at Acme now")
	page.submit("main form")
	atProvider()
	page.until(`location.pathname === "/settings/account" && document.querySelector("main").innerText.includes("test-user@zitadel.ch")`)

	page.submit("main form[action='/signout']")
	page.until(`location.pathname === "/signin"`)
	page.goTo("/signin?next=/workers")
	click("a[href^='/signin/provider?']")
	atProvider()
	page.until(`location.pathname === "/workers" && document.querySelector("h1")`)
	if got := eval[string](page, `document.cookie`); strings.Contains(got, "stint_session") || strings.Contains(got, "stint_oidc") {
		t.Errorf("a script of a page can read %q", got)
	}
}
