package engine

import (
	"bytes"
	"context"
	"fmt"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// How a claim was closed, as its row stores it.
const (
	closedByComplete = "complete"
	closedByFail     = "fail"
	closedByRelease  = "release"
	closedByLapse    = "lapse"
	closedByOffline  = "offline"
	closedByDeletion = "deleted"
	closedByCancel   = "cancel"
	closedByRestore  = "restore"
)

const (
	maxResult  = 256 << 10 // bytes
	maxMessage = 4 << 10   // bytes
	maxCode    = 64        // characters
)

// Complete closes the claim and its session well. Repeating the call gets the same answer;
// another outcome is outcome_conflict; after a cancel or a lapse it is claim_not_active
// (contract 4.5).
func (e *Engine) Complete(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.CompleteRequest) (api.Finished, error) {
	var v api.Invalid
	mended(&in.Result)
	v.CheckText("result", in.Result, maxResult)
	v.CheckText("outcome", in.Outcome, maxCode)
	v.CheckLine("outcome", in.Outcome)
	checkUsage(&v, in.Usage)
	if err := v.Err(); err != nil {
		return api.Finished{}, err
	}
	hash, err := completeHash(in)
	if err != nil {
		return api.Finished{}, err
	}
	return e.finish(ctx, c, worker, session, finish{
		verb: closedByComplete, proof: in.UnderClaim, hash: hash, usage: in.Usage, next: in.ClaimNext,
		event: api.EventSessionComplete,
		apply: func(tx *db.Tx, h held, next *sessionRow) (api.EventData, error) {
			next.Status, next.Result, next.Outcome = api.Complete, in.Result, completed(next, in.Outcome)
			return nil, nil
		},
	})
}

// Fail closes the claim and its session in error. Repetition as for [Engine.Complete].
func (e *Engine) Fail(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.FailRequest) (api.Finished, error) {
	var v api.Invalid
	mended(&in.Result, &in.Message)
	v.CheckText("result", in.Result, maxResult)
	v.CheckText("message", in.Message, maxMessage)
	v.CheckText("code", in.Code, maxCode)
	v.CheckLine("code", in.Code)
	checkUsage(&v, in.Usage)
	if in.Code == "" {
		v.Add("code", "is missing: name what went wrong, such as AGENT_EXIT_NONZERO")
	}
	if err := v.Err(); err != nil {
		return api.Finished{}, err
	}
	hash, err := failHash(in)
	if err != nil {
		return api.Finished{}, err
	}
	return e.finish(ctx, c, worker, session, finish{
		verb: closedByFail, proof: in.UnderClaim, hash: hash, usage: in.Usage, next: in.ClaimNext,
		event: api.EventSessionError,
		apply: func(tx *db.Tx, h held, next *sessionRow) (api.EventData, error) {
			next.Status, next.Result, next.ErrorCode, next.ErrorMessage = api.Failed, in.Result, in.Code, in.Message
			return api.EventData{"code": in.Code}, nil
		},
	})
}

// Release gives the session back undone: to queued, or to pending when it carries notBefore or
// parks on an open prompt. While a stop is requested it cancels (contract 2.3). A session that
// is given back again and again rests ever longer, and finally ends in error (contract 10.11).
func (e *Engine) Release(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ReleaseRequest) (api.Finished, error) {
	var v api.Invalid
	mended(&in.Reason)
	v.CheckText("reason", in.Reason, maxMessage)
	if err := v.Err(); err != nil {
		return api.Finished{}, err
	}
	hash, err := releaseHash(in)
	if err != nil {
		return api.Finished{}, err
	}
	return e.finish(ctx, c, worker, session, finish{
		verb: closedByRelease, proof: in.UnderClaim, hash: hash, next: in.ClaimNext, event: api.EventSessionReleased,
		keepPrompt: in.Park,
		apply: func(tx *db.Tx, h held, next *sessionRow) (api.EventData, error) {
			data := api.EventData{"reason": in.Reason}
			switch {
			case next.StopRequestedAt != 0:
				next.Status, next.Outcome = api.Cancelled, api.OutcomeStopped
				next.ErrorCode, next.ErrorMessage = "stopped", "It was asked to stop and its worker gave it back."
				return data, e.closePrompt(tx, next, h.actor(), "cancelled")
			case in.Park && next.PromptID == 0:
				return nil, api.Refuse(api.CodeConflict, "There is no open prompt to park on.")
			case in.Park, db.Micros(in.NotBefore.Time) > db.Micros(tx.Now):
				next.Status = api.Pending
				next.NotBefore = api.Micros(in.NotBefore.Time)
				if next.NotBefore > db.Micros(tx.Now) {
					next.AdmitAt, next.PlaceAt = next.NotBefore, 0
					tx.AfterCommit(e.admit.Wake)
				}
			default:
				next.Status = api.Queued
			}
			if next.AgentSessionID != "" {
				next.AffinityUntil = db.Micros(tx.Now) + db.Span(e.cfg.AffinityWait)
			}
			switch {
			case in.Park:
				next.Releases = 0
				return data, nil
			case in.Named && next.NotBefore >= db.Micros(tx.Now)+db.Span(longestPause):
				return data, nil // it waits for something known to come
			}
			return data, e.givenBack(tx, h, next, in.Reason, data)
		},
	})
}

// finish is what complete, fail and release share.
type finish struct {
	verb       string
	proof      api.UnderClaim
	hash       []byte // what makes a call a repetition of another
	usage      *api.Usage
	next       *api.ClaimNextOf
	event      string
	keepPrompt bool
	apply      func(tx *db.Tx, h held, next *sessionRow) (api.EventData, error)
}

func (e *Engine) finish(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, f finish) (api.Finished, error) {
	if c.Run != nil {
		return api.Finished{}, account.UserTokenRequired("")
	}
	var out api.Finished
	err := e.writeAs(ctx, c, func(tx *db.Tx) error {
		out = api.Finished{}
		h, err := e.claimOf(tx, c, worker, session, f.proof)
		if err != nil {
			return err
		}
		repeated, err := e.finishedBefore(tx, h, f)
		switch {
		case err != nil:
			return err
		case repeated:
			out.Session, err = e.sessionTx(tx.Context(), tx, c, session, db.Micros(tx.Now))
		default:
			out.Session, err = e.finishTx(tx, c, h, f)
		}
		if err != nil {
			return err
		}
		out.ServerTime = api.At(db.Micros(tx.Now))
		if f.next == nil {
			return nil
		}
		out.Claim, _, err = e.claimNextTx(tx, c, api.ClaimNextRequest{
			WorkerIDs: f.next.WorkerIDs, RequestID: f.next.RequestID, InstanceID: f.proof.InstanceID,
		}, 0)
		if api.CodeOf(err) != "" {
			return nil // the finish stands, whatever is wrong with what came with it
		}
		return err
	})
	return out, err
}

// finishedBefore looks up the claim first: the same verb and body again gets the same answer,
// another outcome is a conflict (contract 4.5).
func (e *Engine) finishedBefore(tx *db.Tx, h held, f finish) (bool, error) {
	switch h.claim.ClosedBy {
	case "":
		if h.claim.ExpiresAt <= db.Micros(tx.Now) {
			return false, e.notActive(tx, h.s)
		}
		return false, nil
	case closedByComplete, closedByFail, closedByRelease:
		if bytes.Equal(f.hash, h.claim.FinishHash) {
			return true, nil
		}
		return false, &api.Error{
			Code: api.CodeOutcomeConflict, Status: h.s.Status,
			Detail: fmt.Sprintf("This claim was already finished by %s with another outcome; %s changes nothing.", h.claim.ClosedBy, f.verb),
		}
	}
	return false, e.notActive(tx, h.s)
}

func (e *Engine) finishTx(tx *db.Tx, c Caller, h held, f finish) (api.Session, error) {
	if f.usage != nil {
		if err := e.reportUsage(tx, h.s, *f.usage); err != nil {
			return api.Session{}, err
		}
	}
	next := *h.s
	if !f.keepPrompt {
		if err := e.closePrompt(tx, &next, h.actor(), "cancelled"); err != nil {
			return api.Session{}, err
		}
	}
	next.ClaimID = 0
	data, err := f.apply(tx, h, &next)
	if err != nil {
		return api.Session{}, err
	}
	now := db.Micros(tx.Now)
	err = db.One(tx.CloseClaim(tx.Context(), queries.CloseClaimParams{
		ClosedAt: now, ClosedBy: f.verb, FinishHash: f.hash, Drained: 1, ID: h.claim.ID,
	}))
	if err != nil {
		return api.Session{}, fmt.Errorf("close claim %s: %w", h.claim.ID, err)
	}
	kind := f.event
	switch next.Status {
	case api.Cancelled:
		kind = api.EventSessionCancelled
	case api.Failed:
		kind = api.EventSessionError
	}
	moved, err := e.move(tx, h.s, next, h.actor(), kind, data)
	if err != nil {
		return api.Session{}, err
	}
	slug, err := e.freed(tx, h.claim)
	if err != nil {
		return api.Session{}, err
	}
	if moved.Status.Waiting() {
		return e.sessionTx(tx.Context(), tx, c, moved.ID, now)
	}
	return toSession(moved, slug), nil
}

// freed returns the agent's slot after a claim is closed and drained, and lets what waited for
// it continue. It returns the agent's slug.
func (e *Engine) freed(tx *db.Tx, c *claimRow) (slug string, err error) {
	agent := c.AgentID
	a, err := agentEvenDeleted(tx.Context(), tx, agent)
	if err != nil {
		return "", fmt.Errorf("read agent %s: %w", agent, err)
	}
	if err := tx.FreeAgentSlot(agent); err != nil && a.Slug != gone {
		return "", fmt.Errorf("free a slot of agent %s: %w", agent, err)
	}
	e.offerFreed(c)
	if a.Overlap != api.OverlapAllow { // under skip, what waits because of an earlier rule
		return a.Slug, e.admitHeld(tx, agent)
	}
	return a.Slug, nil
}

// closeClaim closes a live claim whose processes may still be there: it counts as drained when
// its worker says so, or when the worker must have ended them by its own clock: at the lease's
// end or offlineAfter after the last beat (contract 2.5).
func (e *Engine) closeClaim(tx *db.Tx, c *claimRow, by string) error {
	if c.ClosedAt != 0 { // it is missing, or was closed meanwhile
		return nil
	}
	w, err := workerEvenDeleted(tx.Context(), tx, c.WorkerID)
	if err != nil {
		return fmt.Errorf("read worker %s: %w", c.WorkerID, err)
	}
	now := db.Micros(tx.Now)
	drainBy := min(c.ExpiresAt, w.LastBeatAt+db.Seconds(c.OfflineAfter))
	if by == closedByRestore {
		drainBy = now + db.Seconds(c.OfflineAfter) // it may have been renewed since the backup
	}
	drained := drainBy <= now
	err = db.One(tx.CloseClaim(tx.Context(), queries.CloseClaimParams{
		ClosedAt: now, ClosedBy: by, FinishHash: []byte{}, Drained: db.Flag(drained), DrainBy: drainBy, ID: c.ID,
	}))
	if err != nil {
		return fmt.Errorf("close claim %s: %w", c.ID, err)
	}
	c.ClosedAt, c.ClosedBy, c.Drained = now, by, db.Flag(drained)
	if !drained {
		tx.AfterCommit(e.lapse.Wake)
	}
	return nil
}

// drained notes that nothing of a closed claim runs any more.
func (e *Engine) drained(tx *db.Tx, c *claimRow, actor string) error {
	if err := db.One(tx.DrainClaim(tx.Context(), c.ID)); err != nil {
		return fmt.Errorf("drain claim %s: %w", c.ID, err)
	}
	err := tx.Log(db.Event{Session: c.SessionID, Actor: actor, Type: api.EventClaimDrained})
	if err != nil {
		return err
	}
	_, err = e.freed(tx, c)
	return err
}

// KeepLateResult keeps the result of a former holder whose session went on without it, visible
// on the thread and not applied (contract 10.8). Only the owner of the claim's own worker may;
// repeated with the same claim it adds no second result. Errors: claim_not_active, not_found,
// conflict while the claim holds, outcome_conflict when its own finish was applied.
func (e *Engine) KeepLateResult(ctx context.Context, c Caller, thread api.ThreadID, in api.CompleteRequest) error {
	if in.ClaimID.IsZero() {
		return &api.Error{
			Code: api.CodeClaimRequired, Detail: "A late result names the claim it was made under.",
			Fields: []api.FieldError{{Field: "claimId", Detail: "is missing"}},
		}
	}
	var v api.Invalid
	mended(&in.Result)
	v.CheckText("result", in.Result, maxResult)
	v.CheckText("outcome", in.Outcome, maxCode)
	v.CheckLine("outcome", in.Outcome)
	if err := v.Err(); err != nil {
		return err
	}
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		cl, err := tx.Claim(tx.Context(), in.ClaimID.Key)
		if db.None(err) || (err == nil && (!proves(in.ClaimID, &cl) || cl.ThreadID != thread)) {
			return api.Refuse(api.CodeClaimNotActive, "No claim of this thread has that id.")
		}
		if err != nil {
			return fmt.Errorf("read a claim: %w", err)
		}
		s, err := visible(tx.Context(), tx, c, cl.SessionID)
		if err != nil {
			return err
		}
		w, err := workerEvenDeleted(tx.Context(), tx, cl.WorkerID)
		if err != nil {
			return fmt.Errorf("read worker %s: %w", cl.WorkerID, err)
		}
		if !actsAs(c, &w) {
			return db.NotFound("thread")
		}
		switch cl.ClosedBy {
		case "":
			return api.Refuse(api.CodeConflict, "This claim is live: complete the session instead.")
		case closedByComplete, closedByFail, closedByRelease:
			return &api.Error{
				Code: api.CodeOutcomeConflict, Status: s.Status,
				Detail: fmt.Sprintf("This claim was finished by %s, which was applied: it has no late result.", cl.ClosedBy),
			}
		}
		n, err := tx.InsertLateResult(tx.Context(), queries.InsertLateResultParams{
			ID: tx.NewID(), ClaimID: cl.ID, SessionID: s.ID, Verb: in.Outcome, Result: in.Result, At: db.Micros(tx.Now),
		})
		if err != nil || n == 0 {
			return err
		}
		if err := e.addItem(tx, queries.InsertItemParams{SessionID: s.ID, Kind: api.ItemLateResult, Text: in.Result, ClientID: "late-" + cl.ID.String()}); err != nil {
			return err
		}
		return e.logSession(tx, s, w.ID.String(), api.EventLateResult, api.EventData{"outcome": in.Outcome})
	})
}
