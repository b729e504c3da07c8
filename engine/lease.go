package engine

import (
	"context"
	"crypto/subtle"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// renewSlack saves a write when a renewal would move the expiry by less.
const renewSlack = int64(time.Second / time.Microsecond)

// held is a claim of the caller's worker and the session it is on.
type held struct {
	claim *claimRow
	s     *sessionRow
}

// actor names the worker in events.
func (h held) actor() string { return h.claim.WorkerID.String() }

// proves reports whether an id is that of the claim, including the secret part.
func proves(id api.ClaimID, c *claimRow) bool {
	return id.Key == c.ID && subtle.ConstantTimeCompare(id.Secret[:], c.Secret) == 1
}

// underClaim checks every write to a claimed session (contract 4.3): a missing claim id is
// claim_required; an unknown, lapsed, closed or another session's is claim_not_active with
// status and holder, and changes nothing.
func (e *Engine) underClaim(tx *db.Tx, c Caller, worker api.WorkerID, session api.SessionID, proof api.UnderClaim) (held, error) {
	h, err := e.claimOf(tx, c, worker, session, proof)
	if err != nil {
		return held{}, err
	}
	if h.claim.ClosedAt != 0 || h.claim.ExpiresAt <= db.Micros(tx.Now) {
		return held{}, e.notActive(tx, h.s)
	}
	return h, nil
}

// claimOf finds the claim that the proof names, live or not. The claim's row holds everything
// that its holder must match; the worker is read only to refuse.
func (e *Engine) claimOf(tx *db.Tx, c Caller, worker api.WorkerID, session api.SessionID, proof api.UnderClaim) (held, error) {
	if c.Run != nil {
		var err error
		if proof, err = runProof(c.Run, worker, session, proof); err != nil {
			return held{}, err
		}
	}
	s, err := visibleAtWork(tx.Context(), tx, c, session)
	if err != nil {
		return held{}, err
	}
	row, err := tx.Claim(tx.Context(), proof.ClaimID.Key)
	if err != nil && !db.None(err) {
		return held{}, fmt.Errorf("read a claim: %w", err)
	}
	mine := err == nil && proves(proof.ClaimID, &row) && row.SessionID == s.ID && row.WorkerID == worker
	if mine && row.InstanceID == proof.InstanceID && (s.Mode == api.Local || c.Role.AtLeast(api.Admin) || c.Run != nil) {
		return held{&row, s}, nil
	}
	w, err := workerOf(tx.Context(), tx, c, worker)
	if err != nil {
		return held{}, err
	}
	if err := sameInstance(w, proof.InstanceID); err != nil {
		return held{}, err
	}
	if s.AgentID != w.AgentID {
		return held{}, db.NotFound("session")
	}
	if proof.ClaimID.IsZero() {
		return held{}, &api.Error{
			Code: api.CodeClaimRequired, Detail: "Every write to a claimed session carries the claim's id.",
			Fields: []api.FieldError{{Field: "claimId", Detail: "is missing: send the claimId that the claim answered"}},
		}
	}
	if mine {
		// A claim of the process before, closed when this one registered.
		return held{&row, s}, nil
	}
	return held{}, e.notActive(tx, s)
}

// notActive is the 409 for a claim that isn't the live one: it names the session's status and
// who holds it now.
func (e *Engine) notActive(tx *db.Tx, s *sessionRow) error {
	out := &api.Error{Code: api.CodeClaimNotActive, Status: s.Status, Detail: fmt.Sprintf("This claim is not the session's live one; the session is %s.", s.Status)}
	live, err := tx.LiveClaimOf(tx.Context(), s.ID)
	if db.None(err) || (err == nil && live.ExpiresAt <= db.Micros(tx.Now)) {
		return out
	}
	if err != nil {
		return fmt.Errorf("read the live claim of session %s: %w", s.ID, err)
	}
	if out.Holder, err = holderOf(tx, &live); err != nil {
		return err
	}
	out.WorkerID, out.ExpiresAt = live.WorkerID, api.At(live.ExpiresAt)
	return out
}

// renewedUntil is where a renewal moves the end of a lease: now + its length, never earlier
// than it is. Leases of sessions and of tasks share it, and the next two (contract 7.2).
func renewedUntil(until, seconds, now int64) int64 { return max(until, now+db.Seconds(seconds)) }

// extendedUntil is where an extension moves the end of a lease: at most to now + the longest,
// which it says, and never earlier than it is.
func extendedUntil(until, add, now int64, longest time.Duration) (int64, bool) {
	ceiling := now + db.Span(longest)
	if add <= int64(longest/time.Second) && until+db.Seconds(add) <= ceiling {
		return until + db.Seconds(add), false
	}
	return max(until, ceiling), true
}

// boundLease applies the bounds of a lease's length in seconds: above the longest it is
// capped, below the shortest refused. why adds to the refusal whence the shortest comes.
func boundLease(asked, least, most int64, why string) (term, error) {
	switch {
	case asked < least:
		return term{}, &api.Error{
			Code: api.CodeInvalidLease, Detail: fmt.Sprintf("The lease is too short: at least %d seconds%s.", least, why),
			Fields: []api.FieldError{{Field: "leaseSeconds", Detail: fmt.Sprintf("must be a whole number of seconds from %d to %d", least, most)}},
		}
	case asked > most:
		return term{seconds: most, capped: true}, nil
	}
	return term{seconds: asked}, nil
}

// checkExtension refuses an extension that stretches nothing.
func checkExtension(add int64) error {
	if add >= 1 {
		return nil
	}
	return &api.Error{
		Code: api.CodeInvalidLease, Detail: "The extension must be at least one second.",
		Fields: []api.FieldError{{Field: "addSeconds", Detail: "must be a whole number of seconds, 1 or more"}},
	}
}

// renewTo moves a live lease's end forward; it never shortens it.
func renewTo(tx *db.Tx, c *claimRow, until, now int64) error {
	if until <= c.ExpiresAt {
		return nil
	}
	err := db.One(tx.RenewClaim(tx.Context(), queries.RenewClaimParams{Now: now, ExpiresAt: until, ID: c.ID}))
	if err != nil {
		return fmt.Errorf("renew claim %s: %w", c.ID, err)
	}
	c.ExpiresAt, c.RenewedAt = until, now
	return nil
}

// writeUnder is writeAs for the worker that holds a session, and renews its lease.
func (e *Engine) writeUnder(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, proof api.UnderClaim, fn func(tx *db.Tx, h held) error) error {
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		h, err := e.underClaim(tx, c, worker, session, proof)
		if err != nil {
			return err
		}
		if err := touch(tx, h.claim); err != nil {
			return err
		}
		return fn(tx, h)
	})
}

// touch renews on any accepted write (contract 4.4).
func touch(tx *db.Tx, c *claimRow) error {
	now := db.Micros(tx.Now)
	until := renewedUntil(c.ExpiresAt, c.LeaseSeconds, now)
	if until-c.ExpiresAt < renewSlack {
		return nil
	}
	return renewTo(tx, c, until, now)
}

func (h held) lease(now int64) api.Lease {
	return api.Lease{
		ClaimID: claimID(h.claim), LeaseExpiresAt: api.At(h.claim.ExpiresAt), ServerTime: api.At(now),
		StopRequested: h.s.StopRequestedAt != 0,
	}
}

// Renew sets the lease's end to now + its length, never shorter. Errors:
// claim_required, claim_not_active.
func (e *Engine) Renew(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.RenewRequest) (out api.Lease, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		h, err := e.underClaim(tx, c, worker, session, in.UnderClaim)
		if err != nil {
			return err
		}
		now := db.Micros(tx.Now)
		if err := renewTo(tx, h.claim, renewedUntil(h.claim.ExpiresAt, h.claim.LeaseSeconds, now), now); err != nil {
			return err
		}
		out = h.lease(now)
		return nil
	})
	return out, err
}

// Extend stretches the lease by in.AddSeconds for a known idle gap. Past now + the maximum it
// is capped and says so; it never shortens (contract 4.4).
func (e *Engine) Extend(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ExtendRequest) (out api.Lease, err error) {
	if err := checkExtension(in.AddSeconds); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		h, err := e.underClaim(tx, c, worker, session, in.UnderClaim)
		if err != nil {
			return err
		}
		now := db.Micros(tx.Now)
		until, capped := extendedUntil(h.claim.ExpiresAt, in.AddSeconds, now, e.cfg.MaxLease)
		if err := renewTo(tx, h.claim, until, now); err != nil {
			return err
		}
		if err := e.logSession(tx, h.s, h.actor(), api.EventLeaseExtended, api.EventData{"until": api.At(h.claim.ExpiresAt).String()}); err != nil {
			return err
		}
		out = h.lease(now)
		if capped {
			out.CappedToMax, out.MaxLeaseSeconds = true, int64(e.cfg.MaxLease/time.Second)
		}
		return nil
	})
	return out, err
}
