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

// maxCrashes is how often a session may be running when its worker is killed
// before it fails instead of being given back: a command that takes its worker
// down with it must not do so for ever.
const maxCrashes = 3

// sweepGrace bounds each stage for what a killed worker left behind: its
// guardian has begun to end it already.
const sweepGrace = 2 * time.Second

// leftover is a claim in the journal of an earlier life of this worker.
type leftover struct {
	heldRow
	swept chan struct{} // closed when nothing of it runs any more, or can't be ended
	err   error         // why not; read after swept
}

// sweepLeftovers ends what earlier lives left running, at once and before
// anything is claimed. The channel is closed when all is done.
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
				return // it was gone before it was noted as ended
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

// takeOver takes up what an earlier life held for a record: results in the
// outbox are sent on; what was running is gone, and its session is given back.
//
// A command can't be resumed, and it didn't fail either: its worker was killed.
// So it is released with the reason worker_restarted, which doesn't count as a
// lapse, and runs again, sooner than by waiting for the lease to end. Only a
// session that has seen several workers die fails. contract 10.7
func (p *Process) takeOver(rec *record, claims []api.Claim, sent proc.BootTime, server api.Time) {
	if !p.admit() {
		return // this life is over; the next one takes it up
	}
	defer p.parts.Done()
	alive := map[api.ClaimID]api.Claim{}
	for _, c := range claims {
		alive[c.ClaimID] = c
	}
	for _, l := range p.leftoversOf(rec.agent) {
		c, lives := alive[l.claim.ClaimID]
		delete(alive, l.claim.ClaimID)
		if !lives {
			c = l.claim
		}
		p.resume(rec, l, c, lives, p.lease(sent, c.LeaseExpiresAt, server))
	}
	for _, c := range alive {
		// It was granted, and the earlier life died before it could note that.
		p.log.Info("a claim that was never taken up goes back", "session", c.SessionID)
		p.giveBack(rec, c, reasonRestarted)
	}
}

// abandon takes up what is left of a record that is gone: results go to the thread.
func (p *Process) abandon(rec *record) {
	if !p.admit() {
		return
	}
	defer p.parts.Done()
	for _, l := range p.leftoversOf(rec.agent) {
		p.resume(rec, l, l.claim, false, 0)
	}
}

// admit lets sessions be started by others than the loop that claims: it counts
// as one until the caller calls parts.Done, and reports false once the shutdown
// has begun, which waits for those that were admitted.
func (p *Process) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining {
		return false
	}
	p.parts.Add(1)
	return true
}

// leftoversOf hands over an agent's leftovers, each once.
func (p *Process) leftoversOf(agent api.AgentID) []*leftover {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*leftover
	for id, l := range p.leftovers {
		if l.agent == agent {
			out = append(out, l)
			delete(p.leftovers, id)
		}
	}
	return out
}

// leftAgents are the agents that something is left for.
func (p *Process) leftAgents() []api.AgentID {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []api.AgentID
	for _, l := range p.leftovers {
		out = append(out, l.agent)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// orphans takes up the leftovers of agents that are gone.
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
		p.log.Error("an earlier session can't be taken up", "session", c.SessionID, "error", err)
		return
	}
	goesOn := lives && !l.ended && c.Trusted.Type != api.TypeCommand
	if s.leash = newLeash(context.Background(), p.boot, 0, leaseEnd, leaseEnd); goesOn {
		s.leash = newLeash(context.Background(), p.boot, p.stages.Total(), leaseEnd, rec.lastBeat().Add(offlineAfter(c)))
	}
	if !lives {
		s.dead = c.ClaimID
	}
	p.start(s, func() {
		<-l.swept
		p.at("swept")
		switch {
		case l.ended: // the outbox has it
		case goesOn && l.err == nil:
			s.conclude(s.goOn())
		default:
			s.conclude(s.afterCrash(l, lives))
		}
	})
}

// goOn resumes a conversation that an earlier life of this worker held, under the
// same claim. While people are asked there is nothing to resume yet: the session
// is parked. contract 10.7
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
	case <-s.leash.ctx.Done():
		return s.ended(s.leash.cause(), "")
	}
	s.status("The worker was killed while the agent worked; it is resumed.")
	return s.execute(proc.NewRecord(s.addr.Session.String()), true)
}

// afterCrash is what becomes of a session whose worker was killed under it.
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
		return outcome{} // it is the coordinator's already; it waits for the claim to be drained
	}
	if times >= maxCrashes {
		return failed(&api.Failure{Code: CodeCrashed, Message: fmt.Sprintf("The worker was killed %d times while it ran this session.", times)}, "")
	}
	s.status("The worker was killed while it ran the command; the session is given back.")
	return released(reasonRestarted)
}

// forget empties the state file of another account's claims, whose processes are gone by then.
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
