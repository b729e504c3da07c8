package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"

	"stint/account"
	"stint/engine"
	"stint/server/provider"
)

const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second  // for the whole of a body, at most 1 MiB
	answerTimeout = 2 * time.Minute   // longer than any held request; streams set their own
	idleTimeout   = 100 * time.Second // longer than the client keeps a connection
	maxHeader     = 32 << 10
)

// Options says what a server serves.
type Options struct {
	Engine    *engine.Engine
	Accounts  *account.Accounts  // of the engine's store
	Web       http.Handler       // the dashboard, mounted at /; nil = none. It calls CallerOf to learn who asks.
	Addr      string             // host:port that is listened on; its port is part of the Host check
	Version   string             // of the program, shown by /healthz
	Log       *slog.Logger       // nil = slog.Default()
	Public    Public             // how other machines reach it; the zero value = they don't
	Provider  *provider.Provider // through which people may sign in; nil = none
	Registers bool               // programs may register themselves as OAuth clients

	Metrics      http.Handler // what /metrics answers with; nil = nothing
	MetricsToken string       // who may read it; "" = nobody

	Limits Limits // of what is held at a time; the zero value = DefaultLimits

	Outside http.RoundTripper // by which it looks at its public URL; nil = as other programs of this machine
}

// Server answers HTTP for one engine. Its methods may be called from any goroutine.
type Server struct {
	engine   *engine.Engine
	accounts *account.Accounts
	web      http.Handler
	public   Public
	version  string

	provider  *provider.Provider // nil = none
	registers bool

	metrics      http.Handler // nil = none
	metricsToken string       // "" = nobody may read them

	log *slog.Logger

	router    *mux.Router
	resources map[string]*resource // by path template
	open      map[string]*resource // by path; these need no sign-in
	hosts     atomic.Pointer[hostList]
	origins   *http.CrossOriginProtection
	rights    *rights
	held      map[heldKind]*holds
	triggers  paces
	hook      *resource // for every trigger URL
	tools     *resource // for programs that speak the Model Context Protocol
	requests  requestIDs
	outside   http.RoundTripper
	looks     looks
	examining chan struct{} // whoever examines holds its one place

	mcpHandler func() (http.Handler, error) // made when it is first needed

	closing context.Context // ends when shutdown begins: held requests and streams end with it
	close   context.CancelFunc

	heartbeat time.Duration // between comments on a silent stream
	recheck   time.Duration // how often a held request's rights are checked again
	drain     time.Duration // for requests in progress at shutdown
	bodyLeft  time.Duration // for bodies in progress at shutdown, less than drain
}

// New makes a server. Call Handler for its handler, or Serve to listen.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Outside == nil {
		o.Outside = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	closing, stop := context.WithCancel(context.Background())
	s := &Server{
		engine: o.Engine, accounts: o.Accounts, web: o.Web, public: o.Public, version: o.Version, provider: o.Provider, registers: o.Registers, log: o.Log,
		origins: http.NewCrossOriginProtection(),
		rights:  newRights(o.Engine, o.Accounts),
		held: map[heldKind]*holds{
			heldWait: newHolds(o.Limits.Waits, "held requests"), heldStream: newHolds(o.Limits.Streams, "live streams"),
		},
		requests: newRequestIDs(),
		outside:  o.Outside, examining: make(chan struct{}, 1),
		metrics: o.Metrics, metricsToken: o.MetricsToken,
		closing:   closing,
		close:     stop,
		heartbeat: 15 * time.Second,
		recheck:   3 * time.Second,
		drain:     4 * time.Second,
		bodyLeft:  2500 * time.Millisecond,
	}
	s.hosts.Store(newHostList(o.Addr, o.Public.names()...))
	s.router, s.resources = newRouter(allRoutes())
	s.open = newResources(openRoutes)
	if o.Metrics == nil || o.MetricsToken == "" {
		delete(s.open, metricsRoute) // nobody may read them, and nobody learns that
	}
	s.hook = newResources(hookRoutes)[hookRoutes[0].path]
	s.tools, s.mcpHandler = newResources(mcpRoutes)[mcpRoute], sync.OnceValues(s.newMCP)
	return s
}

// Handler answers everything: API, sign-in, dashboard.
func (s *Server) Handler() http.Handler { return s }

// Serve answers on ln until ctx ends, then lets requests in progress finish and returns within
// 5 s; what clients still delay by then is cut off. Streams and held requests are ended first.
// The listener must be one that CheckAddr allows.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	if ln.Addr().Network() == "tcp" {
		if err := CheckAddr(ln.Addr().String(), s.public); err != nil {
			return errors.Join(err, ln.Close())
		}
		s.hosts.Store(newHostList(ln.Addr().String(), s.public.names()...))
	}
	var conns openConns
	hs := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         conns.note,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(ln) }()
	select {
	case err := <-failed:
		s.close()
		return fmt.Errorf("serve on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	s.close()
	// From Shutdown on net/http drops what it reads, without an answer: nobody may be left who has
	// connected and not yet asked.
	err := ln.Close()
	if end := <-failed; !errors.Is(end, net.ErrClosed) {
		err = errors.Join(err, end)
	}
	conns.settle()
	return errors.Join(err, s.stop(ctx, hs, &conns))
}
