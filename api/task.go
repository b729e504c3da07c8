package api

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// TaskState says how far a task is.
type TaskState string

// The states of a task.
const (
	TaskTodo       TaskState = "todo"
	TaskInProgress TaskState = "in_progress"
	TaskBlocked    TaskState = "blocked"
	TaskReview     TaskState = "review"
	TaskDone       TaskState = "done"
)

// TaskStates are all of them, in the order in which a board shows them.
var TaskStates = []TaskState{TaskTodo, TaskInProgress, TaskBlocked, TaskReview, TaskDone}

// What of a session may change the state of the task that it holds (contract 7.5): that a worker
// claims it or it goes on, that it asks a person, completes, fails, or is given back, cancelled or
// stopped.
const (
	UpdateClaimed       = "claimed"
	UpdateAwaitingInput = "awaiting_input"
	UpdateCompleted     = "completed"
	UpdateLanded        = "landed" // its changes were merged
	UpdateFailed        = "failed"
	UpdateReleased      = "released"
)

// TaskUpdates are all of them.
var TaskUpdates = Labels{UpdateAwaitingInput, UpdateClaimed, UpdateCompleted, UpdateFailed, UpdateLanded, UpdateReleased}

// TaskPriority is p1, p2 or p3; p1 is the most urgent.
type TaskPriority string

// TaskPriorities are all of them, the most urgent first.
var TaskPriorities = []TaskPriority{"p1", "p2", "p3"}

// TaskKey is how people name a task of a workspace: T-42.
func TaskKey(number int64) string { return "T-" + strconv.FormatInt(number, 10) }

// TaskLink is something to read about a task.
type TaskLink struct {
	URL   string `json:"url"`
	Title string `json:"title"`
}

// TaskLinks are the links of a task. The store keeps them as one JSON text, none as "".
type TaskLinks []TaskLink

// TaskLinksOf reads links of a line each: the address and, after a space, what to call it.
func TaskLinksOf(lines []string) TaskLinks {
	out := TaskLinks{}
	for _, line := range lines {
		url, title, _ := strings.Cut(strings.TrimSpace(line), " ")
		if url != "" {
			out = append(out, TaskLink{URL: url, Title: strings.TrimSpace(title)})
		}
	}
	return out
}

// Lines writes the links as [TaskLinksOf] reads them.
func (l TaskLinks) Lines() string {
	lines := make([]string, len(l))
	for i, link := range l {
		lines[i] = strings.TrimSpace(link.URL + " " + link.Title)
	}
	return strings.Join(lines, "\n")
}

// Value is the links' text in the store.
func (l TaskLinks) Value() (driver.Value, error) {
	if len(l) == 0 {
		return "", nil
	}
	b, err := json.Marshal([]TaskLink(l))
	return string(b), err
}

// Scan reads the links from the store.
func (l *TaskLinks) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("links are text in the store, not %T", src)
	}
	*l = TaskLinks{}
	if text == "" || json.Unmarshal([]byte(text), (*[]TaskLink)(l)) == nil {
		return nil
	}
	*l = TaskLinks{} // what can't be read must not break the lists that the task is in
	return nil
}

// TaskInput is what people set on a task: the body of a creation, and what a PATCH is merged
// into.
type TaskInput struct {
	Slug        string       `json:"slug"`
	Title       string       `json:"title"`
	Description string       `json:"description"` // Markdown
	State       TaskState    `json:"state"`       // in_progress also claims the task
	Priority    TaskPriority `json:"priority"`
	Labels      Labels       `json:"labels"`
	Assignee    string       `json:"assignee"` // "me", a user's id or an agent's id or slug; "" = nobody
	BlockedBy   []string     `json:"blockedBy"`
	Links       TaskLinks    `json:"links"`
}

// TaskEdit is the body of a PATCH of a task.
type TaskEdit struct {
	TaskInput
	Version int64 `json:"version"` // that was read; another is refused as stale_version. 0 = whatever it is
}

// Person is somebody or an agent, as others read it.
type Person struct {
	Type string `json:"type"` // user or agent
	ID   string `json:"id"`
	Name string `json:"name"` // an agent's slug
}

// The types of a [Person].
const (
	PersonUser  = "user"
	PersonAgent = "agent"
)

// TaskRef names a task in what is about something else.
type TaskRef struct {
	ID    TaskID    `json:"id"`
	Key   string    `json:"key"`
	Title string    `json:"title"`
	State TaskState `json:"state"`
}

// OpenKeys are the keys of those tasks that aren't done.
func OpenKeys(refs []TaskRef) []string {
	var keys []string
	for _, r := range refs {
		if r.State != TaskDone {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// TaskLease says who is at work on a task now.
type TaskLease struct {
	Holder    Person    `json:"holder"`
	SessionID SessionID `json:"sessionId,omitzero"` // that it lives with, if whoever reads this may see that session
	Bound     bool      `json:"bound,omitzero"`     // it lives with a session and has no expiry
	ClaimedAt Time      `json:"claimedAt"`
	ExpiresAt Time      `json:"expiresAt,omitzero"`
}

// Task is something to be done. The assignee says whose it is and lasts; the lease says who is
// at work on it now and ends by itself (contract 7.2).
type Task struct {
	ID          TaskID       `json:"id"`
	Number      int64        `json:"number"`
	Key         string       `json:"key"`
	Slug        string       `json:"slug,omitzero"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	State       TaskState    `json:"state"`
	Priority    TaskPriority `json:"priority"`
	Labels      Labels       `json:"labels"`
	Assignee    *Person      `json:"assignee,omitzero"`
	Lease       *TaskLease   `json:"lease,omitzero"`
	BlockedBy   []TaskRef    `json:"blockedBy"` // are to be done before it, done ones too
	Blocks      []TaskRef    `json:"blocks"`    // the first 50 that wait for it
	Links       TaskLinks    `json:"links"`
	Comments    int64        `json:"comments"` // how many there are
	CreatedBy   UserID       `json:"createdBy"`
	CreatedAt   Time         `json:"createdAt"`
	UpdatedAt   Time         `json:"updatedAt"`
	DoneAt      Time         `json:"doneAt,omitzero"`
	Version     int64        `json:"version"`
}

// TaskClaimInput is the body of a claim of a task.
type TaskClaimInput struct {
	LeaseSeconds *int64 `json:"leaseSeconds"` // nil = the coordinator's default, two hours
}

// TaskExtendInput is the body of an extension of a task's lease.
type TaskExtendInput struct {
	AddSeconds int64 `json:"addSeconds"`
}

// TaskHeld answers claim, renew and extend: the task with the caller's lease.
type TaskHeld struct {
	Task            Task    `json:"task"`
	ServerTime      Time    `json:"serverTime"`
	Renewed         bool    `json:"renewed,omitzero"`      // the caller held it already
	TookOverFrom    *Person `json:"tookOverFrom,omitzero"` // whose it was until now
	CappedToMax     bool    `json:"cappedToMax,omitzero"`
	MaxLeaseSeconds int64   `json:"maxLeaseSeconds,omitzero"`
}

// TaskReleased answers a release.
type TaskReleased struct {
	Task     Task `json:"task"`
	Released bool `json:"released"` // false: the caller held no lease
}

// DispatchInput is the body of a dispatch: the task is claimed and a session of an agent that
// works on it is made, in one step.
type DispatchInput struct {
	Agent    string  `json:"agent"`           // id or slug; "" = the task's assignee, else the workspace's only agent
	Prompt   *string `json:"prompt,omitzero"` // nil = the agent's own
	Priority *int64  `json:"priority"`        // of the session; nil = the agent's
	Force    bool    `json:"force"`           // although somebody holds the task; for admins
	Print    bool    `json:"print"`           // change nothing: answer what would start
}

// Dispatched answers a dispatch. With print there is no session.
type Dispatched struct {
	Task         Task      `json:"task"`
	Agent        string    `json:"agent"` // slug
	Session      *Session  `json:"session,omitzero"`
	Prompt       string    `json:"prompt"`
	Briefing     string    `json:"briefing"`
	TookOverFrom *Person   `json:"tookOverFrom,omitzero"`
	Displaced    SessionID `json:"displacedSessionId,omitzero"` // that had the task, and goes on without it; if whoever reads this may see it
}

// Briefing is what an agent is told about a task.
type Briefing struct {
	Task TaskRef `json:"task"`
	Text string  `json:"text"` // Markdown
}

// TaskComment is what somebody wrote about a task.
type TaskComment struct {
	ID        CommentID `json:"id"`
	TaskID    TaskID    `json:"taskId"`
	Author    Person    `json:"author"`
	SessionID SessionID `json:"sessionId,omitzero"` // whose agent wrote it, if whoever reads this may see that
	Text      string    `json:"text"`               // Markdown
	At        Time      `json:"at"`
}

// TaskCommentInput is the body of a comment.
type TaskCommentInput struct {
	Text string `json:"text"`
}

// TaskFilter narrows a list of tasks; empty fields don't narrow.
type TaskFilter struct {
	States   []TaskState // any of these
	Assignee string      // "me", "none", a user's id or an agent's id or slug
	Holder   string      // "me" or "any": under a live lease
	Label    string
	Priority TaskPriority
	Query    string // part of title or description
}

// NextTask is one line of what somebody is to do next.
type NextTask struct {
	Task     Task   `json:"task"`
	Why      string `json:"why"`
	InFlight bool   `json:"inFlight"` // somebody is at work on it now
	Ready    bool   `json:"ready"`    // nobody is, it waits for nothing, and it is to be done or in progress
}

// NextTasks is what somebody is to do next, the most pressing first.
type NextTasks struct {
	Items []NextTask `json:"items"`
}
