package engine_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"

	"stint/api"
)

// The model: one session as a register with a lease. Each successful answer carries the
// server's own time, so that its legality is judged at that instant; of a refusal only the two
// readings of the clock around the call are known.

// linCall is what was requested for one session.
type linCall struct {
	kind     string // claim, renew, complete, fail, release, cancel
	session  api.SessionID
	worker   api.WorkerID
	fence    int64 // of the claim that was used
	lease    int64 // microseconds, of a claim that is asked for
	from, to int64 // the clock before and after
}

func (c linCall) about() int64 { return int64(c.session) }

func (c linCall) between(from, to int64) any {
	c.from, c.to = from, to
	return c
}

// linAnswer is what was answered.
type linAnswer struct {
	code    api.Code // empty when it was done
	at      int64    // the server's time, when it was done
	fence   int64
	expires int64
	holder  api.WorkerID
	status  api.Status
	changed bool
}

// linState is the session: comparable, so that the checker can remember states.
type linState struct {
	status  api.Status
	worker  api.WorkerID
	fence   int64
	lease   int64
	expires int64
	now     int64  // the latest time that an answer has shown
	given   int64  // times in a row that it was given back
	rests   int64  // until when it isn't claimable after that
	closed  string // how claim number i+1 was closed: complete, fail, release, lapse, x for cancel
}

// at moves the state to an instant: a lease that is over by then has lapsed.
func (s linState) at(t int64) linState {
	s.now = max(s.now, t)
	if s.status.Running() && s.expires <= s.now {
		s.status, s.rests = api.Stale, 0
		s.closed += "l"
	}
	return s
}

func (s linState) holds(c linCall) bool { return s.status.Running() && s.fence == c.fence }

// closing is the letter of how a claim was closed, 0 while it isn't.
func (s linState) closing(fence int64) byte {
	if fence < 1 || fence > int64(len(s.closed)) {
		return 0
	}
	return s.closed[fence-1]
}

// givenBack is the state after a release: from the fourth in a row on it rests, one second,
// two, four … up to five minutes; the twentieth ends it.
func (s linState) givenBack() linState {
	s.given++
	s.rests = 0
	switch {
	case s.given >= 20:
		s.status = api.Failed
	case s.given > 3:
		s.rests = s.now + min(int64(1_000_000)<<(s.given-4), 300_000_000)
	}
	return s
}

func linStep(s linState, c linCall, a linAnswer) (bool, linState) {
	if c.kind == "cancel" && !a.changed {
		s = s.at(c.from) // it shows no time of its own
		return s.now <= c.to && s.status.Terminal(), s
	}
	if a.code == "" {
		if a.at < s.now || a.at < c.from || a.at > c.to {
			return false, s
		}
		return linDone(s.at(a.at), c, a)
	}
	s = s.at(c.from)
	if s.now > c.to {
		return false, s
	}
	return linRefused(s, c, a)
}

// linDone judges a call that was done at s.now.
func linDone(s linState, c linCall, a linAnswer) (bool, linState) {
	switch c.kind {
	case "claim":
		switch {
		case s.status.Terminal():
			return false, s
		case s.status.Running(): // one's own, renewed
			s.expires = max(s.expires, s.now+s.lease)
			return s.worker == c.worker && a.fence == s.fence && a.expires == s.expires, s
		}
		if s.rests > s.now {
			return false, s
		}
		s.status, s.worker, s.fence, s.lease, s.expires = api.Active, c.worker, s.fence+1, c.lease, s.now+c.lease
		return a.fence == s.fence && a.expires == s.expires, s
	case "renew":
		if !s.holds(c) {
			return false, s
		}
		s.expires = max(s.expires, s.now+s.lease)
		return a.expires == s.expires, s
	case "cancel":
		if s.status.Terminal() {
			return false, s
		}
		if s.status.Running() {
			s.closed += "x"
		}
		s.status = api.Cancelled
		return true, s
	}
	verb := c.kind[0]
	if s.holds(c) {
		s.status = map[byte]api.Status{'c': api.Complete, 'f': api.Failed, 'r': api.Queued}[verb]
		s.closed += string(verb)
		if verb == 'r' {
			s = s.givenBack()
		}
		return a.status == s.status, s
	}
	// A repeated call returns the status of now; a lease that is over may not have been ended
	// yet.
	now := a.status == s.status || s.status == api.Stale && a.status.Running()
	return s.closing(c.fence) == verb && now, s
}

// linRefused judges a refusal that came somewhere between s.now and c.to.
func linRefused(s linState, c linCall, a linAnswer) (bool, linState) {
	switch a.code {
	case api.CodeAlreadyClaimed:
		return s.status.Running() && s.worker == a.holder && s.worker != c.worker && s.expires == a.expires, s
	case api.CodeSessionTerminal:
		return s.status.Terminal(), s
	case api.CodeNotReady:
		return s.status == api.Queued && s.rests > s.now, s
	case api.CodeOutcomeConflict:
		how := s.closing(c.fence)
		return (how == 'c' || how == 'f' || how == 'r') && how != c.kind[0], s
	case api.CodeClaimNotActive:
		if s.holds(c) {
			s = s.at(s.expires) // only the end of its lease can have caused this
			return s.now <= c.to, s
		}
		how := s.closing(c.fence)
		return c.kind == "renew" || how == 'l' || how == 'x', s
	}
	return false, s
}

var linModel = modelOf(linState{status: api.Queued}, linStep)

// modelOf makes a model of one thing's first state and of what each answer makes of it.
func modelOf[S, C, A any](first S, step func(S, C, A) (bool, S)) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			by := map[int64][]porcupine.Operation{}
			for _, op := range history {
				id := op.Input.(recorded).about()
				by[id] = append(by[id], op)
			}
			return slices.Collect(maps.Values(by))
		},
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			ok, next := step(state.(S), input.(C), output.(A))
			return ok, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
	}
}
