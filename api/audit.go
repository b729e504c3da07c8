package api

// AuditFilter narrows the audit; empty parts filter nothing.
type AuditFilter struct {
	Actor   string // id of a user or worker, or system, scheduler
	Type    string // of the event
	Agent   string // id or slug
	Session SessionID
	Since   Time
	Until   Time
}

// AuditEntry is an event as people look at it: with the actor's name, and where the call came
// from.
type AuditEntry struct {
	Event
	ActorName string `json:"actorName"`
	From      string `json:"from,omitzero"` // network address; empty for this machine and for what no call caused
	Via       string `json:"via,omitzero"`  // the API key; empty for one's own sign-in
}
