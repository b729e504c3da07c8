package api

import (
	"context"
	"net/http"
)

// Health is what a coordinator says of itself to anybody who asks.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version,omitzero"`
}

// SignInLink is a secret that signs one browser in, once, within 10 minutes.
type SignInLink struct {
	Link string `json:"link"`
}

// Health asks the coordinator who it is; it needs no token.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return get[Health](ctx, c, "/healthz", nil)
}

// NewSignInLink makes a one-time link for the caller's own browser.
func (c *Client) NewSignInLink(ctx context.Context) (SignInLink, error) {
	var out SignInLink
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/api/v1/signin-links", body: struct{}{}}, &out)
	return out, err
}
