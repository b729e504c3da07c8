package workertest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fault is what happens to one request. The zero Fault lets it pass.
type Fault struct {
	// Drop breaks the connection before the request is delivered.
	Drop bool
	// LoseAnswer delivers the request and breaks the connection instead of answering.
	LoseAnswer bool
	// Delay comes before the request is delivered.
	Delay time.Duration
	// Until holds the request up until it is closed, and then delivers it though its sender
	// may have given up long since.
	Until <-chan struct{}
	// Status and Body replace the coordinator's answer, when Status is set: as problem+json
	// when Body begins with {, else as a proxy's HTML page.
	Status int
	Body   string
	// Rewrite changes the coordinator's answer.
	Rewrite func(body []byte) []byte
}

// Proxy stands between a worker and its coordinator.
type Proxy struct {
	URL string

	target *url.URL
	server *httptest.Server
	client *http.Transport

	mu    sync.Mutex
	rule  func(call string, n int) Fault // guarded by mu
	calls map[string]int                 // guarded by mu
	cut   bool                           // guarded by mu
	wires map[net.Conn]struct{}          // guarded by mu
	ended chan struct{}                  // closed and replaced at each cut; guarded by mu
}

// NewProxy starts a proxy in front of target for the duration of the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatalf("read the target's URL: %v", err)
	}
	p := &Proxy{
		target: u, client: &http.Transport{}, calls: map[string]int{},
		wires: map[net.Conn]struct{}{}, ended: make(chan struct{}),
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ConnState = p.track
	p.server.Start()
	p.URL = p.server.URL
	t.Cleanup(func() {
		p.Cut() // ends what is held, which Close would wait for
		p.server.Close()
		p.client.CloseIdleConnections()
	})
	return p
}

// Rule sets what happens from now on. It is called with the request, such as "POST renew", and
// how many of its kind came before; nil lets all pass.
func (p *Proxy) Rule(rule func(call string, n int) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// Count is how many requests of a kind came, such as "POST renew".
func (p *Proxy) Count(call string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[call]
}

// Cut breaks all connections and lets none through until Mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	close(p.ended)
	p.ended = make(chan struct{})
	for c := range p.wires {
		_ = c.Close()
	}
}

// Mend ends a cut.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

func (p *Proxy) track(c net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.wires[c] = struct{}{}
		if p.cut {
			_ = c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		delete(p.wires, c)
	}
}

// callOf names a request by its method and the last fixed part of its path.
func callOf(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	if strings.Contains(last, "_") && len(parts) > 1 { // an id
		last = parts[len(parts)-2] + "/id"
	}
	return r.Method + " " + last
}

func (p *Proxy) next(r *http.Request) (f Fault, cut bool, ended <-chan struct{}) {
	call := callOf(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.calls[call]
	p.calls[call]++
	if p.rule != nil {
		f = p.rule(call, n)
	}
	return f, p.cut, p.ended
}

// ServeHTTP passes a request on, or doesn't.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, cut, ended := p.next(r)
	from := r.Context()
	if f.Until != nil {
		from = context.WithoutCancel(from)
	}
	ctx, cancel := context.WithCancel(from)
	defer cancel()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
		}
	}
	if f.Until != nil {
		body, _ := io.ReadAll(r.Body) // while its sender is still there
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-f.Until:
		case <-ctx.Done():
		}
	}
	if cut || f.Drop || ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	if f.Status != 0 {
		forge(w, f)
		return
	}
	resp, err := p.pass(ctx, r)
	if err != nil || f.LoseAnswer {
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = resp.Body.Close() }()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	if f.Rewrite != nil {
		body, _ := io.ReadAll(resp.Body)
		w.Header().Del("Content-Length")
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(f.Rewrite(body))
		return
	}
	w.WriteHeader(resp.StatusCode)
	stream(w, resp.Body)
}

func forge(w http.ResponseWriter, f Fault) {
	kind := "text/html"
	if strings.HasPrefix(f.Body, "{") {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Body)
}

func (p *Proxy) pass(ctx context.Context, r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host = p.target.Scheme, p.target.Host, p.target.Host
	out.RequestURI = ""
	out.Body = io.NopCloser(bytes.NewReader(body))
	return p.client.RoundTrip(out)
}

// stream copies what comes as it comes.
func stream(w http.ResponseWriter, from io.Reader) {
	flush := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			_ = flush.Flush()
		}
		if err != nil {
			return
		}
	}
}
