package worker

import (
	"errors"

	"stint/api"
	"stint/worker/agent"
)

// drain ends the session because the worker shuts down, in stages that are much
// shorter than usual.
func (s *session) drain() {
	s.mu.Lock()
	s.draining = true
	endQuick, starting := s.endQuick, s.starting
	s.mu.Unlock()
	if !starting {
		s.endQuickly(endQuick)
	}
}

func (s *session) endQuickly(endQuick func()) {
	if endQuick != nil {
		endQuick() // before the context ends: an ending that has begun keeps its stages
	}
	s.claimContext.end(errDraining)
}

// converses says how a conversation that begins now is to end with its turn, nil when it is
// over. It reports false when the session is to end already.
func (s *session) converses(gentle func(error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gentle = gentle
	return s.claimContext.ctx.Err() == nil
}

// endGently ends the session because a person or a signal asked for it: a conversation with
// its current turn, a command at once. contract 2.5, 5.3
func (s *session) endGently(cause error) {
	s.mu.Lock()
	gentle := s.gentle
	s.mu.Unlock()
	switch {
	case gentle == nil:
		s.claimContext.end(cause)
	case errors.Is(cause, errStop):
		gentle(agent.ErrStopped)
	default:
		gentle(cause)
	}
}

// breakable returns the function that ends a session that can't go on, nil when there is
// nothing left to end.
func (s *session) breakable(broken func(*api.Failure)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// overspent ends a conversation that has cost too much; limit names the limit.
func (s *session) overspent(limit string) { s.breakOff(refuse(agent.CodeSpendLimit, "%s", limit)) }

// unposted ends a conversation whose transcript the coordinator refuses: nobody
// could read what it does. contract 10.2
func (s *session) unposted(refused error) {
	f := refuse(CodePostFailed, "The coordinator refuses a part of the transcript: %v.", refused)
	if api.CodeOf(refused) == api.CodeTooLarge {
		f = refuse(CodeItemTooLarge, "A part of the transcript is larger than the coordinator takes: %v.", refused)
	}
	s.breakOff(f)
}

// breakOff ends a conversation with a failure that its program didn't cause.
func (s *session) breakOff(f *api.Failure) {
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if broken != nil {
		broken(f)
	}
}

// gone notes that a claim is no longer the session's live one and ends what runs under it.
func (s *session) gone(claim api.ClaimID, cause error) {
	s.mu.Lock()
	s.dead = claim
	current := s.id == claim
	s.mu.Unlock()
	if current {
		s.claimContext.end(cause)
	}
}
