package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Health is what a coordinator says about itself to anybody who asks.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version,omitzero"`
	Warning string `json:"warning,omitzero"` // about something that needs attention soon
}

// SignInLink is a secret that signs one browser in, once, within 10 minutes.
type SignInLink struct {
	Link string `json:"link"`
}

// Health asks a coordinator about itself; it needs no token.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return get[Health](ctx, c, "/healthz", nil)
}

// NewSignInLink creates a one-time link for the caller's own browser.
func (c *Client) NewSignInLink(ctx context.Context) (SignInLink, error) {
	var out SignInLink
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/api/v1/signin-links", body: struct{}{}}, &out)
	return out, err
}

// AuthServer asks how programs sign people in; it needs no token. It is refused when the
// answer is for another server: a code would be sent to where it leads.
func (c *Client) AuthServer(ctx context.Context) (AuthServer, error) {
	out, err := get[AuthServer](ctx, c, "/.well-known/oauth-authorization-server", nil)
	if err != nil {
		return AuthServer{}, err
	}
	for _, endpoint := range []string{out.Issuer + "/", out.AuthorizationEndpoint, out.TokenEndpoint, out.DeviceEndpoint, out.RevocationEndpoint} {
		if !strings.HasPrefix(endpoint, c.URL()+"/") {
			return AuthServer{}, &Unanswered{Op: "GET /.well-known/oauth-authorization-server", Err: fmt.Errorf("the answer names %q, which is another server", endpoint)}
		}
	}
	return out, nil
}

// Revoke ends the sign-in that a program's token belongs to.
func (c *Client) Revoke(ctx context.Context, client, token string) error {
	form := url.Values{"client_id": {client}, "token": {token}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url(call{path: "/oauth/revoke"}), strings.NewReader(form))
	if err != nil {
		return fmt.Errorf("make the request to sign out: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", c.agent)
	resp, err := c.http.Do(req)
	if err != nil {
		return &Unanswered{Op: "POST /oauth/revoke", Err: withoutURL(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return refusal("POST /oauth/revoke", resp, b)
	}
	return nil
}
