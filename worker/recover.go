package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"stint/api"
	"stint/worker/proc"
)

// maxCrashes is how often a session's worker may be killed while it runs before the session
// fails instead of being given back: a command that takes its worker down with it must not do
// so for ever.
const maxCrashes = 3

// sweepGrace bounds each stage for what a killed worker left behind: its guardian has already
// begun to end it.
const sweepGrace = 2 * time.Second

// leftover is a claim that an earlier process of this worker journaled.
type leftover struct {
	heldRow
	taken bool          // its session is about to be started; guarded by the process's mu
	swept chan struct{} // closed when nothing of it runs any more, or it can't be ended
	err   error         // why not; read after swept
}

// sweepLeftovers ends what earlier processes left running, at once and before anything is
// claimed. The channel is closed when all of that is done.
func (p *Process) sweepLeftovers() (all <-chan struct{}, err error) {
	rows, err := p.state.heldRows()
	if err != nil {
		return nil, err
	}
	var sweeps sync.WaitGroup
	for _, row := range rows {
		l := &leftover{heldRow: row, swept: make(chan struct{})}
		p.leftovers[row.id] = l
		sweeps.Go(func() {
			defer close(l.swept)
			if l.ended {
				return // it was gone before that was noted
			}
			stages := p.stages
			stages.Interrupt, stages.Term = min(stages.Interrupt, sweepGrace), min(stages.Term, sweepGrace)
			var found proc.Swept
			found, l.err = proc.Sweep(context.Background(), l.life, stages)
			if found.Found > 0 || l.err != nil {
				p.log.Warn("an earlier life of this worker left processes behind", "session", l.claim.SessionID, "ended", found.Found, "error", l.err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		sweeps.Wait()
		close(done)
	}()
	return done, nil
}

// takeOver takes up what an earlier process held for a record: results in the outbox are sent
// on; what was running is gone, and its session is given back.
//
// A command can't be resumed, and it didn't fail either: its worker was killed. So it is
// released with the reason worker_restarted, which doesn't count as a lapse, and runs again
// sooner than by waiting for the lease to end. Only a session that has outlasted several
// killed workers fails. contract 10.7
func (p *Process) takeOver(rec *record, claims []api.Claim, sent proc.BootTime, server api.Time) {
	if !p.admit() {
		return // this process is ending; the next one takes it up
	}
	defer p.parts.Done()
	alive := map[api.ClaimID]api.Claim{}
	for _, c := range claims {
		alive[c.ClaimID] = c
	}
	left := p.leftoversOf(rec.agent)
	p.inherit(left, alive)
	for _, l := range left {
		c, lives := alive[l.claim.ClaimID]
		delete(alive, l.claim.ClaimID)
		if !lives {
			c = l.claim
		}
		p.resume(rec, l, c, lives, p.lease(sent, c.LeaseExpiresAt, server))
	}
	for _, c := range alive {
		// It was granted, and the earlier process was killed before it could note that.
		p.log.Info("a claim that was never taken up is given back", "session", c.SessionID)
		p.giveBack(rec, c, reasonRestarted)
	}
}

// inherit lets results finish their session under a later claim on it that an earlier process
// was granted and was killed before it noted.
func (p *Process) inherit(left []*leftover, alive map[api.ClaimID]api.Claim) {
	noted := map[api.ClaimID]bool{}
	for _, l := range left {
		noted[l.claim.ClaimID] = true
	}
	for _, l := range left {
		if _, lives := alive[l.claim.ClaimID]; lives || (!l.ended && !l.said.Valid) {
			continue
		}
		for id, c := range alive {
			if c.SessionID != l.claim.SessionID || noted[id] {
				continue
			}
			if err := p.state.setClaim(l.id, c); err != nil {
				p.log.Error("a result can't finish its session under the later claim", "session", c.SessionID, "error", err)
				continue
			}
			l.claim, noted[id] = c, true
			break
		}
	}
}

// abandon takes up what is left of a deleted record: results go to the thread.
func (p *Process) abandon(rec *record) {
	if !p.admit() {
		return
	}
	defer p.parts.Done()
	for _, l := range p.leftoversOf(rec.agent) {
		p.resume(rec, l, l.claim, false, 0)
	}
}

// admit lets sessions be started by others than the loop that claims: the caller counts as a
// session until it calls parts.Done. admit reports false once the shutdown has begun, which
// waits for those that were admitted.
func (p *Process) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining {
		return false
	}
	p.parts.Add(1)
	return true
}

// leftoversOf hands over an agent's leftovers, each once. They stay listed until their
// sessions are: what an earlier process holds must not be claimed in between.
func (p *Process) leftoversOf(agent api.AgentID) []*leftover {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*leftover
	for _, l := range p.leftovers {
		if l.agent == agent && !l.taken {
			l.taken = true
			out = append(out, l)
		}
	}
	return out
}

// leftAgents are the agents with leftovers that nothing has taken up.
func (p *Process) leftAgents() []api.AgentID {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []api.AgentID
	for _, l := range p.leftovers {
		if !l.taken {
			out = append(out, l.agent)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// orphans takes up the leftovers of deleted agents.
func (p *Process) orphans(wanted []api.Agent) {
	for _, id := range p.leftAgents() {
		if slices.ContainsFunc(wanted, func(a api.Agent) bool { return a.ID == id }) {
			continue
		}
		p.log.Warn("an earlier life of this worker worked for an agent that is gone", "agent", id)
		p.abandon(p.newRecord(api.Agent{ID: id, AgentInput: api.AgentInput{Slug: id.String()}}))
	}
}

// resume starts the session of a leftover, whose command is gone or about to be.
func (p *Process) resume(rec *record, l *leftover, c api.Claim, lives bool, leaseEnd proc.BootTime) {
	s, err := p.newSession(rec, c, l.id)
	if err != nil {
		p.log.Error("an earlier session can't be taken up, its agent gets no work until the worker is started anew", "session", c.SessionID, "error", err)
		return
	}
	s.left = true
	goesOn := lives && !l.ended && !l.said.Valid && c.Trusted.Type != api.TypeCommand
	if s.claimContext = newClaimContext(context.Background(), p.boot, 0, leaseEnd, leaseEnd); goesOn {
		s.claimContext = newClaimContext(context.Background(), p.boot, p.stages.Total(), leaseEnd, rec.lastBeat().Add(s.silent))
	}
	if !lives {
		s.dead = c.ClaimID
	}
	p.start(s, func() {
		<-l.swept
		p.at("swept")
		switch {
		case l.ended: // the outbox has it
		case l.said.Valid: // its turn had ended: that is the result. contract 10.11
			s.conclude(s.restedAtCrash(l))
		case goesOn && l.err == nil:
			s.conclude(s.goOn())
		default:
			s.conclude(s.afterCrash(l, lives))
		}
	})
}

// goOn resumes a conversation that an earlier process of this worker held, under the same
// claim. While a question waits for people there is nothing to resume yet: the session is
// parked. contract 10.7
func (s *session) goOn() outcome {
	times, err := s.p.state.crashed(s.addr.Session)
	if err != nil {
		s.log.Error("the crash can't be counted", "error", err)
	}
	if times >= maxCrashes {
		return failed(&api.Failure{Code: CodeCrashed, Message: fmt.Sprintf("The worker was killed %d times while it ran this session.", times)}, "")
	}
	if s.claim.Session.Prompted != nil {
		return outcome{entryRelease, api.ReleaseRequest{Reason: "parked", Park: true}}
	}
	select {
	case s.p.slots <- struct{}{}:
		defer func() { <-s.p.slots }()
	case <-s.claimContext.ctx.Done():
		return s.ended(s.claimContext.cause(), "")
	}
	s.status("The worker was killed while the agent worked; it is resumed.")
	if err := s.hearAnew(s.claimContext.ctx); err != nil {
		return s.ended(err, "")
	}
	return s.execute(proc.NewRecord(s.addr.Session.String()), true)
}

// hearAnew reads again what people said. The answer to the registration is from before the
// last process's reports, and would deliver a finished turn's messages again. An error is the
// cause for which the session ends.
func (s *session) hearAnew(ctx context.Context) error {
	s.out.empty(ctx)
	var wait backoff
	for ctx.Err() == nil {
		got, err := s.p.client.Claim(ctx, s.addr.Agent, s.addr.Worker, s.addr.Session, api.ClaimRequest{InstanceID: s.p.instance})
		if err = ours(err, got.ClaimID, s.claimID()); err == nil {
			s.claim.Session, s.claim.Untrusted, s.claim.Conversation = got.Session, got.Untrusted, got.Conversation
			return nil
		}
		if refusedForGood(err) {
			s.log.Warn("the claim is gone", "error", err)
			return errLost
		}
		sleep(ctx, wait.next(api.RetryAfter(err)), s.retry)
	}
	return context.Cause(ctx)
}

// restedAtCrash is the outcome of a session whose worker was killed after the agent's turn had
// ended.
func (s *session) restedAtCrash(l *leftover) outcome {
	if l.err != nil {
		s.outlived()
		return failed(refuse(CodeCrashed, "The worker was killed after the agent's turn, and processes of it could not be ended: %v.", l.err), l.said.String)
	}
	return s.expectsAfterCrash().judge(durable(), completed(outcomeSuccess, l.said.String))
}

// afterCrash is the outcome of a session whose worker was killed while it ran.
func (s *session) afterCrash(l *leftover, lives bool) outcome {
	times, err := s.p.state.crashed(s.addr.Session)
	if err != nil {
		s.log.Error("the crash can't be counted", "error", err)
	}
	if l.err != nil {
		s.outlived()
		return failed(refuse(CodeCrashed, "The worker was killed while it ran the command, and processes of it could not be ended: %v.", l.err), "")
	}
	if !lives {
		return outcome{} // the coordinator has it already and waits for the claim to be drained
	}
	if times >= maxCrashes {
		return failed(&api.Failure{Code: CodeCrashed, Message: fmt.Sprintf("The worker was killed %d times while it ran this session.", times)}, "")
	}
	s.status("The worker was killed while it ran the command; the session is given back.")
	return released(reasonRestarted)
}

// forget removes another account's claims from the state file. Their processes are gone by
// then.
func (p *Process) forget() error {
	p.mu.Lock()
	all := p.leftovers
	p.leftovers = map[int64]*leftover{}
	p.mu.Unlock()
	for _, l := range all {
		<-l.swept
	}
	return p.state.forgetAll()
}
