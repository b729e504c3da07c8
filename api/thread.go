package api

// Thread is the conversation behind a session and those that continued it.
type Thread struct {
	ID           ThreadID  `json:"id"`
	AgentID      AgentID   `json:"agentId"`
	State        string    `json:"state"`     // pending, active, completed, failed: the newest session's
	SessionID    SessionID `json:"sessionId"` // the newest
	LastConsumed MessageID `json:"lastConsumed,omitzero"`
	LastPosted   MessageID `json:"lastPosted,omitzero"`
	TurnEndedAt  Time      `json:"turnEndedAt,omitzero"`
}

// The states of a thread (contract 6.3).
const (
	ThreadPending   = "pending"
	ThreadActive    = "active"
	ThreadCompleted = "completed"
	ThreadFailed    = "failed"
)

// ThreadState derives a thread's state from its newest session.
func ThreadState(newest Status) string {
	switch newest.Phase() {
	case PhasePending:
		return ThreadPending
	case PhaseRunning:
		return ThreadActive
	case PhaseComplete:
		return ThreadCompleted
	}
	return ThreadFailed
}

// ThreadPatch is the body of PATCH on a thread: pending hands it to the agent again, completed
// stops it.
type ThreadPatch struct {
	State string `json:"state"`
}

// ThreadChanged answers a PATCH on a thread.
type ThreadChanged struct {
	Thread  Thread `json:"thread"`
	Changed bool   `json:"changed"`
}

// Message is something that a person wrote to an agent.
type Message struct {
	ID        MessageID    `json:"id"`
	SessionID SessionID    `json:"sessionId"` // in whose transcript it stands
	UserID    UserID       `json:"userId"`
	UserName  string       `json:"userName"`
	Text      string       `json:"text"`
	At        Time         `json:"at"`
	Now       bool         `json:"now,omitzero"`     // for the turn that was running; else for the next one
	TakenAt   Time         `json:"takenAt,omitzero"` // when that turn had taken it in; zero = it goes into the next
	Files     []Attachment `json:"files,omitzero"`   // that came with it
}

// MessageInput is a message to a thread.
type MessageInput struct {
	ClientID string `json:"clientId"` // a repeated one is the same message
	Text     string `json:"text"`
	// Now has the running turn take it in, where the type of agent can. Without a running turn, and
	// where that ends too soon, it is taken in with the next one.
	Now   bool        `json:"now,omitzero"`
	Files []FileInput `json:"files,omitzero"` // that come with it
}

// Posted answers a message. It went into a running or waiting session, or, when the
// conversation had ended, became the prompt of a new one.
type Posted struct {
	Message *Message `json:"message,omitzero"`
	Session Session  `json:"session"`
}

// Messages are what people wrote to a thread after a message, oldest first.
type Messages struct {
	Items        []Message `json:"items"`
	LastConsumed MessageID `json:"lastConsumed,omitzero"`
}

// Conversation is what a claim's holder must know of its thread: what people said that no
// finished turn has taken in.
type Conversation struct {
	LastConsumed MessageID `json:"lastConsumed,omitzero"`
	TurnEnded    bool      `json:"turnEnded,omitzero"` // a turn of this session was finished: its prompt is taken in

	Messages []Message `json:"messages"`
	Answered []Prompt  `json:"answered"` // since the last finished turn
}
