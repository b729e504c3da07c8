package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Claim grants the worker the claim on one session, or says who has it and until
// when. The same worker instance claiming again gets its own claim renewed
// (contract 4.1, 4.2). Errors: already_claimed, not_ready, worker_not_eligible,
// session_terminal, invalid_lease, instance_superseded, not_found.
func (e *Engine) Claim(ctx context.Context, c Caller, worker api.WorkerID, session api.SessionID, in api.ClaimRequest) (api.Claim, error) {
	var out api.Claim
	var refusal error
	err := e.write(ctx, func(tx *db.Tx) error {
		var err error
		out, refusal, err = e.claimIn(tx, c, worker, session, in)
		return err
	})
	if err != nil {
		return api.Claim{}, err
	}
	return out, refusal
}

// claimIn is Claim in a transaction. A refusal is a value, so that a lapse found
// on the way is kept (contract 4.1); an error undoes everything.
func (e *Engine) claimIn(tx *db.Tx, c Caller, worker api.WorkerID, session api.SessionID, in api.ClaimRequest) (out api.Claim, refusal, err error) {
	w, err := workerOf(wctx(), tx.Queries, c, worker)
	if err != nil {
		return out, nil, err
	}
	if err := sameInstance(w, in.InstanceID); err != nil {
		return out, nil, err
	}
	s, err := visible(wctx(), tx.Queries, c, session)
	if err != nil {
		return out, nil, err
	}
	if s.AgentID != w.AgentID {
		return out, nil, notFound("session")
	}
	a, err := tx.AgentEvenDeleted(wctx(), s.AgentID)
	if err != nil {
		return out, nil, fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	term, err := e.term(in.LeaseSeconds, &a)
	if err != nil {
		return out, nil, err
	}
	return e.claimTx(tx, c, w, s, &a, term, in)
}

func (e *Engine) claimTx(tx *db.Tx, c Caller, w *workerRow, s *sessionRow, a *agentRow, term term, in api.ClaimRequest) (out api.Claim, refusal, err error) {
	now := micros(tx.Now)
	if s.Status.Running() {
		live, err := tx.Claim(wctx(), s.ClaimID)
		if err != nil {
			return out, nil, fmt.Errorf("read the claim of session %s: %w", s.ID, err)
		}
		if live.ExpiresAt > now {
			if live.WorkerID == w.ID && live.InstanceID == w.InstanceID {
				out, err := e.reclaim(tx, &live, w, s, a, term)
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
	f, err := loadFacts(wctx(), tx.Queries, s, a)
	if err != nil {
		return out, nil, fmt.Errorf("read the gates of session %s: %w", s.ID, err)
	}
	if g := f.claimGate(now, exempt); g != nil {
		return out, notReady(s, g), nil
	}
	wf, err := loadWorker(wctx(), tx.Queries, w)
	if err != nil {
		return out, nil, fmt.Errorf("read the load of worker %s: %w", w.ID, err)
	}
	if g := f.workerGate(&wf, now, exempt); g != nil {
		return out, notEligible(s, g), nil
	}
	out, err = e.grant(tx, w, s, a, term, "", exempt)
	return out, nil, err
}

func notReady(s *sessionRow, g *api.Waiting) error {
	return &api.Error{Code: api.CodeNotReady, Gate: g.Code, Status: s.Status, Detail: g.Sentence, ExpiresAt: g.Until}
}

func notEligible(s *sessionRow, g *api.Waiting) error {
	if g.Code == gateFolderBusy || g.Code == gateAffinity {
		return notReady(s, g)
	}
	return &api.Error{Code: api.CodeWorkerNotEligible, Gate: g.Code, Status: s.Status, Detail: g.Sentence}
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
	w, err := tx.WorkerEvenDeleted(wctx(), c.WorkerID)
	if err != nil {
		return "", fmt.Errorf("read worker %s: %w", c.WorkerID, err)
	}
	return w.Name, nil
}

// finishesOwn reports whether the claim is asked for only to hand in work that
// the worker's last claim finished, nobody having claimed since (contract 4.1, 10.8).
func finishesOwn(tx *db.Tx, s *sessionRow, w *workerRow, of api.ClaimID) (bool, error) {
	if of.IsZero() {
		return false, nil
	}
	last, err := tx.LatestClaimOf(wctx(), s.ID)
	if none(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the last claim of session %s: %w", s.ID, err)
	}
	return proves(of, &last) && last.WorkerID == w.ID, nil
}

// grant inserts the claim and moves the session to active. The agent's counter,
// taken in the same statement that checks the cap, is what keeps the cap
// whatever else is claimed at that instant (contract 14).
func (e *Engine) grant(tx *db.Tx, w *workerRow, s *sessionRow, a *agentRow, term term, requestID string, exempt bool) (api.Claim, error) {
	now := micros(tx.Now)
	take := tx.TakeAgentSlot
	if exempt {
		take = tx.TakeAgentSlotExempt
	}
	if err := one(take(wctx(), a.ID)); err != nil {
		return api.Claim{}, fmt.Errorf("take a slot of agent %s: %w", a.ID, err)
	}
	a.Running++
	id := api.ClaimID{Key: api.ClaimKey(tx.NewID())}
	rand.Read(id.Secret[:])
	next := *s
	next.Status, next.ClaimID, next.WorkerID, next.Fence = api.Active, id.Key, w.ID, s.Fence+1
	next.AffinityUntil, next.ReclaimAt = 0, 0
	if s.AgentSessionID != "" && s.ProcessID != w.ProcessID {
		// Its agent session lives elsewhere: this worker starts fresh (contract 4.8).
		next.ProcessID = ""
	}
	if next.StartedAt == 0 {
		next.StartedAt = now
	}
	c := claimRow{
		ID: id.Key, Secret: id.Secret[:], SessionID: s.ID, AgentID: a.ID, ThreadID: s.ThreadID, WorkerID: w.ID,
		InstanceID: w.InstanceID, Fence: next.Fence, LeaseSeconds: term.seconds, OfflineAfter: int64(e.cfg.OfflineAfter / time.Second),
		GrantedAt: now, ExpiresAt: now + seconds(term.seconds), FolderKey: plainFolder(w),
	}
	err := tx.InsertClaim(wctx(), queries.InsertClaimParams{
		ID: c.ID, Secret: c.Secret, SessionID: c.SessionID, AgentID: c.AgentID, ThreadID: c.ThreadID, WorkerID: c.WorkerID,
		InstanceID: c.InstanceID, Fence: c.Fence, LeaseSeconds: c.LeaseSeconds, OfflineAfter: c.OfflineAfter,
		GrantedAt: c.GrantedAt, ExpiresAt: c.ExpiresAt, FolderKey: c.FolderKey, RequestID: requestID,
	})
	if err != nil {
		return api.Claim{}, fmt.Errorf("insert a claim on session %s: %w", s.ID, err)
	}
	moved, err := e.move(tx, s, next, w.ID.String(), evSessionClaimed, api.EventData{"fence": next.Fence})
	if err != nil {
		return api.Claim{}, err
	}
	*s = *moved
	return e.answer(&c, w, s, a, term, now), nil
}

// reclaim answers the same instance's repeated claim: its own, renewed.
func (e *Engine) reclaim(tx *db.Tx, live *claimRow, w *workerRow, s *sessionRow, a *agentRow, term term) (api.Claim, error) {
	now := micros(tx.Now)
	if err := renewTo(tx, live, now+seconds(live.LeaseSeconds), now); err != nil {
		return api.Claim{}, err
	}
	term.seconds = live.LeaseSeconds
	return e.answer(live, w, s, a, term, now), nil
}

// answer is the claim as its holder sees it: the lease and the frozen snapshot,
// trusted and untrusted parts apart.
func (e *Engine) answer(c *claimRow, w *workerRow, s *sessionRow, a *agentRow, term term, now int64) api.Claim {
	shown := toSession(s, a.Slug)
	shown.LeaseExpiresAt = api.At(c.ExpiresAt)
	out := api.Claim{
		ClaimID: claimID(c), SessionID: s.ID, WorkerID: w.ID, Fence: c.Fence, LeaseSeconds: c.LeaseSeconds,
		LeaseExpiresAt: api.At(c.ExpiresAt), OfflineAfterSeconds: c.OfflineAfter, ServerTime: api.At(now), Session: shown,
		Trusted: api.Trusted{
			AgentSlug: a.Slug, Type: a.Type, Run: a.Run, RunSetBy: a.RunSetBy, Instructions: s.Instructions,
			TurnTimeoutSeconds: a.TurnTimeout, StallTimeoutSeconds: a.StallTimeout,
		},
		Untrusted: api.Untrusted{Title: title(s), Prompt: s.Prompt, Context: s.UntrustedContext},
	}
	if term.capped {
		out.CappedToMax, out.MaxLeaseSeconds = true, int64(e.cfg.MaxLease/time.Second)
	}
	return out
}

func claimID(c *claimRow) api.ClaimID {
	id := api.ClaimID{Key: c.ID}
	copy(id.Secret[:], c.Secret)
	return id
}

// term is the length of a lease to be granted.
type term struct {
	seconds int64
	capped  bool
}

// term applies the rules of contract 4.2: the request, else the agent's, else
// the default; above the maximum it is capped, below the minimum refused.
func (e *Engine) term(asked *int64, a *agentRow) (term, error) {
	lo, hi := int64(e.cfg.MinLease/time.Second), int64(e.cfg.MaxLease/time.Second)
	n := a.LeaseSeconds
	if asked != nil {
		n = *asked
	}
	if n == 0 && asked == nil {
		n = int64(e.cfg.DefaultLease / time.Second)
	}
	if asked == nil {
		// An agent's own lease may be from before the least one was raised.
		n = max(n, lo)
	}
	if n < lo {
		return term{}, &api.Error{
			Code: api.CodeInvalidLease, Detail: fmt.Sprintf("The lease is too short: at least %d seconds.", lo),
			Fields: []api.FieldError{{Field: "leaseSeconds", Detail: fmt.Sprintf("must be a whole number of seconds from %d to %d", lo, hi)}},
		}
	}
	if n > hi {
		return term{seconds: hi, capped: true}, nil
	}
	return term{seconds: n}, nil
}

// ClaimNext grants the best eligible session of any of the caller's workers:
// highest priority first, then the oldest. It holds for up to in.WaitSeconds and
// answers nil when none came. The same RequestID answers the same claim again.
func (e *Engine) ClaimNext(ctx context.Context, c Caller, in api.ClaimNextRequest) (*api.Claim, error) {
	if err := checkNext(&in); err != nil {
		return nil, err
	}
	seat := e.seats.take()
	defer e.seats.leave(seat)
	offers := e.seats.offers()
	out, agents, err := e.claimNext(ctx, c, in)
	if err != nil || out != nil || in.WaitSeconds == 0 {
		return out, err
	}
	timeout := time.NewTimer(time.Duration(in.WaitSeconds) * time.Second)
	defer timeout.Stop()
	e.seats.sit(seat, agents)
	// What was offered between the look and the seat would wake nobody: look once more.
	look := e.seats.offers() != offers
	for {
		if !look && !e.seats.await(ctx, seat, timeout.C) {
			return nil, ctx.Err()
		}
		look = false
		e.seats.sit(seat, agents) // before the look, so that no offer falls between
		out, _, err := e.claimNext(ctx, c, in)
		if err != nil || out != nil {
			return out, err
		}
		e.seats.pass(seat)
	}
}

func checkNext(in *api.ClaimNextRequest) error {
	var v api.Invalid
	if len(in.WorkerIDs) == 0 || len(in.WorkerIDs) > 500 {
		v.Add("workerIds", "must name 1 to 500 of your workers")
	}
	if in.WaitSeconds < 0 || in.WaitSeconds > 60 {
		v.Add("wait", "must be 0 to 60 seconds")
	}
	if len(in.RequestID) > 100 {
		v.Add("requestId", "has more than 100 characters")
	}
	return v.Err()
}

func (e *Engine) claimNext(ctx context.Context, c Caller, in api.ClaimNextRequest) (*api.Claim, []api.AgentID, error) {
	var out *api.Claim
	var agents []api.AgentID
	err := e.write(ctx, func(tx *db.Tx) error {
		out, agents = nil, nil
		var err error
		out, agents, err = e.claimNextTx(tx, c, in)
		return err
	})
	return out, agents, err
}

// candidate is a session that fits one of the caller's workers.
type candidate struct {
	s *sessionRow
	w *workerRow
	a *agentRow
}

func (a candidate) before(b candidate) bool {
	x, y := a.s, b.s
	if x.Priority != y.Priority {
		return x.Priority > y.Priority
	}
	if x.QueuedAt != y.QueuedAt {
		return x.QueuedAt < y.QueuedAt
	}
	return x.ID < y.ID
}

func (e *Engine) claimNextTx(tx *db.Tx, c Caller, in api.ClaimNextRequest) (*api.Claim, []api.AgentID, error) {
	var best candidate
	agents := make([]api.AgentID, 0, len(in.WorkerIDs))
	for _, id := range in.WorkerIDs {
		row, err := tx.WorkerAndLoad(wctx(), id)
		if none(err) || (err == nil && !c.runs(&row.Worker)) {
			return nil, nil, notFound("worker")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read worker %s: %w", id, err)
		}
		w := &row.Worker
		if err := sameInstance(w, in.InstanceID); err != nil {
			return nil, nil, err
		}
		agents = append(agents, w.AgentID)
		if in.RequestID != "" {
			again, err := e.sameRequest(tx, w, in.RequestID)
			if again != nil || err != nil {
				return again, nil, err
			}
		}
		next, err := e.bestFor(tx, &workerFacts{w: w, running: row.Running, inFolder: row.InFolder})
		if err != nil {
			return nil, nil, fmt.Errorf("look for work of worker %s: %w", w.ID, err)
		}
		if next.s != nil && (best.s == nil || next.before(best)) {
			best = next
		}
	}
	if best.s == nil {
		return nil, agents, nil
	}
	term, err := e.term(in.LeaseSeconds, best.a)
	if err != nil {
		return nil, nil, err
	}
	out, err := e.grant(tx, best.w, best.s, best.a, term, in.RequestID, false)
	if err != nil {
		return nil, nil, err
	}
	return &out, nil, nil
}

// sameRequest answers a request id that was answered before with the same claim,
// as long as it lives.
func (e *Engine) sameRequest(tx *db.Tx, w *workerRow, requestID string) (*api.Claim, error) {
	c, err := tx.ClaimByRequest(wctx(), queries.ClaimByRequestParams{WorkerID: w.ID, RequestID: requestID})
	if none(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the claim of request %q: %w", requestID, err)
	}
	if c.ClosedAt != 0 || c.ExpiresAt <= micros(tx.Now) || c.InstanceID != w.InstanceID {
		return nil, nil
	}
	s, err := tx.Session(wctx(), c.SessionID)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", c.SessionID, err)
	}
	a, err := tx.AgentEvenDeleted(wctx(), c.AgentID)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", c.AgentID, err)
	}
	out := e.answer(&c, w, &s, &a, term{seconds: c.LeaseSeconds}, micros(tx.Now))
	return &out, nil
}

// bestFor finds the first session without a gate in the lanes that fit a worker.
// Sessions of other lanes are passed over in one step each, so that they starve
// nobody behind them (contract 4.2).
func (e *Engine) bestFor(tx *db.Tx, wf *workerFacts) (candidate, error) {
	w := wf.w
	if w.State == api.Offline || w.Desired != api.DesiredRunning || wf.running >= w.MaxConcurrent || wf.inFolder > 0 {
		return candidate{}, nil
	}
	a, err := tx.AgentEvenDeleted(wctx(), w.AgentID)
	if err != nil {
		return candidate{}, fmt.Errorf("read agent %s: %w", w.AgentID, err)
	}
	if a.Paused != 0 || a.DeletedAt != 0 || a.Running >= a.MaxConcurrent || !w.Types.Has(api.Labels{string(a.Type)}) {
		return candidate{}, nil
	}
	var best candidate
	for from := ""; ; {
		row, err := tx.NextLane(wctx(), queries.NextLaneParams{AgentID: a.ID, Lane: from, Now: micros(tx.Now), ProcessID: w.ProcessID})
		if none(err) {
			return best, nil
		}
		if err != nil {
			return candidate{}, err
		}
		if next := (candidate{&row.Session, w, &a}); laneFits(row.Session.Lane, w) && (best.s == nil || next.before(best)) {
			best = next
		}
		if from = row.NextLane; from == "" {
			return best, nil
		}
	}
}

// Poll lists what this worker may claim, best first, and what is still held back
// with its gate (contract 5.4). It holds for up to wait while there is nothing claimable.
func (e *Engine) Poll(ctx context.Context, c Caller, worker api.WorkerID, instance string, wait time.Duration) ([]api.Claimable, error) {
	var timeout <-chan time.Time
	for {
		changed := e.Changed()
		out, err := e.poll(ctx, c, worker, instance)
		if err != nil || wait <= 0 || (len(out) > 0 && out[0].Claimable) {
			return out, err
		}
		if timeout == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-changed:
		case <-timeout:
			return out, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (e *Engine) poll(ctx context.Context, c Caller, worker api.WorkerID, instance string) ([]api.Claimable, error) {
	out := []api.Claimable{}
	err := e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := workerOf(ctx, tx.Queries, c, worker)
		if err != nil {
			return err
		}
		if err := sameInstance(w, instance); err != nil {
			return err
		}
		a, err := tx.AgentEvenDeleted(ctx, w.AgentID)
		if err != nil {
			return fmt.Errorf("read agent %s: %w", w.AgentID, err)
		}
		rows, err := tx.WaitingOfAgent(ctx, queries.WaitingOfAgentParams{AgentID: a.ID, N: maxPage, Before: math.MaxInt64})
		if err != nil {
			return fmt.Errorf("list what waits: %w", err)
		}
		out, err = e.pollRows(ctx, tx.Queries, w, &a, rows)
		return err
	})
	return out, err
}

func (e *Engine) pollRows(ctx context.Context, q *queries.Queries, w *workerRow, a *agentRow, rows []sessionRow) ([]api.Claimable, error) {
	now := micros(e.Now())
	ready, held := []api.Claimable{}, []api.Claimable{}
	wf, err := loadWorker(ctx, q, w)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		s := &rows[i]
		if !laneFits(s.Lane, w) || s.Mode != w.Mode {
			continue
		}
		f, err := loadClaimFacts(ctx, q, s, a)
		if err != nil {
			return nil, err
		}
		shown := toSession(s, a.Slug)
		g := f.claimGate(now, false)
		if g == nil {
			g = f.workerGate(&wf, now, false)
		}
		if shown.WaitingFor = g; g == nil {
			ready = append(ready, api.Claimable{Session: shown, Claimable: true})
		} else {
			held = append(held, api.Claimable{Session: shown})
		}
	}
	return append(ready, held...), nil
}
