package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/web"
)

const (
	cookieName = "stint_session"

	// secureCookie is the cookie's name behind https: browsers accept a cookie of such a name
	// only from this host itself and only over https.
	secureCookie = "__Host-stint_session"

	// rightsCacheFor bounds how long a revoked token or a lost role still counts.
	// The contract allows 30 s (9.3).
	rightsCacheFor = time.Second
)

// rights remembers for a moment whose a token is and what it may do in a workspace, so that a
// worker's thousandth write needs no look-up. It keeps no token, only SHA-256 sums, and only
// of good ones.
type rights struct {
	engine   *engine.Engine
	accounts *account.Accounts
	mu       sync.RWMutex // guards what follows
	grants   map[tokenSum]*grant
	asking   map[tokenSum]chan struct{} // closed once the answer is known
	asked    int                        // so far
	waited   int                        // for a look-up in progress, so far
}

type tokenSum [sha256.Size]byte

// grant is what one token was found to allow. A timer drops it whole.
type grant struct {
	who     account.Identity
	epoch   uint64       // the engine's at the time of the look-up
	mu      sync.RWMutex // guards both maps
	callers map[string]engine.Caller
	workers map[workerPath]struct{} // workers found to be of the agent in the path
}

type workerPath struct {
	workspace api.WorkspaceID
	agent     string
	worker    api.WorkerID
}

func newRights(e *engine.Engine, a *account.Accounts) *rights {
	return &rights{engine: e, accounts: a, grants: map[tokenSum]*grant{}, asking: map[tokenSum]chan struct{}{}}
}

// grant authenticates a token.
func (c *rights) grant(ctx context.Context, secret string) (*grant, error) {
	sum := tokenSum(sha256.Sum256([]byte(secret)))
	g, done, err := c.known(ctx, sum)
	if err != nil || g != nil {
		return g, err
	}
	defer done()
	epoch := c.accounts.Epoch()
	who, err := c.accounts.Authenticate(ctx, secret)
	if err != nil {
		return nil, err
	}
	g = &grant{who: who, epoch: epoch, callers: map[string]engine.Caller{}, workers: map[workerPath]struct{}{}}
	if who.Run != nil {
		return g, nil // not kept: it ends with its claim, which changes no epoch
	}
	c.mu.Lock()
	c.grants[sum] = g
	c.mu.Unlock()
	time.AfterFunc(rightsCacheFor, func() { c.drop(sum, g) })
	return g, nil
}

// known returns what is remembered about a token. When nothing is, it waits for a look-up in
// progress, so that thousands of held requests with one token cause one look-up, not one each;
// if there is none it is the caller's turn, which calls done afterwards.
func (c *rights) known(ctx context.Context, sum tokenSum) (g *grant, done func(), err error) {
	for {
		c.mu.RLock()
		g = c.grants[sum]
		c.mu.RUnlock()
		if g != nil && g.epoch == c.accounts.Epoch() {
			return g, nil, nil
		}
		c.mu.Lock()
		others := c.asking[sum]
		if others == nil {
			mine := make(chan struct{})
			c.asking[sum] = mine
			c.asked++
			c.mu.Unlock()
			return nil, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.asking, sum)
				close(mine)
			}, nil
		}
		c.waited++
		c.mu.Unlock()
		select {
		case <-others:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (c *rights) drop(sum tokenSum, g *grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.grants[sum] == g {
		delete(c.grants, sum)
	}
}

// caller is the grant's owner inside a workspace; 404 when they are not a member.
func (c *rights) caller(ctx context.Context, g *grant, workspace string) (engine.Caller, error) {
	g.mu.RLock()
	in, ok := g.callers[workspace]
	g.mu.RUnlock()
	if ok {
		return in, nil
	}
	in, err := c.accounts.In(ctx, g.who, workspace)
	if err != nil {
		return engine.Caller{}, err
	}
	g.mu.Lock()
	g.callers[workspace] = in
	g.mu.Unlock()
	return in, nil
}

// ofAgent checks that a worker belongs to the agent that the path names.
func (c *rights) ofAgent(ctx context.Context, g *grant, in engine.Caller, agent string, id api.WorkerID) error {
	key := workerPath{workspace: in.WorkspaceID, agent: agent, worker: id}
	g.mu.RLock()
	_, ok := g.workers[key]
	g.mu.RUnlock()
	if ok {
		return nil
	}
	if err := c.engine.ServesAgent(ctx, in, id, agent); err != nil {
		return err
	}
	g.mu.Lock()
	g.workers[key] = struct{}{}
	g.mu.Unlock()
	return nil
}

// secretOf takes the token from a request: the bearer token, else the browser's cookie. A
// cookie doesn't authenticate a write unless the browser says that one of our pages made it
// (contract 8.5). Empty means none.
func (s *Server) secretOf(r *http.Request) string {
	if sent := r.Header["Authorization"]; len(sent) > 0 {
		scheme, token, _ := strings.Cut(sent[0], " ")
		if len(sent) != 1 || !strings.EqualFold(scheme, "Bearer") {
			return ""
		}
		return strings.TrimSpace(token)
	}
	if !safe(r.Method) && !s.sameOrigin(r) {
		return ""
	}
	if key := s.calendarKey(r); key != "" {
		return key
	}
	return s.cookieOf(r)
}

func (s *Server) cookieOf(r *http.Request) string {
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		return c.Value
	}
	return ""
}

func (s *Server) cookieName(r *http.Request) string {
	if s.secure(r) {
		return secureCookie
	}
	return cookieName
}

// signedIn returns who makes the request, or a 401.
func (s *Server) signedIn(ctx context.Context, r *http.Request) (*grant, error) {
	secret := s.secretOf(r)
	if secret == "" {
		return nil, api.Refuse(api.CodeUnauthenticated, "Sign in first: send a bearer token, or run `stint open` for the browser.")
	}
	g, err := s.rights.grant(ctx, secret)
	if err == nil && !mayUse(g.who.Resource, r) {
		return nil, errOtherResource
	}
	return g, err
}

var errOtherResource = api.Refuse(api.CodeUnauthenticated, "This token is for another part of the server.")

type asking struct {
	server *Server
	r      *http.Request
}

type askingKey struct{}

// CallerOf says who makes a request that the server passed on to Options.Web, in the workspace
// that the browser chose, else in the first that is theirs. It looks again on every call, so a
// page that streams calls it before each batch: false means that the rights ended, and so must
// the stream.
func CallerOf(r *http.Request) (engine.Caller, account.Identity, bool) {
	a, ok := r.Context().Value(askingKey{}).(asking)
	if !ok {
		return engine.Caller{}, account.Identity{}, false
	}
	g, err := a.server.signedIn(r.Context(), a.r)
	if err != nil || !g.who.Person() {
		return engine.Caller{}, account.Identity{}, false
	}
	in, err := a.server.workspaceOf(r.Context(), a.r, g)
	in.From = a.server.elsewhere(a.r)
	return in, g.who, err == nil
}

// HomeOf is the URL by which people reach the server of a request.
func HomeOf(r *http.Request) string {
	a, ok := r.Context().Value(askingKey{}).(asking)
	if !ok {
		return ""
	}
	return a.server.home(a.r)
}

// FromOf says where a request comes from, for what it signs in.
func FromOf(r *http.Request) account.From {
	a, ok := r.Context().Value(askingKey{}).(asking)
	if !ok {
		return account.From{}
	}
	return a.server.from(a.r)
}

func (s *Server) workspaceOf(ctx context.Context, r *http.Request, g *grant) (engine.Caller, error) {
	if c, err := r.Cookie(web.WorkspaceCookie); err == nil && c.Value != "" {
		if in, err := s.rights.caller(ctx, g, c.Value); err == nil {
			return in, nil
		}
	}
	in, err := s.rights.caller(ctx, g, account.DefaultWorkspace)
	if err == nil {
		return in, nil
	}
	all, listErr := s.accounts.Workspaces(ctx, g.who)
	if listErr != nil || len(all) == 0 {
		return engine.Caller{}, errors.Join(err, listErr)
	}
	return s.rights.caller(ctx, g, all[0].Slug)
}
