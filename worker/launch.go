package worker

import (
	"context"
	"errors"

	"stint/worker/proc"
)

// errNotLaunched says that a program was not started because the worker is ending.
var errNotLaunched = errors.New("the worker ends, so nothing is started")

// launch starts a program of the session. Everything that runs under the claim is
// started here, be it the agent, a check or a hook: it is journaled, follows the
// claim's moving deadline, and is ended quickly when the worker shuts down. contract 10.11
//
// The errors are those of [proc.Start], or errNotLaunched; see unlaunched.
func (s *session) launch(ctx context.Context, spec proc.Spec, sink proc.Sink) (*proc.Process, error) {
	if life := spec.Record; life.Mark != s.life {
		if !s.persist("journal the start", func() error { return s.p.state.setLife(s.heldID, life) }) {
			return nil, errNotLaunched
		}
		s.life = life.Mark
	}
	if !s.launching() {
		return nil, errNotLaunched
	}
	spec.Follow = s.claimContext.deadline
	s.at("start")
	p, err := proc.Start(ctx, spec, sink)
	s.at("started")
	if err != nil {
		s.launched(nil)
		return nil, err
	}
	// A failure to note the ids is no reason to end it: the mark is in the journal.
	if err := s.p.state.setLife(s.heldID, p.Record()); err != nil {
		s.log.Error("the process ids can't be journaled", "error", err)
	}
	s.at("recorded")
	s.launched(func() {
		select {
		case <-p.Done():
			return
		default:
		}
		if err := p.SetDeadline(s.p.boot().Add(s.p.opts.DrainGrace + s.p.stages.Kill)); err != nil {
			s.log.Debug("it can't be ended quickly, or has ended", "error", err)
		}
	})
	return p, nil
}

// launching reports whether something may be started now. Until launched is called, a shutdown
// holds back what it has to say: an ending that began slowly can't be sped up later.
func (s *session) launching() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = !s.draining
	return s.starting
}

// launched says how to quickly end what now runs, nil when nothing does.
func (s *session) launched(endQuick func()) {
	s.mu.Lock()
	s.starting, s.endQuick = false, endQuick
	draining := s.draining
	s.mu.Unlock()
	if draining {
		s.endQuickly(endQuick)
	}
}

// unlaunched is the outcome of a session whose program could not be started.
func (s *session) unlaunched(name string, err error) outcome {
	if errors.Is(err, errNotLaunched) {
		return released(reasonStopped)
	}
	if cause := s.claimContext.cause(); cause != nil || errors.Is(err, proc.ErrDeadline) {
		return s.ended(cause, "")
	}
	s.log.Warn("not started", "program", name, "error", err)
	return failed(startFailure(name, err), "")
}
