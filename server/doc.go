// Package server is the coordinator's HTTP side: it turns a request into one engine verb and
// the verb's answer, or its refusal, into JSON.
//
// It decides who is asking (bearer token, browser cookie, sign-in by one-time link), which
// hosts and origins are accepted, how bodies are read, which status a refusal has, how long a
// request may be held, and runs the live stream. Every route is in one table (routes.go) and
// every status in another (errors.go).
//
// It decides nothing about agents, sessions or claims: a handler that needs an if about one of
// those belongs in the engine. It knows neither SQL nor pages; the dashboard is a handler that
// is mounted at the root, behind the same checks.
package server
