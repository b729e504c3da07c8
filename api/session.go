package api

import "strconv"

// SessionInput is the body of POST …/agents/{agent}/sessions.
type SessionInput struct {
	Prompt           *string     `json:"prompt,omitzero"` // nil = the agent's own; empty = none
	Title            string      `json:"title"`
	UntrustedContext string      `json:"untrustedContext"`
	NotBefore        Time        `json:"notBefore"`
	Priority         *int64      `json:"priority"`       // nil = the agent's
	After            SessionID   `json:"after"`          // wait until this one is complete
	AfterAny         bool        `json:"afterAny"`       // … or has ended in any way
	Task             string      `json:"task"`           // id, T-42 or slug of the task that it is about; its briefing joins the untrusted context
	Files            []FileInput `json:"files,omitzero"` // that come with the prompt
	RunChoice                    // in place of what the agent says; its models bound that
}

// Failure says why a session ended in error or was cancelled.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// RunTokenPrefix begins the token of a run, which a session's agent has.
const RunTokenPrefix = "stint_run_"

// Waiting says why a pending, queued or stale session isn't running, from the same pure
// function that a claim obeys (contract 2.4).
type Waiting struct {
	Code     string `json:"code"`
	Sentence string `json:"sentence"`
	Until    Time   `json:"until,omitzero"` // when time alone lifts it

	SessionID SessionID `json:"sessionId,omitzero"` // that holds it, if whoever sees the waiting one may see that
	Ancestor  bool      `json:"ancestor,omitzero"`  // that session started this one, itself or through others, and may wait for it
}

// MaxUsage is the most that each total of a [Usage] may be: a trillion tokens or
// turns, a million US dollars.
const MaxUsage = 1_000_000_000_000

// Usage is what an agent reported of its own cost, as totals of the session.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	CostMicros   int64 `json:"costMicros"` // millionths of a US dollar
	Turns        int64 `json:"turns"`
}

// Within is the usage with each total limited to the range 0 to [MaxUsage].
func (u Usage) Within() Usage {
	within := func(n int64) int64 { return min(max(n, 0), MaxUsage) }
	return Usage{
		InputTokens: within(u.InputTokens), OutputTokens: within(u.OutputTokens),
		CostMicros: within(u.CostMicros), Turns: within(u.Turns),
	}
}

// Session is one run of an agent: one queued unit of work.
type Session struct {
	ID                  SessionID   `json:"id"`
	WorkspaceID         WorkspaceID `json:"workspaceId"`
	AgentID             AgentID     `json:"agentId"`
	AgentSlug           string      `json:"agentSlug"`
	ThreadID            ThreadID    `json:"threadId"`
	Mode                Mode        `json:"mode"`
	Status              Status      `json:"status"`
	Phase               Phase       `json:"phase"`
	TriggeredBy         Trigger     `json:"triggeredBy"`
	TriggeredByUserID   UserID      `json:"triggeredByUserId,omitzero"`
	TriggeredAt         Time        `json:"triggeredAt"`
	OwnerUserID         UserID      `json:"ownerUserId,omitzero"` // of a local session
	Title               string      `json:"title"`
	Prompt              string      `json:"prompt"`
	TrustedInstructions string      `json:"trustedInstructions"`
	UntrustedContext    string      `json:"untrustedContext"`
	RunChoice                       // what it says in place of its agent
	Priority            int64       `json:"priority"`
	NotBefore           Time        `json:"notBefore,omitzero"`
	Task                *TaskRef    `json:"task,omitzero"` // that it is about
	After               SessionID   `json:"after,omitzero"`
	AfterAny            bool        `json:"afterAny,omitzero"`
	Labels              Labels      `json:"labels"`
	Fence               int64       `json:"fence"`
	WorkerID            WorkerID    `json:"workerId,omitzero"` // of the live or latest claim
	LeaseExpiresAt      Time        `json:"leaseExpiresAt,omitzero"`
	Attempt             int64       `json:"attempt"`
	RetryOf             SessionID   `json:"retryOf,omitzero"`
	Parent              SessionID   `json:"parent,omitzero"`
	Depth               int64       `json:"depth,omitzero"`
	AgentSessionID      string      `json:"agentSessionId,omitzero"`
	WorkPath            string      `json:"workPath,omitzero"`      // of a local session, where it isn't the agent's work folder
	ResumeCommand       string      `json:"resumeCommand,omitzero"` // likewise: continues the agent session by hand
	StopRequestedAt     Time        `json:"stopRequestedAt,omitzero"`
	Lapses              int64       `json:"lapses"`
	Releases            int64       `json:"releases,omitzero"` // times in a row that workers gave it back
	Tries               int64       `json:"tries,omitzero"`    // that failed and were followed by another
	Plan                string      `json:"plan,omitzero"`
	ExternalURL         string      `json:"externalUrl,omitzero"`
	Result              string      `json:"result,omitzero"`
	Outcome             string      `json:"outcome,omitzero"`
	Refused             int64       `json:"refused,omitzero"`     // acts of its agent that were refused
	ToolsFailed         int64       `json:"toolsFailed,omitzero"` // tools that could not be started
	MarkReason          string      `json:"markReason,omitzero"`  // of its gravest [Mark]
	Usage               Usage       `json:"usage"`
	Error               *Failure    `json:"error,omitzero"`
	CreatedAt           Time        `json:"createdAt"`
	QueuedAt            Time        `json:"queuedAt,omitzero"`
	StartedAt           Time        `json:"startedAt,omitzero"`
	EndedAt             Time        `json:"endedAt,omitzero"`
	ArchivedAt          Time        `json:"archivedAt,omitzero"`
	KeptAt              Time        `json:"keptAt,omitzero"`          // since when retention leaves it alone, and its conversation
	OutputRemovedAt     Time        `json:"outputRemovedAt,omitzero"` // when retention removed its output
	EventsRemovedAt     Time        `json:"eventsRemovedAt,omitzero"` // … and its events
	WaitingFor          *Waiting    `json:"waitingFor,omitzero"`
	Prompted            *Prompt     `json:"openPrompt,omitzero"`
	SpendExceeded       string      `json:"spendExceeded,omitzero"` // in a usage report's answer: the limit reached
}

// SessionCounts says how many sessions have each status.
type SessionCounts struct {
	ByStatus map[Status]int64 `json:",embed"`

	// LookedAt is 0 when all sessions were looked at. Else no more than so many were of each
	// status, and of the complete ones those among so many of the newest: more may fit than a number says.
	LookedAt int64 `json:"lookedAt,omitzero"`
}

// NoSessions are counts in which every status is there, with none.
func NoSessions() SessionCounts {
	out := SessionCounts{ByStatus: make(map[Status]int64, len(Statuses))}
	for _, s := range Statuses {
		out.ByStatus[s] = 0
	}
	return out
}

// Text is the count of a status in words: with a + where there may be more.
func (c SessionCounts) Text(s Status) string {
	n := strconv.FormatInt(c.ByStatus[s], 10)
	if c.LookedAt > 0 && (s == Complete || c.ByStatus[s] >= c.LookedAt) {
		n += "+"
	}
	return n
}

// Page asks for one page of a list, newest first.
type Page struct {
	Cursor string
	Limit  int // 0 = 50; at most 200
}

// List is one page of things, newest first. NextCursor is empty on the last page.
type List[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"nextCursor,omitzero"`
}

// CancelInput is the body of a cancel.
type CancelInput struct {
	OnlyPending bool   `json:"onlyPending"` // refuse once it runs
	Reason      string `json:"reason"`
}

// Retried answers a retry: the session that runs it, and whether this call made or queued it;
// false if an earlier retry did that isn't over.
type Retried struct {
	Session
	Changed bool `json:"changed"`
}

// Changed answers the idempotent verbs: the session now, and whether this call changed it.
type Changed struct {
	Session Session `json:"session"`
	Changed bool    `json:"changed"`
}
