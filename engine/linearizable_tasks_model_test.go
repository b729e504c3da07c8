package engine_test

import "stint/api"

// The model of a task: whose it is, and a lease. Answers that carry the server's time are judged
// at it; of a release and of refusals only the two readings of the clock around the call are
// known.

// linTaskCall is what was requested for one task.
type linTaskCall struct {
	kind     string // claim, renew, extend, release
	task     api.TaskID
	by       string // who, as refusals name them
	seconds  int64  // microseconds: of the lease that is asked for, or that is added
	from, to int64  // the clock before and after
}

func (c linTaskCall) about() int64 { return int64(c.task) }

func (c linTaskCall) between(from, to int64) any {
	c.from, c.to = from, to
	return c
}

// linTaskAnswer is what was answered.
type linTaskAnswer struct {
	code    api.Code // empty when it was done
	at      int64    // the server's time, when the answer has it
	expires int64
	holder  string // of a refusal
	was     string // from whom it was taken over
	did     bool   // a claim renewed, a release released
}

// linTask is the task.
type linTask struct {
	holder   string // "" = nobody
	assignee string
	length   int64 // of the lease
	expires  int64
	now      int64 // the latest time that an answer has shown
}

// at moves the task to an instant: a lease that is over by then has lapsed, and it is still its
// assignee's.
func (t linTask) at(now int64) linTask {
	if t.now = max(t.now, now); t.holder != "" && t.expires <= t.now {
		t.holder, t.length, t.expires = "", 0, 0
	}
	return t
}

func linTaskStep(t linTask, c linTaskCall, a linTaskAnswer) (bool, linTask) {
	switch {
	case a.code != "":
		if t = t.at(c.from); t.now > c.to {
			return false, t
		}
		return linTaskRefused(t, c, a)
	case c.kind == "release": // it says no time
		if t = t.at(c.from); t.now > c.to {
			return false, t
		}
		return linTaskReleased(t, c, a)
	case a.at < t.now || a.at < c.from || a.at > c.to:
		return false, t
	}
	return linTaskHeld(t.at(a.at), c, a)
}

// linTaskHeld judges a claim, a renewal or an extension that was done at t.now.
func linTaskHeld(t linTask, c linTaskCall, a linTaskAnswer) (bool, linTask) {
	switch c.kind {
	case "claim":
		if t.holder != "" && t.holder != c.by {
			return false, t
		}
		renewed, was := t.holder == c.by, t.assignee
		if was == c.by {
			was = ""
		}
		if until := t.now + c.seconds; until > t.expires {
			t.expires, t.length = until, c.seconds
		}
		t.holder, t.assignee = c.by, c.by
		return a.did == renewed && a.was == was && a.expires == t.expires, t
	case "renew":
		t.expires = max(t.expires, t.now+t.length)
	case "extend":
		t.expires += c.seconds
	}
	return t.holder == c.by && a.expires == t.expires, t
}

func linTaskReleased(t linTask, c linTaskCall, a linTaskAnswer) (bool, linTask) {
	if !a.did && t.holder != "" { // then its lease must have been over by then
		if t = t.at(t.expires); t.now > c.to {
			return false, t
		}
	}
	ok := !a.did || t.holder == c.by
	t.holder, t.length, t.expires = "", 0, 0
	if t.assignee == c.by {
		t.assignee = ""
	}
	return ok, t
}

// linTaskRefused judges a refusal that came somewhere between t.now and c.to.
func linTaskRefused(t linTask, c linTaskCall, a linTaskAnswer) (bool, linTask) {
	byOther := t.holder != "" && t.holder != c.by && t.holder == a.holder && t.expires == a.expires
	switch a.code {
	case api.CodeAlreadyClaimed:
		return c.kind == "claim" && byOther, t
	case api.CodeNotClaimHolder:
		return c.kind == "release" && byOther, t
	case api.CodeClaimNotActive:
		if c.kind != "renew" && c.kind != "extend" {
			return false, t
		}
		if a.holder == "" && t.holder != "" { // only the end of the lease can have caused this
			t = t.at(t.expires)
			return t.now <= c.to, t
		}
		return byOther || a.holder == "" && t.holder == "", t
	}
	return false, t
}

var linTaskModel = modelOf(linTask{}, linTaskStep)
