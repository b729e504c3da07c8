package api

import "slices"

// Place is the kind of workspace that changes lie in.
type Place string

// The kinds of places.
const (
	PlaceWorktree Place = "worktree" // a worktree and a branch of the thread's own
	PlaceClone    Place = "clone"    // a repository that lies in the thread's own folder
	PlaceFolder   Place = "folder"   // the agent's work folder itself, which others may use too
)

// Places lists them all.
var Places = []Place{PlaceWorktree, PlaceClone, PlaceFolder}

// ChangesState says where a session's workspace stands in git (contract 16.1).
type ChangesState struct {
	Place       Place    `json:"place"`
	Branch      string   `json:"branch,omitzero"`     // checked out; "" = none is
	BaseBranch  string   `json:"baseBranch,omitzero"` // that it would be merged into; "" = unknown
	Base        string   `json:"base,omitzero"`       // the commit that the files are compared with
	Head        string   `json:"head,omitzero"`       // the commit checked out; "" = none yet
	Remote      string   `json:"remote,omitzero"`     // where a push goes, as host and path; "" = nowhere
	Commits     []Commit `json:"commits"`             // since Base, newest first, at most 100
	CommitCount int64    `json:"commitCount"`         // how many there are
	Unpushed    int64    `json:"unpushed"`            // of them, that no remote is known to have
	Dirty       bool     `json:"dirty"`               // some files are not committed
}

// Commit is one commit of a session's branch.
type Commit struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	At      Time   `json:"at"`
}

// FileChange is what happened to a file.
type FileChange string

// What can happen to a file.
const (
	FileAdded     FileChange = "added"
	FileModified  FileChange = "modified"
	FileDeleted   FileChange = "deleted"
	FileRenamed   FileChange = "renamed"
	FileMode      FileChange = "mode_changed"
	FileSubmodule FileChange = "submodule"
)

// FileChanges lists them all.
var FileChanges = []FileChange{FileAdded, FileModified, FileDeleted, FileRenamed, FileMode, FileSubmodule}

// ChangedFile is a file that differs from the base, committed or not. Paths that are not UTF-8
// or hold control characters are written as git quotes them.
type ChangedFile struct {
	Path    string     `json:"path"`
	OldPath string     `json:"oldPath,omitzero"` // of a renamed one
	Change  FileChange `json:"change"`
	Added   int64      `json:"added"`   // lines
	Removed int64      `json:"removed"` // lines
	Binary  bool       `json:"binary,omitzero"`
	Patch   string     `json:"patch,omitzero"` // unified diff without git's header; "" for a binary file
	Cut     bool       `json:"cut,omitzero"`   // the patch is longer than what is kept of it
}

// Limits of what a worker reports about changes.
const (
	MaxPatch        = 64 << 10 // bytes of a file's patch
	MaxPatches      = 2 << 20  // bytes of all patches of a session
	MaxChangedFiles = 2000
	MaxCommits      = 100
)

// ChangesReport is what a worker found in a session's workspace. It is sent in parts, in order,
// where it is too large for one request; what was known before stays until the last part came.
type ChangesReport struct {
	UnderClaim
	Snapshot  string        `json:"snapshot"` // the same for all parts, and for the same state of the workspace
	State     ChangesState  `json:"state"`
	Files     []ChangedFile `json:"files"`
	First     int64         `json:"first"`     // how many files earlier parts had
	FileCount int64         `json:"fileCount"` // of all parts and of what was left out
	Added     int64         `json:"added"`     // lines in all files
	Removed   int64         `json:"removed"`
	Last      bool          `json:"last"`
}

// ChangesNoted answers a report.
type ChangesNoted struct {
	Changed bool `json:"changed"` // false when this state was known, or more parts are to come
}

// Changes are what a session's workspace holds that its repository did not (contract 16.1).
type Changes struct {
	SessionID SessionID `json:"sessionId"`
	ChangesState
	Files     []ChangedFile `json:"files"`
	FileCount int64         `json:"fileCount"` // more than Files when some were left out
	Added     int64         `json:"added"`
	Removed   int64         `json:"removed"`
	TakenAt   Time          `json:"takenAt"`
	Waits     bool          `json:"waits"`            // nobody has landed or discarded them
	Landing   *Landing      `json:"landing,omitzero"` // the newest request
	Allows    LandLevel     `json:"allows"`           // what the worker's owner allows; off when nobody can be asked
	Verbs     []LandVerb    `json:"verbs"`            // what the caller may ask for
	Why       string        `json:"why,omitzero"`     // why not for everything
}

// Discarded reports whether the workspace is gone, by such a request.
func (c *Changes) Discarded() bool {
	return c.Landing != nil && c.Landing.Verb == VerbDiscard && c.Landing.State == LandDone
}

// LandLevel is how far a worker's owner lets changes be landed from elsewhere. Each level
// includes those before it.
type LandLevel string

// The levels.
const (
	LandOff         LandLevel = "off"
	LandPush        LandLevel = "push"
	LandPullRequest LandLevel = "pull_request"
	LandMerge       LandLevel = "merge"
)

// LandLevels lists them, least first.
var LandLevels = []LandLevel{LandOff, LandPush, LandPullRequest, LandMerge}

// Allows reports whether a level includes a verb (contract 16.3). Keeping and discarding concern
// the workspace alone; they are allowed wherever anything is.
func (l LandLevel) Allows(v LandVerb) bool {
	need := map[LandVerb]LandLevel{
		VerbKeep: LandPush, VerbDiscard: LandPush, VerbPush: LandPush, VerbPullRequest: LandPullRequest, VerbMerge: LandMerge,
	}[v]
	return need != "" && slices.Index(LandLevels, l) >= slices.Index(LandLevels, need)
}

// LandVerb is what can be done with a session's changes.
type LandVerb string

// The verbs.
const (
	VerbKeep        LandVerb = "keep"         // commit what is not committed
	VerbPush        LandVerb = "push"         // send the branch to the remote
	VerbPullRequest LandVerb = "pull_request" // push, and open a pull request or say where to
	VerbMerge       LandVerb = "merge"        // into the base branch
	VerbDiscard     LandVerb = "discard"      // remove workspace and branch
)

// LandVerbs lists them all.
var LandVerbs = []LandVerb{VerbKeep, VerbPush, VerbPullRequest, VerbMerge, VerbDiscard}

// MergeMethod is how changes are merged.
type MergeMethod string

// The methods of merging.
const (
	MergeAuto        MergeMethod = ""             // fast-forward where that is possible, else a merge commit
	MergeFastForward MergeMethod = "fast_forward" // or not at all
	MergeSquash      MergeMethod = "squash"       // one commit of everything
	MergeCommit      MergeMethod = "merge_commit"
)

// MergeMethods lists those that can be named.
var MergeMethods = []MergeMethod{MergeFastForward, MergeSquash, MergeCommit}

// LandInput asks the worker of a session to do something with its changes.
type LandInput struct {
	Verb    LandVerb    `json:"verb"`
	Method  MergeMethod `json:"method"`  // of merge
	Message string      `json:"message"` // of the commit, or title and text of the pull request; "" = made of the session's title
	Confirm string      `json:"confirm"` // of discard: the word that an earlier answer gave for exactly that loss
}

// LandState is how far a request to land is.
type LandState string

// The states of a request. All but pending are final.
const (
	LandPending   LandState = "pending"
	LandDone      LandState = "done"
	LandRefused   LandState = "refused" // nothing was changed
	LandAsks      LandState = "asks"    // of discard: it says what would be lost, and asks again
	LandWithdrawn LandState = "withdrawn"
)

// LandStates lists them all.
var LandStates = []LandState{LandPending, LandDone, LandRefused, LandAsks, LandWithdrawn}

// Landing is one request to land a session's changes, and what came of it.
type Landing struct {
	ID            LandingID   `json:"id"`
	SessionID     SessionID   `json:"sessionId"`
	WorkerID      WorkerID    `json:"workerId,omitzero"`
	Verb          LandVerb    `json:"verb"`
	Method        MergeMethod `json:"method,omitzero"`
	Message       string      `json:"message,omitzero"`
	Confirm       string      `json:"confirm,omitzero"`
	RequestedBy   UserID      `json:"requestedBy"`
	RequestedName string      `json:"requestedByName"`
	RequestedAt   Time        `json:"requestedAt"`
	State         LandState   `json:"state"`
	LandOutcome
	ClosedAt Time `json:"closedAt,omitzero"`
}

// LandOutcome is what a worker says came of a request.
type LandOutcome struct {
	Code   string   `json:"code,omitzero"`   // of a refusal
	Detail string   `json:"detail,omitzero"` // a sentence
	Commit string   `json:"commit,omitzero"` // that was made or landed
	URL    string   `json:"url,omitzero"`    // of the pull request, or where to open one
	Paths  []string `json:"paths,omitzero"`  // in conflict, or lost
	Token  string   `json:"token,omitzero"`  // to confirm a discard with
}

// LandReport is a worker's answer to a request to land.
type LandReport struct {
	InstanceID string    `json:"instanceId"`
	State      LandState `json:"state"` // done, refused or asks
	LandOutcome
	Now *ChangesState `json:"now,omitzero"` // the workspace after it; nil when it is gone
}

// Codes of refusals to land.
const (
	LandNotAllowed  = "not_allowed" // the worker's owner doesn't allow it
	LandDirty       = "dirty"
	LandConflict    = "conflict"
	LandProtected   = "protected"
	LandNothing     = "nothing_to_land"
	LandBusy        = "workspace_busy"
	LandGone        = "workspace_gone"
	LandNoBase      = "no_base_branch"
	LandNoRemote    = "no_remote"
	LandRemote      = "remote_refused"
	LandUnderway    = "operation_under_way"
	LandFilter      = "filtered_files"
	LandUnsupported = "not_supported"
	LandFailed      = "failed"
	LandRightLost   = "right_lost" // whoever asked has no right to it any more; the coordinator says so
)

// ReviewSide tells lines of the new file from those of the old one.
type ReviewSide string

// The sides of a diff.
const (
	SideNew ReviewSide = "new"
	SideOld ReviewSide = "old"
)

// ReviewInput is a comment on a line of a session's changes.
type ReviewInput struct {
	Path string     `json:"path"` // "" = about all of it
	Line int64      `json:"line"` // 0 = about the file
	Side ReviewSide `json:"side"`
	Text string     `json:"text"`
}

// ReviewComment is a comment that was not sent yet. Only who wrote it sees it.
type ReviewComment struct {
	ID ReviewID `json:"id"`
	ReviewInput
	Quote string `json:"quote,omitzero"` // the line, as it was when it was commented on
	At    Time   `json:"at"`
}

// ReviewSend sends the caller's comments on a session's changes as one message to its agent.
type ReviewSend struct {
	Text string `json:"text"` // stands before the comments
}
