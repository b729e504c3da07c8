package hooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	shoutrrr "github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"

	"stint/api"
	"stint/engine"
)

// mailPorts are those of mail servers that take mail from programs.
var mailPorts = []uint16{25, 465, 587, 2525}

// mailbox is a mail server with what it is to be told: who sends to whom.
type mailbox struct {
	config  *shoutrrr.Config
	from    mail.Address
	to      []mail.Address
	whole   bool // TLS from the first byte, not by STARTTLS
	address string
}

func newMailbox(c *shoutrrr.Config) (*mailbox, error) {
	m := &mailbox{
		config: c, from: mail.Address{Name: c.FromName, Address: c.FromAddress}, address: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))),
		whole: c.Encryption == shoutrrr.EncMethods.ImplicitTLS || c.Encryption == shoutrrr.EncMethods.Auto && c.Port == shoutrrr.ImplicitTLSPort,
	}
	if c.Host == "" || len(c.ToAddresses) == 0 {
		return nil, errForm
	}
	for _, text := range append([]string{c.FromAddress}, c.ToAddresses...) {
		if _, err := mail.ParseAddress(text); err != nil {
			return nil, errForm
		}
	}
	for _, to := range c.ToAddresses {
		m.to = append(m.to, mail.Address{Address: to})
	}
	return m, nil
}

// checkMail refuses a mail server that would be refused when it is called.
func (g Guard) checkMail(m *mailbox) error {
	if g.AllowPrivate {
		return nil
	}
	if !slices.Contains(mailPorts, m.config.Port) {
		return errors.New("must name one of the ports 25, 465, 587 and 2525; " + operatorAllows)
	}
	if m.config.SkipTLSVerify {
		return errors.New("must not skip the check of the server's certificate")
	}
	return g.checkHost(m.config.Host)
}

// mailControl is what control is for mail servers.
func (g Guard) mailControl() func(network, address string, c syscall.RawConn) error {
	if g.AllowPrivate {
		return nil
	}
	return ssrf.New(ssrf.WithPorts(mailPorts...)).Safe
}

// sendMail makes one try. shoutrrr's own sender can't be told where it may connect to, sends
// without TLS to a server that offers none, and writes titles into the head as they are.
func (s *Sender) sendMail(ctx context.Context, m *mailbox, t telling) engine.Sent {
	if err := s.guard.checkMail(m); err != nil {
		return engine.Sent{Problem: "the address " + err.Error()}
	}
	body, err := m.message(t)
	if err != nil {
		return engine.Sent{Problem: "it can't be written: " + api.Plain(err)}
	}
	if err := s.post(ctx, m, body); err != nil {
		return engine.Sent{Problem: mailProblem(ctx, err)}
	}
	return engine.Sent{Taken: true}
}

func (s *Sender) post(ctx context.Context, m *mailbox, body []byte) error {
	dialer := net.Dialer{Timeout: answerWithin, Control: s.guard.mailControl()}
	conn, err := dialer.DialContext(ctx, "tcp", m.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	secure := &tls.Config{ServerName: m.config.Host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: m.config.SkipTLSVerify} //nolint:gosec // only where the operator lets messages go inside
	if m.whole {
		conn = tls.Client(conn, secure)
	}
	c, err := smtp.NewClient(conn, m.config.Host)
	if err != nil {
		return err
	}
	if err := c.Hello(m.config.ClientHost); err != nil {
		return err
	}
	if err := s.secure(c, m, secure); err != nil {
		return err
	}
	if auth := m.auth(); auth != nil {
		if err := c.Auth(auth); err != nil {
			return fmt.Errorf("sign in: %w", err)
		}
	}
	if err := c.Mail(m.from.Address); err != nil {
		return err
	}
	for _, to := range m.to {
		if err := c.Rcpt(to.Address); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // it has been taken: how the connection ends changes nothing
	return nil
}

// secure turns TLS on where it isn't yet.
func (s *Sender) secure(c *smtp.Client, m *mailbox, with *tls.Config) error {
	if m.whole {
		return nil
	}
	offered, _ := c.Extension("STARTTLS")
	if !offered || !m.config.UseStartTLS {
		if s.guard.AllowPrivate && !m.config.RequireStartTLS {
			return nil
		}
		return errors.New("it offers no TLS: messages tell what happens here")
	}
	return c.StartTLS(with)
}

func (m *mailbox) auth() smtp.Auth {
	switch m.config.Auth {
	case shoutrrr.AuthTypes.Plain:
		return smtp.PlainAuth("", m.config.Username, m.config.Password, m.config.Host)
	case shoutrrr.AuthTypes.CRAMMD5:
		return smtp.CRAMMD5Auth(m.config.Username, m.config.Password)
	case shoutrrr.AuthTypes.OAuth2:
		return shoutrrr.OAuth2Auth(m.config.Username, m.config.Password)
	}
	return nil
}

// message is the mail with its head. A repetition has the same id.
func (m *mailbox) message(t telling) ([]byte, error) {
	var b bytes.Buffer
	to := make([]string, len(m.to))
	for i, one := range m.to {
		to[i] = one.String()
	}
	for _, line := range [][2]string{
		{"From", m.from.String()},
		{"To", strings.Join(to, ", ")},
		{"Subject", mime.QEncoding.Encode("utf-8", strings.Join(strings.Fields(t.title), " "))},
		{"Date", t.at.UTC().Format(time.RFC1123Z)},
		{"Message-ID", "<" + t.id + "@stint.invalid>"},
		{"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", line[0], line[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, err := io.WriteString(w, t.text+"\n")
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// mailProblem says what kept a mail from being taken.
func mailProblem(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return fmt.Sprintf("no answer within %v", answerWithin)
	}
	var refusal *textproto.Error
	if errors.As(err, &refusal) {
		return "it answered " + api.Plain(refusal)
	}
	return inWords(err)
}
