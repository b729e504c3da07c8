package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stint/api"
	"stint/server/mcp"
	"stint/web"
)

// mcpRoute is the endpoint of the Model Context Protocol, and the part of this server that
// tokens can be for alone (RFC 8707). It isn't in the OpenAPI document: what it offers is.
const mcpRoute = "/mcp"

var mcpRoutes = []route{{post, mcpRoute, (*Server).mcp}}

// newMCP makes the handler of the protocol. It is stateless: every request says all, so that
// any of them can come to another process.
func (s *Server) newMCP() (http.Handler, error) {
	tools, err := mcp.NewServer(mcp.Options{Version: s.version, Log: s.log, Caller: mcpCaller})
	if err != nil {
		return nil, fmt.Errorf("make the tools: %w", err)
	}
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return tools }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, Logger: s.log,
		DisableLocalhostProtection: true, // ours is exact, for every path
	}), nil
}

type mcpCallerKey struct{}

func mcpCaller(ctx context.Context) (mcp.Caller, error) {
	c, ok := ctx.Value(mcpCallerKey{}).(mcp.Caller)
	if !ok {
		return mcp.Caller{}, errors.New("a tool is called outside a request")
	}
	return c, nil
}

// mcp answers a request of the protocol. Its tools make the calls of the API inside this
// process, with the same token, so that every check of the API counts for them too. A
// browser's cookie is no such token.
func (s *Server) mcp(x *exchange) (response, error) {
	if x.r.Header["Authorization"] == nil {
		return response{}, api.Refuse(api.CodeUnauthenticated, "Send a bearer token; a browser's sign-in doesn't count here.")
	}
	workspace, err := s.mcpWorkspace(x)
	if err != nil {
		return response{}, err
	}
	client, err := api.NewClient(api.ClientConfig{
		URL: "http://127.0.0.1", Token: s.secretOf(x.r), Workspace: workspace, Agent: x.r.UserAgent(), Transport: inside{s, x.r},
	})
	if err != nil {
		return response{}, err
	}
	sent, err := x.readBody()
	if err != nil {
		return response{}, err
	}
	defer sent.give()
	handler, err := s.mcpHandler()
	if err != nil {
		return response{}, err
	}
	caller := mcp.Caller{Client: client, Pages: s.home(x.r)}
	for _, scope := range strings.Fields(x.grant.who.Granted) {
		caller.Scopes = append(caller.Scopes, mcp.Scope(scope))
	}
	// A program that can ask its person for more learns of it before the tool is called, in the
	// protocol's own way. A key or a run's token can't be given more: their tool refuses.
	needs := mcp.Needs(sent.bytes())
	if err := caller.May(needs...); err != nil {
		x.Header().Set("WWW-Authenticate", x.scopeChallenge(needs))
		return response{}, err
	}
	r := x.r.WithContext(context.WithValue(x.r.Context(), mcpCallerKey{}, caller))
	r.Body = io.NopCloser(bytes.NewReader(bytes.Clone(sent.bytes()))) // a tool may outlive the request
	handler.ServeHTTP(x, r)
	return response{written: true}, nil
}

// mcpWorkspace is the workspace that the tools act in: the one that the address names, else
// that of the key or run, else the caller's first.
func (s *Server) mcpWorkspace(x *exchange) (string, error) {
	q := x.query()
	named := q.text("workspace")
	if err := q.end(); err != nil {
		return "", err
	}
	ctx := x.r.Context()
	if named == "" && x.grant.who.WorkspaceID != 0 {
		named = x.grant.who.WorkspaceID.String()
	}
	if named != "" {
		in, err := s.rights.caller(ctx, x.grant, named)
		return in.Workspace, err
	}
	in, err := s.workspaceOf(ctx, x.r, x.grant)
	return in.Workspace, err
}

// inside carries a tool's calls to the server itself, as if the caller had made them by the
// connection of the tool's own request.
type inside struct {
	server *Server
	outer  *http.Request
}

type insideKey struct{}

// RoundTrip is part of http.RoundTripper.
func (t inside) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	r = r.Clone(context.WithValue(r.Context(), insideKey{}, true))
	r.Host, r.RemoteAddr, r.RequestURI = t.outer.Host, t.outer.RemoteAddr, r.URL.RequestURI()
	r.URL.Path = t.server.public.base() + r.URL.Path
	if r.URL.RawPath != "" {
		r.URL.RawPath = t.server.public.base() + r.URL.RawPath
	}
	if via := t.outer.Header.Values("X-Forwarded-For"); via != nil {
		r.Header["X-Forwarded-For"] = via
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	defer func() {
		if cause := recover(); cause != nil { // which the server has logged
			err = errors.New("the request broke off")
		}
	}()
	t.server.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	begun  bool
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if !w.begun {
		w.begun, w.status = true, status
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.begun = true
	return w.body.Write(b)
}

// mayUse reports whether a token may be used for what a request asks for: one that is for the
// tools alone is good for their endpoint, and for the calls that they make.
func mayUse(resource string, r *http.Request) bool {
	return resource == "" || resource == mcpRoute && (r.URL.Path == mcpRoute || r.Context().Value(insideKey{}) != nil)
}

// partOf is the part of this server that a request is for: its path, "" for the API.
func partOf(r *http.Request) string {
	if r.URL.Path == mcpRoute || r.URL.Path == resourceRoute+mcpRoute {
		return mcpRoute
	}
	return ""
}

// metadataOf is the address that says who signs people in for a part of this server (RFC 9728).
func (s *Server) metadataOf(r *http.Request) string {
	return s.origin(r) + resourceRoute + web.BaseOf(r.Context()) + partOf(r)
}
