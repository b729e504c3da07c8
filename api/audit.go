package api

import (
	"context"
	"net/url"
)

// AuditFilter narrows the audit; empty parts filter nothing.
type AuditFilter struct {
	Actor   string // id of a user or worker, or system, scheduler
	Type    string // of the event
	Agent   string // id or slug
	Session SessionID
	Since   Time
	Until   Time
}

// AuditEntry is an event as people look at it: with the actor's name, and where
// the call came from.
type AuditEntry struct {
	Event
	ActorName string `json:"actorName"`
	From      string `json:"from,omitzero"` // network address; empty for this machine and for what nobody called for
	Via       string `json:"via,omitzero"`  // the API key; empty for one's own sign-in
}

// query writes the filter as the address of a page has it.
func (f AuditFilter) query(p Page) url.Values {
	q := p.query()
	for _, part := range []struct{ name, value string }{
		{"actor", f.Actor}, {"type", f.Type}, {"agent", f.Agent}, {"session", f.Session.String()},
		{"since", f.Since.String()}, {"until", f.Until.String()},
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
