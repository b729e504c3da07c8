package api

// Approval is what its worker's owner allowed an agent from now on, by the answer to a question,
// as the worker keeps it. contract 15.3
type Approval struct {
	ID         string    `json:"id"` // its name on the worker
	Area       Area      `json:"area"`
	Tool       string    `json:"tool"`                // what the agent's program calls it
	What       string    `json:"what"`                // the exact command, path or address; with Any a pattern
	Any        bool      `json:"any,omitzero"`        // * stands for one word that is no option
	Beyond     bool      `json:"beyond,omitzero"`     // also out of the program's sandbox
	SessionID  SessionID `json:"sessionId,omitzero"`  // whose question it answered
	ApprovedBy UserID    `json:"approvedBy,omitzero"` // absent from what an older worker kept
	ApprovedAt Time      `json:"approvedAt"`
	Uses       int64     `json:"uses"` // tool calls that it allowed
	LastUsedAt Time      `json:"lastUsedAt,omitzero"`
}

// Words explain an approval.
func (a Approval) Words() string {
	words := "exactly this"
	if a.Any {
		words = "with any one word that is no option in the place of *"
	}
	if a.Beyond {
		words += ", also out of its sandbox"
	}
	return words
}

// StandingApproval is an approval as its worker's owner sees it.
type StandingApproval struct {
	Approval
	AgentSlug          string `json:"agentSlug"` // whom it allows it
	Words              string `json:"words"`     // how What is to be read
	RemovalRequestedAt Time   `json:"removalRequestedAt,omitzero"`
}

// Standing is an approval with its agent and an explanation.
func (a Approval) Standing(agentSlug string) StandingApproval {
	return StandingApproval{Approval: a, AgentSlug: agentSlug, Words: a.Words()}
}

// ApprovalsReport is everything that a worker's owner allowed its agent from now on: what isn't
// listed holds no more.
type ApprovalsReport struct {
	InstanceID string     `json:"instanceId"`
	State      string     `json:"state"` // the worker's own word for exactly this list; "" only when it is empty
	Approvals  []Approval `json:"approvals"`
}

// ApprovalsAsked says what the coordinator knows of a worker's standing approvals, and which of
// them its owner asked to remove. A worker that keeps others reports them.
type ApprovalsAsked struct {
	State  string   `json:"state,omitzero"` // of the last report
	Remove []string `json:"remove,omitzero"`
}

// MaxApprovals bounds the standing approvals of an agent on a worker.
const MaxApprovals = 200
