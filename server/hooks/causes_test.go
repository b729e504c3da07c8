package hooks_test

import (
	"fmt"
	"mime"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/server/hooks"
)

// services are receivers of four kinds, each reached as a person's channel would.
type services struct {
	t    *testing.T
	w    *enginetest.Fixture
	web  *receiver // of ntfy, Slack and the webhook, which it tells apart by their hosts
	mail *mailServer
	send *hooks.Sender
}

func newServices(t *testing.T, opts ...enginetest.Option) *services {
	t.Helper()
	opts = append([]enginetest.Option{enginetest.With(func(c *engine.Config) { c.CheckChannelURL = inside.CheckChannelURL })}, opts...)
	s := &services{t: t, w: enginetest.New(t, opts...), web: newTLSReceiver(t), mail: newMailServer(t, nil)}
	s.send = newSender(s.w, inside)
	hooks.ConnectTo(s.send, s.web.Listener.Addr().String())
	for _, address := range []string{
		"ntfy://ntfy.sh/topic", "slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook", "generic://hooks.example.org/path",
		"smtp://me:mail-password@" + s.mail.addr + "/?from=stint@example.org&to=a@example.org",
	} {
		addChannel(t, s.w, s.w.Owner, address)
	}
	return s
}

// told are the messages that each service has got since the last look, whole. Nothing that an
// agent wrote is in them.
func (s *services) told() map[string][]string {
	s.t.Helper()
	for range 3 {
		turn(s.t, s.send)
	}
	out := map[string][]string{"ntfy.sh": nil, "hooks.slack.com": nil, "hooks.example.org": nil, "mail": nil}
	s.web.mu.Lock()
	for _, c := range s.web.calls {
		text, err := url.QueryUnescape(c.body)
		if err != nil {
			text = c.body
		}
		title, _ := new(mime.WordDecoder).DecodeHeader(c.header.Get("Title"))
		out[c.host] = append(out[c.host], title+"\n"+text)
	}
	s.web.calls = nil
	s.web.mu.Unlock()
	s.mail.mu.Lock()
	for _, text := range s.mail.mails {
		m, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			s.t.Fatal(err)
		}
		subject, _ := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		out["mail"] = append(out["mail"], subject+"\n"+text)
	}
	s.mail.mails = nil
	s.mail.mu.Unlock()
	for service, messages := range out {
		if all := strings.Join(messages, "\n"); strings.Contains(all, canary) {
			s.t.Errorf("%s was told an agent's words: %s", service, all)
		}
	}
	return out
}

// want checks that each service got exactly one message, with these words; "" wants none.
func (s *services) want(when, words string) {
	s.t.Helper()
	for service, got := range s.told() {
		switch {
		case words == "" && len(got) > 0:
			s.t.Errorf("%s: %s was told %q", when, service, got)
		case words != "" && (len(got) != 1 || !strings.Contains(got[0], words)):
			s.t.Errorf("%s: %s was told %q, want once %q", when, service, got, words)
		}
	}
}

func minutes(w *enginetest.Fixture, n int, k *enginetest.Worker) {
	for range n {
		w.Advance(time.Minute)
		if k != nil {
			k.Beat()
		}
	}
}

// Each cause is made for real, and each service is told of it exactly once.
func TestCauses_EachIsToldOnceByEveryService(t *testing.T) {
	file := filepath.Join(t.TempDir(), canary)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free := int64(1 << 40)
	s := newServices(t, enginetest.AtOnce, enginetest.With(func(c *engine.Config) {
		c.Backups = engine.Backups{Every: 24 * time.Hour, Keep: 1, Dir: filepath.Join(file, "backups")}
		c.FreeBytes = func() (int64, error) { return free, nil }
	}))
	w := s.w
	twice := func(when, words string) {
		t.Helper()
		s.want(when, words)
		minutes(w, 1, nil)
		s.want(when+", a minute later", "")
	}

	a := w.Agent()
	k := w.Worker(a)
	c, asked := ask(t, w, k, a)
	twice("a question", a.Slug+" needs you")
	if _, err := w.AnswerPrompt(t.Context(), w.Owner, asked.ID, api.AnswerInput{PromptID: asked.Prompted.ID, Answer: api.Answer{Text: canary}}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Complete(c, canary); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 5; n++ {
		k.Beat()
		fail(t, w, k, a)
		s.want(fmt.Sprintf("failure %d", n), map[int]string{1: a.Slug + " failed", 5: a.Slug + " failed 5 times in a row"}[n])
	}
	succeed(t, w, k, a)
	twice("a success", a.Slug+" works again")

	k.Beat()
	lost := k.Claim(w.New(a).ID)
	minutes(w, 20, nil)
	twice("a worker vanished", a.Slug+" lost its worker")
	k = w.Worker(a)
	if _, err := k.Complete(k.Claim(lost.SessionID), canary); err != nil {
		t.Fatal(err)
	}
	minutes(w, 1, k)
	twice("the run ended well", a.Slug+" goes on")

	spent := w.Agent(func(in *api.AgentInput) { in.DailySpendLimitMicros = 1000 })
	k = w.Worker(spent)
	c = k.Claim(w.New(spent).ID)
	if _, err := w.Complete(t.Context(), w.Owner, k.ID, c.SessionID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Usage: &api.Usage{CostMicros: 1000}}); err != nil {
		t.Fatal(err)
	}
	minutes(w, 1, k)
	twice("the day's limit", spent.Slug+" reached its spend limit")

	idle := w.Agent(func(in *api.AgentInput) { in.Schedule, in.CatchUp = "@every 10m", api.CatchUpNone })
	minutes(w, 21, nil)
	twice("nobody serves a schedule", idle.Slug+" didn't run when it was due")

	free = 1
	minutes(w, 1, nil)
	twice("a full disk", "The disk is nearly full")
	free = 1 << 40
	minutes(w, 1, nil)
	twice("there is room", "There is room on the disk again")

	if _, err := w.BackUp(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	minutes(w, 1, nil)
	twice("a backup failed", "The backup failed")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	minutes(w, 10, nil)
	if _, err := w.BackUp(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	minutes(w, 1, nil)
	twice("a backup succeeded", "Backups succeed again")
}

// Many failures at once are one message to each service, with a link.
func TestCauses_ManyAtOnceAreOneMessage(t *testing.T) {
	s := newServices(t)
	for range 30 {
		a := s.w.Agent()
		fail(t, s.w, s.w.Worker(a), a)
	}
	s.want("at once", "")
	s.w.Clock.Step(15 * time.Second)
	s.want("after 15 seconds", "agent-1 failed, and 29 more")
	s.w.Clock.Step(time.Hour)
	s.want("later", "")
}

// In quiet hours no service is called, and when they end each is once.
func TestCauses_QuietHoursCallNobody(t *testing.T) {
	s := newServices(t)
	for _, ch := range channelsOf(t, s.w, s.w.Owner) {
		_, err := s.w.EditChannel(t.Context(), s.w.Owner, ch.ID, func(in *api.ChannelInput) error {
			in.QuietFrom, in.QuietTo, in.TimeZone = "08:00", "11:00", "UTC"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	a := s.w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 2 })
	k := s.w.Worker(a)
	ask(t, s.w, k, a)
	fail(t, s.w, k, a)
	s.want("in the quiet hours", "")
	s.w.Clock.Step(2*time.Hour - time.Second)
	s.want("a second before their end", "")
	s.w.Clock.Step(time.Second)
	s.want("at their end", a.Slug+" needs you, and 1 more")
}
