package hooks_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/server/hooks"
)

// canary stands in everything that an agent writes: no message may hold it.
const canary = "canary-7f3a"

// mailServer is a real mail server that keeps what it took.
type mailServer struct {
	mu    sync.Mutex
	mails []string
	to    []string
	user  string
	addr  string
	fails int // how many mails it refuses before it takes one
}

type mailSession struct{ s *mailServer }

func (m *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{m}, nil }
func (*mailSession) Reset()                                       {}
func (*mailSession) Logout() error                                { return nil }
func (*mailSession) AuthMechanisms() []string                     { return []string{sasl.Plain} }
func (m *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "mail-password" {
			return errors.New("no")
		}
		m.s.mu.Lock()
		defer m.s.mu.Unlock()
		m.s.user = user
		return nil
	}), nil
}
func (*mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (m *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.s.to = append(m.s.to, to)
	return nil
}

func (m *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.s.fails > 0 {
		m.s.fails--
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try later"}
	}
	m.s.mails = append(m.s.mails, string(text))
	return nil
}

func newMailServer(t *testing.T, secure *tls.Config) *mailServer {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mailServer{addr: ln.Addr().String()}
	srv := smtp.NewServer(m)
	srv.Domain, srv.TLSConfig, srv.AllowInsecureAuth = "mail.test", secure, true
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return m
}

func (m *mailServer) took() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.mails...)
}

// checked gives a fixture whose engine asks the guard about channels, as the coordinator's does.
func checked(t *testing.T, g hooks.Guard) *enginetest.Fixture {
	t.Helper()
	return enginetest.New(t, enginetest.AtOnce, enginetest.With(func(c *engine.Config) { c.CheckChannelURL = g.CheckChannelURL }))
}

var inside = hooks.Guard{AllowPrivate: true}

func addChannel(t *testing.T, w *enginetest.Fixture, c engine.Caller, address string, change ...func(*api.ChannelInput)) api.Channel {
	t.Helper()
	in := engine.DefaultChannel()
	in.URL = address
	for _, f := range change {
		f(&in)
	}
	out, err := w.CreateChannel(t.Context(), c, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func forAll(in *api.ChannelInput) { in.Scope = api.ScopeWorkspace }

func channelLog(t *testing.T, w *enginetest.Fixture, c engine.Caller, id api.ChannelID) []api.ChannelDelivery {
	t.Helper()
	list, err := w.ChannelDeliveries(t.Context(), c, id, api.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// ask makes an agent's session ask something, and returns it with its prompt.
func ask(t *testing.T, w *enginetest.Fixture, k *enginetest.Worker, a api.Agent) (api.Claim, api.Session) {
	t.Helper()
	c := k.Claim(w.New(a, func(in *api.SessionInput) { text := canary; in.Prompt = &text }).ID)
	s, err := k.Ask(c, canary+" may I?")
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func fail(t *testing.T, w *enginetest.Fixture, k *enginetest.Worker, a api.Agent) api.SessionID {
	t.Helper()
	c := k.Claim(w.New(a).ID)
	if _, err := k.Fail(c, canary); err != nil {
		t.Fatal(err)
	}
	return c.SessionID
}

func succeed(t *testing.T, w *enginetest.Fixture, k *enginetest.Worker, a api.Agent) {
	t.Helper()
	if _, err := k.Complete(k.Claim(w.New(a).ID), canary); err != nil {
		t.Fatal(err)
	}
}

// Each kind of service gets one message for one cause, in its own form, with a link to the
// session and without a word of the agent's.
func TestChannel_EachServiceIsToldOnce(t *testing.T) {
	for name, address := range map[string]string{
		"ntfy": "ntfy://HOST/topic?scheme=http", "mattermost": "mattermost://HOST/token-abc?disabletls=yes", "gotify": "gotify://HOST/AzyoeNS.D4iJLVa?disabletls=yes",
		"rocketchat": "rocketchat://HOST/tokena/tokenb", "generic": "generic://HOST/path?disabletls=yes&@X-Key=very-secret",
		"matrix": "matrix://:token-xyz@HOST/?rooms=!room:test&disableTLS=yes",
	} {
		t.Run(name, func(t *testing.T) {
			w := checked(t, inside)
			r := newReceiver(t, always(200))
			if name == "rocketchat" {
				r = newTLSReceiver(t)
			}
			u, err := url.Parse(r.URL)
			if err != nil {
				t.Fatal(err)
			}
			ch := addChannel(t, w, w.Owner, strings.ReplaceAll(address, "HOST", u.Host))
			a := w.Agent()
			_, s := ask(t, w, w.Worker(a), a)
			sender := newSender(w, inside)
			hooks.TrustAnything(sender)
			for range 3 {
				turn(t, sender)
			}
			log := channelLog(t, w, w.Owner, ch.ID)
			calls := r.took()
			if len(calls) != 1 || len(log) != 1 || log[0].State != api.DeliveryDelivered || log[0].StatusCode != 200 {
				t.Fatalf("%d calls; the log says %+v", len(calls), log)
			}
			whole := fmt.Sprint(calls[0].header) + calls[0].body
			link := "https://stint.example/base/sessions/" + s.ID.String()
			if !strings.Contains(whole, link) || !strings.Contains(whole, a.Slug+" needs you") {
				t.Errorf("it was told %s", whole)
			}
			if strings.Contains(whole, canary) {
				t.Errorf("an agent's words were told: %s", whole)
			}
			if name == "generic" && calls[0].header.Get("X-Key") != "very-secret" {
				t.Errorf("its header is %v", calls[0].header)
			}
		})
	}
}

// The services that have one place get what their interfaces want there.
func TestChannel_ServicesOfOnePlace(t *testing.T) {
	for name, c := range map[string]struct{ address, host, path string }{
		"slack":    {"slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook", "hooks.slack.com", "/services/AAAAAAAAA/BBBBBBBBB/123456789123456789123456"},
		"discord":  {"discord://token-of-discord@123456789", "discord.com", "/api/webhooks/123456789/token-of-discord"},
		"telegram": {"telegram://123456789:AAE-abcdefghijklmnopqrstuvwxyz1234567@telegram?chats=42", "api.telegram.org", "/bot123456789:AAE-abcdefghijklmnopqrstuvwxyz1234567/sendMessage"},
		"pushover": {"pushover://shoutrrr:apptokenapptoken@userkeyuserkey/", "api.pushover.net", "/1/messages.json"},
	} {
		t.Run(name, func(t *testing.T) {
			w := checked(t, hooks.Guard{})
			r := newTLSReceiver(t)
			ch := addChannel(t, w, w.Owner, c.address)
			if strings.ContainsAny(ch.Target, "0123456789") || strings.Contains(ch.Target, "token") {
				t.Errorf("the target %q shows a secret", ch.Target)
			}
			a := w.Agent()
			ask(t, w, w.Worker(a), a)
			sender := newSender(w, hooks.Guard{})
			hooks.ConnectTo(sender, r.Listener.Addr().String())
			turn(t, sender)
			turn(t, sender)
			calls := r.took()
			if len(calls) != 1 || calls[0].host != c.host || calls[0].path != c.path {
				t.Fatalf("called %+v; the log says %+v", calls, channelLog(t, w, w.Owner, ch.ID))
			}
			if text, _ := url.QueryUnescape(calls[0].body); !strings.Contains(text, a.Slug+" needs you") || strings.Contains(text, canary) {
				t.Errorf("it was told %s", text)
			}
		})
	}
}

// Mail goes through a real server, once also where the first try fails, and says who sent what
// to whom in a form that every mail program reads.
func TestChannel_Mail(t *testing.T) {
	w := checked(t, inside)
	m := newMailServer(t, nil)
	m.fails = 1
	ch := addChannel(t, w, w.Owner, "smtp://me:mail-password@"+m.addr+"/?from=stint@example.org&fromname=Stint&to=a@example.org,b@example.org")
	a := w.Agent()
	_, s := ask(t, w, w.Worker(a), a)
	sender := newSender(w, inside)
	next := turn(t, sender)
	if log := channelLog(t, w, w.Owner, ch.ID); !strings.Contains(log[0].Problem, "451") || log[0].State != api.DeliveryWaiting {
		t.Fatalf("the log says %+v", log)
	}
	w.Clock.Step(next.Sub(w.Clock.Now()))
	turn(t, sender)
	turn(t, sender)
	mails := m.took()
	if len(mails) != 1 || m.user != "me" || len(m.to) != 4 { // two recipients, two tries
		t.Fatalf("%d mails, to %v, by %q; the log says %+v", len(mails), m.to, m.user, channelLog(t, w, w.Owner, ch.ID))
	}
	got, err := mail.ReadMessage(strings.NewReader(mails[0]))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(got.Body))
	if err != nil {
		t.Fatal(err)
	}
	subject, _ := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
	if subject != a.Slug+" needs you" || !strings.Contains(string(body), "https://stint.example/base/sessions/"+s.ID.String()) || got.Header.Get("Message-Id") == "" {
		t.Errorf("the mail is %s", mails[0])
	}
	if strings.Contains(mails[0]+string(body), canary) {
		t.Errorf("an agent's words were told: %s", mails[0])
	}
	if log := channelLog(t, w, w.Owner, ch.ID); log[0].State != api.DeliveryDelivered || log[0].Tries != 2 {
		t.Errorf("the log says %+v", log)
	}
}

// Where messages may not go inside, a mail server has to offer TLS, and a certificate counts.
func TestChannel_MailNeedsTLS(t *testing.T) {
	m := newMailServer(t, nil)
	for _, g := range []string{"smtp://mail.example.org:587/?from=a@example.org&to=b@example.org&skiptlsverify=yes", "smtp://mail.example.org:8025/?from=a@example.org&to=b@example.org", "smtp://127.0.0.1:587/?from=a@example.org&to=b@example.org"} {
		if _, err := (hooks.Guard{}).CheckChannelURL(g); err == nil {
			t.Errorf("%s is allowed", g)
		}
	}
	w := checked(t, inside)
	ch := addChannel(t, w, w.Owner, "smtp://"+m.addr+"/?from=stint@example.org&to=a@example.org&requirestarttls=yes")
	if _, err := w.TestChannel(t.Context(), w.Owner, ch.ID); err != nil {
		t.Fatal(err)
	}
	turn(t, newSender(w, inside))
	if log := channelLog(t, w, w.Owner, ch.ID); log[0].State != api.DeliveryFailed || !strings.Contains(log[0].Problem, "TLS") || len(m.took()) != 0 {
		t.Errorf("the log says %+v", log)
	}
}

// A question that was answered before anybody could be told is not told, and the log says why.
func TestChannel_AnsweredQuestionsAreNotTold(t *testing.T) {
	w := checked(t, inside)
	r := newReceiver(t, always(503))
	u, _ := url.Parse(r.URL)
	ch := addChannel(t, w, w.Owner, "generic://"+u.Host+"/?disabletls=yes")
	a := w.Agent()
	k := w.Worker(a)
	_, s := ask(t, w, k, a)
	sender := newSender(w, inside)
	next := turn(t, sender)
	if n := len(r.took()); n != 1 {
		t.Fatalf("%d calls", n)
	}
	if _, err := w.AnswerPrompt(t.Context(), w.Owner, s.ID, api.AnswerInput{PromptID: s.Prompted.ID, Answer: api.Answer{Text: "yes"}}); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(next.Sub(w.Clock.Now()) + time.Second)
	turn(t, sender)
	if n := len(r.took()); n != 1 {
		t.Errorf("%d calls", n)
	}
	if log := channelLog(t, w, w.Owner, ch.ID); len(log) != 1 || log[0].State != api.DeliveryFailed || !strings.Contains(log[0].Problem, "closed before") {
		t.Errorf("the log says %+v", log)
	}
}

// A process that dies between the call and its note repeats that message once, not more.
func TestChannel_AKillRepeatsAtMostOnce(t *testing.T) {
	w := checked(t, inside)
	r := newReceiver(t, always(200))
	u, _ := url.Parse(r.URL)
	ch := addChannel(t, w, w.Owner, "generic://"+u.Host+"/?disabletls=yes")
	a := w.Agent()
	ask(t, w, w.Worker(a), a)
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost, err := w.TakeDeliveries(t.Context(), w.Now(), 10, nil)
	if err != nil || len(lost) != 1 {
		t.Fatal(lost, err)
	}
	if got := hooks.TryOnce(t.Context(), newSender(w, inside), lost[0]); got.StatusCode != 200 {
		t.Fatalf("sent %+v", got)
	}
	w.Restart() // before the outcome is noted
	sender := newSender(w, inside)
	for range 4 {
		if next := turn(t, sender); !next.IsZero() {
			w.Clock.Step(next.Sub(w.Clock.Now()))
		}
	}
	calls := r.took()
	if len(calls) != 2 || calls[0].body != calls[1].body {
		t.Errorf("it was told %d times: %+v", len(calls), calls)
	}
	if log := channelLog(t, w, w.Owner, ch.ID); len(log) != 1 || log[0].State != api.DeliveryDelivered {
		t.Errorf("the log says %+v", log)
	}
}

// Nothing that anybody reads holds a part of an address: no answer, log or event, also where
// the service repeats it.
func TestChannel_TheAddressIsASecret(t *testing.T) {
	w := checked(t, inside)
	echo := newReceiver(t, always(500))
	u, _ := url.Parse(echo.URL)
	echo.says = "no such hook: /hooks/super-secret-token, key other-secret"
	ch := addChannel(t, w, w.Owner, "generic://"+u.Host+"/hooks/super-secret-token?disabletls=yes&@X-Key=other-secret")
	if _, err := w.TestChannel(t.Context(), w.Owner, ch.ID); err != nil {
		t.Fatal(err)
	}
	turn(t, newSender(w, inside))
	if _, err := w.EditChannel(t.Context(), w.Owner, ch.ID, func(in *api.ChannelInput) error {
		if in.URL != "" {
			t.Errorf("an edit reads the address %s", in.URL)
		}
		in.Description = "mine"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	seen, err := json.Marshal([]any{ch, channelLog(t, w, w.Owner, ch.ID), must(w.Channels(t.Context(), w.Owner, api.Page{Limit: 9})), must(w.Events(t.Context(), w.Owner, 0, 1000))})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(seen), "secret") {
		t.Errorf("somebody reads %s", seen)
	}
	if log := channelLog(t, w, w.Owner, ch.ID); log[0].State != api.DeliveryFailed || log[0].StatusCode != 500 || !strings.Contains(log[0].Answer, "no such hook") {
		t.Errorf("a test that failed says %+v", log)
	}
	if err := w.DeleteChannel(t.Context(), w.Owner, ch.ID); err != nil {
		t.Fatal(err)
	}
	if left := w.Tell("SELECT url FROM webhooks WHERE id = ?", ch.ID); left[0] != "" {
		t.Errorf("after it was removed %v is left", left)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Addresses inside are refused when a channel is made and when it is used, for every service
// whose server the address names.
func TestChannel_GuardsAgainstInnerAddresses(t *testing.T) {
	r := newReceiver(t, always(200))
	u, _ := url.Parse(r.URL)
	for _, address := range []string{
		"ntfy://HOST/topic?scheme=http", "gotify://HOST/AzyoeNS.D4iJLVa?disabletls=yes", "mattermost://HOST/token-abc?disabletls=yes", "rocketchat://HOST/tokena/tokenb",
		"generic://HOST/path?disabletls=yes", "matrix://:token-xyz@HOST/?rooms=!room:test&disableTLS=yes", "smtp://HOST/?from=a@example.org&to=b@example.org",
	} {
		address = strings.ReplaceAll(address, "HOST", u.Host)
		for _, host := range append([]string{u.Host, "localhost:443"}, innerHosts...) {
			if _, err := (hooks.Guard{}).CheckChannelURL(strings.ReplaceAll(address, u.Host, host)); err == nil {
				t.Errorf("%s at %s is allowed", address, host)
			}
		}
		w := checked(t, inside)
		ch := addChannel(t, w, w.Owner, address)
		if _, err := w.TestChannel(t.Context(), w.Owner, ch.ID); err != nil {
			t.Fatal(err)
		}
		turn(t, newSender(w, hooks.Guard{}))
		if log := channelLog(t, w, w.Owner, ch.ID); log[0].StatusCode != 0 || log[0].Problem == "" || log[0].State != api.DeliveryFailed {
			t.Errorf("%s: the log says %+v", address, log)
		}
	}
	if n := len(r.took()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	if target, err := (hooks.Guard{}).CheckChannelURL("ntfy://[2606:4700:4700::1111]/topic"); err != nil || target != "ntfy://[2606:4700:4700::1111]/…" {
		t.Errorf("an outer IPv6 address is %q, %v", target, err)
	}
}

// A service that takes a connection and says nothing holds up its own channel alone, and the
// end of the process not at all.
func TestChannel_AMailServerThatHangsHoldsUpItselfAlone(t *testing.T) {
	w := checked(t, inside)
	hangs, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	connected := make(chan net.Conn, 9)
	go func() {
		for {
			c, err := hangs.Accept()
			if err != nil {
				close(connected)
				return
			}
			connected <- c
		}
	}()
	answers := newReceiver(t, always(200))
	u, _ := url.Parse(answers.URL)
	slow := addChannel(t, w, w.Owner, "smtp://"+hangs.Addr().String()+"/?from=stint@example.org&to=a@example.org")
	quick := addChannel(t, w, w.Owner, "generic://"+u.Host+"/?disabletls=yes")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); newSender(w, inside).Run(ctx) }()
	a := w.Agent()
	k := w.Worker(a)
	ask(t, w, k, a)
	c := <-connected // the mail server is being waited for
	b := w.Agent()
	ask(t, w, w.Worker(b), b)
	for len(answers.took()) < 2 {
		log := channelLog(t, w, w.Owner, slow.ID)
		if len(log) > 0 && log[len(log)-1].Problem != "" {
			t.Fatalf("the mail was given up before the other channel told everything: %+v", log)
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	<-done // although nobody has answered
	c.Close()
	if log := channelLog(t, w, w.Owner, quick.ID); len(log) != 2 {
		t.Errorf("the other channel's log says %+v", log)
	}
}

// Every kind that people are offered can be read, and its example is written as it must be.
func TestChannel_EveryKindIsKnown(t *testing.T) {
	for _, k := range api.ChannelKinds {
		if !hooks.Known(k.Scheme) {
			t.Errorf("nothing sends to %s", k.Scheme)
		}
	}
	for _, bad := range []string{"", "https://example.org/", "ntfy://", "slack://xoxb-1-2-3@channel", "nonsense", "telegram://x@telegram?chats=1,2", "smtp://mail.example.org"} {
		if _, err := (hooks.Guard{}).CheckChannelURL(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// A person is told what they may see, the workspace nothing of anybody's own machine.
func TestChannel_TellsWhatItsReaderMaySee(t *testing.T) {
	w := checked(t, inside)
	all, mine, theirs := newReceiver(t, always(200)), newReceiver(t, always(200)), newReceiver(t, always(200))
	at := func(r *receiver) string {
		u, _ := url.Parse(r.URL)
		return "generic://" + u.Host + "/?disabletls=yes"
	}
	other := admin(t, w)
	addChannel(t, w, w.Owner, at(all), forAll)
	addChannel(t, w, w.Owner, at(mine))
	addChannel(t, w, other, at(theirs))
	local := w.Agent()
	ask(t, w, w.Worker(local), local)
	sender := newSender(w, inside)
	turn(t, sender)
	if n, m, o := len(all.took()), len(mine.took()), len(theirs.took()); n != 0 || m != 1 || o != 0 {
		t.Errorf("of a local session the workspace was told %d times, its owner %d, another %d", n, m, o)
	}
	cloud := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	ask(t, w, w.Worker(cloud), cloud)
	turn(t, sender)
	if n, m, o := len(all.took()), len(mine.took()), len(theirs.took()); n != 1 || m != 2 || o != 1 {
		t.Errorf("of a cloud session the workspace was told %d times, its owner %d in all, another %d", n, m, o)
	}
	if _, err := w.Channel(t.Context(), other, channelsOf(t, w, w.Owner)[0].ID); err == nil {
		t.Error("another's channel can be seen")
	}
}

func channelsOf(t *testing.T, w *enginetest.Fixture, c engine.Caller) []api.Channel {
	t.Helper()
	list, err := w.Channels(t.Context(), c, api.Page{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// Of a series of failures the first is told, the one that pauses, and the success that ends it.
func TestChannel_OnceForASeriesOfFailures(t *testing.T) {
	w := checked(t, inside)
	r := newReceiver(t, always(200))
	u, _ := url.Parse(r.URL)
	ch := addChannel(t, w, w.Owner, "generic://"+u.Host+"/?disabletls=yes")
	a := w.Agent()
	k := w.Worker(a)
	sender := newSender(w, inside)
	succeed(t, w, k, a)
	for range 7 {
		fail(t, w, k, a)
		turn(t, sender)
	}
	w.Restart()
	sender = newSender(w, inside)
	succeed(t, w, k.Through(w), a)
	succeed(t, w, k.Through(w), a)
	turn(t, sender)
	var told []string
	for _, d := range channelLog(t, w, w.Owner, ch.ID) {
		told = append(told, d.Title)
	}
	if got := strings.Join(told, "; "); got != a.Slug+" works again; "+a.Slug+" failed 5 times in a row; "+a.Slug+" failed" {
		t.Errorf("it was told: %s", got)
	}
	for _, c := range r.took() {
		if strings.Contains(c.body, canary) {
			t.Errorf("an agent's words were told: %s", c.body)
		}
	}
}

// With details, and only then, a channel has the question in its words.
func TestChannel_DetailsOnlyWhereWanted(t *testing.T) {
	w := checked(t, inside)
	r := newReceiver(t, always(200))
	u, _ := url.Parse(r.URL)
	addChannel(t, w, w.Owner, "generic://"+u.Host+"/?disabletls=yes", func(in *api.ChannelInput) { in.Details, in.Causes = true, api.Labels{string(api.CauseNeedsYou)} })
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 2 })
	k := w.Worker(a)
	ask(t, w, k, a)
	fail(t, w, k, a)
	turn(t, newSender(w, inside))
	if calls := r.took(); len(calls) != 1 || !strings.Contains(calls[0].body, canary+" may I?") {
		t.Errorf("it was told %+v", calls)
	}
}
