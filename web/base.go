package web

import (
	"context"
	"strings"

	"github.com/a-h/templ"
)

type baseKey struct{}

// WithBase is the context of a request that came below a path of the public URL, such as
// "/stint". The handler sees addresses without that path; [Address] adds it again to what is
// sent.
func WithBase(ctx context.Context, base string) context.Context {
	return context.WithValue(ctx, baseKey{}, base)
}

// BaseOf is the path below which a request came, "" for none.
func BaseOf(ctx context.Context) string {
	base, _ := ctx.Value(baseKey{}).(string)
	return base
}

// Address is a path of this server as the client that made the request has to ask for it.
// Addresses elsewhere and those relative to a page stay as they are.
func Address(ctx context.Context, address string) string {
	if !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//") {
		return address
	}
	return BaseOf(ctx) + address
}

// at is how every template writes an address, in links, forms and scripts alike.
func at(ctx context.Context, address string) templ.SafeURL {
	return templ.URL(Address(ctx, address))
}
