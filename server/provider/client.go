package provider

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"code.dny.dev/ssrf"
	"github.com/coreos/go-oidc/v3/oidc"

	"stint/api"
)

const (
	answerWithin = 10 * time.Second
	answerSize   = 1 << 20
)

// newClient makes the client that calls the provider. It checks the address that is really
// connected to, follows no redirect and uses no proxy.
func newClient(inside bool, issuer *url.URL) *http.Client {
	dialer := &net.Dialer{Timeout: answerWithin}
	if !inside {
		ports := []uint16{443}
		if n, err := strconv.ParseUint(issuer.Port(), 10, 16); err == nil {
			ports = append(ports, uint16(n))
		}
		dialer.Control = ssrf.New(ssrf.WithPorts(ports...)).Safe
	}
	return &http.Client{
		Timeout: answerWithin,
		Transport: bounded{&http.Transport{
			Proxy:       nil, // a proxy would connect for us, to anywhere
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: answerWithin, ResponseHeaderTimeout: answerWithin, MaxResponseHeaderBytes: 32 << 10,
		}, inside},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded limits how much of an answer is read, and calls nobody without https.
type bounded struct {
	next   http.RoundTripper
	inside bool
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !b.inside {
		return nil, errPlain
	}
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, answerSize), resp.Body}
	}
	return resp, err
}

var errPlain = errors.New("the address isn't https")

// inWords says why the provider wasn't called or didn't answer, without the address or
// anything that it wrote.
func inWords(err error) string {
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedPort), errors.Is(err, ssrf.ErrProhibitedNetwork):
		return "its name leads to an address inside this machine's networks, which the operator hasn't allowed"
	case errors.Is(err, errPlain):
		return errPlain.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within " + answerWithin.String()
	}
	var other *oidc.IssuerMismatchError
	if errors.As(err, &other) {
		return "it calls itself by another issuer"
	}
	var outer *url.Error
	if errors.As(err, &outer) && outer.Timeout() {
		return "no answer within " + answerWithin.String()
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "its name can't be looked up"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return "no connection: " + api.Plain(op.Err)
	}
	return "it answered as no provider does"
}
