package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stint/api"
)

const sendLimit = 20 * time.Second // one report, its answer read

// refusedForGood reports whether the coordinator will never accept the same call, so that it
// isn't repeated. Rights and sign-in can come back.
func refusedForGood(err error) bool {
	switch api.CodeOf(err) {
	case "", api.CodeUnauthenticated, api.CodeForbidden, api.CodeMisdirected, api.CodeCrossOrigin:
		return false
	}
	return !api.Retriable(err)
}

// send delivers the session's outbox in order until the finishing entry was dealt with, or the
// session ended without one. It is the only sender of its session, and goes on whatever
// happens to the agent. It returns an error only when ctx ends first; the worker's next
// process then sends the rest.
func (s *session) send(ctx context.Context) error {
	var wait backoff
	for {
		over := s.isOver() // asked first: what was added before is then seen
		batch, err := s.out.next()
		if err == nil && len(batch) == 0 {
			if over {
				return nil
			}
			select {
			case <-s.out.added:
			case <-s.over:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		}
		var after time.Duration
		if err == nil {
			var settled bool
			if settled, err = s.deliver(ctx, batch); settled {
				wait.reset()
				s.at("answered")
				s.out.answered(batch)
				if finishes(batch[0].kind) {
					s.final = batch[0].kind
					return nil
				}
				continue
			}
			after = api.RetryAfter(err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pause := wait.next(after)
		s.log.Warn("report not delivered, it stays in the outbox", "kind", kindOf(batch), "again in", pause, "error", err)
		if !sleep(ctx, pause, s.retry) {
			return context.Cause(ctx)
		}
	}
}

// gravity is the log level of a refusal: none when somebody cancelled the session, since
// nobody then wants what the command still printed.
func gravity(err error) slog.Level {
	var refused *api.Error
	if errors.As(err, &refused) && refused.Status == api.Cancelled {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

func kindOf(batch []entry) string {
	if len(batch) == 0 {
		return ""
	}
	return batch[0].kind
}

// deliver sends one batch. It is settled when it was accepted, or refused for good and dealt
// with; otherwise err says why it has to be sent again.
func (s *session) deliver(ctx context.Context, batch []entry) (settled bool, err error) {
	s.at("send " + batch[0].kind)
	claim := s.claimID()
	err = s.post(ctx, claim, batch)
	s.at("sent " + batch[0].kind)
	switch {
	case err == nil:
		if finishes(batch[0].kind) {
			s.closedByUs(claim)
		}
		return true, nil
	case !refusedForGood(err):
		return false, err
	}
	s.log.Log(ctx, gravity(err), "report refused", "kind", batch[0].kind, "entries", len(batch), "error", err)
	switch api.CodeOf(err) {
	case api.CodeClaimNotActive, api.CodeInstanceSuperseded, api.CodeNotFound, api.CodeGone, api.CodeSessionTerminal:
		return s.claimGone(ctx, claim, batch)
	}
	return s.unfit(ctx, claim, batch, err)
}

// post makes the call that a batch stands for.
func (s *session) post(ctx context.Context, claim api.ClaimID, batch []entry) error {
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	proof := under(claim, s.p.instance)
	switch e := batch[0]; e.kind {
	case entryItem:
		return s.postItems(ctx, proof, batch)
	case entryActivity:
		in, err := decode[api.ActivityInput](e)
		if err != nil {
			return err
		}
		in.UnderClaim = proof
		got, err := s.p.client.AddActivity(ctx, s.addr, in)
		return ours(err, got.SessionID, s.addr.Session)
	case entryPatch:
		in, err := decode[api.SessionPatch](e)
		if err != nil {
			return err
		}
		in.UnderClaim = proof
		got, err := s.patch(ctx, in)
		if err == nil && got.SpendExceeded != "" {
			s.overspent(got.SpendExceeded)
		}
		return err
	case entryChanges:
		in, err := decode[api.ChangesReport](e)
		if err != nil {
			return err
		}
		in.UnderClaim = proof
		_, err = s.p.client.ReportChanges(ctx, s.addr, in)
		return err
	case entryComplete:
		in, err := decode[api.CompleteRequest](e)
		if err != nil {
			return err
		}
		in.UnderClaim = proof
		got, err := s.p.client.Complete(ctx, s.addr, in)
		return ours(err, got.Session.ID, s.addr.Session)
	case entryFail:
		in, err := decode[api.FailRequest](e)
		if err != nil {
			return err
		}
		in.UnderClaim = proof
		got, err := s.p.client.Fail(ctx, s.addr, in)
		return ours(err, got.Session.ID, s.addr.Session)
	case entryRelease:
		in, err := decode[api.ReleaseRequest](e)
		if err != nil {
			return err
		}
		in.UnderClaim = proof
		got, err := s.p.client.Release(ctx, s.addr, in)
		return ours(err, got.Session.ID, s.addr.Session)
	default:
		return fmt.Errorf("the outbox holds an entry of unknown kind %q", e.kind)
	}
}

func (s *session) postItems(ctx context.Context, proof api.UnderClaim, batch []entry) error {
	in := api.ItemsRequest{UnderClaim: proof}
	for _, e := range batch {
		item, err := decode[api.ItemInput](e)
		if err != nil {
			return err
		}
		in.Items = append(in.Items, item)
	}
	_, err := s.p.client.AddItems(ctx, s.addr, in)
	return err
}

// patch changes the session under the claim.
func (s *session) patch(ctx context.Context, in api.SessionPatch) (api.Session, error) {
	got, err := s.p.client.PatchSession(ctx, s.addr, in)
	return got, ours(err, got.ID, s.addr.Session)
}

// ours turns an answer about something that wasn't asked into no answer: whatever sent it, it
// wasn't the coordinator doing what we asked.
func ours[T comparable](err error, got, want T) error {
	if err != nil || got == want {
		return err
	}
	return &api.Unanswered{Op: "check the answer", Err: fmt.Errorf("it is about %v, not %v", got, want)}
}

// unfit deals with a refusal of the entry itself. An activity is left out; so is an item, but
// not the others of its batch; a conversation whose transcript can't be kept is ended. A
// finish is sent again without the parts that may be unfit: a session must not run twice
// because its result is too long.
func (s *session) unfit(ctx context.Context, claim api.ClaimID, batch []entry, refused error) (settled bool, err error) {
	e := batch[0]
	if len(batch) > 1 { // only items are sent several at once: which of them is it?
		for _, e := range batch {
			if settled, err := s.deliver(ctx, []entry{e}); !settled {
				return false, err
			}
		}
		return true, nil
	}
	if e.kind == entryItem {
		s.unposted(refused)
		return true, nil
	}
	if !finishes(e.kind) || api.CodeOf(refused) == api.CodeOutcomeConflict {
		if finishes(e.kind) {
			s.closedByUs(claim)
		}
		return true, nil
	}
	plain, err := plainFinish(e, refused)
	if err != nil {
		return false, err
	}
	switch err = s.post(ctx, claim, []entry{plain}); {
	case err == nil:
		s.closedByUs(claim)
		return true, nil
	case refusedForGood(err):
		s.log.Error("the session's end was refused and is not reported", "error", err)
		return true, nil
	}
	return false, err
}

func plainFinish(e entry, refused error) (entry, error) {
	const note = "The coordinator refused the worker's full report: "
	why := api.CodeOf(refused)
	switch e.kind {
	case entryComplete:
		in, err := decode[api.CompleteRequest](e)
		if err != nil {
			return entry{}, err
		}
		return newEntry(e.kind, api.CompleteRequest{Outcome: in.Outcome, Result: note + string(why)})
	case entryFail:
		in, err := decode[api.FailRequest](e)
		if err != nil {
			return entry{}, err
		}
		return newEntry(e.kind, api.FailRequest{Code: in.Code, Message: note + string(why)})
	default:
		return newEntry(e.kind, api.ReleaseRequest{Reason: "refused_report"})
	}
}
