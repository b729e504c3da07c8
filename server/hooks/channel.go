package hooks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// shoutrrr reads the addresses of services and knows what each is to be sent. It is not left
// to connect by itself: every call goes through the guard, its outcome comes into the delivery
// log, and only the engine decides what is tried again.

// telling is what one try tells.
type telling struct {
	id    string // the same in each try
	title string
	text  string // the link included
	link  string // "" when nobody knows the dashboard's address
	at    time.Time
}

// together is a message for services that have no titles.
func (t telling) together() string { return t.title + "\n" + t.text }

// way is how a channel's address is reached.
type way struct {
	host string // that people name in the address; "" for a service that has one place
	port string // that the address names
	send func(ctx context.Context, c *http.Client, t telling) error
	mail *mailbox // a mail server instead
}

var errForm = errors.New("isn't written as the service's addresses are")

// wayOf reads a channel's address.
func wayOf(address string) (way, api.ChannelKind, error) {
	u, err := url.Parse(address)
	if err != nil {
		return way{}, api.ChannelKind{}, errors.New("is no address such as ntfy://ntfy.sh/TOPIC")
	}
	i := slices.IndexFunc(api.ChannelKinds, func(k api.ChannelKind) bool { return k.Scheme == u.Scheme })
	if i < 0 {
		if kind, ok := kindOfPage(u); ok {
			return way{}, api.ChannelKind{}, fmt.Errorf("must be written as %s: %s", kind.Pattern, kind.Means)
		}
		return way{}, api.ChannelKind{}, fmt.Errorf("must begin with one of %s", schemes())
	}
	kind := api.ChannelKinds[i]
	w, err := ways[u.Scheme](u)
	if err != nil {
		// shoutrrr's own words may hold a part of the address.
		return way{}, kind, fmt.Errorf("must be written as %s", kind.Pattern)
	}
	return w, kind, nil
}

// kindOfPage is the service whose address as browsers and other programs write it somebody
// pasted, as Slack and Discord hand out those of their webhooks.
func kindOfPage(u *url.URL) (api.ChannelKind, bool) {
	if u.Scheme != "https" && u.Scheme != "http" {
		return api.ChannelKind{}, false
	}
	scheme := map[string]string{
		"ntfy.sh": "ntfy", "hooks.slack.com": "slack", "discord.com": "discord", "discordapp.com": "discord", "api.telegram.org": "telegram", "api.pushover.net": "pushover",
	}[u.Hostname()]
	i := slices.IndexFunc(api.ChannelKinds, func(k api.ChannelKind) bool { return k.Scheme == cmp.Or(scheme, "generic") })
	return api.ChannelKinds[i], true
}

func schemes() string {
	out := make([]string, len(api.ChannelKinds))
	for i, k := range api.ChannelKinds {
		out[i] = k.Scheme + "://"
	}
	return strings.Join(out, ", ")
}

// CheckChannelURL says what may be shown of a channel's address: its service, and the server if
// the address names one. It refuses what would be refused when something is told.
func (g Guard) CheckChannelURL(address string) (target string, err error) {
	w, kind, err := wayOf(address)
	if err != nil {
		return "", err
	}
	if w.mail != nil {
		return kind.Scheme + "://" + w.host + "/…", g.checkMail(w.mail)
	}
	if w.host == "" {
		return kind.Scheme + "://…", nil
	}
	target = w.host
	if strings.Contains(target, ":") {
		target = "[" + target + "]" // or its last part would be a port
	}
	if w.port != "" {
		target += ":" + w.port
	}
	return kind.Scheme + "://" + target + "/…", g.CheckURL(&url.URL{Scheme: "https", Host: target})
}

// tell makes one try of a channel's message.
func (s *Sender) tell(ctx context.Context, a engine.DeliveryAttempt) engine.Sent {
	w, _, err := wayOf(a.URL)
	if err != nil {
		return engine.Sent{Problem: "the address " + err.Error()}
	}
	t := telling{id: a.Message, title: a.Note.Title, text: a.Note.Text, at: s.engine.Now()}
	if s.home != "" {
		t.link = s.home + a.Note.Path
		t.text += "\n" + t.link
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var out engine.Sent
	if w.mail != nil {
		out = s.sendMail(ctx, w.mail, t)
	} else {
		call := &recorder{sender: s, ctx: ctx}
		err := w.send(ctx, &http.Client{Transport: call, Timeout: answerWithin, CheckRedirect: s.client.CheckRedirect}, t)
		out = call.outcome(err)
	}
	secrets := secretsOf(a.URL)
	out.Problem, out.Answer = without(out.Problem, secrets), without(out.Answer, secrets)
	return out
}

// recorder is the transport of one try: it asks the guard, and notes what came of it.
type recorder struct {
	sender *Sender
	ctx    context.Context
	sent   engine.Sent
	called bool
}

// RoundTrip makes the try's only call.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.called {
		return nil, errors.New("a try makes one call")
	}
	r.called = true
	if err := r.sender.guard.CheckURL(req.URL); err != nil {
		r.sent.Problem = "the address " + err.Error()
		return nil, err
	}
	req = req.Clone(r.ctx)
	req.Header.Set("User-Agent", r.sender.agent)
	resp, err := r.sender.client.Transport.RoundTrip(req)
	if err != nil {
		r.sent.Problem = inWords(err)
		if errors.As(err, new(tls.RecordHeaderError)) {
			r.sent.Problem += ": if that is right, the address takes ?disabletls=yes (ntfy: ?scheme=http)"
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16*maxAnswer))
	if err != nil {
		r.sent.Problem = "the answer broke off: " + inWords(err)
	}
	r.sent.StatusCode, r.sent.NotBefore = resp.StatusCode, retryAfter(resp, r.sender.engine.Now())
	r.sent.Answer = api.CutAt(strings.ToValidUTF8(string(body), "\ufffd"), maxAnswer)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// outcome is what came of the try: the service's status decides, and the sender's own error
// only where no call was made.
func (r *recorder) outcome(err error) engine.Sent {
	out := r.sent
	switch {
	case out.StatusCode == 0 && err != nil:
		out.Problem = cmp.Or(out.Problem, "it can't be sent: "+api.Plain(err))
	case out.StatusCode >= 300:
		out.Problem = statusProblem(out.StatusCode)
	}
	return out
}

func statusProblem(status int) string {
	if status < 400 {
		return "it answered with a redirect, which is not followed: set the address it leads to"
	}
	return strings.TrimSpace(fmt.Sprintf("it answered %d %s", status, http.StatusText(status)))
}

// secretsOf are the parts of a channel's address that nobody may read in a log: names,
// passwords, the parts of the path, the values of the query, and a host that is an id.
func secretsOf(address string) []string {
	out := []string{address}
	u, err := url.Parse(address)
	if err != nil {
		return out
	}
	if u.User != nil {
		password, _ := u.User.Password()
		out = append(out, u.User.String(), u.User.Username(), password)
	}
	if w, _, err := wayOf(address); err == nil && w.host == "" {
		out = append(out, u.Hostname())
	}
	out = append(out, strings.Split(u.Path, "/")...)
	for _, values := range u.Query() {
		out = append(out, values...)
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}

const shortSecret = 4 // characters below which a part of an address is a word such as "yes"

func without(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= shortSecret {
			text = strings.ReplaceAll(text, s, "…")
			text = strings.ReplaceAll(text, url.QueryEscape(s), "…")
		}
	}
	return text
}
