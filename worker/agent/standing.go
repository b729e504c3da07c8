package agent

import (
	"stint/worker/agent/cmdline"
)

// Standing is an approval that counts from now on. contract 15.3
type Standing struct {
	ID   string // names it for people; "" of one that is only proposed
	Area Area
	Tool string // the program's name of the tool
	What string // the exact command, path or address; with Any a pattern of [cmdline.Pattern]
	Any  bool   // What is a pattern
	// Beyond says that it was approved to run out of the program's sandbox. One that was
	// approved to run inside covers nothing outside.
	Beyond bool
}

// Approvals are the standing approvals for a conversation. Its methods may be called from any
// goroutine of the adapter and return soon.
type Approvals interface {
	// All are those that hold now.
	All() []Standing
	// Used says that one of them allowed an action.
	Used(Action, Standing)
}

// Covers reports whether an approval is for a tool call, all of it.
func (s Standing) Covers(call Standing) bool {
	if s.Area != call.Area || s.Tool != call.Tool || call.Beyond && !s.Beyond {
		return false
	}
	if s.Any {
		return s.Area == Shell && cmdline.Fits(s.What, call.What)
	}
	return s.What == call.What
}

// standingOf is what a standing approval of a tool call would say exactly, false where a call
// is of several things or of what isn't known: nobody could say what is approved.
func standingOf(actions []toolAction) (Standing, bool) {
	if len(actions) == 0 {
		return Standing{}, false
	}
	first := actions[0]
	s := Standing{Area: first.Area, Tool: first.Tool, What: first.What}
	if first.forbidden || first.unseen || s.What == "" {
		return Standing{}, false
	}
	if s.Area != Shell {
		return s, len(actions) == 1
	}
	for _, d := range actions {
		if d.forbidden {
			return Standing{}, false
		}
		s.Beyond = s.Beyond || d.beyond
	}
	return s, cmdline.Fixed(s.What)
}

// proposals are the standing approvals that a person may give with a question, the narrowest
// first.
func (j *judge) proposals(actions []toolAction) []Standing {
	s, ok := standingOf(actions)
	if !ok || j.job.Approvals == nil {
		return nil
	}
	out := []Standing{s}
	if s.Area == Shell {
		if pattern := cmdline.Pattern(s.What); pattern != "" {
			s.What, s.Any = pattern, true
			out = append(out, s)
		}
	}
	return out
}

// approved is the standing approval that covers a tool call.
func (j *judge) approved(actions []toolAction) (Standing, bool) {
	call, ok := standingOf(actions)
	if !ok || j.job.Approvals == nil {
		return Standing{}, false
	}
	for _, s := range j.job.Approvals.All() {
		if s.Covers(call) {
			return s, true
		}
	}
	return Standing{}, false
}

// stand reports the use of a standing approval, once for each tool call; call is its id, "" for
// none.
func (j *judge) stand(call string, actions []toolAction, s Standing) {
	if call != "" && j.stood[call] {
		return
	}
	j.stood[call] = true
	j.job.Approvals.Used(actions[0].Action, s)
}
