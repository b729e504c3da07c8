package server_test

import (
	"net/http"
	"testing"

	"stint/server/servertest"
	"stint/web"
)

// Pages that need no sign-in and the dashboard obey one policy.
func TestPages_HaveOneContentPolicy(t *testing.T) {
	s := servertest.New(t, servertest.Options{})
	for _, path := range []string{"/signin", "/", "/setup"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		got, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if policy := got.Header.Get("Content-Security-Policy"); policy != web.PagePolicy {
			t.Errorf("%s: %d with the policy %q", path, got.StatusCode, policy)
		}
	}
}
