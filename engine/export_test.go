package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// errUndo makes a write undo itself.
var errUndo = errors.New("undone on purpose")

// TryClaim returns what Claim would, and undoes everything.
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

// TryClaimNext returns the session that ClaimNext would grant, and undoes everything.
func (e *Engine) TryClaimNext(ctx context.Context, c Caller, in api.ClaimNextRequest) (got api.SessionID, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		out, _, err := e.claimNextTx(tx, c, in, 0)
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

// Promises are the names of the rules that Check checks.
func Promises() (names []string) {
	for _, p := range promises {
		names = append(names, p.rule)
	}
	return append(names, ruleReplay)
}

// The hashes by which a repeated finish is known.
var (
	CompleteHash = completeHash
	FailHash     = failHash
	ReleaseHash  = releaseHash
)

// The verbs below have planted defects, so that the checkers of histories can be seen to fail.

// ClaimLookThenAct looks in one transaction and grants in another without looking again, over
// whoever holds the session by then.
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
		w, err := tx.Worker(tx.Context(), worker)
		if err != nil {
			return err
		}
		s, err := tx.Session(tx.Context(), session)
		if err != nil {
			return err
		}
		a, err := tx.Agent(tx.Context(), s.AgentID)
		if err != nil {
			return err
		}
		if s.Status.Terminal() {
			return api.Refuse(api.CodeSessionTerminal, "It has ended.")
		}
		term, err := e.term(in.LeaseSeconds, &a, &w)
		if err != nil {
			return err
		}
		if s.ClaimID != 0 {
			live, err := tx.Claim(tx.Context(), s.ClaimID)
			if err != nil {
				return err
			}
			live.ExpiresAt = db.Micros(tx.Now)
			if _, err := e.lapseClaim(tx, &live, &s, &a, closedByLapse); err != nil {
				return err
			}
			if s, err = tx.Session(tx.Context(), session); err != nil {
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
		now := db.Micros(tx.Now)
		switch {
		case h.claim.ClosedAt != 0:
			return e.notActive(tx, h.s)
		case h.claim.ExpiresAt <= now:
			h.claim.ExpiresAt = now + db.Seconds(h.claim.LeaseSeconds)
			if _, err := tx.GraceClaims(tx.Context(), queries.GraceClaimsParams{Until: h.claim.ExpiresAt, Now: now}); err != nil {
				return err
			}
		default:
			if err := renewTo(tx, h.claim, now+db.Seconds(h.claim.LeaseSeconds), now); err != nil {
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
	if db.None(err) {
		return api.Finished{}, api.Refuse(api.CodeClaimNotActive, "Nobody holds it.")
	}
	if err != nil {
		return api.Finished{}, err
	}
	return e.Complete(ctx, c, live.WorkerID, session, api.CompleteRequest{UnderClaim: api.UnderClaim{ClaimID: claimID(&live), InstanceID: live.InstanceID}, Result: "done"})
}

// ClaimTaskLookThenAct looks in one transaction and takes the task in another without looking
// again, over whoever holds it by then.
func (e *Engine) ClaimTaskLookThenAct(ctx context.Context, c Caller, ref string, in api.TaskClaimInput) (out api.TaskHeld, err error) {
	seen, err := e.Task(ctx, c, ref)
	if err != nil || seen.Lease != nil {
		return e.ClaimTask(ctx, c, ref, in)
	}
	runtime.Gosched()
	out.Task, out.ServerTime, err = e.onTask(ctx, c, ref, func(tx *db.Tx, t *taskRow) error {
		endTaskLease(t)
		got, err := e.takeTask(tx, c, t, in.LeaseSeconds)
		if err == nil && got.from != nil {
			out.TookOverFrom, err = whoIs(tx.Context(), tx, *got.from)
		}
		return err
	})
	return out, err
}

// Looks counts how often held requests for work looked for some.
func (e *Engine) Looks() uint64 {
	e.waiters.mu.Lock()
	defer e.waiters.mu.Unlock()
	return e.waiters.joins
}

// Measure is what the loop does that measures the size of the database.
func (e *Engine) Measure(ctx context.Context) error { return e.measure(ctx) }

// HubReads counts the reads that were made for live streams.
func (e *Engine) HubReads() int {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	return e.hub.reads
}

// HubQueue is how many events may wait for a slow stream.
const HubQueue = hubQueue

// Queued is how many events wait for the stream.
func (s *Stream) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

// At is the event up to which the stream was taken.
func (s *Stream) At() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// EventTypes are the types of events.
func EventTypes() []string { return slices.Clone(api.EventTypes) }

// Classified reports whether it is defined what a type of event is about.
func Classified(kind string) bool { return about[kind] != aboutNothing }
