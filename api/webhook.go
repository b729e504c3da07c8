package api

// WebhookInput is what an admin sets on a webhook: the body of a creation, and what a PATCH is
// merged into.
type WebhookInput struct {
	URL         string `json:"url"`
	Description string `json:"description"`
	Types       Labels `json:"types"` // of events, such as agent.session_complete; empty = all
	Enabled     bool   `json:"enabled"`
}

// Webhook sends what happens in a workspace to another program.
type Webhook struct {
	ID WebhookID `json:"id"`
	WebhookInput
	DisabledReason string `json:"disabledReason,omitzero"`
	Secret         string `json:"secret,omitzero"` // shown once: when it is created and when it is changed
	OldSecretUntil Time   `json:"oldSecretUntil,omitzero"`
	CreatedAt      Time   `json:"createdAt"`
}

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryWaiting   DeliveryState = "waiting"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed"
)

// Delivery is one message of a webhook and what happened to it.
type Delivery struct {
	ID         DeliveryID    `json:"id"`
	WebhookID  WebhookID     `json:"webhookId"`
	Message    string        `json:"message"` // the webhook-id header; a repetition has the same
	Type       string        `json:"type"`
	State      DeliveryState `json:"state"`
	Tries      int64         `json:"tries"`
	NextTryAt  Time          `json:"nextTryAt,omitzero"`
	TriedAt    Time          `json:"triedAt,omitzero"`
	StatusCode int64         `json:"statusCode,omitzero"`
	Answer     string        `json:"answer,omitzero"`  // its first KiB
	Problem    string        `json:"problem,omitzero"` // why there was no good answer
	AgainOf    DeliveryID    `json:"againOf,omitzero"`
	Body       string        `json:"body"`
	CreatedAt  Time          `json:"createdAt"`
	EndedAt    Time          `json:"endedAt,omitzero"`
}

// SignatureScheme says how a caller of a trigger URL proves its identity.
type SignatureScheme string

// The schemes of signatures.
const (
	SignedStandard SignatureScheme = "standard" // Standard Webhooks
	SignedGitHub   SignatureScheme = "github"   // X-Hub-Signature-256
)

// TriggerURLInput is the body that opens a trigger URL.
type TriggerURLInput struct {
	Signature   SignatureScheme `json:"signature"`
	Description string          `json:"description"`
}

// TriggerURL is an address by which another program starts an agent.
type TriggerURL struct {
	ID TriggerID `json:"id"`
	TriggerURLInput
	AgentID    AgentID `json:"agentId"`
	Path       string  `json:"path,omitzero"`   // shown once
	URL        string  `json:"url,omitzero"`    // shown once: Path below the server's public address
	Secret     string  `json:"secret,omitzero"` // shown once
	CreatedAt  Time    `json:"createdAt"`
	LastUsedAt Time    `json:"lastUsedAt,omitzero"`
}
