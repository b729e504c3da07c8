package worker

import (
	"context"
	"errors"
	"fmt"

	"stint/api"
	"stint/worker/proc"
)

// maxLateFinishes is how often a session is claimed again to finish with one result, before
// the result goes to the thread.
const maxLateFinishes = 5

var errTakenAgain = errors.New("the claim had lapsed and was taken again to finish with the result")

// claimGone deals with a refusal because the claim is no longer the live one. With a result in
// hand, the session is claimed again to finish it; if another worker has the session, or it
// ended, the result is kept on the thread. contract 10.8
func (s *session) claimGone(ctx context.Context, claim api.ClaimID, batch []entry) (settled bool, err error) {
	if !s.out.finished() {
		// The agent is still running, or is just ending. A renewal says for certain: if the
		// claim still holds after all, only this batch is unfit; otherwise what is kept
		// depends on whether the agent brings a result.
		alive, err := s.verify(ctx)
		if err != nil || alive {
			return alive, err
		}
		select {
		case <-s.over:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		if !s.out.finished() {
			return true, nil // nothing to finish with: the output goes with the claim
		}
	}
	finish, err := s.out.finishing()
	if err != nil {
		return false, err
	}
	if finish.kind == entryRelease {
		s.out.skipTo(finish)
		return true, nil // the coordinator has taken the session back already
	}
	if s.lateFinishes++; s.lateFinishes <= maxLateFinishes {
		got, err := s.claimAgain(ctx, claim)
		switch {
		case err == nil && got == claim && !finishes(batch[0].kind):
			return true, nil // it lives: only this batch was unfit
		case err == nil:
			return false, errTakenAgain
		case !refusedForGood(err) || api.CodeOf(err) == api.CodeNotReady:
			return false, err
		}
		s.log.Info("the session went on without this worker, its result goes to the thread", "error", err)
	}
	if err := s.keepLate(ctx, claim, finish); err != nil {
		if !refusedForGood(err) || api.CodeOf(err) == api.CodeConflict { // another worker holds the claim, for now
			return false, err
		}
		if api.CodeOf(err) == api.CodeOutcomeConflict { // what came before it was sent again after a kill
			s.log.Info("the session was finished under this claim before this worker learned of it", "error", err)
		} else {
			s.log.Error("the result was refused by the thread too", "error", err)
		}
	}
	s.out.skipTo(finish)
	return true, nil
}

// claimAgain claims the session once more to finish it. The old claim is reported as drained
// first, since nothing can be claimed over one that isn't.
func (s *session) claimAgain(ctx context.Context, old api.ClaimID) (api.ClaimID, error) {
	if err := s.p.state.addDrained(old, s.addr.Worker); err != nil {
		return api.ClaimID{}, err
	}
	if s.rec.id() != 0 {
		if err := s.rec.beat(ctx, false); err != nil && !refusedForGood(err) {
			return api.ClaimID{}, fmt.Errorf("report the drained claim: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	s.at("claim again")
	got, err := s.p.client.Claim(ctx, s.addr.Agent, s.addr.Worker, s.addr.Session, api.ClaimRequest{InstanceID: s.p.instance, FinishOf: old})
	if err = ours(err, got.SessionID, s.addr.Session); err != nil {
		return api.ClaimID{}, err
	}
	if got.ClaimID == old {
		return old, nil
	}
	return got.ClaimID, s.adopt(got)
}

// adopt puts a later claim on the session in place of the lost one.
func (s *session) adopt(c api.Claim) error {
	if err := s.p.state.setClaim(s.heldID, c); err != nil {
		return err
	}
	s.setClaim(c.ClaimID)
	s.log.Info("the result finishes the session under a later claim", "later", c.Fence)
	return nil
}

// holder is the session here that a new claim is for, nil when there is none: this process may
// still hold its result, whatever the coordinator knows about that.
func (p *Process) holder(id api.SessionID) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		if s.addr.Session == id {
			return s
		}
	}
	return nil
}

// finishLate uses a new claim to report the result of the session, whose work is done: it
// isn't run again. contract 10.11. Only if the earlier claim turns out to have been given back
// meanwhile is the session run. slot is freed when it isn't.
func (p *Process) finishLate(s *session, rec *record, c api.Claim, sent proc.BootTime, slot func()) {
	p.parts.Go(func() {
		select {
		case <-s.over:
		case <-p.reporting.Done():
			slot()
			return // the next process finds the claim and the result
		}
		if s.closedUnder().IsZero() && s.out.finished() {
			s.persist("adopt the new claim", func() error { return s.adopt(c) })
			s.nudge()
		}
		<-s.closed // soon, or when no more reports are sent
		switch under := s.closedUnder(); {
		case under == c.ClaimID || p.reporting.Err() != nil:
			slot()
		case !under.IsZero() && s.final == entryRelease:
			p.take(rec, c, sent, slot)
		default:
			slot()
			p.giveBack(rec, c, reasonRestarted)
		}
	})
}

// nudge sends now a report that waits for its next try.
func (s *session) nudge() {
	select {
	case s.retry <- struct{}{}:
	default: // it is due already
	}
}

// keepLate keeps a result on the thread, visible but not applied.
func (s *session) keepLate(ctx context.Context, claim api.ClaimID, finish entry) error {
	in, err := lateResult(finish)
	if err != nil {
		return err
	}
	in.UnderClaim = under(claim, s.p.instance)
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	return s.p.client.KeepLateResult(ctx, s.thread, in)
}

func lateResult(finish entry) (api.CompleteRequest, error) {
	if finish.kind == entryComplete {
		return decode[api.CompleteRequest](finish)
	}
	in, err := decode[api.FailRequest](finish)
	if err != nil {
		return api.CompleteRequest{}, err
	}
	text := in.Message
	if in.Result != "" {
		text += "\n\n" + in.Result
	}
	return api.CompleteRequest{Outcome: in.Code, Result: text, Usage: in.Usage}, nil
}
