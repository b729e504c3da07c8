package api

// WorkerInput registers a worker: found or created by (workspace, agent, user, name).
type WorkerInput struct {
	Name               string      `json:"name"`
	WorkerID           WorkerID    `json:"workerId"`           // kept on disk from an earlier registration: finds a record that was renamed since
	InstanceID         string      `json:"instanceId"`         // boot nonce of the process
	PreviousInstanceID string      `json:"previousInstanceId"` // proof from the locked state directory
	ProcessID          string      `json:"processId"`          // stable name of the worker process, for affinity
	Mode               Mode        `json:"mode"`
	Instructions       string      `json:"instructions"`
	Types              []AgentType `json:"types"`
	Labels             Labels      `json:"labels"`
	MaxConcurrent      int64       `json:"maxConcurrent"`
	Platform           string      `json:"platform"` // such as linux/amd64
	Version            string      `json:"version"`
	FolderKey          string      `json:"folderKey"`            // opaque name of the work folder: its parent's, a slash and a part of its own
	FolderShared       bool        `json:"folderShared"`         // the owner says that several sessions may use it at once
	StagingSeconds     int64       `json:"stagingSeconds"`       // how long it takes at most to end what it runs; 0 = unknown
	ProcessSlots       int64       `json:"processSlots"`         // sessions that its process runs at once; 0 = unknown
	TaskUpdates        *Labels     `json:"taskUpdates,omitzero"` // what it leaves of the agent's; nil = all
	Land               LandLevel   `json:"land,omitzero"`        // how far its owner lets changes be landed; "" = off
}

// Worker is the record of one running instance for one agent.
type Worker struct {
	ID            WorkerID    `json:"id"`
	AgentID       AgentID     `json:"agentId"`
	AgentSlug     string      `json:"agentSlug"`
	Mode          Mode        `json:"mode"`
	OwnerUserID   UserID      `json:"ownerUserId,omitzero"`
	Name          string      `json:"name"`
	Instructions  string      `json:"instructions,omitzero"`
	SetBy         UserID      `json:"instructionsSetBy,omitzero"` // who wrote them by a sign-in of their own
	Types         []AgentType `json:"types"`
	Labels        Labels      `json:"labels"`
	MaxConcurrent int64       `json:"maxConcurrent"`
	Platform      string      `json:"platform,omitzero"`
	Version       string      `json:"version,omitzero"`
	State         WorkerState `json:"state"`
	DesiredState  Desired     `json:"desiredState"`
	TaskUpdates   Labels      `json:"taskUpdates"` // what it leaves of the agent's
	Running       int64       `json:"running"`
	LastBeatAt    Time        `json:"lastBeatAt,omitzero"`
	CreatedAt     Time        `json:"createdAt"`
	PendingSignal *Signal     `json:"pendingSignal,omitzero"` // not acknowledged yet
	Land          LandLevel   `json:"land"`                   // how far its owner lets changes be landed
	Landing       *Landing    `json:"landing,omitzero"`       // the oldest request to land that it has not answered
	Notices       []Notice    `json:"notices,omitzero"`
	NoticesSince  Time        `json:"noticesSince,omitzero"`
}

// WorkerEdit is what a person may change in a worker's record. A later registration doesn't
// touch what a person changed.
type WorkerEdit struct {
	Name          string `json:"name"`
	Instructions  string `json:"instructions"`
	Labels        Labels `json:"labels"`
	MaxConcurrent int64  `json:"maxConcurrent"`
}

// SignalKind is what a worker is asked to do (contract 5.3).
type SignalKind string

// The control signals.
const (
	SignalStop    SignalKind = "stop"    // finish or give back what runs, acknowledge, end
	SignalPause   SignalKind = "pause"   // acknowledge, claim nothing new
	SignalResume  SignalKind = "resume"  // acknowledge, claim again
	SignalRestart SignalKind = "restart" // acknowledge, end, start again
)

// SignalKinds lists them all.
var SignalKinds = []SignalKind{SignalStop, SignalPause, SignalResume, SignalRestart}

// Signal is a control signal that its worker has yet to acknowledge by its id.
// A worker has one at most; a newer one replaces it.
type Signal struct {
	ID         SignalID   `json:"id"`
	Signal     SignalKind `json:"signal"`
	SentBy     UserID     `json:"sentBy"`
	SentByName string     `json:"sentByName"`
	SentAt     Time       `json:"sentAt"`
}

// SignalRequest sends a signal to a worker.
type SignalRequest struct {
	Signal SignalKind `json:"signal"`
}

// SignalAnswer is the worker after a signal was sent; not changed when the same one was
// already pending.
type SignalAnswer struct {
	Worker  Worker `json:"worker"`
	Changed bool   `json:"changed"`
}

// SignalAck says that the worker has received a signal, or has done what it said.
type SignalAck struct {
	InstanceID string   `json:"instanceId"`
	SignalID   SignalID `json:"signalId"`
}

// Registered answers a registration.
type Registered struct {
	Worker              Worker  `json:"worker"`
	Claims              []Claim `json:"claims"` // live ones taken over from the previous instance
	ServerTime          Time    `json:"serverTime"`
	BeatSeconds         int64   `json:"beatSeconds"`
	OfflineAfterSeconds int64   `json:"offlineAfterSeconds"`
}

// Beat says that a worker is alive, renews the claims it lists and reports drained ones.
type Beat struct {
	InstanceID string    `json:"instanceId"`
	Platform   string    `json:"platform"`
	Version    string    `json:"version"`
	ClaimIDs   []ClaimID `json:"claimIds"`
	Drained    []ClaimID `json:"drained"`
	Goodbye    bool      `json:"goodbye"` // a clean exit: offline at once
	Notices    []Notice  `json:"notices"` // everything that its owner should look at now
	Unsent     Unsent    `json:"unsent,omitzero"`
}

// Unsent is what a worker holds of its sessions' output, activities and results because it has
// not been taken yet. Some of it is on its way at any time.
type Unsent struct {
	Reports int64 `json:"reports"`
	Seconds int64 `json:"seconds"` // for how long none of them was taken
}

// Notice is something about a worker that its owner should look at. Its text names
// no path, person or machine.
type Notice struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// The codes of notices (contract 10.2, 10.5).
const (
	NoticeWorkflowInvalid = "workflow_invalid" // the workflow file can't be used; the last good one applies
	NoticeWorkflowChanged = "workflow_changed" // it executes what its owner has not accepted
	NoticeSetupInvalid    = "setup_invalid"    // the owner's own file can't be used
	NoticeDiskLow         = "disk_low"         // too little is free on its disk: it takes nothing new
)

// NoticeCodes lists them all.
var NoticeCodes = []string{NoticeWorkflowInvalid, NoticeWorkflowChanged, NoticeSetupInvalid, NoticeDiskLow}

// ClaimBeat answers for one claim that a beat listed.
type ClaimBeat struct {
	ClaimID        ClaimID `json:"claimId"`
	State          string  `json:"state"` // renewed, stop_requested, cancelled, lost
	LeaseExpiresAt Time    `json:"leaseExpiresAt,omitzero"`
}

// The states of [ClaimBeat].
const (
	BeatRenewed       = "renewed"
	BeatStopRequested = "stop_requested" // renewed, and asked to stop
	BeatCancelled     = "cancelled"
	BeatLost          = "lost"
)

// BeatAnswer answers a beat.
type BeatAnswer struct {
	Worker     Worker         `json:"worker"`
	Claims     []ClaimBeat    `json:"claims"`
	ServerTime Time           `json:"serverTime"`
	Approvals  ApprovalsAsked `json:"approvals,omitzero"`
}

// PollAnswer is what a worker may claim, best first, and what waits at a gate, together with
// the pending signal.
type PollAnswer struct {
	Items         []Claimable `json:"items"`
	DesiredState  Desired     `json:"desiredState"`
	PendingSignal *Signal     `json:"pendingSignal,omitzero"`
}

// Claimable is a session that a worker sees in its poll.
type Claimable struct {
	Session   Session `json:"session"`
	Claimable bool    `json:"claimable"`
}

// Event is one entry of the log that feeds timeline, audit, live stream and webhooks (contract 2.7).
type Event struct {
	Seq       int64     `json:"seq"`
	At        Time      `json:"at"`
	Type      string    `json:"type"`
	Actor     string    `json:"actor"` // user:…, worker:…, scheduler, system
	AgentID   AgentID   `json:"agentId,omitzero"`
	SessionID SessionID `json:"sessionId,omitzero"`
	TaskID    TaskID    `json:"taskId,omitzero"`
	Data      EventData `json:"data"`
}

// EventData is the small JSON of an event.
type EventData map[string]any

// Workspace is a tenant.
type Workspace struct {
	ID   WorkspaceID `json:"id"`
	Slug string      `json:"slug"`
	Name string      `json:"name"`
}
