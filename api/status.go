package api

// Status is the state of a session; one of eight (contract 2.2).
type Status string

// The eight statuses.
const (
	Pending       Status = "pending"
	Queued        Status = "queued"
	Active        Status = "active"
	AwaitingInput Status = "awaiting_input"
	Complete      Status = "complete"
	Failed        Status = "error"
	Stale         Status = "stale"
	Cancelled     Status = "cancelled"
)

// Statuses lists all eight in the order in which a session usually meets them.
var Statuses = []Status{Pending, Queued, Active, AwaitingInput, Stale, Complete, Failed, Cancelled}

// Terminal reports whether nothing can change the status any more.
func (s Status) Terminal() bool { return s == Complete || s == Failed || s == Cancelled }

// Running reports whether a worker holds a live claim on such a session.
func (s Status) Running() bool { return s == Active || s == AwaitingInput }

// Waiting reports whether such a session waits to be admitted or claimed.
func (s Status) Waiting() bool { return s == Pending || s == Queued || s == Stale }

// Phase is the coarse view of a status, derived, never stored.
type Phase string

// The four phases.
const (
	PhasePending  Phase = "pending"
	PhaseRunning  Phase = "running"
	PhaseComplete Phase = "complete"
	PhaseFailed   Phase = "failed"
)

// Phase derives the phase (contract 2.2).
func (s Status) Phase() Phase {
	switch s {
	case Pending, Queued, Stale:
		return PhasePending
	case Active, AwaitingInput:
		return PhaseRunning
	case Complete:
		return PhaseComplete
	default:
		return PhaseFailed
	}
}

// Statuses lists the statuses of a phase; nil for an unknown one.
func (p Phase) Statuses() []Status {
	var out []Status
	for _, s := range Statuses {
		if s.Phase() == p {
			out = append(out, s)
		}
	}
	return out
}

// Trigger says what made a session.
type Trigger string

// The four triggers (contract 2.1).
const (
	ByUser      Trigger = "user"
	ByScheduler Trigger = "scheduler"
	ByWebhook   Trigger = "webhook"
	ByAgent     Trigger = "agent"
)

// Mode says whose workers run an agent's sessions.
type Mode string

// The two modes.
const (
	Local Mode = "local"
	Cloud Mode = "cloud"
)

// Role is a person's standing in a workspace.
type Role string

// The roles, from most to least.
const (
	Owner  Role = "owner"
	Admin  Role = "admin"
	Member Role = "member"
	Viewer Role = "viewer"
)

// Noun is the role with its article, as a sentence names it: an admin.
func (r Role) Noun() string {
	if r == Owner || r == Admin {
		return "an " + string(r)
	}
	return "a " + string(r)
}

// AtLeast reports whether r has all the rights of want.
func (r Role) AtLeast(want Role) bool { return rank[r] >= rank[want] }

var rank = map[Role]int{Owner: 4, Admin: 3, Member: 2, Viewer: 1}

// Overlap is the rule for a slot that comes due while an earlier run lasts (contract 3.5).
type Overlap string

// The overlap policies.
const (
	OverlapSkip     Overlap = "skip"
	OverlapQueueOne Overlap = "queue_one"
	OverlapAllow    Overlap = "allow"
	OverlapReplace  Overlap = "replace"
)

// CatchUp is the rule for slots missed while the coordinator was away (contract 3.3).
type CatchUp string

// The catch-up rules.
const (
	CatchUpLatest CatchUp = "latest"
	CatchUpNone   CatchUp = "none"
)

// WorkerState is derived from a worker's last beat (contract 5.2).
type WorkerState string

// The worker states.
const (
	Online      WorkerState = "online"
	WorkerStale WorkerState = "stale"
	Offline     WorkerState = "offline"
)

// Desired is the state that a worker was asked for (contract 5.1).
type Desired string

// The desired states.
const (
	DesiredRunning Desired = "running"
	DesiredPaused  Desired = "paused"
	DesiredStopped Desired = "stopped"
)

// Verdict is what happened to a slot (contract 3.6).
type Verdict string

// The ledger's verdicts.
const (
	SlotFired   Verdict = "fired"
	SlotFolded  Verdict = "folded"
	SlotSkipped Verdict = "skipped"
	SlotMissed  Verdict = "missed"
	SlotPaused  Verdict = "paused"
)

// ActivityType is the kind of a progress or audit entry (contract 6.1).
type ActivityType string

// The activity types; any other is refused.
const (
	ActivityProgress       ActivityType = "progress"
	ActivityPlanUpdated    ActivityType = "plan_updated"
	ActivityExternalURL    ActivityType = "external_url_updated"
	ActivityAwaitingInput  ActivityType = "awaiting_input"
	ActivityCompleted      ActivityType = "completed"
	ActivityFailed         ActivityType = "failed"
	ActivityPolicyDecision ActivityType = "policy_decision"
)

// ActivityTypes lists them all.
var ActivityTypes = []ActivityType{
	ActivityProgress, ActivityPlanUpdated, ActivityExternalURL, ActivityAwaitingInput,
	ActivityCompleted, ActivityFailed, ActivityPolicyDecision,
}

// ItemKind is the kind of a line of a session's conversation or output (contract 6.2).
type ItemKind string

// The item kinds.
const (
	ItemText           ItemKind = "text"
	ItemToolCall       ItemKind = "tool_call"
	ItemToolResult     ItemKind = "tool_result"
	ItemThinking       ItemKind = "thinking"
	ItemStatus         ItemKind = "status"
	ItemTurnEnd        ItemKind = "turn_end"
	ItemPrompt         ItemKind = "pending_prompt"
	ItemPromptResolved ItemKind = "pending_prompt_resolved"
	ItemLateResult     ItemKind = "late_result"
	ItemMessage        ItemKind = "message"
)

// WorkerItemKinds lists the kinds that a worker may append; the rest are the coordinator's.
var WorkerItemKinds = []ItemKind{ItemText, ItemToolCall, ItemToolResult, ItemThinking, ItemStatus, ItemTurnEnd}
