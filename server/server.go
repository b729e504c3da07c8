package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"

	"stint/engine"
	"stint/server/provider"
)

const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second  // for the whole of a body, at most 1 MiB
	answerTimeout = 2 * time.Minute   // longer than any held request; streams set their own
	idleTimeout   = 100 * time.Second // longer than the client keeps a connection
	maxHeader     = 32 << 10
	drainTime     = 4 * time.Second // for requests under way at shutdown
)

// Options says what a server serves.
type Options struct {
	Engine    *engine.Engine
	Web       http.Handler       // the dashboard, mounted at /; nil = none. It asks CallerOf who is asking.
	Addr      string             // host:port that is listened on; its port is part of the Host check
	Version   string             // of the program, shown by /healthz
	Log       *slog.Logger       // nil = slog.Default()
	Public    Public             // how other machines reach it; the zero value = they don't
	Provider  *provider.Provider // through which people may sign in; nil = none
	Registers bool               // programs may register themselves as OAuth clients

	MaxHeld int // held requests and streams of one user at a time; 0 = 8192
}

// Server answers HTTP for one engine. Its methods may be called from any goroutine.
type Server struct {
	engine  *engine.Engine
	web     http.Handler
	public  Public
	version string

	provider  *provider.Provider // nil = none
	registers bool

	log *slog.Logger

	router    *mux.Router
	resources map[string]*resource // by path template
	open      map[string]*resource // by path; these need no sign-in
	hosts     atomic.Pointer[hostList]
	origins   *http.CrossOriginProtection
	rights    *rights
	held      *holds
	triggers  paces
	hook      *resource // what every trigger URL is
	requests  requestIDs

	closing context.Context // ends when shutdown begins: held requests and streams end with it
	close   context.CancelFunc

	heartbeat time.Duration // between comments on a silent stream
	pace      time.Duration // the least time between two looks of a stream
	recheck   time.Duration // how often a held request's rights are looked at again
}

// New makes a server. Call Handler for its handler, or Serve to listen.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MaxHeld == 0 {
		o.MaxHeld = 8192
	}
	closing, stop := context.WithCancel(context.Background())
	s := &Server{
		engine: o.Engine, web: o.Web, public: o.Public, version: o.Version, provider: o.Provider, registers: o.Registers, log: o.Log,
		origins:   http.NewCrossOriginProtection(),
		rights:    newRights(o.Engine),
		held:      &holds{most: o.MaxHeld, by: map[holder]int{}},
		requests:  newRequestIDs(),
		closing:   closing,
		close:     stop,
		heartbeat: 15 * time.Second,
		pace:      25 * time.Millisecond,
		recheck:   3 * time.Second,
	}
	s.hosts.Store(newHostList(o.Addr, o.Public.names()...))
	s.router, s.resources = newRouter(allRoutes())
	s.open = newResources(openRoutes)
	s.hook = newResources(hookRoutes)[hookRoutes[0].path]
	return s
}

// Handler answers everything: API, sign-in, dashboard.
func (s *Server) Handler() http.Handler { return s }

// Serve answers on ln until ctx ends, then lets requests under way finish and
// returns within 5 s. Streams and held requests are told to end first. The
// listener must be one that CheckAddr allows.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	if ln.Addr().Network() == "tcp" {
		if err := CheckAddr(ln.Addr().String(), s.public); err != nil {
			return errors.Join(err, ln.Close())
		}
		s.hosts.Store(newHostList(ln.Addr().String(), s.public.names()...))
	}
	var fresh freshConns
	hs := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         fresh.note,
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
	fresh.closeAll()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err := hs.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("let requests under way finish: %w", err), hs.Close())
	}
	if end := <-failed; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// freshConns are connections on which no request has come yet. A browser opens
// such ones in advance, and a shutdown would wait for them.
type freshConns struct{ open sync.Map }

func (f *freshConns) note(c net.Conn, state http.ConnState) {
	if state == http.StateNew {
		f.open.Store(c, nil)
		return
	}
	f.open.Delete(c)
}

func (f *freshConns) closeAll() {
	f.open.Range(func(c, _ any) bool {
		if conn, ok := c.(io.Closer); ok {
			_ = conn.Close() // nothing was asked on it
		}
		return true
	})
}
