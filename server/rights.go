package server

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"stint/api"
	"stint/engine"
)

const (
	cookieName = "stint_session"

	// rightsKept bounds how long a revoked token or a lost role still counts.
	// The contract allows 30 s (9.3).
	rightsKept = time.Second
)

// rights remembers for a moment who a token is and what it may do in a
// workspace, so that a worker's thousandth write costs no look-up. It keeps no
// token, only SHA-256 sums, and only of good ones.
type rights struct {
	engine *engine.Engine
	mu     sync.RWMutex // guards grants
	grants map[tokenSum]*grant
}

type tokenSum [sha256.Size]byte

// grant is what one token was found to allow. A timer drops it whole.
type grant struct {
	who     engine.Identity
	mu      sync.RWMutex // guards both maps
	callers map[string]engine.Caller
	workers map[workerPath]struct{} // workers found to be of the agent in the path
}

type workerPath struct {
	workspace api.WorkspaceID
	agent     string
	worker    api.WorkerID
}

func newRights(e *engine.Engine) *rights {
	return &rights{engine: e, grants: map[tokenSum]*grant{}}
}

// grant authenticates a token.
func (c *rights) grant(ctx context.Context, secret string) (*grant, error) {
	sum := tokenSum(sha256.Sum256([]byte(secret)))
	c.mu.RLock()
	g := c.grants[sum]
	c.mu.RUnlock()
	if g != nil {
		return g, nil
	}
	who, err := c.engine.Authenticate(ctx, secret)
	if err != nil {
		return nil, err
	}
	g = &grant{who: who, callers: map[string]engine.Caller{}, workers: map[workerPath]struct{}{}}
	c.mu.Lock()
	c.grants[sum] = g
	c.mu.Unlock()
	time.AfterFunc(rightsKept, func() { c.drop(sum, g) })
	return g, nil
}

func (c *rights) drop(sum tokenSum, g *grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.grants[sum] == g {
		delete(c.grants, sum)
	}
}

// forget makes the next request with this token look it up anew.
func (c *rights) forget(secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.grants, tokenSum(sha256.Sum256([]byte(secret))))
}

// caller is the grant's owner inside a workspace; 404 when he is no member.
func (c *rights) caller(ctx context.Context, g *grant, workspace string) (engine.Caller, error) {
	g.mu.RLock()
	in, ok := g.callers[workspace]
	g.mu.RUnlock()
	if ok {
		return in, nil
	}
	in, err := c.engine.In(ctx, g.who, workspace)
	if err != nil {
		return engine.Caller{}, err
	}
	g.mu.Lock()
	g.callers[workspace] = in
	g.mu.Unlock()
	return in, nil
}

// ofAgent checks that a worker is one of the agent that the path names.
func (c *rights) ofAgent(ctx context.Context, g *grant, in engine.Caller, agent string, id api.WorkerID) error {
	key := workerPath{workspace: in.WorkspaceID, agent: agent, worker: id}
	g.mu.RLock()
	_, ok := g.workers[key]
	g.mu.RUnlock()
	if ok {
		return nil
	}
	w, err := c.engine.Worker(ctx, in, id)
	if err != nil {
		return err
	}
	if agent != w.AgentSlug && agent != w.AgentID.String() {
		return api.Refuse(api.CodeNotFound, "This agent has no such worker.")
	}
	g.mu.Lock()
	g.workers[key] = struct{}{}
	g.mu.Unlock()
	return nil
}

// secretOf takes the token from a request: the bearer token, else the browser's
// cookie. A cookie is no proof of a write unless the browser says that one of
// our pages made it (contract 8.5). Empty means none.
func secretOf(r *http.Request) string {
	if sent := r.Header["Authorization"]; len(sent) > 0 {
		scheme, token, _ := strings.Cut(sent[0], " ")
		if len(sent) != 1 || !strings.EqualFold(scheme, "Bearer") {
			return ""
		}
		return strings.TrimSpace(token)
	}
	if !safe(r.Method) && !sameOrigin(r) {
		return ""
	}
	return cookieOf(r)
}

func cookieOf(r *http.Request) string {
	if c, err := r.Cookie(cookieName); err == nil {
		return c.Value
	}
	return ""
}

// signedIn answers who makes the request, or a 401.
func (s *Server) signedIn(ctx context.Context, r *http.Request) (*grant, error) {
	secret := secretOf(r)
	if secret == "" {
		return nil, api.Refuse(api.CodeUnauthenticated, "Sign in first: send a bearer token, or run `stint open` for the browser.")
	}
	return s.rights.grant(ctx, secret)
}

type asking struct {
	server *Server
	r      *http.Request
}

type askingKey struct{}

// CallerOf says who makes a request that the server passed on to Options.Web.
// It looks again on every call, so a page that streams calls it before each
// batch: false means that the rights ended, and so must the stream.
func CallerOf(r *http.Request) (engine.Caller, engine.Identity, bool) {
	a, ok := r.Context().Value(askingKey{}).(asking)
	if !ok {
		return engine.Caller{}, engine.Identity{}, false
	}
	g, err := a.server.signedIn(r.Context(), a.r)
	if err != nil {
		return engine.Caller{}, engine.Identity{}, false
	}
	in, err := a.server.rights.caller(r.Context(), g, defaultWorkspace)
	return in, g.who, err == nil
}

// defaultWorkspace is the one that the dashboard shows.
const defaultWorkspace = "default"
