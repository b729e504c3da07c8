package engine

import (
	"context"
	"fmt"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// change runs a verb on a session that the caller may see, in one transaction.
func (e *Engine) change(ctx context.Context, c Caller, id api.SessionID, right account.Over, do func(*db.Tx, *sessionRow) (changed bool, err error)) (out api.Changed, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		s, err := visible(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		if err := c.MayWith(s, right); err != nil {
			return err
		}
		if out.Changed, err = do(tx, s); err != nil {
			return err
		}
		out.Session, err = e.sessionTx(tx.Context(), tx, c, id, db.Micros(tx.Now))
		return err
	})
	return out, err
}

// CancelSession ends a session at once, whatever it does; a running one's worker learns it at
// its next beat, renewal or write (contract 2.5). An ended session stays as it is and the
// answer has changed false. Errors: session_running with onlyPending, not_found, forbidden.
func (e *Engine) CancelSession(ctx context.Context, c Caller, id api.SessionID, in api.CancelInput) (api.Changed, error) {
	var v api.Invalid
	v.CheckText("reason", in.Reason, maxMessage)
	v.CheckWritten("reason", in.Reason)
	if err := v.Err(); err != nil {
		return api.Changed{}, err
	}
	return e.change(ctx, c, id, account.ToCancel, func(tx *db.Tx, s *sessionRow) (bool, error) {
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
		return true, e.cancelTx(tx, s, c.Actor(), "cancelled", reason)
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
		c, err := claimOf(tx.Context(), tx, s)
		if err != nil {
			return fmt.Errorf("read the claim of session %s: %w", s.ID, err)
		}
		if err := e.closeClaim(tx, &c, closedByCancel); err != nil {
			return err
		}
		live = &c
	}
	if _, err := e.move(tx, s, next, actor, api.EventSessionCancelled, api.EventData{"reason": message}); err != nil {
		return err
	}
	if live != nil && live.Drained != 0 {
		_, err := e.freed(tx, live)
		return err
	}
	return nil
}

// StopSession is the gentle end: a waiting session is cancelled, a running
// agent ends after its current turn, an open prompt is cancelled first
// (contract 2.5). Repeating it changes nothing.
func (e *Engine) StopSession(ctx context.Context, c Caller, id api.SessionID) (api.Changed, error) {
	return e.change(ctx, c, id, account.ToCancel, func(tx *db.Tx, s *sessionRow) (bool, error) {
		if s.Status.Terminal() || s.StopRequestedAt != 0 {
			return false, nil
		}
		if s.Status.Waiting() {
			return true, e.cancelTx(tx, s, c.Actor(), "stopped", "Stopped by "+c.Name+" before it ran.")
		}
		n, err := tx.RequestStop(tx.Context(), queries.RequestStopParams{StopRequestedAt: db.Micros(tx.Now), ID: s.ID})
		if err := db.One(n, err); err != nil {
			return false, fmt.Errorf("request the stop of session %s: %w", s.ID, err)
		}
		s.StopRequestedAt = db.Micros(tx.Now)
		if err := e.logSession(tx, s, c.Actor(), api.EventStopRequested, nil); err != nil {
			return false, err
		}
		if s.Status != api.AwaitingInput {
			return true, nil
		}
		next := *s
		if err := e.closePrompt(tx, &next, c.Actor(), "cancelled"); err != nil {
			return false, err
		}
		next.Status = api.Active
		_, err = e.move(tx, s, next, c.Actor(), api.EventSessionResumed, api.EventData{"reason": "stop"})
		return true, err
	})
}

// RetrySession makes a new session of an ended one, in the same thread, or returns the one
// that an earlier retry made if that isn't over; a stale one is queued again with its lapses
// forgotten. If the agent's mode has changed meanwhile, the new session begins a thread of its
// own. Rights: a member for their own local session, an admin for a cloud one. Errors:
// session_running, not_found, forbidden.
func (e *Engine) RetrySession(ctx context.Context, c Caller, id api.SessionID) (out api.Retried, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		out.Changed = true
		s, err := visible(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		if err := c.MayWith(s, account.ToRetry); err != nil {
			return err
		}
		switch {
		case s.Status == api.Stale:
			return e.requeue(tx, c, s, &out.Session)
		case !s.Status.Terminal():
			return &api.Error{Code: api.CodeSessionRunning, Status: s.Status, Detail: fmt.Sprintf("The session is %s; it can be retried when it has ended.", s.Status)}
		}
		a, err := agentOfEnded(tx.Context(), tx, s)
		if err != nil {
			return err
		}
		if err := c.MayTrigger(a.Mode); err != nil {
			return err // the agent's mode may have changed by now
		}
		first, err := tx.OpenRetry(tx.Context(), queries.OpenRetryParams{ThreadID: s.ThreadID, RetryOf: s.ID})
		if err == nil {
			out.Changed = false
			out.Session, err = e.present(tx.Context(), tx, &first, a, db.Micros(tx.Now))
			return err
		}
		if !db.None(err) {
			return fmt.Errorf("look for a retry of session %s: %w", s.ID, err)
		}
		again, err := e.newSession(tx, a, newSession{
			by: api.ByUser, user: c.UserID, actor: c.Actor(), at: manualTrigger(a, db.Micros(tx.Now)),
			in:      api.SessionInput{Prompt: &s.Prompt, Title: s.Title, UntrustedContext: s.UntrustedContext, Priority: &s.Priority},
			attempt: s.Attempt + 1, retryOf: s,
		})
		if err != nil {
			return err
		}
		out.Session, err = e.present(tx.Context(), tx, again, a, db.Micros(tx.Now))
		return err
	})
	return out, err
}

func (e *Engine) requeue(tx *db.Tx, c Caller, s *sessionRow, out *api.Session) error {
	next := *s
	if err := e.closePrompt(tx, &next, c.Actor(), "cancelled"); err != nil {
		return err
	}
	next.Status, next.Lapses, next.Releases, next.Tries, next.ReclaimAt, next.PlaceAt = api.Queued, 0, 0, 0, 0, 0
	if _, err := e.move(tx, s, next, c.Actor(), api.EventSessionQueued, api.EventData{"reason": "retry"}); err != nil {
		return err
	}
	shown, err := e.sessionTx(tx.Context(), tx, c, s.ID, db.Micros(tx.Now))
	*out = shown
	return err
}

// ArchiveSession hides an ended session from lists. Repeating it changes nothing.
func (e *Engine) ArchiveSession(ctx context.Context, c Caller, id api.SessionID) (api.Changed, error) {
	return e.change(ctx, c, id, account.ToArchive, func(tx *db.Tx, s *sessionRow) (bool, error) {
		if !s.Status.Terminal() {
			return false, &api.Error{Code: api.CodeConflict, Status: s.Status, Detail: fmt.Sprintf("Only an ended session can be archived; this one is %s.", s.Status)}
		}
		n, err := tx.SetArchived(tx.Context(), queries.SetArchivedParams{ArchivedAt: db.Micros(tx.Now), ID: s.ID})
		if err != nil || n == 0 {
			return false, err
		}
		return true, e.logSession(tx, s, c.Actor(), api.EventSessionArchived, nil)
	})
}

// KeepSession has retention leave a session and its conversation alone, or no more. Repeating it
// changes nothing. Errors: not_found, gone, forbidden.
func (e *Engine) KeepSession(ctx context.Context, c Caller, id api.SessionID, keep bool) (api.Changed, error) {
	return e.change(ctx, c, id, account.ToKeep, func(tx *db.Tx, s *sessionRow) (bool, error) {
		if keep == (s.KeptAt != 0) {
			return false, nil
		}
		at, kind := int64(0), api.EventSessionLetGo
		if keep {
			at, kind = db.Micros(tx.Now), api.EventSessionKept
		}
		if err := db.One(tx.SetKept(tx.Context(), queries.SetKeptParams{KeptAt: at, ID: s.ID})); err != nil {
			return false, fmt.Errorf("keep session %s: %w", s.ID, err)
		}
		return true, e.logSession(tx, s, c.Actor(), kind, nil)
	})
}

// cancelOpen cancels everything of an agent that hasn't ended, in the caller's transaction.
func (e *Engine) cancelOpen(tx *db.Tx, agent api.AgentID, actor, code, message string) error {
	rows, err := tx.OpenOfAgent(tx.Context(), agent)
	if err != nil {
		return fmt.Errorf("list what is open of agent %s: %w", agent, err)
	}
	for _, r := range rows {
		// Read again: cancelling one may have cancelled its followers.
		s, err := tx.Session(tx.Context(), r.ID)
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

// agentOfEnded reads the agent of a session that somebody who may see it wants to continue.
// Errors: conflict when the agent was deleted.
func agentOfEnded(ctx context.Context, q queries.Querier, s *sessionRow) (*agentRow, error) {
	a, err := agentEvenDeleted(ctx, q, s.AgentID)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	if a.DeletedAt != 0 {
		return nil, &api.Error{Code: api.CodeConflict, Status: s.Status, Detail: "The session's agent was deleted: nothing is there that could run it again. Make a new agent and give it this prompt."}
	}
	return &a, nil
}
