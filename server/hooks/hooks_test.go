package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/server/hooks"
)

// got is one call that a receiver took.
type got struct {
	header     http.Header
	body       string
	host, path string
}

// receiver is another program that takes messages and answers as it is set to.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []got
	says   string // the body of its answers
	answer func(n int) (status int, header map[string]string)
}

func newReceiver(t *testing.T, answer func(n int) (int, map[string]string)) *receiver {
	t.Helper()
	r := &receiver{answer: answer, says: "thank you"}
	r.Server = httptest.NewServer(r.handler(t))
	t.Cleanup(r.Close)
	return r
}

// newTLSReceiver is a receiver that is reached by https and answers with 200.
func newTLSReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{answer: always(200), says: "{}"}
	r.Server = httptest.NewTLSServer(r.handler(t))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) handler(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.calls = append(r.calls, got{req.Header, string(body), req.Host, req.URL.Path})
		status, header := r.answer(len(r.calls))
		r.mu.Unlock()
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, r.says)
	}
}

func (r *receiver) took() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]got(nil), r.calls...)
}

func always(status int) func(int) (int, map[string]string) {
	return func(int) (int, map[string]string) { return status, nil }
}

func newSender(w *enginetest.Fixture, g hooks.Guard) *hooks.Sender {
	return hooks.New(w.Engine, g, "https://stint.example/base", "test", slog.New(slog.DiscardHandler))
}

func addWebhook(t *testing.T, w *enginetest.Fixture, to string, types ...string) api.Webhook {
	t.Helper()
	out, err := w.CreateWebhook(t.Context(), w.Owner, api.WebhookInput{URL: to, Types: types, Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func turn(t *testing.T, s *hooks.Sender) time.Time {
	t.Helper()
	next, err := s.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func deliveries(t *testing.T, w *enginetest.Fixture, id api.WebhookID) []api.Delivery {
	t.Helper()
	list, err := w.Deliveries(t.Context(), w.Owner, id, api.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// Every event that a webhook asked for comes once, signed, as a CloudEvent; what happened
// before the webhook was created doesn't.
func TestSender_DeliversWhatWasAskedForOnce(t *testing.T) {
	w := enginetest.New(t)
	r := newReceiver(t, always(204))
	a := w.Agent()
	w.New(a) // before
	hook := addWebhook(t, w, r.URL, "agent.session_queued", "agent.session_cancelled")
	s := w.New(a)
	if _, err := w.CancelSession(t.Context(), w.Owner, s.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	sender := newSender(w, hooks.Guard{AllowPrivate: true})
	for range 3 {
		if next := turn(t, sender); !next.IsZero() {
			t.Errorf("something is due at %v", next)
		}
	}
	calls := r.took()
	if len(calls) != 2 {
		t.Fatalf("%d calls came, not 2", len(calls))
	}
	verify, err := standardwebhooks.NewWebhook(hook.Secret)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for _, c := range calls {
		if err := verify.VerifyIgnoringTimestamp([]byte(c.body), c.header); err != nil {
			t.Errorf("the signature: %v", err)
		}
		var event struct {
			SpecVersion, ID, Source, Type, Subject, Time string
			Data                                         map[string]any
		}
		if err := json.Unmarshal([]byte(c.body), &event); err != nil {
			t.Fatal(err)
		}
		if event.SpecVersion != "1.0" || event.Subject != s.ID.String() || event.ID != c.header.Get("Webhook-Id") || event.Data["agentId"] != a.ID.String() {
			t.Errorf("the event is %s", c.body)
		}
		if got := c.header.Get("Content-Type"); !strings.HasPrefix(got, "application/cloudevents+json") {
			t.Errorf("its type is %s", got)
		}
		types[event.Type] = true
	}
	if !types["agent.session_queued"] || !types["agent.session_cancelled"] {
		t.Errorf("types %v", types)
	}
	for _, d := range deliveries(t, w, hook.ID) {
		if d.State != api.DeliveryDelivered || d.StatusCode != 204 || d.Tries != 1 {
			t.Errorf("the log says %+v", d)
		}
	}
}

// A receiver that fails gets further tries, ever more rarely, for about a day, under the same
// id; then the webhook is disabled and says why.
func TestSender_TriesForADayThenDisables(t *testing.T) {
	w := enginetest.New(t)
	r := newReceiver(t, always(500))
	hook := addWebhook(t, w, r.URL, "agent.created")
	w.Agent()
	sender := newSender(w, hooks.Guard{AllowPrivate: true})
	begun := w.Clock.Now()
	last := time.Duration(0)
	for next := turn(t, sender); !next.IsZero(); next = turn(t, sender) {
		pause := next.Sub(w.Clock.Now())
		if pause < last {
			t.Errorf("a pause of %v follows one of %v", pause, last)
		}
		last = pause
		w.Clock.Step(pause)
	}
	if took := w.Clock.Now().Sub(begun); took < 20*time.Hour || took > 26*time.Hour {
		t.Errorf("it was given up after %v", took)
	}
	calls := r.took()
	for _, c := range calls {
		if c.header.Get("Webhook-Id") != calls[0].header.Get("Webhook-Id") {
			t.Error("a repetition has another id")
		}
	}
	got, err := w.Webhook(t.Context(), w.Owner, hook.ID)
	if err != nil || got.Enabled || got.DisabledReason == "" {
		t.Errorf("the webhook is %+v (%v)", got, err)
	}
	if d := deliveries(t, w, hook.ID)[0]; d.State != api.DeliveryFailed || d.StatusCode != 500 || d.Answer != "thank you" || int(d.Tries) != len(calls) {
		t.Errorf("the log says %+v after %d calls", d, len(calls))
	}
	w.Agent() // sent to nobody: it is disabled
	turn(t, sender)
	if n := len(r.took()); n != len(calls) {
		t.Errorf("%d calls more", n-len(calls))
	}
}

func TestSender_GoneForGoodDisablesAtOnce(t *testing.T) {
	w := enginetest.New(t)
	r := newReceiver(t, always(410))
	hook := addWebhook(t, w, r.URL)
	w.Agent()
	turn(t, newSender(w, hooks.Guard{AllowPrivate: true}))
	if got, err := w.Webhook(t.Context(), w.Owner, hook.ID); err != nil || got.Enabled {
		t.Errorf("it is still enabled (%v)", err)
	}
}

// A busy receiver that names a time gets nothing until then.
func TestSender_RetryAfterIsObeyed(t *testing.T) {
	w := enginetest.New(t)
	r := newReceiver(t, func(int) (int, map[string]string) { return 429, map[string]string{"Retry-After": "600"} })
	addWebhook(t, w, r.URL, "agent.created")
	w.Agent()
	if next := turn(t, newSender(w, hooks.Guard{AllowPrivate: true})); next.Sub(w.Clock.Now()) < 9*time.Minute {
		t.Errorf("it is tried again in %v", next.Sub(w.Clock.Now()))
	}
}

// A try that never ended, for example because the process was killed, is made again.
func TestSender_LostTriesAreMadeAgain(t *testing.T) {
	w := enginetest.New(t)
	r := newReceiver(t, always(200))
	hook := addWebhook(t, w, r.URL, "agent.created")
	w.Agent()
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost, err := w.TakeDeliveries(t.Context(), w.Now(), 10, nil)
	if err != nil || len(lost) != 1 {
		t.Fatal(lost, err)
	}
	w.Restart()
	sender := newSender(w, hooks.Guard{AllowPrivate: true})
	next := turn(t, sender)
	w.Clock.Step(next.Sub(w.Clock.Now()))
	turn(t, sender)
	if err := w.EndTry(t.Context(), lost[0], engine.Sent{StatusCode: 500}); err != nil {
		t.Fatal(err) // the result of the killed process no longer counts
	}
	if d := deliveries(t, w, hook.ID)[0]; d.State != api.DeliveryDelivered || d.Tries != 2 {
		t.Errorf("the log says %+v", d)
	}
}

// For a day after a change of the secret both sign, then only the new one.
func TestSender_BothSecretsSignForADay(t *testing.T) {
	w := enginetest.New(t)
	r := newReceiver(t, always(200))
	hook := addWebhook(t, w, r.URL, "agent.created")
	rotated, err := w.RotateWebhook(t.Context(), w.Owner, hook.ID)
	if err != nil {
		t.Fatal(err)
	}
	sender := newSender(w, hooks.Guard{AllowPrivate: true})
	good := func(secret string) bool {
		verify, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		calls := r.took()
		last := calls[len(calls)-1]
		return verify.VerifyIgnoringTimestamp([]byte(last.body), last.header) == nil
	}
	w.Agent()
	turn(t, sender)
	if !good(hook.Secret) || !good(rotated.Secret) {
		t.Error("one of the two secrets doesn't verify")
	}
	w.Clock.Step(25 * time.Hour)
	w.Agent()
	turn(t, sender)
	if good(hook.Secret) || !good(rotated.Secret) {
		t.Error("after a day the old secret still signs, or the new one doesn't")
	}
}

// admin is another user who may have webhooks.
func admin(t *testing.T, w *enginetest.Fixture) engine.Caller {
	t.Helper()
	i, err := w.Invite(t.Context(), w.Owner, api.InvitationInput{Role: api.Admin})
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, err := w.Join(t.Context(), i.Code, api.LoginInput{Login: "ben", Password: "correct horse battery"}, account.From{Label: "a browser", Address: "192.0.2.9"})
	if err != nil {
		t.Fatal(err)
	}
	who, err := w.Authenticate(t.Context(), cookie)
	if err != nil {
		t.Fatal(err)
	}
	in, err := w.In(t.Context(), who, account.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Nobody's webhook sends other people's local sessions.
func TestSender_TellsNothingOfOthersLocalSessions(t *testing.T) {
	w := enginetest.New(t)
	r := newReceiver(t, always(200))
	other := admin(t, w)
	if _, err := w.CreateWebhook(t.Context(), other, api.WebhookInput{URL: r.URL, Enabled: true}); err != nil {
		t.Fatal(err)
	}
	s := w.New(w.Agent())
	turn(t, newSender(w, hooks.Guard{AllowPrivate: true}))
	calls := r.took()
	if len(calls) == 0 {
		t.Fatal("nothing came at all")
	}
	for _, c := range calls {
		if strings.Contains(c.body, s.ID.String()) {
			t.Errorf("it mentions the session: %s", c.body)
		}
	}
}

// Inner addresses are refused in every spelling, by name and by redirect: not one connection
// is made.
// innerHosts are addresses inside this machine's networks, in all their spellings.
var innerHosts = []string{
	"127.0.0.1", "localhost", "LOCALHOST.", "stint.localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "127.1", "2130706433",
	"0x7f000001", "0177.0.0.1", "0x7f.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "[fe80::1]", "[fc00::1]", "[64:ff9b::7f00:1]",
	"100.64.0.1", "192.0.2.1", "printer.local", "metadata.google.internal", "198.18.0.1", "224.0.0.1", "255.255.255.255",
}

func TestGuard_InnerAddressesAreRefused(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	connected := make(chan struct{}, 100)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			connected <- struct{}{}
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	for _, host := range innerHosts {
		for _, address := range []string{"https://" + host + "/", "https://" + host + ":" + port + "/", "http://" + host + ":" + port + "/"} {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			if (hooks.Guard{}).CheckURL(u) == nil {
				t.Errorf("%s is allowed", address)
			}
		}
	}
	// Created while the operator allowed it, sent after that ended.
	w := enginetest.New(t)
	hook := addWebhook(t, w, "http://127.0.0.1:"+port+"/")
	w.Agent()
	turn(t, newSender(w, hooks.Guard{}))
	if d := deliveries(t, w, hook.ID)[0]; d.State != api.DeliveryWaiting || d.StatusCode != 0 || d.Problem == "" {
		t.Errorf("the log says %+v", d)
	}
	select {
	case <-connected:
		t.Error("a connection was made")
	default:
	}
}

// What the text of an address doesn't show, the connection does.
func TestGuard_NamesThatLeadInsideAreRefused(t *testing.T) {
	dial := hooks.Dialer(hooks.Guard{})
	dial.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server here")
	}}
	for _, address := range []string{"127.0.0.1:443", "[::1]:443", "10.1.2.3:443", "169.254.169.254:443", "[::ffff:10.0.0.1]:443", "[fd00::1]:443", "192.168.0.1:443", "93.184.216.34:8443"} {
		c, err := dial.DialContext(t.Context(), "tcp", address)
		if err == nil {
			c.Close()
			t.Errorf("connected to %s", address)
		} else if !hooks.IsRefused(err) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestGuard_RedirectsAreNotFollowed(t *testing.T) {
	w := enginetest.New(t)
	inside := newReceiver(t, always(200))
	outside := newReceiver(t, func(int) (int, map[string]string) { return 302, map[string]string{"Location": inside.URL} })
	hook := addWebhook(t, w, outside.URL, "agent.created")
	w.Agent()
	turn(t, newSender(w, hooks.Guard{AllowPrivate: true}))
	if n := len(inside.took()); n != 0 {
		t.Errorf("%d calls came to where the redirect leads", n)
	}
	if d := deliveries(t, w, hook.ID)[0]; d.StatusCode != 302 || !strings.Contains(d.Problem, "redirect") {
		t.Errorf("the log says %+v", d)
	}
}

// The example of the Standard Webhooks specification.
func TestSign_PublishedVector(t *testing.T) {
	secret, err := hooks.SecretBytes("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got, err := hooks.Sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("signed %s, not %s (%v)", got, want, err)
	}
}
