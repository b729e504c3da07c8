package api

import "context"

// InboxKind says why something waits for a person.
type InboxKind string

// The kinds of things that wait for a person.
const (
	InboxPrompt          InboxKind = "prompt"           // a session's open question
	InboxStale           InboxKind = "stale"            // it lost its worker, and none will take it
	InboxFailed          InboxKind = "failed"           // it ended in error, and nothing has made up for that
	InboxAgentPaused     InboxKind = "agent_paused"     // after failures in a row
	InboxWebhookDisabled InboxKind = "webhook_disabled" // after nothing but failures
	InboxChannelDisabled InboxKind = "channel_disabled" // after nothing but failures
	InboxWorkerNotice    InboxKind = "worker_notice"    // it wants its owner to look at something

	// What channels tell under the same names.
	InboxSchedule   = InboxKind(CauseSchedule)
	InboxSpendLimit = InboxKind(CauseSpendLimit)
	InboxDisk       = InboxKind(CauseDisk)
	InboxBackup     = InboxKind(CauseBackup)
)

// InboxItem is one thing that waits for a person: a session, an agent, a webhook, a channel, a worker, or the
// coordinator itself.
type InboxItem struct {
	Kind    InboxKind `json:"kind"`
	Since   Time      `json:"since,omitzero"`
	Session *Session  `json:"session,omitzero"`
	Agent   *Agent    `json:"agent,omitzero"`
	Webhook *Webhook  `json:"webhook,omitzero"`
	Channel *Channel  `json:"channel,omitzero"`
	Worker  *Worker   `json:"worker,omitzero"`
	MayAct  bool      `json:"mayAct"` // the caller may answer, retry, resume, enable or mend it

	// Of what the coordinator found wrong: what it is, more of that, and what mends it.
	Title  string `json:"title,omitzero"`
	Detail string `json:"detail,omitzero"`
	Mend   string `json:"mend,omitzero"`
}

// Inbox is everything that waits for a person and that the caller may see, questions first.
type Inbox struct {
	Items []InboxItem `json:"items"`
}

// Inbox returns everything that waits for a person.
func (c *Client) Inbox(ctx context.Context) (Inbox, error) {
	return get[Inbox](ctx, c, path("inbox"), nil)
}
