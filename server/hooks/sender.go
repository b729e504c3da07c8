// Package hooks talks to other programs: it sends what webhooks have to deliver, and checks
// the signatures of programs that start agents through an address.
//
// It knows the Standard Webhooks specification and HTTP, and no rule about what is delivered,
// when it is tried again, or what a call starts: the engine has those.
package hooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"stint/api"
	"stint/engine"
)

const (
	answerWithin = 10 * time.Second
	maxAnswer    = 1 << 10 // bytes
	sideBySide   = 256     // messages sent at the same time
	ofOne        = 2       // of these, for one webhook: a receiver that doesn't answer only delays itself
	pace         = 100 * time.Millisecond
	longest      = 30 * time.Second // between two looks, in case a wake is lost
)

// Sender delivers the messages of webhooks until its context ends.
type Sender struct {
	engine *engine.Engine
	guard  Guard
	client *http.Client
	agent  string // User-Agent
	home   string // the dashboard's address, which links begin with
	log    *slog.Logger

	flying sync.WaitGroup // the tries in progress
	ended  chan struct{}  // holds at most one: some try has ended

	mu       sync.Mutex // guards what follows
	attempts int
	busy     map[api.WebhookID]int // tries in progress, per webhook
}

// Guard says where messages may go.
type Guard struct {
	// AllowPrivate lets messages go to addresses inside this machine's networks, to any port
	// and without https. The operator decides this, not the user.
	AllowPrivate bool
}

// CheckURL refuses an address that would be refused when it is called, as far as its text
// shows: names are looked up only then.
func (g Guard) CheckURL(u *url.URL) error {
	if g.AllowPrivate {
		return nil
	}
	if err := g.checkHost(u.Hostname()); err != nil {
		return err
	}
	if u.Scheme != "https" {
		return errors.New("must begin with https://: messages tell what happens here")
	}
	if port := u.Port(); port != "" && port != "443" {
		return errors.New("must not name a port but 443; " + operatorAllows)
	}
	return nil
}

// operatorAllows says who can let messages go where the guard doesn't, and how.
const operatorAllows = "the operator can allow that with --webhooks-inside"

// checkHost refuses a host that is inside, as far as its text shows.
func (g Guard) checkHost(host string) error {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") {
		return errors.New("names this machine or one of its own network; " + operatorAllows)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ssrf.New().SafeAddr(ip.Unmap()) != nil {
			return errors.New("is an address inside this machine's networks; " + operatorAllows)
		}
		return nil
	}
	// A browser reads a name that ends in a number as an IPv4 address.
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "" {
		return errors.New("must name a host, not an address in an uncommon spelling")
	}
	return nil
}

// control refuses a connection to an inner address. It sees the address that is really
// connected to, so that no spelling, name or answer of a name server gets around it.
func (g Guard) control() func(network, address string, c syscall.RawConn) error {
	if g.AllowPrivate {
		return nil
	}
	return ssrf.New(ssrf.WithPorts(443)).Safe
}

func newDialer(g Guard) *net.Dialer { return &net.Dialer{Timeout: answerWithin, Control: g.control()} }

// New makes a sender. home is the dashboard's address without a slash at its end, for links;
// version is sent to receivers.
func New(e *engine.Engine, g Guard, home, version string, log *slog.Logger) *Sender {
	dialer := newDialer(g)
	return &Sender{
		engine: e, guard: g, agent: "stint/" + version, home: home, log: log,
		ended: make(chan struct{}, 1), busy: map[api.WebhookID]int{},
		client: &http.Client{
			Timeout: answerWithin,
			Transport: &http.Transport{
				Proxy:       nil, // a proxy would connect for us, to anywhere
				DialContext: dialer.DialContext, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
				TLSHandshakeTimeout: answerWithin, ResponseHeaderTimeout: answerWithin, MaxResponseHeaderBytes: 32 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Run delivers until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	defer s.client.CloseIdleConnections()
	defer s.flying.Wait()
	for {
		waiting, happened := s.engine.Deliverable(), s.engine.Changed()
		_, next, err := s.begin(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Error("webhooks could not be served; it is tried again", "error", err)
			next = time.Time{}
		}
		pause := longest
		if !next.IsZero() {
			pause = min(pause, max(0, next.Sub(s.engine.Now())))
		}
		timer := time.NewTimer(pause)
		ended := false
		select {
		case <-ctx.Done():
		case <-waiting:
		case <-happened:
		case <-s.ended:
			ended = true
		case <-timer.C:
		}
		timer.Stop()
		if ended && ctx.Err() == nil {
			continue // a place is free: a try that waits for it begins at once
		}
		rest := time.NewTimer(pace) // a busy log is read a few times a second, not at every commit
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// Do creates the pending deliveries and sends what is due, until nothing is. It returns when
// the next one is due, the zero time when none waits.
func (s *Sender) Do(ctx context.Context) (next time.Time, err error) {
	defer s.flying.Wait()
	for {
		idle := s.places() == sideBySide
		begun, next, err := s.begin(ctx)
		if err != nil || (idle && begun == 0) {
			return next, err
		}
		select {
		case <-s.ended:
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}

// begin creates the pending deliveries and begins as many due ones as there are places; it
// waits for no receiver. It returns how many it began, and when the next delivery is due.
func (s *Sender) begin(ctx context.Context) (begun int, next time.Time, err error) {
	if err := s.engine.ExpandWebhooks(ctx); err != nil {
		return 0, time.Time{}, err
	}
	now := s.engine.Now() // taken first, so that what becomes due meanwhile is next
	due, err := s.engine.TakeDeliveries(ctx, now, s.places(), s.placesOf)
	if err != nil {
		return 0, time.Time{}, err
	}
	for _, t := range due {
		s.occupy(t.WebhookID, 1)
		s.flying.Go(func() {
			defer s.end(t.WebhookID)
			s.try(ctx, t)
		})
	}
	next, err = s.engine.NextDelivery(ctx, now)
	return len(due), next, err
}

func (s *Sender) try(ctx context.Context, t engine.DeliveryAttempt) {
	got := s.send(ctx, t)
	if ctx.Err() != nil {
		return // it is due again after a minute
	}
	if err := s.engine.EndTry(ctx, t, got); err != nil && ctx.Err() == nil {
		s.log.Error("the outcome of a message could not be noted", "delivery", t.ID.String(), "error", err)
	}
}

func (s *Sender) occupy(id api.WebhookID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts += n
	if s.busy[id] += n; s.busy[id] == 0 {
		delete(s.busy, id)
	}
}

// end frees a try's place and triggers the search for the next.
func (s *Sender) end(id api.WebhookID) {
	s.occupy(id, -1)
	select {
	case s.ended <- struct{}{}:
	default: // already pending
	}
}

// places is how many tries may begin.
func (s *Sender) places() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sideBySide - s.attempts
}

// placesOf is how many tries of one webhook may begin.
func (s *Sender) placesOf(id api.WebhookID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ofOne - s.busy[id]
}

// send makes one try.
func (s *Sender) send(ctx context.Context, t engine.DeliveryAttempt) engine.Sent {
	if t.Note != nil {
		return s.tell(ctx, t)
	}
	u, err := url.Parse(t.URL)
	if err == nil {
		err = s.guard.CheckURL(u) // it may have been allowed when the webhook was created
	}
	if err != nil {
		return engine.Sent{Problem: "the address " + err.Error()}
	}
	now := s.engine.Now()
	signatures := make([]string, 0, len(t.Secrets))
	for _, secret := range t.Secrets {
		signature, err := sign(secret, t.Message, now, []byte(t.Body))
		if err != nil {
			return engine.Sent{Problem: err.Error()}
		}
		signatures = append(signatures, signature)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader([]byte(t.Body)))
	if err != nil {
		return engine.Sent{Problem: err.Error()}
	}
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	r.Header.Set("User-Agent", s.agent)
	r.Header.Set(standardwebhooks.HeaderWebhookID, t.Message)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	resp, err := s.client.Do(r)
	if err != nil {
		return engine.Sent{Problem: inWords(err)}
	}
	defer resp.Body.Close()
	out := engine.Sent{StatusCode: resp.StatusCode, NotBefore: retryAfter(resp, now)}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		out.Problem = "the answer broke off: " + inWords(err)
	}
	out.Answer = strings.ToValidUTF8(string(answer), "\ufffd")
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		out.Problem = "it answered with a redirect, which is not followed: set the address it leads to"
	case resp.StatusCode >= 400 && out.Problem == "":
		out.Problem = "it answered " + resp.Status
	}
	return out
}

func sign(secret []byte, message string, at time.Time, body []byte) (string, error) {
	wh, err := standardwebhooks.NewWebhookRaw(secret)
	if err != nil {
		return "", fmt.Errorf("use the secret: %w", err)
	}
	return wh.Sign(message, at, body)
}

// retryAfter reads how long a busy receiver wants to get nothing.
func retryAfter(r *http.Response, now time.Time) time.Time {
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		return time.Time{}
	}
	if n, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && n > 0 {
		return now.Add(time.Duration(min(n, 24*3600)) * time.Second)
	}
	return time.Time{}
}

// refused reports whether the guard prevented a connection.
func refused(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedPort) || errors.Is(err, ssrf.ErrProhibitedNetwork)
}

// inWords says what kept a request from being answered, without the address: the reader knows
// it, and it may hold a secret.
func inWords(err error) string {
	if refused(err) {
		return "the name leads to an address inside this machine's networks, where messages may not go"
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return fmt.Sprintf("no answer within %v", answerWithin)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "the host's name can't be looked up"
	}
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		return "the server there speaks no TLS"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return "no connection: " + api.Plain(op.Err)
	}
	return api.Plain(err)
}
