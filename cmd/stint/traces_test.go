package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"stint/api"
)

// The program sends what it has before its end, to the address that the environment names.
func TestTraces_OfTheProgram(t *testing.T) {
	var sent atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" {
			sent.Add(r.ContentLength)
		}
	}))
	defer collector.Close()
	h := newHome(t)
	h.env = append(h.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	p := h.serve(asIs, "serve")
	c := p.client(nil)
	defer c.HTTP().CloseIdleConnections()
	_, err := c.CreateAgent(t.Context(), map[string]any{"slug": "one", "run": map[string]any{"command": []string{"true"}}})
	h.must(err)
	s, _, err := c.CreateSession(t.Context(), "one", api.SessionInput{}, "")
	h.must(err)
	_, err = c.CancelSession(t.Context(), s.ID, api.CancelInput{})
	h.must(err)
	p.stop()
	if sent.Load() < 200 {
		t.Errorf("the collector got %d bytes", sent.Load())
	}
}
