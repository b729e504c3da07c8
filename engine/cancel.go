package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// over is a right over one's own sessions and the one that anybody else's take.
type over struct{ own, others right }

var (
	toCancel  = over{mayCancelOwn, mayCancelAny}
	toRetry   = over{mayRetryOwn, mayRetryAny}
	toArchive = over{mayArchiveOwn, mayArchiveAny}
	toAnswer  = over{mayAnswerOwn, mayAnswerAny}
)

// mayTrigger refuses a caller who may not start sessions of a mode, in whatever way.
func (c Caller) mayTrigger(mode api.Mode) error {
	if mode == api.Local {
		return c.may(mayTriggerLocal)
	}
	return c.may(mayTriggerCloud)
}

// mayWith refuses a caller who has no such right over this session: a member
// has it over his own, an admin over any (contract 8.3). A retry starts it anew, so
// that of a cloud session takes whoever may start one.
func (c Caller) mayWith(s *sessionRow, right over) error {
	if right == toRetry && s.Mode == api.Cloud {
		return c.mayTrigger(s.Mode)
	}
	if s.TriggeredByUserID == c.UserID || s.OwnerUserID == c.UserID {
		return c.may(right.own)
	}
	return c.may(right.others)
}

// change runs a verb on a session that the caller may see, in one transaction.
func (e *Engine) change(ctx context.Context, c Caller, id api.SessionID, right over, do func(*db.Tx, *sessionRow) (changed bool, err error)) (out api.Changed, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		s, err := visible(wctx(), tx, c, id)
		if err != nil {
			return err
		}
		if err := c.mayWith(s, right); err != nil {
			return err
		}
		if out.Changed, err = do(tx, s); err != nil {
			return err
		}
		out.Session, err = e.sessionTx(wctx(), tx, c, id, micros(tx.Now))
		return err
	})
	return out, err
}

// CancelSession ends a session at once, whatever it does; a running one's
// worker learns it at its next beat, renewal or write (contract 2.5). An ended
// session stays as it is and is answered with changed false. Errors:
// session_running with onlyPending, not_found, forbidden.
func (e *Engine) CancelSession(ctx context.Context, c Caller, id api.SessionID, in api.CancelInput) (api.Changed, error) {
	var v api.Invalid
	checkText(&v, "reason", in.Reason, maxMessage)
	if err := v.Err(); err != nil {
		return api.Changed{}, err
	}
	return e.change(ctx, c, id, toCancel, func(tx *db.Tx, s *sessionRow) (bool, error) {
		if s.Status.Terminal() {
			return false, nil
		}
		if in.OnlyPending && s.Status.Running() {
			return false, &api.Error{
				Code: api.CodeSessionRunning, Status: s.Status,
				Detail: "The session is running already; cancel it without onlyPending to end it all the same.",
			}
		}
		reason := in.Reason
		if reason == "" {
			reason = "Cancelled by " + c.Name + "."
		}
		return true, e.cancelTx(tx, s, c.actor(), "cancelled", reason)
	})
}

// cancelTx cancels a session that hasn't ended: the claim closes undrained in
// the same transaction, the open prompt too.
func (e *Engine) cancelTx(tx *db.Tx, s *sessionRow, actor, code, message string) error {
	next := *s
	if err := e.closePrompt(tx, &next, actor, "cancelled"); err != nil {
		return err
	}
	next.Status, next.ClaimID = api.Cancelled, 0
	next.ErrorCode, next.ErrorMessage = code, message
	var live *claimRow
	if s.ClaimID != 0 {
		c, err := tx.Claim(wctx(), s.ClaimID)
		if err != nil {
			return fmt.Errorf("read the claim of session %s: %w", s.ID, err)
		}
		if err := e.closeClaim(tx, &c, closedByCancel); err != nil {
			return err
		}
		live = &c
	}
	if _, err := e.move(tx, s, next, actor, evSessionCancelled, api.EventData{"reason": message}); err != nil {
		return err
	}
	if live != nil && live.Drained != 0 {
		_, err := e.freed(tx, s.AgentID)
		return err
	}
	return nil
}

// StopSession is the gentle end: a waiting session is cancelled, a running
// agent ends after its current turn, an open prompt is cancelled first
// (contract 2.5). Repeating it changes nothing.
func (e *Engine) StopSession(ctx context.Context, c Caller, id api.SessionID) (api.Changed, error) {
	return e.change(ctx, c, id, toCancel, func(tx *db.Tx, s *sessionRow) (bool, error) {
		if s.Status.Terminal() || s.StopRequestedAt != 0 {
			return false, nil
		}
		if s.Status.Waiting() {
			return true, e.cancelTx(tx, s, c.actor(), "stopped", "Stopped by "+c.Name+" before it ran.")
		}
		n, err := tx.RequestStop(wctx(), queries.RequestStopParams{StopRequestedAt: micros(tx.Now), ID: s.ID})
		if err := one(n, err); err != nil {
			return false, fmt.Errorf("request the stop of session %s: %w", s.ID, err)
		}
		s.StopRequestedAt = micros(tx.Now)
		if err := e.logSession(tx, s, c.actor(), evStopRequested, nil); err != nil {
			return false, err
		}
		if s.Status != api.AwaitingInput {
			return true, nil
		}
		next := *s
		if err := e.closePrompt(tx, &next, c.actor(), "cancelled"); err != nil {
			return false, err
		}
		next.Status = api.Active
		_, err = e.move(tx, s, next, c.actor(), evSessionResumed, api.EventData{"reason": "stop"})
		return true, err
	})
}

// RetrySession makes a new session of an ended one, in the same thread; a stale
// one is queued again with its lapses forgotten. Where the agent's mode is another
// one meanwhile, the new session begins a thread of its own. Rights: a member for
// his own local session, an admin for a cloud one. Errors: session_running,
// not_found, forbidden.
func (e *Engine) RetrySession(ctx context.Context, c Caller, id api.SessionID) (out api.Session, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		s, err := visible(wctx(), tx, c, id)
		if err != nil {
			return err
		}
		if err := c.mayWith(s, toRetry); err != nil {
			return err
		}
		switch {
		case s.Status == api.Stale:
			return e.requeue(tx, c, s, &out)
		case !s.Status.Terminal():
			return &api.Error{Code: api.CodeSessionRunning, Status: s.Status, Detail: fmt.Sprintf("The session is %s; it can be retried when it has ended.", s.Status)}
		}
		a, err := agentOf(wctx(), tx, c, s.AgentID.String())
		if err != nil {
			return err
		}
		if err := c.mayTrigger(a.Mode); err != nil {
			return err // the agent's mode may be another than the session's by now
		}
		again, err := e.newSession(tx, a, newSession{
			by: api.ByUser, user: c.UserID, actor: c.actor(), at: manualTrigger(a, micros(tx.Now)),
			in:      api.SessionInput{Prompt: s.Prompt, Title: s.Title, UntrustedContext: s.UntrustedContext, Priority: &s.Priority},
			attempt: s.Attempt + 1, retryOf: s,
		})
		if err != nil {
			return err
		}
		out, err = e.present(wctx(), tx, again, a, micros(tx.Now))
		return err
	})
	return out, err
}

func (e *Engine) requeue(tx *db.Tx, c Caller, s *sessionRow, out *api.Session) error {
	next := *s
	if err := e.closePrompt(tx, &next, c.actor(), "cancelled"); err != nil {
		return err
	}
	next.Status, next.Lapses, next.ReclaimAt = api.Queued, 0, 0
	if _, err := e.move(tx, s, next, c.actor(), evSessionQueued, api.EventData{"reason": "retry"}); err != nil {
		return err
	}
	shown, err := e.sessionTx(wctx(), tx, c, s.ID, micros(tx.Now))
	*out = shown
	return err
}

// ArchiveSession hides an ended session from lists. Repeating it changes nothing.
func (e *Engine) ArchiveSession(ctx context.Context, c Caller, id api.SessionID) (api.Changed, error) {
	return e.change(ctx, c, id, toArchive, func(tx *db.Tx, s *sessionRow) (bool, error) {
		if !s.Status.Terminal() {
			return false, &api.Error{Code: api.CodeConflict, Status: s.Status, Detail: fmt.Sprintf("Only an ended session can be archived; this one is %s.", s.Status)}
		}
		n, err := tx.SetArchived(wctx(), queries.SetArchivedParams{ArchivedAt: micros(tx.Now), ID: s.ID})
		if err != nil || n == 0 {
			return false, err
		}
		return true, e.logSession(tx, s, c.actor(), evSessionArchived, nil)
	})
}

// cancelOpen cancels everything of an agent that hasn't ended, in the caller's transaction.
func (e *Engine) cancelOpen(tx *db.Tx, agent api.AgentID, actor, code, message string) error {
	rows, err := tx.OpenOfAgent(wctx(), agent)
	if err != nil {
		return fmt.Errorf("list what is open of agent %s: %w", agent, err)
	}
	for _, r := range rows {
		// Read again: cancelling one may have cancelled its followers.
		s, err := tx.Session(wctx(), r.ID)
		if err != nil {
			return fmt.Errorf("read session %s: %w", r.ID, err)
		}
		if s.Status.Terminal() {
			continue
		}
		if err := e.cancelTx(tx, &s, actor, code, message); err != nil {
			return err
		}
	}
	return nil
}
