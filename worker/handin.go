package worker

import (
	"context"
	"errors"
	"fmt"

	"stint/api"
)

// handIns is how often a session is claimed again to hand in one result, before
// the result goes to the thread.
const handIns = 5

var errTakenAgain = errors.New("the claim had lapsed and was taken again to hand in the result")

// claimGone deals with a refusal because the claim is no longer the live one.
// With a result in hand the session is claimed again to finish it; when somebody
// else has it, or it ended, the result is kept on the thread. contract 10.8
func (s *session) claimGone(ctx context.Context, claim api.ClaimID, batch []entry) (settled bool, err error) {
	if !s.out.finished() {
		// The agent still runs, or ends just now. A renewal tells for certain: if the
		// claim lives after all, only this batch is unfit; else what is kept depends on
		// whether the agent brings a result.
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
			return true, nil // nothing to hand in: the output is void with the claim
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
	if s.handedIn++; s.handedIn <= handIns {
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
		if !refusedForGood(err) || api.CodeOf(err) == api.CodeConflict { // the claim lives elsewhere, for a while
			return false, err
		}
		s.log.Error("the result was refused by the thread too", "error", err)
	}
	s.out.skipTo(finish)
	return true, nil
}

// claimAgain takes the session's claim anew to finish it. The old claim is
// reported as drained first, since nothing can be claimed over one that isn't.
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
	got, err := s.p.client.Claim(ctx, s.addr.Agent, s.addr.Worker, s.addr.Session, api.ClaimRequest{InstanceID: s.p.instance, FinishOf: old})
	if err = ours(err, got.SessionID, s.addr.Session); err != nil {
		return api.ClaimID{}, err
	}
	if got.ClaimID == old {
		return old, nil
	}
	if err := s.p.state.setClaim(s.heldID, got); err != nil {
		return api.ClaimID{}, err
	}
	s.setClaim(got.ClaimID)
	s.log.Info("claimed again to hand in the result", "fence", got.Fence)
	return got.ClaimID, nil
}

// keepLate keeps a result on the thread, visible and not applied.
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
