// Package provider sends people to an external OpenID Connect provider and finds out who comes
// back: authorization code with PKCE, state, nonce, and an ID token whose signature, issuer,
// audience and times are checked.
//
// It knows the protocol and one provider, whose metadata it requests when it is first needed,
// and no rule about who may sign in: the engine has those.
package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"stint/account"
	"stint/api"
)

// Config is what the operator says about the provider.
type Config struct {
	Issuer   string
	ClientID string
	Secret   string // empty for a public client
	Name     string // what the button says; empty = the issuer's host

	// Inside lets the issuer be on this machine or in its networks, and without https. The
	// operator decides this.
	Inside bool
}

const (
	metadataLife = time.Hour
	metadataRest = 5 * time.Second // after a failure, before it is requested again
)

// Provider is one external provider. Its methods may be called from any goroutine.
type Provider struct {
	cfg    Config
	client *http.Client
	now    func() time.Time

	asking chan struct{} // the holder of its one token requests the metadata

	mu     sync.Mutex // guards what follows
	known  *metadata
	until  time.Time // when known is too old, or may be requested again
	failed error
}

// metadata is what the provider says about itself.
type metadata struct {
	*oidc.Provider
	AuthURL     string   `json:"authorization_endpoint"`
	TokenURL    string   `json:"token_endpoint"`
	KeysURL     string   `json:"jwks_uri"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	NamesItself bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// New makes a provider; nothing is requested from it yet. now is the clock that the times of
// tokens are compared with.
func New(c Config, now func() time.Time) (*Provider, error) {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is no issuer: write it as https://login.example.com", api.BareURL(c.Issuer))
	case u.Scheme != "https" && !c.Inside:
		return nil, fmt.Errorf("%q is not https", api.BareURL(c.Issuer))
	case c.ClientID == "":
		return nil, errors.New("the client id that the provider gave is missing")
	}
	if c.Name == "" {
		c.Name = u.Hostname()
	}
	return &Provider{cfg: c, client: newClient(c.Inside, u), now: now, asking: make(chan struct{}, 1)}, nil
}

// Name is what people call the provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Issuer is who the provider says it is.
func (p *Provider) Issuer() string { return p.cfg.Issuer }

// ErrUnreachable says that the provider didn't answer, or not as a provider does.
var ErrUnreachable = errors.New("the provider can't be reached")

// Refused is an answer that signs nobody in. Its text is for people, and has nothing in it
// that a stranger wrote.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// derive makes one of the values that go with a sign-in from the browser's secret, so that
// none of them need be stored.
func derive(secret, what string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Leave returns where to send a browser that has the secret in its cookie, to come back to
// callback. Error: [ErrUnreachable].
func (p *Provider) Leave(ctx context.Context, secret, callback string) (string, error) {
	m, err := p.metadata(ctx)
	if err != nil {
		return "", err
	}
	return p.program(m, callback).AuthCodeURL(derive(secret, "state"),
		oidc.Nonce(derive(secret, "nonce")), oauth2.S256ChallengeOption(derive(secret, "verifier"))), nil
}

// Belongs reports whether an answer is the one to the request that the browser with this
// secret made.
func Belongs(secret string, answer url.Values) bool {
	state := answer["state"]
	return secret != "" && len(state) == 1 && subtle.ConstantTimeCompare([]byte(state[0]), []byte(derive(secret, "state"))) == 1
}

var oauthWord = regexp.MustCompile(`^[a-z_]{1,40}$`)

// Return finds out who came back, given the provider's answer to a request that was checked to
// be the browser's own. Errors: [ErrUnreachable], [Refused].
func (p *Provider) Return(ctx context.Context, secret, callback string, answer url.Values) (account.ExternalIdentity, error) {
	m, err := p.metadata(ctx)
	if err != nil {
		return account.ExternalIdentity{}, err
	}
	if iss := answer["iss"]; len(iss) > 1 || len(iss) == 1 && iss[0] != p.cfg.Issuer || len(iss) == 0 && m.NamesItself {
		return account.ExternalIdentity{}, &Refused{"The answer doesn't come from " + p.Name() + "."}
	}
	if word := answer.Get("error"); word != "" {
		if !oauthWord.MatchString(word) {
			word = "an unknown reason"
		}
		return account.ExternalIdentity{}, &Refused{p.Name() + " signed nobody in: " + word + "."}
	}
	code := answer["code"]
	if len(code) != 1 || code[0] == "" {
		return account.ExternalIdentity{}, &Refused{"The answer of " + p.Name() + " has no code."}
	}
	ctx, end := context.WithTimeout(oidc.ClientContext(ctx, p.client), answerWithin)
	defer end()
	token, err := p.program(m, callback).Exchange(ctx, code[0], oauth2.VerifierOption(derive(secret, "verifier")))
	if err != nil {
		return account.ExternalIdentity{}, p.exchangeFailed(err)
	}
	raw, _ := token.Extra("id_token").(string)
	subject, c, err := p.read(ctx, m, raw, derive(secret, "nonce"))
	if err != nil {
		return account.ExternalIdentity{}, err
	}
	if c.Name == "" || c.Email == "" {
		c = p.more(ctx, m, token, subject, c)
	}
	if c.Name == "" {
		c.Name = c.Nick
	}
	verified, _ := c.EmailVerified.(bool)
	return account.ExternalIdentity{Issuer: p.cfg.Issuer, Subject: subject, Name: c.Name, Email: c.Email, EmailVerified: verified}, nil
}

// more asks for what an ID token may leave out. Without an answer about the same person it is
// left out: nothing that decides who somebody is comes from here.
func (p *Provider) more(ctx context.Context, m *metadata, token *oauth2.Token, subject string, had claims) claims {
	u, err := url.Parse(m.UserInfoEndpoint())
	if err != nil || u.Host == "" {
		return had
	}
	told, err := m.UserInfo(ctx, oauth2.StaticTokenSource(token))
	var c claims
	if err != nil || told.Subject != subject || told.Claims(&c) != nil {
		return had
	}
	return c
}

// exchangeFailed distinguishes a refusal from a failure. What the provider wrote is left out:
// it may repeat the code or the secret.
func (p *Provider) exchangeFailed(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.Response != nil && refused.Response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%w: %s", ErrUnreachable, inWords(err))
	}
	word := refused.ErrorCode
	if !oauthWord.MatchString(word) {
		word = "an unknown reason"
	}
	return &Refused{p.Name() + " didn't take its own code: " + word + "."}
}

// claims are what is read from an ID token besides what the library checks.
type claims struct {
	Party         string `json:"azp"`
	Name          string `json:"name"`
	Nick          string `json:"preferred_username"`
	Email         string `json:"email"`
	EmailVerified any    `json:"email_verified"` // true, and not a text that says so
}

// read checks an ID token and returns whose it is and what it says about them.
func (p *Provider) read(ctx context.Context, m *metadata, raw, nonce string) (subject string, c claims, err error) {
	bad := &Refused{"What " + p.Name() + " says of you can't be trusted. Nobody was signed in."}
	if raw == "" {
		return "", c, bad
	}
	token, err := m.VerifierContext(ctx, &oidc.Config{ClientID: p.cfg.ClientID, Now: p.now}).Verify(ctx, raw)
	if err != nil {
		if ctx.Err() != nil {
			return "", c, fmt.Errorf("%w: its keys didn't come in time", ErrUnreachable)
		}
		return "", c, bad
	}
	if err := token.Claims(&c); err != nil {
		return "", c, bad
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1,
		c.Party != "" && c.Party != p.cfg.ClientID, c.Party == "" && len(token.Audience) != 1,
		token.Subject == "" || len(token.Subject) > 255:
		return "", c, bad
	}
	return token.Subject, c, nil
}

// program is Stint as the provider knows it.
func (p *Provider) program(m *metadata, callback string) *oauth2.Config {
	end := oauth2.Endpoint{AuthURL: m.AuthURL, TokenURL: m.TokenURL, AuthStyle: oauth2.AuthStyleInHeader}
	if p.cfg.Secret == "" || len(m.AuthMethods) > 0 && !slices.Contains(m.AuthMethods, "client_secret_basic") {
		end.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.cfg.Secret, Endpoint: end, RedirectURL: callback, Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}
}

// metadata returns what the provider says about itself, requested by one caller at a time and
// kept for an hour. A provider that is down is asked again after seconds, not by everybody who
// waits.
func (p *Provider) metadata(ctx context.Context) (*metadata, error) {
	if m, err, ok := p.cached(); ok {
		return m, err
	}
	select {
	case p.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.asking }()
	if m, err, ok := p.cached(); ok { // another caller asked meanwhile
		return m, err
	}
	m, err := p.discover(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		return nil, err // it wasn't the provider's fault
	}
	if p.failed = err; err != nil {
		p.until = p.now().Add(metadataRest)
		if p.known != nil {
			p.failed = nil // its answer of an hour ago is good enough
		}
		return p.known, p.failed
	}
	p.known, p.until = m, p.now().Add(metadataLife)
	return m, nil
}

func (p *Provider) cached() (*metadata, error, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.failed, p.now().Before(p.until)
}

func (p *Provider) discover(ctx context.Context) (*metadata, error) {
	ctx, end := context.WithTimeout(oidc.ClientContext(ctx, p.client), answerWithin)
	defer end()
	found, err := oidc.NewProvider(ctx, p.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrUnreachable, inWords(err))
	}
	m := &metadata{Provider: found}
	if err := found.Claims(m); err != nil {
		return nil, fmt.Errorf("%w: its metadata can't be read", ErrUnreachable)
	}
	for _, text := range []string{m.AuthURL, m.TokenURL, m.KeysURL} {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && !(p.cfg.Inside && u.Scheme == "http") {
			return nil, fmt.Errorf("%w: its metadata names an address that isn't https", ErrUnreachable)
		}
	}
	return m, nil
}
