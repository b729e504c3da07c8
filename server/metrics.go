package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"stint/api"
)

// metricsRoute is where Prometheus reads, with the token that was set for it.
const metricsRoute = "/metrics"

// showMetrics answers who has the token; the route is open only where one is set.
func (s *Server) showMetrics(x *exchange) (response, error) {
	given, ok := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	if a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.metricsToken)); !ok || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		x.Header()["Www-Authenticate"] = []string{`Bearer realm="metrics"`}
		return response{}, api.Refuse(api.CodeUnauthenticated, "The metrics are read with the token that the server was given as STINT_METRICS_TOKEN, as a bearer token.")
	}
	s.metrics.ServeHTTP(x, x.r)
	return response{written: true}, nil
}

// MetricsAlone answers with metrics at /metrics and nothing else, for a listener of their own.
func MetricsAlone(metrics http.Handler) http.Handler {
	all := http.NewServeMux()
	all.Handle("GET "+metricsRoute, metrics)
	return all
}
