package api

import (
	"context"
	"net/url"
)

// query writes the filter as a page's address has it.
func (f AuditFilter) query(p Page) url.Values {
	q := p.query()
	for _, part := range []struct{ name, value string }{
		{"actor", f.Actor},
		{"type", f.Type},
		{"agent", f.Agent},
		{"session", f.Session.String()},
		{"since", f.Since.String()},
		{"until", f.Until.String()},
	} {
		if part.value != "" {
			q.Set(part.name, part.value)
		}
	}
	return q
}

// Audit lists a page of who did what, newest first.
func (c *Client) Audit(ctx context.Context, f AuditFilter, p Page) (List[AuditEntry], error) {
	return get[List[AuditEntry]](ctx, c, "audit", f.query(p))
}
