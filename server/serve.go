package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"

	"github.com/gorilla/mux"

	"stint/account"
	"stint/api"
)

// ServeHTTP answers one request. Everything passes here, including what no route matches: the
// request's number, the security headers, the checks of Host, origin and sign-in, the log, and
// the recovery from a panic.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, here := s.below(r)
	x := &exchange{ResponseWriter: w, r: r, server: s, id: s.requests.next()}
	defer s.finish(x)
	if p := s.admit(x, here); p != nil {
		x.run(p)
	} else if x.status == 0 {
		s.serveWeb(x)
	}
}

// admit checks a request and finds what it is for: nil for a page, and for what it has answered
// itself. It is apart from ServeHTTP so that nothing of it is on the stack while a request waits.
func (s *Server) admit(x *exchange, here bool) *resource {
	r := x.r
	s.boundBody(x)
	h := x.Header()
	h["Stint-Request-Id"] = []string{x.id}
	isAPI := forPrograms(r.URL.Path)
	if isAPI {
		secure(h, headData)
	} else {
		secure(h, headPage)
	}
	if err := s.checkOrigin(r); err != nil {
		x.fail(err)
		return nil
	}
	if !here {
		x.fail(api.Refuse(api.CodeNotFound, "This server answers below "+s.public.base()+" alone. A proxy in front has to pass that path on."))
		return nil
	}
	if err := checkEncoding(r); err != nil {
		h["Accept-Encoding"] = []string{"identity"}
		x.fail(err)
		return nil
	}
	if p := s.open[r.URL.Path]; p != nil {
		return p
	}
	if strings.HasPrefix(r.URL.Path, triggerPath) {
		return s.hook
	}
	var err error
	if x.grant, err = s.signedIn(r.Context(), r); err != nil {
		x.turnAway(err)
		return nil
	}
	if r.URL.Path == mcpRoute {
		x.route = mcpRoute
		return s.tools
	}
	var match mux.RouteMatch
	if s.router.Match(r, &match) {
		x.vars, x.route = match.Vars, match.Route.GetName()
		return s.resources[match.Route.GetName()]
	}
	if isAPI || s.web == nil || redirected(r) {
		x.fail(errNoRoute)
	}
	return nil
}

// redirected reports whether a path that matches nothing as it is would be redirected to its
// short form (//api/… to /api/…) where that can't be: after a redirect clients don't repeat a
// write, or send something else, and programs ask for the exact path.
func redirected(r *http.Request) bool {
	short := path.Clean(r.URL.Path)
	if short == r.URL.Path || short+"/" == r.URL.Path {
		return false
	}
	return forPrograms(short) || r.Method != http.MethodGet && r.Method != http.MethodHead
}

// forPrograms reports whether a path is the API's; the pages that describe the API are below
// it too, but are for people.
func forPrograms(path string) bool {
	return path == mcpRoute || path == metricsRoute || strings.HasPrefix(path, triggerPath) || strings.HasPrefix(path, "/.well-known/") ||
		path == tokenRoute || path == revokeRoute || path == deviceRoute || path == registerRoute || strings.HasPrefix(path, "/api/") && path != "/api/docs" && !strings.HasPrefix(path, "/api/docs/")
}

// run calls the verb for the request's method on a resource.
func (x *exchange) run(p *resource) {
	method := x.r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	verb := p.verbs[method]
	if verb == nil {
		x.Header()["Allow"] = p.allow
		if method == http.MethodOptions {
			x.WriteHeader(http.StatusNoContent)
			return
		}
		x.fail(errNoMethod)
		return
	}
	if err := x.keyMay(method); err != nil {
		x.fail(err)
		return
	}
	if err := x.resolve(); err != nil {
		x.fail(err)
		return
	}
	a, err := verb(x.server, x)
	if err == nil {
		err = x.send(a)
	}
	if err != nil {
		x.fail(err)
	}
}

// resolve turns the names in the path into the caller's rights and into ids. A text that can't
// be an id matches nothing, so it is answered like an unknown one.
func (x *exchange) resolve() error {
	if x.vars["workspace"] == "" {
		return nil
	}
	ctx := x.r.Context()
	var err error
	if x.caller, err = x.server.rights.caller(ctx, x.grant, x.vars["workspace"]); err != nil {
		return err
	}
	x.caller.From = x.server.elsewhere(x.r)
	if text, ok := x.vars["session"]; ok {
		if x.session.UnmarshalText([]byte(text)) != nil {
			return api.Refuse(api.CodeNotFound, "There is no such session here.")
		}
	}
	if text, ok := x.vars["thread"]; ok {
		if x.thread.UnmarshalText([]byte(text)) != nil {
			return api.Refuse(api.CodeNotFound, "There is no such thread here.")
		}
	}
	if text, ok := x.vars["worker"]; ok {
		if x.worker.UnmarshalText([]byte(text)) != nil {
			return api.Refuse(api.CodeNotFound, "There is no such worker here.")
		}
		return x.server.rights.ofAgent(ctx, x.grant, x.caller, x.vars["agent"], x.worker)
	}
	return nil
}

// serveWeb passes a signed-in request on to the dashboard. A stream's context ends when the
// server shuts down.
func (s *Server) serveWeb(x *exchange) {
	ctx := context.WithValue(x.r.Context(), askingKey{}, asking{server: s, r: x.r})
	if !x.grant.who.Person() {
		x.fail(account.UserTokenRequired(""))
		return
	}
	if acceptsStream(x.r) {
		in, err := s.workspaceOf(ctx, x.r, x.grant)
		if err != nil {
			x.fail(err)
			return
		}
		x.vars = map[string]string{"workspace": in.Workspace}
		held, release, err := s.hold(x, heldStream)
		if err != nil {
			x.fail(err)
			return
		}
		defer release()
		ctx = context.WithValue(held, askingKey{}, asking{server: s, r: x.r})
	}
	s.web.ServeHTTP(x, x.r.WithContext(ctx))
}

// turnAway answers somebody who isn't signed in: a person opening a page is shown how to,
// anybody else is refused. Unknown paths get the same, so that nobody can find out which
// routes exist.
func (x *exchange) turnAway(err error) {
	page := x.r.Method == http.MethodGet && !forPrograms(x.r.URL.Path) &&
		strings.Contains(x.r.Header.Get("Accept"), "text/html") && x.r.Header.Get("HX-Request") == ""
	var refused *api.Error
	if !page || !errors.As(err, &refused) || refused.Code != api.CodeUnauthenticated {
		x.fail(err)
		return
	}
	_, _ = x.seeOther(signInPath(x.r.URL.RequestURI())) // which can't fail
}

// finish recovers from a panic and writes the log.
func (s *Server) finish(x *exchange) {
	if cause := recover(); cause != nil {
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(cause)
		}
		s.log.Error("panic in a request", "request", x.id, "method", x.r.Method, "path", loggedPath(x.r.URL.Path),
			"cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		if x.status != 0 {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
		x.problem(api.Refuse(api.CodeInternal, "Something went wrong in the server. Its log has more under this request id."))
	}
	s.logRequest(x)
}

// loggedPath is a path without the secret parts.
func loggedPath(path string) string {
	if strings.HasPrefix(path, triggerPath) {
		return triggerPath + "…"
	}
	return path
}

// logRequest writes one line for a request: no query, no header, no body, since any of them
// may hold a secret.
func (s *Server) logRequest(x *exchange) {
	level := slog.LevelDebug
	switch {
	case x.status >= http.StatusInternalServerError:
		level = slog.LevelError
	case x.status == http.StatusForbidden, x.status == http.StatusMisdirectedRequest, x.status == http.StatusTooManyRequests:
		level = slog.LevelWarn
	}
	ctx := x.r.Context()
	if !s.log.Enabled(ctx, level) {
		return
	}
	var user string
	if x.grant != nil {
		user = x.grant.who.UserID.String()
	}
	s.log.LogAttrs(ctx, level, "request", slog.String("request", x.id), slog.String("method", x.r.Method),
		slog.String("path", loggedPath(x.r.URL.Path)), slog.Int("status", x.status), slog.String("user", user))
}
