package api

// The kinds of what retention removes once it is old.
const (
	RetainOutput     = "output"     // of ended sessions
	RetainSessions   = "sessions"   // that have ended
	RetainEvents     = "events"     // of ended sessions, and what the coordinator notes by itself
	RetainAudit      = "audit"      // who did what
	RetainDeliveries = "deliveries" // messages to webhooks and channels
)

// RetentionState is what retention keeps, and what it did last.
type RetentionState struct {
	Limits    []RetentionLimit `json:"limits"`
	LookedAt  Time             `json:"lookedAt,omitzero"` // when everything was last looked at
	NextAt    Time             `json:"nextAt,omitzero"`
	RemovedAt Time             `json:"removedAt,omitzero"` // when something was last removed
	Removed   *Removed         `json:"removed,omitzero"`   // what that was
}

// RetentionLimit is what stays of one kind: what is within all of its bounds. 0 is no bound.
type RetentionLimit struct {
	Kind       string `json:"kind"`
	AgeSeconds int64  `json:"ageSeconds"`
	Count      int64  `json:"count"`
	Bytes      int64  `json:"bytes"`
}

// Removed is how much went.
type Removed struct {
	Sessions   int64 `json:"sessions"`
	Output     int64 `json:"output"` // sessions that lost theirs
	Events     int64 `json:"events"`
	Audit      int64 `json:"audit"`
	Deliveries int64 `json:"deliveries"`
}

// PruneInput asks to remove now what is old, or to say what that would be.
type PruneInput struct {
	DryRun bool `json:"dryRun,omitzero"`
}

// Pruned is what went, or with dryRun would go.
type Pruned struct {
	Removed
	Done bool `json:"done"` // false: there is more; ask again
}
