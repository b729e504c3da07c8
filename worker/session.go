package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"stint/api"
	"stint/worker/proc"
)

// session is one session that this process holds the claim on, from the claim until its
// outcome was accepted.
type session struct {
	p            *Process
	rec          *record
	addr         api.Held
	thread       api.ThreadID
	claim        api.Claim     // as it was granted; owned by what executes the session
	silent       time.Duration // after which the coordinator regards the worker as offline
	heldID       int64         // its line in the journal
	left         bool          // by an earlier process of this worker
	log          *slog.Logger
	claimContext *claimContext
	out          *outbox
	closed       chan struct{} // closed when it is no longer listed
	over         chan struct{} // closed when nothing of it runs any more and the outbox has all of it
	retry        chan struct{} // one token: a report that waits for its next try is to be sent now

	mu        sync.Mutex
	id        api.ClaimID        // the claim now; guarded by mu
	dead      api.ClaimID        // a claim that is known to be gone; guarded by mu
	ours      api.ClaimID        // the claim that our own report closed; guarded by mu
	survivors bool               // processes could not be ended; guarded by mu
	endQuick  func()             // makes a running command's end quick; guarded by mu
	starting  bool               // a command is being started; guarded by mu
	draining  bool               // guarded by mu
	gentle    func(error)        // lets a conversation end with its turn; guarded by mu
	broken    func(*api.Failure) // ends a conversation that can't go on; guarded by mu
	used      api.Usage          // reported under this claim; guarded by mu

	files        *files     // of people's, as they are here
	noted        []string   // what the transcript says of the program's start; owned by what executes the session
	steered      bool       // a running turn was given messages; owned by what executes the session
	life         string     // the mark in the journal; owned by what executes the session
	place        *workplace // owned by what executes the session
	lateFinishes int        // owned by the sender
	final        string     // the kind of the entry that finished the claim; owned by the sender
}

// lease is what one answer says about a lease, on our own clock.
func (p *Process) lease(sent proc.BootTime, expires, server api.Time) proc.BootTime {
	const most = 24 * time.Hour // whatever the other side says
	if expires.IsZero() || server.IsZero() {
		return 0
	}
	// Both texts are cut to the millisecond: use the shorter reading.
	return sent.Add(min(expires.Sub(server.Time)-time.Millisecond, most))
}

// take journals a claim that was just granted and starts its session. slot is given back when
// nothing of it runs any more. sent is the instant before the claim was requested.
func (p *Process) take(rec *record, c api.Claim, sent proc.BootTime, slot func()) {
	p.at("claimed")
	life := proc.NewRecord(c.SessionID.String())
	id, err := p.state.hold(rec.agent, c, life)
	if err != nil {
		p.log.Error("the claim can't be journaled and is given back", "session", c.SessionID, "error", err)
		slot()
		p.giveBack(rec, c, "worker_state_not_writable")
		return
	}
	p.at("journaled")
	s, err := p.newSession(rec, c, id)
	if err != nil {
		p.log.Error("the claim can't be taken up and is given back", "session", c.SessionID, "error", err)
		slot()
		p.giveBack(rec, c, "worker_state_not_readable")
		return
	}
	end := p.lease(sent, c.LeaseExpiresAt, c.ServerTime)
	s.claimContext = newClaimContext(context.Background(), p.boot, p.stages.Total(), end, rec.lastBeat().Add(s.silent))
	s.life = life.Mark
	held := p.boot().Sub(sent) > time.Second
	if held {
		// The lease began some time after the request: counted from the request it may be over
		// by now. Nothing runs yet, so there is time to ask. contract 4.4
		s.claimContext.ask(p.boot().Add(end.Sub(sent)))
	}
	p.start(s, func() {
		defer slot()
		s.conclude(s.execute(life, held))
	})
}

func offlineAfter(c api.Claim) time.Duration {
	return seconds(c.OfflineAfterSeconds)
}

// newSession makes the session without starting it.
func (p *Process) newSession(rec *record, c api.Claim, heldID int64) (*session, error) {
	out, err := newOutbox(p.state, heldID, p.opts.OutboxBytes)
	if err != nil {
		return nil, err
	}
	out.hide(secretsOf(p.source, p.token(), c.RunToken, c.ClaimID.String()))
	if said := c.Conversation; said != nil {
		p.told.add(c.Session.ThreadID, secretsOf(nil, secretAnswers(said.Answered...)...))
	}
	out.hide(p.told.in(c.Session.ThreadID))
	return &session{
		files: newFiles(p, c.SessionID, p.log), p: p, rec: rec, claim: c, id: c.ClaimID, heldID: heldID, out: out,
		addr: api.Held{Agent: rec.agent, Worker: c.WorkerID, Session: c.SessionID}, thread: c.Session.ThreadID,
		log:    p.log.With("session", c.SessionID.String(), "agent", c.Trusted.AgentSlug, "fence", c.Fence),
		closed: make(chan struct{}), over: make(chan struct{}), retry: make(chan struct{}, 1), silent: offlineAfter(c),
	}, nil
}

// start runs the session's goroutines: do, which ends when nothing of the session runs any
// more; the renewals; the sender; the watch over the lease.
func (p *Process) start(s *session, do func()) {
	p.mu.Lock()
	p.sessions[s.heldID] = s
	delete(p.leftovers, s.heldID) // in one step: it is always listed
	draining := p.draining
	p.mu.Unlock()
	if draining { // it was claimed while the shutdown began
		s.drain()
	}
	ctx, cancel := context.WithCancel(p.reporting)
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := s.claimContext.watch(); err != nil {
			s.log.Error("the lease can't be watched, the session ends", "error", err)
		}
	})
	parts.Go(func() { s.keepUp(ctx) })
	parts.Go(func() {
		defer close(s.over)
		do()
	})
	p.parts.Go(func() {
		err := s.send(ctx)
		cancel()
		<-s.over
		s.claimContext.end(context.Canceled) // ends the watch
		parts.Wait()
		s.close(err)
		close(s.closed)
	})
}

// close removes the session from the list when it was reported; otherwise the worker's next
// process takes it up.
func (s *session) close(unsent error) {
	s.p.mu.Lock()
	delete(s.p.sessions, s.heldID)
	crowded := s.rec.crowded
	s.p.mu.Unlock()
	if s.rec.isEnding() {
		defer s.rec.wake() // it waits for its last session
	}
	if unsent != nil {
		s.log.Warn("the report stays in the outbox for the worker's next start", "reason", unsent)
		return
	}
	if crowded || s.overdue() {
		defer s.p.wakeClaims() // its agent was left out of the request for work
	}
	s.mu.Lock()
	claim, ours, survivors := s.id, s.ours, s.survivors
	s.mu.Unlock()
	if !ours.IsZero() || survivors {
		claim = api.ClaimID{} // closed and drained by our own report, or not drained at all
	}
	s.at("drop")
	if err := s.p.state.drop(s.heldID, claim, s.addr.Worker); err != nil {
		s.log.Error("the journal's line stays", "error", err)
		return
	}
	s.at("dropped")
	if !claim.IsZero() {
		s.rec.wake() // the coordinator waits for the drained claim
	}
	if s.final == entryRelease {
		return // it comes back, and with it the count of its crashes
	}
	if err := s.p.state.forgetTroubles(s.addr.Session); err != nil {
		s.log.Error("the count of crashes stays", "error", err)
	}
}

func (s *session) at(point string) { s.p.at(point) }

func (s *session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// overdue reports whether nothing of the session runs any more, or an earlier process ran it,
// but its claim is gone or may have lapsed before that was reported.
func (s *session) overdue() bool {
	if !s.isOver() && !s.left {
		return false
	}
	at, _ := s.claimContext.deadline()
	return s.p.boot() >= at || s.lost()
}

// lost reports whether the session's claim is known to be gone.
func (s *session) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead == s.id
}

func (s *session) claimID() api.ClaimID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

func (s *session) setClaim(id api.ClaimID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
}

func (s *session) closedByUs(claim api.ClaimID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ours = claim
}

// closedUnder is the claim that our own report closed, zero while there is none.
func (s *session) closedUnder() api.ClaimID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ours
}

// live is the claim to be renewed, zero when it is known to be gone or closed.
func (s *session) live() api.ClaimID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ours.IsZero() || s.dead == s.id {
		return api.ClaimID{}
	}
	return s.id
}

// outlived notes that processes could not be ended, so that the claim must not be called
// drained.
func (s *session) outlived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.survivors = true
}

// uses notes what the session has used in all.
func (s *session) uses(u api.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = u
}

// usedSoFar is what the session has used, under this claim and earlier ones.
func (s *session) usedSoFar() api.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.claim.Session.Usage
	return api.Usage{
		InputTokens: max(u.InputTokens, s.used.InputTokens), OutputTokens: max(u.OutputTokens, s.used.OutputTokens),
		CostMicros: max(u.CostMicros, s.used.CostMicros),
	}
}

// keepUp renews the lease at a third of its usable length until ctx ends. It depends on
// nothing that the agent does. contract 4.4
func (s *session) keepUp(ctx context.Context) {
	every := api.RenewEvery(seconds(s.claim.LeaseSeconds), s.p.stages.Total())
	var wait backoff
	for pause := every; sleepAwake(ctx, pause, nil); {
		_ = s.claimContext.check() // after sleep this comes before any answer
		if s.live().IsZero() {
			pause = every
			continue
		}
		if err := s.renew(ctx); err != nil {
			pause = min(wait.next(api.RetryAfter(err)), every)
			s.log.Warn("lease not renewed", "again in", pause, "error", err)
			continue
		}
		wait.reset()
		pause = every
	}
}

// renew moves the lease once. A final refusal is no error: it ends the claim.
func (s *session) renew(ctx context.Context) error {
	claim := s.live()
	if claim.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.p.clocks.Answer)
	defer cancel()
	sent := s.p.boot()
	lease, err := s.p.client.Renew(ctx, s.addr, api.RenewRequest{UnderClaim: under(claim, s.p.instance)})
	err = ours(err, lease.ClaimID, claim)
	if err == nil {
		s.claimContext.renewed(s.p.lease(sent, lease.LeaseExpiresAt, lease.ServerTime))
		if lease.StopRequested {
			s.endGently(errStop)
		}
		return nil
	}
	if !refusedForGood(err) {
		return err
	}
	refused := (*api.Error)(nil)
	errors.As(err, &refused)
	switch refused.Code {
	case api.CodeClaimNotActive:
		if refused.Status == api.Cancelled {
			s.gone(claim, errCancelled)
		} else {
			s.gone(claim, errLost)
		}
	case api.CodeNotFound, api.CodeGone, api.CodeInstanceSuperseded:
		s.gone(claim, errLost)
		s.rec.wake() // the beat says whether the record is gone
	default:
		return err // the coordinator disagrees; the lease decides
	}
	s.log.Log(ctx, gravity(err), "the claim is gone", "error", err)
	return nil
}

// verify finds out for certain whether the claim still holds.
func (s *session) verify(ctx context.Context) (alive bool, err error) {
	if err := s.renew(ctx); err != nil {
		return false, err
	}
	return !s.live().IsZero(), nil
}

// beaten takes in what a beat said about the claim. at is the instant before
// the beat was sent.
func (s *session) beaten(sent proc.BootTime, a api.ClaimBeat, server api.Time) {
	switch a.State {
	case api.BeatRenewed, api.BeatStopRequested:
		s.claimContext.renewed(s.p.lease(sent, a.LeaseExpiresAt, server))
		if a.State == api.BeatStopRequested {
			s.endGently(errStop)
		}
	case api.BeatCancelled:
		s.gone(a.ClaimID, errCancelled)
	case api.BeatLost:
		s.gone(a.ClaimID, errLost)
	}
}
