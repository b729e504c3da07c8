package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// Claim grants the worker the claim on one session, or says who has it and until when. The
// same worker instance claiming again gets its own claim renewed (contract 4.1, 4.2). Errors:
// already_claimed, not_ready, worker_not_eligible, session_terminal, invalid_lease,
// instance_superseded, not_found.
func (e *Engine) Claim(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ClaimRequest) (api.Claim, error) {
	var out api.Claim
	var refusal error
	err := e.writeAs(ctx, c, func(tx *db.Tx) error {
		var err error
		out, refusal, err = e.claimIn(tx, c, worker, session, in)
		return err
	})
	if err != nil {
		return api.Claim{}, err
	}
	return out, refusal
}

// claimIn is Claim in a transaction. A refusal is a value, so that a lapse found on the way is
// kept (contract 4.1); an error undoes everything.
func (e *Engine) claimIn(tx *db.Tx, c Caller, worker api.WorkerID, session api.SessionID, in api.ClaimRequest) (out api.Claim, refusal, err error) {
	w, err := workerOf(tx.Context(), tx, c, worker)
	if err != nil {
		return out, nil, err
	}
	if err := sameInstance(w, in.InstanceID); err != nil {
		return out, nil, err
	}
	s, err := visibleAtWork(tx.Context(), tx, c, session)
	if err != nil {
		return out, nil, err
	}
	if s.AgentID != w.AgentID {
		return out, nil, db.NotFound("session")
	}
	a, err := agentEvenDeleted(tx.Context(), tx, s.AgentID)
	if err != nil {
		return out, nil, fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	term, err := e.term(in.LeaseSeconds, &a, w)
	if err != nil {
		return out, nil, err
	}
	return e.claimTx(tx, c, w, s, &a, term, in)
}

func (e *Engine) claimTx(tx *db.Tx, c Caller, w *workerRow, s *sessionRow, a *agentRow, term term, in api.ClaimRequest) (out api.Claim, refusal, err error) {
	now := db.Micros(tx.Now)
	if s.Status.Running() {
		live, err := claimOf(tx.Context(), tx, s)
		if err != nil {
			return out, nil, fmt.Errorf("read the claim of session %s: %w", s.ID, err)
		}
		if live.ExpiresAt > now {
			if live.WorkerID == w.ID && live.InstanceID == w.InstanceID {
				out, err := e.reclaim(tx, &live, s, a, term)
				return out, nil, err
			}
			refusal, err := e.alreadyClaimed(tx, c, s, &live)
			return out, refusal, err
		}
		if s, err = e.lapseClaim(tx, &live, s, a, closedByLapse); err != nil {
			return out, nil, err
		}
	}
	if s.Status.Terminal() {
		return out, &api.Error{Code: api.CodeSessionTerminal, Status: s.Status, Detail: fmt.Sprintf("The session has ended: it is %s.", s.Status)}, nil
	}
	if s.Status == api.Pending {
		// Its time may have come before the timer got to it.
		if s, err = e.admitNow(tx, s); err != nil {
			return out, nil, err
		}
	}
	exempt, err := finishesOwn(tx, s, w, in.FinishOf)
	if err != nil {
		return out, nil, err
	}
	f, err := loadFacts(tx.Context(), tx, s, a)
	if err != nil {
		return out, nil, fmt.Errorf("read the gates of session %s: %w", s.ID, err)
	}
	wf, err := loadWorker(tx.Context(), tx, w)
	if err != nil {
		return out, nil, fmt.Errorf("read the load of worker %s: %w", w.ID, err)
	}
	if g := f.gate(&wf, now, exempt); g != nil {
		return out, refusedBy(s, g), nil
	}
	out, err = e.grant(tx, w, s, a, term, "", exempt)
	return out, nil, err
}

// refusedBy is the 409 of a gate: the worker's own, or one that holds whoever asks.
func refusedBy(s *sessionRow, g *api.Waiting) error {
	code := api.CodeNotReady
	if strings.HasPrefix(g.Code, "worker_") {
		code = api.CodeWorkerNotEligible
	}
	return &api.Error{Code: code, Gate: g.Code, Status: s.Status, Detail: g.Sentence, ExpiresAt: g.Until}
}

// alreadyClaimed names the holder and the expiry to those who may see them.
func (e *Engine) alreadyClaimed(tx *db.Tx, c Caller, s *sessionRow, live *claimRow) (refusal, err error) {
	holder, err := holderOf(tx, live)
	if err != nil {
		return nil, err
	}
	return &api.Error{
		Code: api.CodeAlreadyClaimed, Status: s.Status, Holder: holder, WorkerID: live.WorkerID, ExpiresAt: api.At(live.ExpiresAt),
		Detail: fmt.Sprintf("Worker %s holds the session until %s.", holder, clock(live.ExpiresAt)),
	}, nil
}

func holderOf(tx *db.Tx, c *claimRow) (string, error) {
	w, err := workerEvenDeleted(tx.Context(), tx, c.WorkerID)
	if err != nil {
		return "", fmt.Errorf("read worker %s: %w", c.WorkerID, err)
	}
	return w.Name, nil
}

// finishesOwn reports whether the claim is requested only to hand in work that the worker's
// last claim finished, nobody having claimed since (contract 4.1, 10.8).
func finishesOwn(tx *db.Tx, s *sessionRow, w *workerRow, of api.ClaimID) (bool, error) {
	if of.IsZero() {
		return false, nil
	}
	last, err := tx.LatestClaimOf(tx.Context(), s.ID)
	if db.None(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the last claim of session %s: %w", s.ID, err)
	}
	return proves(of, &last) && last.WorkerID == w.ID, nil
}

// grant inserts the claim and moves the session to active. The agent's counter, taken
// where the cap is checked, is what enforces the cap whatever else is claimed at that instant
// (contract 14).
func (e *Engine) grant(tx *db.Tx, w *workerRow, s *sessionRow, a *agentRow, term term, requestID string, exempt bool) (api.Claim, error) {
	now := db.Micros(tx.Now)
	take := func() error { return tx.TakeAgentSlot(a.ID, dayOf(a, now)) }
	if exempt {
		take = func() error { return tx.TakeAgentSlotExempt(a.ID) }
	}
	if err := take(); err != nil {
		return api.Claim{}, fmt.Errorf("take a slot of agent %s: %w", a.ID, err)
	}
	a.Running++
	fence, err := e.nextFence(tx, s)
	if err != nil {
		return api.Claim{}, err
	}
	id := api.ClaimID{Key: api.ClaimKey(tx.NewID())}
	rand.Read(id.Secret[:])
	next := *s
	next.Status, next.ClaimID, next.WorkerID, next.Fence = api.Active, id.Key, w.ID, fence
	next.AffinityUntil, next.ReclaimAt, next.Instructions = 0, 0, a.Instructions
	if s.AgentSessionID != "" && s.ProcessID != w.ProcessID {
		// Its agent session is elsewhere: this worker starts fresh (contract 4.8).
		next.ProcessID = ""
	}
	if next.StartedAt == 0 {
		next.StartedAt = now
	}
	waited := between(s.QueuedAt, now)
	e.observe(tx, func(o Observer) { o.Claimed(waited) })
	c := claimRow{
		ID: id.Key, Secret: id.Secret[:], SessionID: s.ID, AgentID: a.ID, ThreadID: s.ThreadID, WorkerID: w.ID,
		InstanceID: w.InstanceID, Fence: next.Fence, LeaseSeconds: term.seconds, OfflineAfter: int64(e.cfg.OfflineAfter / time.Second),
		GrantedAt: now, ExpiresAt: now + db.Seconds(term.seconds), FolderKey: plainFolder(w),
		AgentVersion: a.Version, WorkerInstructions: w.Instructions, WorkerInstructionsSetBy: w.InstructionsSetBy,
	}
	err = tx.InsertClaim(tx.Context(), queries.InsertClaimParams{
		ID: c.ID, Secret: c.Secret, SessionID: c.SessionID, AgentID: c.AgentID, ThreadID: c.ThreadID, WorkerID: c.WorkerID,
		InstanceID: c.InstanceID, Fence: c.Fence, LeaseSeconds: c.LeaseSeconds, OfflineAfter: c.OfflineAfter,
		GrantedAt: c.GrantedAt, ExpiresAt: c.ExpiresAt, FolderKey: c.FolderKey, RequestID: requestID,
		AgentVersion: c.AgentVersion, WorkerInstructions: c.WorkerInstructions, WorkerInstructionsSetBy: c.WorkerInstructionsSetBy,
	})
	if err != nil {
		return api.Claim{}, fmt.Errorf("insert a claim on session %s: %w", s.ID, err)
	}
	moved, err := e.move(tx, s, next, w.ID.String(), api.EventSessionClaimed, api.EventData{"fence": next.Fence})
	if err != nil {
		return api.Claim{}, err
	}
	*s = *moved
	return e.answer(tx, &c, s, a, term)
}

// reclaim answers the same instance's repeated claim: its own, renewed.
func (e *Engine) reclaim(tx *db.Tx, live *claimRow, s *sessionRow, a *agentRow, term term) (api.Claim, error) {
	now := db.Micros(tx.Now)
	if err := renewTo(tx, live, renewedUntil(live.ExpiresAt, live.LeaseSeconds, now), now); err != nil {
		return api.Claim{}, err
	}
	term.seconds = live.LeaseSeconds
	return e.answer(tx, live, s, a, term)
}

// answer is the claim as its holder sees it: the lease and the frozen snapshot,
// trusted and untrusted parts apart.
func (e *Engine) answer(tx *db.Tx, c *claimRow, s *sessionRow, a *agentRow, term term) (api.Claim, error) {
	now := db.Micros(tx.Now)
	shown := toSession(s, a.Slug)
	task, err := claimedTask(tx, s)
	if err != nil {
		return api.Claim{}, err
	}
	if task != nil {
		shown.Task = &task.TaskRef
	}
	shown.LeaseExpiresAt = api.At(c.ExpiresAt)
	out := api.Claim{
		ClaimID: claimID(c), SessionID: s.ID, WorkerID: c.WorkerID, Fence: c.Fence, LeaseSeconds: c.LeaseSeconds,
		LeaseExpiresAt: api.At(c.ExpiresAt), OfflineAfterSeconds: c.OfflineAfter, ServerTime: api.At(now), Session: shown,
		Untrusted: api.Untrusted{Title: title(s), Prompt: s.Prompt, Context: s.UntrustedContext, Task: task},
	}
	if out.Trusted, err = trustedOf(tx, c, a); err != nil {
		return out, err
	}
	if term.capped {
		out.CappedToMax, out.MaxLeaseSeconds = true, int64(e.cfg.MaxLease/time.Second)
	}
	if out.Untrusted.Files, err = attachmentsOf(tx.Context(), tx, s.ID, 0, 0); err != nil {
		return out, err
	}
	out.RunToken = account.RunToken(c)
	if s.PromptID != 0 { // a new process of the worker takes the claim over
		p, err := promptOf(tx.Context(), tx, s)
		if err != nil {
			return out, fmt.Errorf("read prompt %s: %w", s.PromptID, err)
		}
		asked, err := toPrompt(p)
		if err != nil {
			return out, err
		}
		out.Session.Prompted = &asked
	}
	if out.Trusted.Type == api.TypeCommand {
		return out, nil
	}
	out.Conversation, err = conversation(tx, s)
	return out, err
}

func claimID(c *claimRow) api.ClaimID { return api.NewClaimID(c.ID, c.Secret) }

// term is the length of a lease to be granted.
type term struct {
	seconds int64
	capped  bool
}

// term applies the rules of contract 4.2: the request, else the agent's, else the default;
// above the maximum it is capped, below the minimum refused. A lease that its own worker can't
// keep is below it.
func (e *Engine) term(asked *int64, a *agentRow, w *workerRow) (term, error) {
	may := e.leases()
	lo, hi := may.least, may.most
	why := ""
	if least := int64(api.LeastLease(time.Duration(w.Staging)*time.Second) / time.Second); least > lo {
		lo, why = least, fmt.Sprintf(", for this worker takes up to %d to end what it runs", w.Staging)
	}
	n := a.LeaseSeconds
	if asked != nil {
		n = *asked
	}
	if n == 0 && asked == nil {
		n = int64(e.cfg.DefaultLease / time.Second)
	}
	if asked == nil {
		// An agent's own lease may be from before the minimum was raised, by the settings or
		// by what the worker says about itself.
		n = max(n, lo)
	}
	return boundLease(n, lo, hi, why)
}
