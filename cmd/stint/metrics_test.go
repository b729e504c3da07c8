package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// freeAddr is a loopback address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// The program counts what it does and tells it where it was asked to, by both doors.
func TestMetrics_OfTheProgram(t *testing.T) {
	h := newHome(t)
	addr := freeAddr(t)
	h.env = append(h.env, "STINT_METRICS_ADDR="+addr, "STINT_METRICS_TOKEN=between-us")
	url := h.serve(asIs, "up").ready()
	for _, door := range []struct{ url, token string }{{"http://" + addr, ""}, {url, "between-us"}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, door.url+"/metrics", nil)
		h.must(err)
		if door.token != "" {
			req.Header.Set("Authorization", "Bearer "+door.token)
		}
		resp, err := http.DefaultClient.Do(req)
		h.must(err)
		text, err := io.ReadAll(resp.Body)
		h.must(err)
		h.must(resp.Body.Close())
		for _, want := range []string{"\nstint_commit_seconds_count ", "\nstint_writes_refused 0", "stint_build_info{", "\ngo_goroutines "} {
			if resp.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
				t.Errorf("%s: %d without %q", door.url, resp.StatusCode, want)
			}
		}
		if strings.Contains(string(text), "\nstint_commit_seconds_count 0\n") {
			t.Errorf("%s: no commit was counted", door.url)
		}
	}
}
