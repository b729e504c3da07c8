package api

// The outcomes of sessions that Stint itself knows; a worker may report others.
const (
	OutcomeSuccess = "success"
	OutcomeStopped = "stopped_by_user" // a person asked it to end before its work was done
	// OutcomeUnfinished: the command, or the agent's turn, ended well while something of it
	// was still running, which was ended with it.
	OutcomeUnfinished = "unfinished"
	OutcomeRefused    = "refused"      // it ended well, but acts of its agent were refused
	OutcomeToolless   = "tools_failed" // … but tools that its agent was to have didn't start
	OutcomeUnmet      = "expectation_unmet"
)

// Mark says why a session that ends well will be no plain success. Its worker sets it by an
// activity whose text is the reason (contract 15.4).
type Mark string

// The marks. The gravest decides the outcome: unmet, refused, tool_failed, unfinished.
const (
	MarkRefused    Mark = "refused"     // an act was refused
	MarkToolFailed Mark = "tool_failed" // a tool could not be started
	MarkUnmet      Mark = "unmet"       // what the agent says must come of a run did not
	MarkUnfinished Mark = "unfinished"  // something of it still ran
)

// Marks are all marks.
var Marks = []Mark{MarkUnmet, MarkRefused, MarkToolFailed, MarkUnfinished}

// markWords are the outcomes of sessions that are complete but no plain success, in a word or
// two, and in a sentence for whoever has no reason to read.
var markWords = map[string][2]string{
	OutcomeUnmet:      {"expectation unmet", "It ended without what its agent says must come of it."},
	OutcomeRefused:    {"acts refused", "Acts of its agent were refused."},
	OutcomeToolless:   {"tools missing", "Tools that its agent was to have could not be started."},
	OutcomeUnfinished: {"unfinished", "It ended while something of it still ran."},
}

// MarkedOutcomes are the outcomes of sessions that are complete but no plain success, but for
// those that people stopped.
var MarkedOutcomes = []string{OutcomeUnmet, OutcomeRefused, OutcomeToolless, OutcomeUnfinished}

// Marked reports whether an outcome says that a complete session is no plain success: it is
// shown apart, and counts neither as a success nor as a failure.
func Marked(outcome string) bool { return markWords[outcome] != [2]string{} }

// MarkWord is a marked outcome in a word or two, "" for any other.
func MarkWord(outcome string) string { return markWords[outcome][0] }

// Mark is why the session, though complete, is no plain success, in a sentence; "" if it is
// one, isn't complete, or was stopped by a person.
func (s Session) Mark() string {
	if s.Status != Complete || !Marked(s.Outcome) {
		return ""
	}
	if s.MarkReason != "" {
		return s.MarkReason
	}
	return markWords[s.Outcome][1]
}

// Stopped reports whether a person ended the session before its work was done. Its status may
// still be complete: the agent ended in good order.
func (s Session) Stopped() bool { return s.Outcome == OutcomeStopped }
