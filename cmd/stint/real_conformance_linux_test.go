//go:build agents

package main

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// conformanceVar names the folder of the Model Context Protocol's conformance suite, with its
// own node.
const conformanceVar = "STINT_TEST_CONFORMANCE"

// applicable are the suite's scenarios that a server without tools of the suite's own can be
// put to. The others call tools, prompts and resources that such a test server has.
var applicable = []string{
	"server-initialize", "ping", "tools-list", "logging-set-level", "server-sse-multiple-streams",
	"resources-list", "prompts-list", "dns-rebinding-protection",
}

// The suite knows no token, so a proxy adds it; the proxy's own address becomes the server's,
// any other is passed on as it is.
func TestConformance_ToMCP(t *testing.T) {
	bin := os.Getenv(conformanceVar)
	if bin == "" {
		t.Fatalf("%s names no folder: run make test-agents", conformanceVar)
	}
	h := newHome(t)
	address := h.serve(asIs, "serve").ready()
	token, err := h.data().readToken()
	h.must(err)
	to, err := url.Parse(address)
	h.must(err)
	proxy := httptest.NewUnstartedServer(nil)
	proxy.Config.Handler = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		_, port, _ := strings.Cut(proxy.Listener.Addr().String(), ":")
		if r.Out.Host = r.In.Host; slices.Contains([]string{"127.0.0.1:" + port, "localhost:" + port}, r.In.Host) {
			r.Out.Host = to.Host
			if strings.HasSuffix(r.In.Header.Get("Origin"), "//"+r.In.Host) {
				r.Out.Header.Set("Origin", address)
			}
		}
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	proxy.Start()
	defer proxy.Close()
	for _, scenario := range applicable {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "node"), filepath.Join(bin, "conformance"), "server", "--url", proxy.URL+"/mcp", "--scenario", scenario)
		cmd.Dir = h.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", scenario, err, out)
		}
	}
}
