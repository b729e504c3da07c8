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
	hurry, starting := s.hurry, s.starting
	s.mu.Unlock()
	if !starting {
		s.hasten(hurry)
	}
}

func (s *session) hasten(hurry func()) {
	if hurry != nil {
		hurry() // before the context ends: an ending that has begun keeps its stages
	}
	s.leash.end(errDraining)
}

// converses says how a conversation that begins now ends with its turn, nil when
// it is over. It reports false when the session is to end already.
func (s *session) converses(gentle func(error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gentle = gentle
	return s.leash.ctx.Err() == nil
}

// endGently ends the session as a person or a signal asked for: a conversation
// with its current turn, a command at once. contract 2.5, 5.3
func (s *session) endGently(cause error) {
	s.mu.Lock()
	gentle := s.gentle
	s.mu.Unlock()
	switch {
	case gentle == nil:
		s.leash.end(cause)
	case errors.Is(cause, errStop):
		gentle(agent.ErrStopped)
	default:
		gentle(cause)
	}
}

// spending says whom to tell when the session has cost too much.
func (s *session) spending(costly func(limit string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.costly = costly
}

func (s *session) overspent(limit string) {
	s.mu.Lock()
	costly := s.costly
	s.mu.Unlock()
	if costly != nil {
		costly(limit)
	}
}

// gone notes that a claim is not the session's live one any more and ends what
// runs under it.
func (s *session) gone(claim api.ClaimID, cause error) {
	s.mu.Lock()
	s.dead = claim
	current := s.id == claim
	s.mu.Unlock()
	if current {
		s.leash.end(cause)
	}
}
