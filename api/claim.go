package api

// ClaimRequest asks for the claim on one session.
type ClaimRequest struct {
	LeaseSeconds *int64  `json:"leaseSeconds"` // nil = the agent's, else 900
	InstanceID   string  `json:"instanceId"`
	FinishOf     ClaimID `json:"finishOf"` // contract 4.1, 10.8
}

// ClaimNextRequest asks for the best eligible session of any of the caller's workers.
type ClaimNextRequest struct {
	WorkerIDs    []WorkerID `json:"workerIds"`
	InstanceID   string     `json:"instanceId"`
	LeaseSeconds *int64     `json:"leaseSeconds"`
	WaitSeconds  int64      `json:"wait"` // at most 60
	RequestID    string     `json:"requestId"`
}

// Claim is the live lease that lets exactly one worker execute one session, with
// the frozen snapshot of what to execute.
type Claim struct {
	ClaimID             ClaimID   `json:"claimId"`
	SessionID           SessionID `json:"sessionId"`
	WorkerID            WorkerID  `json:"workerId"`
	Fence               int64     `json:"fence"`
	LeaseSeconds        int64     `json:"leaseSeconds"`
	LeaseExpiresAt      Time      `json:"leaseExpiresAt"`
	OfflineAfterSeconds int64     `json:"offlineAfterSeconds"`
	ServerTime          Time      `json:"serverTime"`
	CappedToMax         bool      `json:"cappedToMax,omitzero"`
	MaxLeaseSeconds     int64     `json:"maxLeaseSeconds,omitzero"`
	Session             Session   `json:"session"`
	Trusted             Trusted   `json:"trusted"`
	Untrusted           Untrusted `json:"untrusted"`

	// RunToken is what the agent may call the coordinator with, as long as the claim holds
	// (contract 8.4).
	RunToken string `json:"runToken,omitzero"`

	Conversation *Conversation `json:"conversation,omitzero"` // of an agent that converses; untrusted too
}

// Trusted is the part of a claim's snapshot that the agent's admins and the worker's owner
// set: one version of the agent, the one at the claim, and the worker's own instructions as
// they were then. Each answer to one claim has the same (contract 4.2). Who set a part is a
// user who did it by a sign-in of their own, and absent for a program.
type Trusted struct {
	AgentSlug           string    `json:"agentSlug"`
	AgentVersion        int64     `json:"agentVersion"`
	Type                AgentType `json:"type"`
	Run                 Run       `json:"run"`
	RunSetBy            UserID    `json:"runSetBy,omitzero"` // who last changed slug, type, run block or instructions
	Instructions        string    `json:"instructions"`
	TurnTimeoutSeconds  int64     `json:"turnTimeoutSeconds"`
	StallTimeoutSeconds int64     `json:"stallTimeoutSeconds"`
	TimeoutsSetBy       UserID    `json:"timeoutsSetBy,omitzero"`

	WorkerInstructions      string `json:"workerInstructions"`
	WorkerInstructionsSetBy UserID `json:"workerInstructionsSetBy,omitzero"`
}

// Untrusted is what people or other systems wrote; it never changes what is executed.
type Untrusted struct {
	Title   string       `json:"title"`
	Prompt  string       `json:"prompt"`
	Context string       `json:"context"`
	Files   []Attachment `json:"files,omitzero"` // that came with the prompt
	Task    *ClaimTask   `json:"task,omitzero"`  // that the session is about
}

// ClaimTask is the task of a session as its worker gets it, for the variables of WORKFLOW.md.
type ClaimTask struct {
	TaskRef
	Description string       `json:"description"`
	Priority    TaskPriority `json:"priority"`
	Labels      Labels       `json:"labels"`
}

// UnderClaim is the part of every worker write that proves the claim (contract 4.3).
type UnderClaim struct {
	ClaimID    ClaimID `json:"claimId"`
	InstanceID string  `json:"instanceId"`
}

// RenewRequest moves the lease to now + its length.
type RenewRequest struct{ UnderClaim }

// ExtendRequest stretches the lease once.
type ExtendRequest struct {
	UnderClaim
	AddSeconds int64 `json:"addSeconds"`
}

// Lease answers a renewal.
type Lease struct {
	ClaimID         ClaimID `json:"claimId"`
	LeaseExpiresAt  Time    `json:"leaseExpiresAt"`
	ServerTime      Time    `json:"serverTime"`
	StopRequested   bool    `json:"stopRequested"`
	CappedToMax     bool    `json:"cappedToMax,omitzero"`
	MaxLeaseSeconds int64   `json:"maxLeaseSeconds,omitzero"`
}

// ClaimNextOf is added to a finish to save a round trip (contract 4.5).
type ClaimNextOf struct {
	WorkerIDs []WorkerID `json:"workerIds"`
	RequestID string     `json:"requestId"`
}

// CompleteRequest finishes the claim's session well.
type CompleteRequest struct {
	UnderClaim
	Result    string       `json:"result"`
	Outcome   string       `json:"outcome"`
	Usage     *Usage       `json:"usage"`
	ClaimNext *ClaimNextOf `json:"claimNext"`
}

// FailRequest finishes the claim's session in error.
type FailRequest struct {
	UnderClaim
	Code      string       `json:"code"`
	Message   string       `json:"message"`
	Result    string       `json:"result"`
	Usage     *Usage       `json:"usage"`
	ClaimNext *ClaimNextOf `json:"claimNext"`
}

// ReleaseRequest gives the session back undone.
type ReleaseRequest struct {
	UnderClaim
	Reason    string       `json:"reason"`
	NotBefore Time         `json:"notBefore"`
	Named     bool         `json:"notBeforeNamed,omitzero"` // what the session waits for named that time itself
	Park      bool         `json:"park"`                    // keep the open prompt, wait for its answer unclaimed
	ClaimNext *ClaimNextOf `json:"claimNext"`
}

// Finished answers complete, fail and release.
type Finished struct {
	Session    Session `json:"session"`
	ServerTime Time    `json:"serverTime"`
	Claim      *Claim  `json:"claim,omitzero"` // the next one, when claimNext asked and there was one
}

// ActivityInput is one coarse progress or audit entry.
type ActivityInput struct {
	UnderClaim
	Key    string       `json:"key"` // client key: the same one twice is one activity
	Type   ActivityType `json:"type"`
	Text   string       `json:"text"`
	Detail string       `json:"detail"`
	Mark   Mark         `json:"mark"` // "" = none
}

// Activity is a stored progress or audit entry.
type Activity struct {
	ID        ActivityID   `json:"id"`
	SessionID SessionID    `json:"sessionId"`
	Type      ActivityType `json:"type"`
	Text      string       `json:"text"`
	Detail    string       `json:"detail,omitzero"`
	Mark      Mark         `json:"mark,omitzero"`
	At        Time         `json:"at"`
}

// ItemInput is one line of conversation or output to append.
type ItemInput struct {
	ClientID string   `json:"clientId"` // the same one twice is one item
	Kind     ItemKind `json:"kind"`
	Stream   string   `json:"stream"` // stdout or stderr, for text
	Tool     string   `json:"tool"`   // of a tool_call or tool_result
	CallID   string   `json:"callId"` // pairs a tool_result with its tool_call
	Failed   bool     `json:"failed"` // of a tool_result
	Text     string   `json:"text"`
	At       Time     `json:"at"`
}

// ItemsRequest appends a batch of items under a claim.
type ItemsRequest struct {
	UnderClaim
	Items []ItemInput `json:"items"`
}

// ItemsAnswer says up to which sequence number the session's items are stored.
type ItemsAnswer struct {
	LastSeq    int64 `json:"lastSeq"`
	Appended   int   `json:"appended"`
	ServerTime Time  `json:"serverTime"`
}

// Item is a stored line of a session's conversation or output.
type Item struct {
	Seq       int64    `json:"seq"`
	Kind      ItemKind `json:"kind"`
	Stream    string   `json:"stream,omitzero"`
	Tool      string   `json:"tool,omitzero"`
	CallID    string   `json:"callId,omitzero"` // pairs a result with its call, an answer with its prompt
	Failed    bool     `json:"failed,omitzero"`
	UserID    UserID   `json:"userId,omitzero"` // who wrote a message
	Text      string   `json:"text"`
	Truncated bool     `json:"truncated,omitzero"`
	At        Time     `json:"at"`
}

// SessionPatch is the body of PATCH under a claim (contract 6.1). Absent fields stay; plan,
// external URL and agent session are cleared by null (contract 9.2).
type SessionPatch struct {
	UnderClaim
	Plan           *string      `json:"plan,omitzero"`
	ExternalURL    *string      `json:"externalUrl,omitzero"`
	AgentSessionID *string      `json:"agentSessionId,omitzero"`
	WorkPath       *string      `json:"workPath,omitzero"`      // where the worker works, when that isn't the agent's work folder
	ResumeCommand  *string      `json:"resumeCommand,omitzero"` // with which its owner continues the agent session
	Usage          *Usage       `json:"usage,omitzero"`
	Status         Status       `json:"status,omitzero"` // awaiting_input with prompt, or active to withdraw it
	Prompt         *PromptInput `json:"prompt,omitzero"`

	Tries int64 `json:"tries"` // that failed so far and were followed by another; never falls

	TurnEnded    bool      `json:"turnEnded"`    // a turn was finished,
	LastConsumed MessageID `json:"lastConsumed"` // and it had taken in the messages up to this one

	Taken []MessageID `json:"taken,omitzero"` // messages that the running turn has taken in
}
