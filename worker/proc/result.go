package proc

import (
	"fmt"
	"syscall"
	"time"
)

// Stage is the strongest signal that an ending has reached.
type Stage int

// The stages in their order.
const (
	StageNone Stage = iota
	StageInterrupt
	StageTerm
	StageKill
)

// String is the stage's word in logs and activities.
func (s Stage) String() string {
	switch s {
	case StageNone:
		return "none"
	case StageInterrupt:
		return "interrupt"
	case StageTerm:
		return "term"
	case StageKill:
		return "kill"
	}
	return fmt.Sprintf("stage %d", int(s))
}

// ID names one process for ever: a reused pid has another start.
type ID struct {
	Pid int `json:"pid"`
	// Start is as the system counts: clock ticks since boot on Linux, microseconds since 1970
	// on macOS.
	Start int64 `json:"start"`
}

// Result says how a session's processes ended.
type Result struct {
	// ExitCode of the agent; -1 if a signal ended it or its end was not seen.
	ExitCode int
	// Signal that ended the agent, 0 if none.
	Signal syscall.Signal
	// Cause is nil if the agent ended by itself; else the cause of Start's context,
	// ErrDeadline or ErrGuardianLost. An agent that exits with 0 after an interrupt
	// has a cause too.
	Cause error
	// Stage is the strongest signal that was sent before the agent exited.
	Stage Stage
	// Times of the ending, on the wall clock; zero for what did not happen. Interrupt, Term
	// and Kill may also be those sent to what the agent left behind.
	Asked, Interrupted, Terminated, Killed, Exited time.Time
	// Swept counts the processes that outlived the agent and were ended.
	Swept int
	// Left are their names, each once and only some if there are many; empty where nothing
	// looked.
	Left []string
	// Survivors could not be ended: they belong to another user, or the system holds them.
	// Usually empty.
	Survivors []ID
	// OutputCut: something outside the tree held the output open and reading was given up.
	OutputCut bool
}

// Success reports whether the agent ended by itself with exit code 0.
func (r Result) Success() bool { return r.Cause == nil && r.ExitCode == 0 && r.Signal == 0 }

// exit fills in what the system said about the agent's end.
func (r *Result) exit(status syscall.WaitStatus) {
	if status.Signaled() {
		r.ExitCode, r.Signal = -1, status.Signal()
		return
	}
	r.ExitCode = status.ExitStatus()
}
