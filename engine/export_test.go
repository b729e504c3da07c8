package engine

import (
	"context"
	"errors"
	"runtime"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// errUndo makes a write undo itself.
var errUndo = errors.New("undone on purpose")

// TryClaim answers what Claim would, and takes everything back.
func (e *Engine) TryClaim(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ClaimRequest) (refusal, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		_, refusal, err = e.claimIn(tx, c, worker, session, in)
		if err != nil {
			return err
		}
		return errUndo
	})
	if errors.Is(err, errUndo) {
		err = nil
	}
	return refusal, err
}

// TryClaimNext answers the session that ClaimNext would grant, and takes everything back.
func (e *Engine) TryClaimNext(ctx context.Context, c Caller, in api.ClaimNextRequest) (got api.SessionID, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		out, _, err := e.claimNextTx(tx, c, in)
		if err != nil {
			return err
		}
		if got = 0; out != nil {
			got = out.SessionID
		}
		return errUndo
	})
	if errors.Is(err, errUndo) {
		err = nil
	}
	return got, err
}

// CreateBoth makes a session of each of two agents in one transaction, the second
// with a higher priority.
func (e *Engine) CreateBoth(ctx context.Context, c Caller, first, second string) error {
	return e.write(ctx, func(tx *db.Tx) error {
		for i, ref := range []string{first, second} {
			priority := int64(i)
			if _, _, err := e.createTx(tx, c, ref, api.SessionInput{Priority: &priority}, Idempotency{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Promises are the names of the rules that Check looks at.
func Promises() (names []string) {
	for _, p := range promises {
		names = append(names, p.rule)
	}
	return append(names, ruleReplay)
}

// The verbs below have planted defects, so that the checkers of histories can be
// seen to fail.

// ClaimLookThenAct looks in one transaction and grants in another without
// looking again, over whoever holds the session by then.
func (e *Engine) ClaimLookThenAct(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ClaimRequest) (out api.Claim, err error) {
	var seen sessionRow
	err = e.store.Read(ctx, func(tx *db.ReadTx) (err error) {
		seen, err = tx.Session(ctx, session)
		return err
	})
	if err != nil || !seen.Status.Waiting() {
		return e.Claim(ctx, c, worker, session, in)
	}
	runtime.Gosched()
	err = e.write(ctx, func(tx *db.Tx) error {
		w, err := tx.Worker(wctx(), worker)
		if err != nil {
			return err
		}
		s, err := tx.Session(wctx(), session)
		if err != nil {
			return err
		}
		a, err := tx.Agent(wctx(), s.AgentID)
		if err != nil {
			return err
		}
		if s.Status.Terminal() {
			return api.Refuse(api.CodeSessionTerminal, "It has ended.")
		}
		term, err := e.term(in.LeaseSeconds, &a)
		if err != nil {
			return err
		}
		if s.ClaimID != 0 {
			live, err := tx.Claim(wctx(), s.ClaimID)
			if err != nil {
				return err
			}
			live.ExpiresAt = micros(tx.Now)
			if _, err := e.lapseClaim(tx, &live, &s, &a, closedByLapse); err != nil {
				return err
			}
			if s, err = tx.Session(wctx(), session); err != nil {
				return err
			}
		}
		out, err = e.grant(tx, &w, &s, &a, term, "", false)
		return err
	})
	return out, err
}

// RenewEvenLapsed renews a claim whose lease is over, as long as nobody has
// closed it.
func (e *Engine) RenewEvenLapsed(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.RenewRequest) (out api.Lease, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		h, err := e.claimOf(tx, c, worker, session, in.UnderClaim)
		if err != nil {
			return err
		}
		now := micros(tx.Now)
		switch {
		case h.claim.ClosedAt != 0:
			return e.notActive(tx, h.s)
		case h.claim.ExpiresAt <= now:
			h.claim.ExpiresAt = now + seconds(h.claim.LeaseSeconds)
			if _, err := tx.GraceClaims(wctx(), queries.GraceClaimsParams{Until: h.claim.ExpiresAt, Now: now}); err != nil {
				return err
			}
		default:
			if err := renewTo(tx, h.claim, now+seconds(h.claim.LeaseSeconds), now); err != nil {
				return err
			}
		}
		out = h.lease(now)
		return nil
	})
	return out, err
}

// CompleteUnderAny completes a session under whatever claim it has.
func (e *Engine) CompleteUnderAny(ctx context.Context, c Caller, session api.SessionID) (api.Finished, error) {
	var live claimRow
	err := e.store.Read(ctx, func(tx *db.ReadTx) (err error) {
		live, err = tx.LiveClaimOf(ctx, session)
		return err
	})
	if none(err) {
		return api.Finished{}, api.Refuse(api.CodeClaimNotActive, "Nobody holds it.")
	}
	if err != nil {
		return api.Finished{}, err
	}
	return e.Complete(ctx, c, live.WorkerID, session, api.CompleteRequest{UnderClaim: api.UnderClaim{ClaimID: claimID(&live), InstanceID: live.InstanceID}, Result: "done"})
}
