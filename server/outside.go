package server

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"stint/api"
	"stint/web/sse"
)

// A server looks at itself from outside as a browser would: it asks for /healthz by its public
// URL under a random name, and compares what arrives with what it sent. No credentials go out,
// whoever answers there.

// headLook carries the random name of a look from outside.
const headLook = "Stint-Look"

const (
	lookTime    = 10 * time.Second // for a whole look
	streamTime  = 2 * time.Second  // for the first event to come through
	certificate = 14 * 24 * time.Hour
)

// looks are the looks from outside that are under way.
type looks struct {
	mu    sync.Mutex
	under map[string]*look // by name
}

// look is one look from outside.
type look struct {
	arrived  chan arrival  // has room for the one that comes
	received chan struct{} // closed when the first event has come through
}

// arrival is what came in of it.
type arrival struct {
	host      string
	forwarded string
	peer      netip.Addr
	late      bool // the first event didn't come through in time
}

func (l *looks) begin() (name string, k *look, end func()) {
	name, k = rand.Text(), &look{arrived: make(chan arrival, 1), received: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under == nil {
		l.under = map[string]*look{}
	}
	l.under[name] = k
	return name, k, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.under, name)
	}
}

// of is the look that a request belongs to, the first time that it comes; nil for any other.
func (l *looks) of(r *http.Request) *look {
	name := r.Header.Get(headLook)
	if name == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.under[name]
	delete(l.under, name)
	return k
}

// arrives answers a look with a stream of two events, the second once the first has been
// received or can't have been.
func (s *Server) arrives(x *exchange, k *look) (response, error) {
	peer, _ := netip.ParseAddrPort(x.r.RemoteAddr)
	a := arrival{host: x.r.Host, forwarded: strings.Join(x.r.Header.Values("X-Forwarded-For"), ", "), peer: peer.Addr().Unmap()}
	out := sse.Open(x)
	_ = out.Send([]byte("data: first\n\n")) // one that goes away is noticed by the one who looks
	patience := time.NewTimer(streamTime)
	defer patience.Stop()
	select {
	case <-k.received:
	case <-patience.C:
		a.late = true
	case <-s.closing.Done():
	}
	k.arrived <- a
	_ = out.Send([]byte("data: second\n\n"))
	return response{written: true}, nil
}

// lookFromOutside says what is wrong with the way by which other machines reach the server. It
// names no address of the network inside.
func (s *Server) lookFromOutside(ctx context.Context) []api.Check {
	if s.public.URL == nil {
		return []api.Check{api.Fine(api.CheckAddress, "only this machine reaches it: there is no --base-url")}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	name, k, end := s.looks.begin()
	defer end()
	res, first, err := s.ask(ctx, name)
	if err != nil {
		return []api.Check{unreachable(err)}
	}
	defer func() { _ = res.Body.Close() }()
	if first {
		close(k.received)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // the rest says nothing more
	found := s.expiring(res.TLS)
	select {
	case a := <-k.arrived:
		found = append(found, s.compare(a)...)
	default:
		found = append(found, answeredBy(res, s.public.base()))
	}
	if len(found) == 0 {
		found = append(found, api.Fine(api.CheckAddress, "reached by its public URL, streams included"))
	}
	return found
}

// ask sends a look; first is whether the first event came while the answer was still open.
func (s *Server) ask(ctx context.Context, name string) (res *http.Response, first bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.public.URL.String()+"/healthz", nil)
	if err != nil {
		return nil, false, err
	}
	req.Header.Set(headLook, name)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "stint/"+s.version)
	client := &http.Client{Transport: s.outside, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if res, err = client.Do(req); err != nil {
		return nil, false, err
	}
	context.AfterFunc(ctx, func() { _ = res.Body.Close() })
	line, _ := bufio.NewReaderSize(res.Body, 64).ReadString('\n')
	return res, line == "data: first\n", nil
}

// expiring says that the certificate ends soon.
func (s *Server) expiring(state *tls.ConnectionState) []api.Check {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	ends := state.PeerCertificates[0].NotAfter
	if ends.Sub(s.engine.Now()) > certificate {
		return nil
	}
	return []api.Check{{
		Name: api.CheckAddress, Code: api.FoundCertificate, Detail: "The proxy's certificate ends on " + ends.UTC().Format(time.DateOnly) + ".",
		Mend: "renew it, and see why that didn't happen by itself",
	}}
}

// compare says what the proxy did to a request that arrived.
func (s *Server) compare(a arrival) (found []api.Check) {
	if !strings.EqualFold(a.host, s.public.URL.Host) {
		found = append(found, hostChanged())
	}
	switch {
	case a.forwarded == "":
		found = append(found, api.Check{
			Name: api.CheckAddress, Code: api.FoundNotForwarded, Detail: "The proxy doesn't say in X-Forwarded-For whose requests it passes on, so they count as its own.",
			Mend: "nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; (docs/proxy.md)",
		})
	case !s.trusted(a.peer):
		found = append(found, api.Check{
			Name: api.CheckAddress, Code: api.FoundNotTrusted, Detail: "The proxy's X-Forwarded-For isn't believed, so that all people behind it share one address and its limits.",
			Mend: "stint serve --trusted-proxy ADDRESS, with the address that the proxy has for this server",
		})
	}
	if a.late {
		found = append(found, api.Check{
			Name: api.CheckAddress, Code: api.FoundBuffered, Detail: "The proxy keeps answers back until they are whole, so that pages don't follow what happens.",
			Mend: "nginx: proxy_buffering off; Caddy: flush_interval -1 (docs/proxy.md)",
		})
	}
	return found
}

func hostChanged() api.Check {
	return api.Check{
		Name: api.CheckAddress, Code: api.FoundHostChanged, Detail: "The proxy doesn't pass on the Host that it got, so nobody can sign in by it.",
		Mend: "nginx: proxy_set_header Host $host; (docs/proxy.md)",
	}
}

// answeredBy says where a request went that was answered and didn't arrive as a look.
func answeredBy(res *http.Response, base string) api.Check {
	ours := res.Header.Get(headTime) != ""
	switch {
	case ours && res.StatusCode == http.StatusMisdirectedRequest:
		return hostChanged()
	case ours && base != "" && res.StatusCode == http.StatusNotFound:
		return api.Check{
			Name: api.CheckAddress, Code: api.FoundPathChanged, Detail: "The proxy takes the path of --base-url off before it passes requests on.",
			Mend: "pass the path on as it came: no path behind the host in nginx's proxy_pass, handle in place of handle_path in Caddy (docs/proxy.md)",
		}
	}
	return api.Check{
		Name: api.CheckAddress, Code: api.FoundForeign, Detail: fmt.Sprintf("Something else answers at the public URL, with status %d.", res.StatusCode),
		Mend: "point the proxy and the name at this server, or start it with the right --base-url",
	}
}

// unreachable puts into words why there was no answer, without addresses.
func unreachable(err error) api.Check {
	why := "nobody answers"
	var name *net.DNSError
	var cert *tls.CertificateVerificationError
	var wrapped *url.Error
	switch {
	case errors.As(err, &name):
		why = "its name isn't known here"
	case errors.As(err, &cert):
		why = "its certificate isn't accepted" + reasonOf(cert)
	case errors.As(err, &wrapped) && wrapped.Timeout():
		why = "no answer came in time"
	}
	return api.Check{
		Name: api.CheckAddress, Code: api.FoundUnreachable, Detail: "The server can't reach itself by its public URL: " + why + ".",
		Mend: "start the proxy, or start the server with the right --base-url; if only this machine can't reach it, nothing is wrong for others",
	}
}

func reasonOf(err *tls.CertificateVerificationError) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err.Err, &invalid) && invalid.Reason == x509.Expired:
		return ": it has ended or hasn't begun"
	case errors.As(err.Err, &host):
		return ": it is for another name"
	}
	return ""
}
