// Package servertest runs the whole coordinator, including a real store and a real listener,
// for tests that speak HTTP to it, and checks every answer against the OpenAPI document.
//
// It has no rules: what it knows of the product it reads from api/openapi.yaml.
package servertest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/server"
)

// Base is the path of the default workspace.
const Base = "/api/v1/workspaces/default"

// Options changes what New makes.
type Options struct {
	Config   func(*engine.Config)
	Accounts func(*account.Config)
	Server   func(*server.Options)
	Path     string           // of the database file; "" = a new one
	Token    string           // of the owner of an existing file
	Addr     string           // "" = any free port
	Durable  bool             // synchronous FULL
	Clock    func() time.Time // nil = the machine's
	Quiet    bool             // log nothing, check nothing: for measuring

	SmallBuffers bool // connections that buffer almost nothing for a client that doesn't read
}

// Server is a running coordinator and one client of it, its owner.
type Server struct {
	URL      string
	Token    string
	Engine   *engine.Engine
	Accounts *account.Accounts
	Store    *db.Store
	Path     string
	HTTP     *server.Server
	Client   *http.Client // checks each answer against the document
	Log      *Log

	tb   testing.TB
	stop func()
}

// New starts a coordinator that ends with the test.
func New(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := &Server{tb: tb, Path: o.Path, Log: &Log{}, Token: o.Token}
	if s.Path == "" {
		s.Path = filepath.Join(tb.TempDir(), "stint.db")
	}
	log := slog.New(slog.NewTextHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.Quiet {
		log = slog.New(slog.DiscardHandler)
	}
	unsafe := db.Unsafe{Synchronous: "OFF", CheckRowCache: true}
	if o.Durable {
		unsafe = db.Unsafe{}
	}
	enginetest.Lay(tb, s.Path)
	store, err := db.Open(tb.Context(), db.Options{Path: s.Path, Log: log, Unsafe: unsafe, Clock: o.Clock})
	if err != nil {
		tb.Fatal(err)
	}
	cfg := engine.DefaultConfig()
	cfg.Log = log
	if o.Config != nil {
		o.Config(&cfg)
	}
	signs := account.DefaultConfig()
	signs.Log = log
	if o.Accounts != nil {
		o.Accounts(&signs)
	}
	s.Store, s.Engine, s.Accounts = store, engine.New(store, cfg), account.New(store, signs)
	token, created, err := s.Accounts.EnsureOwner(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if created {
		s.Token = token
	}
	s.serve(o, log)
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	s.Client = &http.Client{Transport: transport}
	if !o.Quiet {
		s.Client.Transport = &checker{tb: tb, next: transport}
	}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Stop()
	})
	return s
}

func (s *Server) serve(o Options, log *slog.Logger) {
	addr := o.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(s.tb.Context(), "tcp", addr)
	if err != nil {
		s.tb.Fatal(err)
	}
	if o.SmallBuffers {
		ln = smallBuffers{ln}
	}
	options := server.Options{Engine: s.Engine, Accounts: s.Accounts, Addr: ln.Addr().String(), Version: "test", Log: log}
	if o.Server != nil {
		o.Server(&options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	loops, served := make(chan error, 1), make(chan error, 1)
	go func() { loops <- s.Engine.Run(ctx) }()
	s.HTTP = server.New(options)
	go func() { served <- s.HTTP.Serve(ctx, ln) }()
	s.URL = "http://" + ln.Addr().String()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-served; err != nil {
			s.tb.Errorf("serve: %v", err)
		}
		if err := <-loops; err != nil {
			s.tb.Errorf("run the engine: %v", err)
		}
		if err := s.Store.Close(); err != nil {
			s.tb.Errorf("close the store: %v", err)
		}
	}
}

// Stop shuts the coordinator down and waits for its end.
func (s *Server) Stop() { s.stop() }

// Addr is host and port.
func (s *Server) Addr() string { return strings.TrimPrefix(s.URL, "http://") }

// Response is what a request got.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Change changes a request before it is sent.
type Change func(*http.Request)

// With sets a header; an empty value removes it.
func With(name, value string) Change {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

// Do sends a request as the owner. A path that doesn't begin with a slash is below the default
// workspace. The body is sent unchanged if it is a string or bytes, and as JSON otherwise.
func (s *Server) Do(method, path string, body any, changes ...Change) Response {
	s.tb.Helper()
	if !strings.HasPrefix(path, "/") {
		path = Base + "/" + path
	}
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b, json.Deterministic(true))
		if err != nil {
			s.tb.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(s.tb.Context(), method, s.URL+path, reader)
	if err != nil {
		s.tb.Fatal(err)
	}
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, change := range changes {
		change(req)
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		s.tb.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.tb.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return Response{Status: resp.StatusCode, Header: resp.Header, Body: b}
}

// Must is Do for a request that has to be answered with one status; it decodes the answer.
func Must[T any](s *Server, status int, method, path string, body any, changes ...Change) T {
	s.tb.Helper()
	a := s.Do(method, path, body, changes...)
	if a.Status != status {
		s.tb.Fatalf("%s %s answered %d, not %d: %s", method, path, a.Status, status, a.Body)
	}
	var out T
	if len(a.Body) > 0 {
		if err := json.Unmarshal(a.Body, &out); err != nil {
			s.tb.Fatalf("%s %s: decode %s: %v", method, path, a.Body, err)
		}
	}
	return out
}

// Refused is Must for a request that has to be refused with a code.
func (s *Server) Refused(status int, code api.Code, method, path string, body any, changes ...Change) api.Error {
	s.tb.Helper()
	a := s.Do(method, path, body, changes...)
	e := a.Problem(s.tb)
	if a.Status != status || e.Code != code {
		s.tb.Fatalf("%s %s answered %d %s, not %d %s: %s", method, path, a.Status, e.Code, status, code, a.Body)
	}
	return e
}

// Problem decodes a refusal.
func (a Response) Problem(tb testing.TB) api.Error {
	tb.Helper()
	var e api.Error
	if kind := a.Header.Get("Content-Type"); kind != "application/problem+json" {
		tb.Fatalf("%d is %q, not a problem: %s", a.Status, kind, a.Body)
	}
	if err := json.Unmarshal(a.Body, &e); err != nil {
		tb.Fatalf("decode %s: %v", a.Body, err)
	}
	return e
}

// Wait calls look until it is true, at most 10 s.
func Wait(tb testing.TB, what string, look func() bool) {
	tb.Helper()
	for range 1000 {
		if look() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	tb.Fatalf("gave up waiting: %s", what)
}

type smallBuffers struct{ net.Listener }

// Accept is part of net.Listener.
func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetWriteBuffer(1)
	}
	return conn, err
}
