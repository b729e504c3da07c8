package api

// Run says what a worker executes for an agent (contract 10.2). Who may set it and whose
// worker uses it is the stamp rule of the same paragraph.
type Run struct {
	Command    []string `json:"command,omitzero"`    // argv; the prompt is never part of it; for acp a program that Executable has no name for
	Check      []string `json:"check,omitzero"`      // argv; run after a command that ended well, it decides whether that counts
	Expect     string   `json:"expect,omitzero"`     // see [ParseExpect]; a run that ends well without it is marked
	Strict     bool     `json:"strict,omitzero"`     // … and fails as EXPECTATION_FAILED
	WorkFolder string   `json:"workFolder,omitzero"` // absolute path on the worker's machine
	Env        []string `json:"env,omitzero"`        // names of further variables passed on from the worker

	// Of an agent that converses:
	Executable  string    `json:"executable,omitzero"`  // empty = the type's own program, looked up in PATH; for acp one of [ACPPrograms] or its path
	Model       string    `json:"model,omitzero"`       // empty = the program's own choice
	Effort      string    `json:"effort,omitzero"`      // see [RunChoice]
	PlanMode    bool      `json:"planMode,omitzero"`    // likewise
	Models      []string  `json:"models,omitzero"`      // that a run may choose, besides Model; none = any
	Permissions string    `json:"permissions,omitzero"` // approval or autonomous; empty = approval
	Unattended  bool      `json:"unattended,omitzero"`  // nobody is asked: what no rule allows is refused
	Rules       []RunRule `json:"rules,omitzero"`
	MaxTurns    int64     `json:"maxTurns,omitzero"`  // model rounds in one turn; 0 = 200
	Workspace   string    `json:"workspace,omitzero"` // folder or worktree; empty = folder
	BaseBranch  string    `json:"baseBranch,omitzero"`
}

// AgentInput is what a person sets on an agent: the body of a creation, and what a PATCH is
// merged into.
type AgentInput struct {
	Slug                 string    `json:"slug"`
	Name                 string    `json:"name"`
	Description          string    `json:"description"`
	Mode                 Mode      `json:"mode"`
	Type                 AgentType `json:"type"`
	Run                  Run       `json:"run"`
	Prompt               string    `json:"prompt"`
	Instructions         string    `json:"instructions"`
	Schedule             string    `json:"schedule"`
	TimeZone             string    `json:"timeZone"`
	CatchUp              CatchUp   `json:"catchUp"`
	CatchUpWindowSeconds int64     `json:"catchUpWindowSeconds"` // 0 = no limit
	Overlap              Overlap   `json:"overlap"`
	JitterSeconds        int64     `json:"jitterSeconds"`
	RunsAsUserID         UserID    `json:"runsAsUserId"`
	Paused               bool      `json:"paused"`
	MaxConcurrent        int64     `json:"maxConcurrent"`
	Priority             int64     `json:"priority"` // higher first
	Labels               Labels    `json:"labels"`   // each required of the worker
	LeaseSeconds         int64     `json:"leaseSeconds"`
	ReclaimDelaySeconds  int64     `json:"reclaimDelaySeconds"`
	TurnTimeoutSeconds   int64     `json:"turnTimeoutSeconds"`  // 0 = off
	StallTimeoutSeconds  int64     `json:"stallTimeoutSeconds"` // 0 = off
	QueueTimeoutSeconds  int64     `json:"queueTimeoutSeconds"` // 0 = none
	MaxLapses            int64     `json:"maxLapses"`
	TaskUpdates          Labels    `json:"taskUpdates"` // of [TaskUpdates]: what of its sessions may change the state of their tasks

	SessionSpendLimitMicros int64 `json:"sessionSpendLimitMicros"` // millionths of a US dollar that one session may cost; 0 = no limit
	DailySpendLimitMicros   int64 `json:"dailySpendLimitMicros"`   // … that all of a day in the agent's zone may
}

// Agent is a capability that people send work to: what to run, how and when.
type Agent struct {
	ID AgentID `json:"id"`
	AgentInput
	PausedReason     string `json:"pausedReason,omitzero"`
	SpentTodayMicros int64  `json:"spentTodayMicros"`
	Running          int64  `json:"running"` // claims that are live or not yet drained
	ScheduleWords    string `json:"scheduleWords,omitzero"`
	ScheduleError    string `json:"scheduleError,omitzero"`
	AnchorAt         Time   `json:"anchorAt,omitzero"`
	NextSlotAt       Time   `json:"nextSlotAt,omitzero"`
	SkipUntil        Time   `json:"skipUntil,omitzero"` // no slot up to it fires
	FailuresInRow    int64  `json:"failuresInRow"`
	RunSetBy         string `json:"runSetBy,omitzero"` // who last changed slug, run block, type or instructions; none for a program
	Version          int64  `json:"version"`
	CreatedAt        Time   `json:"createdAt"`
	UpdatedAt        Time   `json:"updatedAt"`
}

// Skips reports whether a slot of the agent's schedule doesn't fire because somebody asked for it.
func (a *Agent) Skips(slot Time) bool { return !slot.After(a.SkipUntil.Time) }

// SlotPreview is one future slot, in the schedule's zone and in UTC.
type SlotPreview struct {
	At        Time   `json:"at"`
	Local     string `json:"local"` // RFC 3339 with the schedule zone's offset
	InSeconds int64  `json:"inSeconds"`
}

// SchedulePreview says what an expression means.
type SchedulePreview struct {
	Schedule string        `json:"schedule"`
	TimeZone string        `json:"timeZone"`
	Words    string        `json:"words"`
	Warnings []string      `json:"warnings"`
	Slots    []SlotPreview `json:"slots"`
}

// LedgerEntry is the verdict on one slot, or on a run of slots with the same verdict (contract 3.6).
type LedgerEntry struct {
	ID        LedgerID  `json:"id"`
	Verdict   Verdict   `json:"verdict"`
	Reason    string    `json:"reason"`
	FirstSlot Time      `json:"firstSlot"`
	LastSlot  Time      `json:"lastSlot"`
	Count     int64     `json:"count"`
	Folded    int64     `json:"folded,omitzero"` // of a fired row: older slots that its run stands for
	SessionID SessionID `json:"sessionId,omitzero"`
	DecidedAt Time      `json:"decidedAt"`
	LateBy    int64     `json:"lateBySeconds"`
}
