package server

import (
	"net/http"

	"stint/web"
)

// The values of the headers that every response carries. They are shared between responses; a
// handler that wants another value replaces the header.
var (
	headNoSniff  = []string{"nosniff"}
	headReferrer = []string{"no-referrer"}
	headOpener   = []string{"same-origin"}
	headNoStore  = []string{"no-store"}
	headPage     = []string{web.PagePolicy}
	headData     = []string{web.DataPolicy}
	headJSON     = []string{"application/json"}
	headProblem  = []string{"application/problem+json"}
)

// secure sets the headers that keep a response from being read, framed or kept elsewhere.
func secure(h http.Header, policy []string) {
	h["Content-Security-Policy"] = policy
	h["X-Content-Type-Options"] = headNoSniff
	h["Referrer-Policy"] = headReferrer
	h["Cross-Origin-Opener-Policy"] = headOpener
	h["Cross-Origin-Resource-Policy"] = headOpener
	h["Cache-Control"] = headNoStore
}
