package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	callLimit   = 30 * time.Second // one plain call, its answer read
	heldSlack   = 15 * time.Second // what a held call may take beyond its wait
	answerLimit = 64 << 20         // bytes of one answer
)

// ClientConfig says which coordinator to call, and as whom.
type ClientConfig struct {
	URL       string // scheme, host and port, such as http://127.0.0.1:7717
	Token     string // the bearer token
	Workspace string // id or slug; empty means "default"
	Agent     string // User-Agent; empty means "stint"
	// Credentials returns the bearer token for each call, in place of Token, for short-lived
	// tokens. Its error becomes the call's.
	Credentials func(context.Context) (string, error)
	// Transport carries the requests; nil means the client makes its own.
	Transport http.RoundTripper
}

// Client calls the routes of one coordinator, in one workspace, as one user. It is safe for
// concurrent use. Every call ends after 30 s, a held one 15 s after its wait, or when its
// context does.
//
// An error is either an [*Error], the coordinator's refusal, or an [*Unanswered]: no answer of
// a coordinator came, and whether the call took effect is unknown. [Retriable] says for which
// errors a repeated call may help.
type Client struct {
	root      *url.URL
	token     string
	workspace string
	agent     string
	http      *http.Client

	credentials func(context.Context) (string, error) // nil = token
}

// NewClient makes a client. Plain http is refused for anything but this machine, so that the
// token never crosses a network unencrypted.
func NewClient(c ClientConfig) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		if bad := (*url.Error)(nil); errors.As(err, &bad) {
			err = bad.Err // the URL may hold a password
		}
		return nil, fmt.Errorf("read the coordinator's URL: %w", err)
	}
	local := IsThisMachine(u.Hostname())
	switch {
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is no URL of a coordinator: write it as http://127.0.0.1:7717", BareURL(c.URL))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q has more than scheme, host, port and path: leave the rest out", BareURL(c.URL))
	case u.Scheme == "http" && !local:
		return nil, fmt.Errorf("%q is not on this machine: use https", BareURL(c.URL))
	}
	if c.Workspace == "" {
		c.Workspace = "default"
	}
	if c.Agent == "" {
		c.Agent = "stint"
	}
	if c.Transport == nil {
		c.Transport = newTransport(local)
	}
	return &Client{
		root: u, token: c.Token, workspace: c.Workspace, agent: c.Agent, credentials: c.Credentials,
		http: &http.Client{Transport: c.Transport, CheckRedirect: noRedirect},
	}, nil
}

// URL is the coordinator's address as it was given.
func (c *Client) URL() string { return strings.TrimSuffix(c.root.String(), "/") }

// Workspace is the id or slug of the workspace that is called.
func (c *Client) Workspace() string { return c.workspace }

// Token is the bearer token that a call would carry now, "" for none.
func (c *Client) Token(ctx context.Context) (string, error) {
	if c.credentials == nil {
		return c.token, nil
	}
	return c.credentials(ctx)
}

// HTTP is what carries the calls: for other protocols with the same host. It follows no
// redirects.
func (c *Client) HTTP() *http.Client { return c.http }

// noRedirect keeps every request, its token and its body at the host that the user named; the
// redirect itself becomes an error with its target.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func newTransport(local bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		DialContext:         dialer.DialContext,
	}
	if !local {
		return t
	}
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		// Not every resolver knows that names below localhost are this machine.
		if host, port, err := net.SplitHostPort(addr); err == nil && net.ParseIP(host) == nil {
			addr = net.JoinHostPort("localhost", port)
		}
		return dialer.DialContext(ctx, network, addr)
	}
	return t
}

// Unanswered says that no coordinator answered: the network or a proxy failed,
// or the coordinator broke off. The call may or may not have taken effect.
type Unanswered struct {
	Op     string        // method and path
	Status int           // of the answer, 0 when there was none
	After  time.Duration // how long the answer asked to wait, 0 when it didn't
	Err    error
}

func (e *Unanswered) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Unanswered) Unwrap() error { return e.Err }

// ErrTooLargeAnswer says that an answer came and is larger than a client reads: the same call
// again gives the same, a smaller page less.
var ErrTooLargeAnswer = errors.New("the answer is over 64 MiB; ask for less at a time")

// Retriable reports whether the same call may succeed later without anybody changing it:
// nothing answered, or the coordinator said that it can't now.
func Retriable(err error) bool {
	if un := (*Unanswered)(nil); errors.As(err, &un) {
		return true
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		switch e.Code {
		case CodeTooMany, CodeOutcomeUnknown, CodeUnavailable, CodeDatabaseMoved, CodeDatabaseDamaged, CodeTooSlow, CodeInternal:
			return true
		}
	}
	return false
}

// RetryAfter is how long err asks to wait before the call is repeated; 0 when it doesn't say.
func RetryAfter(err error) time.Duration {
	if un := (*Unanswered)(nil); errors.As(err, &un) && un.After > 0 {
		return un.After
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return time.Duration(e.RetryIn) * time.Second
	}
	return 0
}

// CodeOf is the code of a refusal, or "" when err isn't one.
func CodeOf(err error) Code {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// call is one request to be made.
type call struct {
	method string
	path   string // below the root, or below the workspace when relative
	query  url.Values
	header http.Header
	body   any           // nil = none
	held   time.Duration // how long the coordinator may hold it
}

// RawCall is a call by its method and path.
type RawCall struct {
	Method string
	Path   string // escaped; from the root on, or below the workspace when it begins with no slash
	Query  url.Values
	Header http.Header
	Body   any           // nil = none
	Held   time.Duration // how long the coordinator may hold it
}

// Raw makes a call and returns the body of its answer as it came, also that of a refusal.
func (c *Client) Raw(ctx context.Context, k RawCall) ([]byte, error) {
	_, b, err := c.answer(ctx, call{method: k.Method, path: k.Path, query: k.Query, header: k.Header, body: k.Body, held: k.Held})
	return b, err
}

func (c *Client) url(k call) string {
	path := k.path
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/workspaces/" + url.PathEscape(c.workspace) + "/" + path
	}
	out := strings.TrimSuffix(c.root.String(), "/") + path
	if len(k.query) > 0 {
		out += "?" + k.query.Encode()
	}
	return out
}

func (c *Client) request(ctx context.Context, k call) (*http.Request, error) {
	var body io.Reader
	if k.body != nil {
		b, err := json.Marshal(k.body, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return nil, fmt.Errorf("encode the body of %s %s: %w", k.method, k.path, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, c.url(k), body)
	if err != nil {
		return nil, fmt.Errorf("make the request %s %s: %w", k.method, k.path, err)
	}
	for name, values := range k.header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	token, err := c.Token(ctx)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("User-Agent", c.agent)
	return req, nil
}

// do makes the call and decodes its answer into out, unless that is nil. It
// returns the answer's status and header.
func (c *Client) do(ctx context.Context, k call, out any) (*http.Response, error) {
	resp, b, err := c.answer(ctx, k)
	if err != nil || out == nil || resp.StatusCode == http.StatusNoContent {
		return resp, err
	}
	err = json.Unmarshal(b, out)
	if err == nil && string(bytes.TrimSpace(b)) == "null" {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, &Unanswered{Op: k.method + " " + resp.Request.URL.Path, Status: resp.StatusCode, Err: fmt.Errorf("the answer is not a coordinator's: %w", err)}
	}
	return resp, nil
}

// answer makes the call and returns its answer as it came.
func (c *Client) answer(ctx context.Context, k call) (*http.Response, []byte, error) {
	limit := callLimit
	if k.held > 0 {
		limit = k.held + heldSlack
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := c.request(ctx, k)
	if err != nil {
		return nil, nil, err
	}
	op := k.method + " " + req.URL.Path
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, &Unanswered{Op: op, Err: withoutURL(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	if err != nil {
		return nil, nil, &Unanswered{Op: op, Status: resp.StatusCode, Err: fmt.Errorf("read the answer: %w", err)}
	}
	if len(b) > answerLimit {
		return nil, nil, fmt.Errorf("%s: %w", op, ErrTooLargeAnswer)
	}
	if resp.StatusCode/100 != 2 {
		return nil, b, refusal(op, resp, b)
	}
	return resp, b, nil
}

// withoutURL removes the URL that net/http puts in front of its errors; the operation is
// already named, and a URL may carry what a log should not.
func withoutURL(err error) error {
	if ue := (*url.Error)(nil); errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// refusal reads an answer that is not 2xx: the coordinator's refusal if it is one, else
// Unanswered, since a proxy's page says nothing about the call.
func refusal(op string, resp *http.Response, b []byte) error {
	un := &Unanswered{Op: op, Status: resp.StatusCode, After: retryAfter(resp.Header)}
	if e := problem(resp, b); e != nil {
		if resp.StatusCode < 500 || Retriable(e) {
			return e
		}
		un.Err = e
		return un
	}
	un.Err = fmt.Errorf("answered %d %s, not by a coordinator", resp.StatusCode, http.StatusText(resp.StatusCode))
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
		un.Err = fmt.Errorf("answered %d and pointed to %s: redirects are not followed, use the coordinator's own URL", resp.StatusCode, to)
	}
	return un
}

func problem(resp *http.Response, b []byte) *Error {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "application/problem+json" {
		return nil
	}
	e := new(Error)
	if err := json.Unmarshal(b, e); err != nil || e.Code == "" {
		return nil
	}
	if e.RetryIn == 0 {
		e.RetryIn = int(retryAfter(resp.Header) / time.Second)
	}
	e.sent = bytes.TrimSpace(b)
	return e
}

// retryAfter reads the header's seconds, at most an hour; its date form is not used by a coordinator.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n <= 0 {
		return 0
	}
	return min(time.Duration(min(n, 3600))*time.Second, time.Hour)
}
