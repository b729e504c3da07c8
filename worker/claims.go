package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"stint/api"
	"stint/worker/proc"
)

const workersPerRequest = 500 // the coordinator's limit

var errHurried = errors.New("the request for work is made anew")

// wakeClaims has the held request for work made again: the records that it names have changed,
// or a poll saw something that it missed.
func (p *Process) wakeClaims() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.woken)
	p.woken = make(chan struct{})
}

func (p *Process) claimsWake() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.woken
}

// claims asks for one session after another while a slot is free, until ctx ends.
func (p *Process) claims(ctx context.Context) {
	for {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		free := sync.OnceFunc(func() { <-p.slots })
		c, sent := p.claimNext(ctx)
		if c == nil {
			free()
			return // ctx has ended
		}
		rec := p.recordOf(c.WorkerID)
		if rec == nil {
			free()
			p.log.Warn("a claim came for a record that is gone", "session", c.SessionID)
			continue
		}
		if s := p.holder(c.SessionID); s != nil {
			p.finishLate(s, rec, *c, sent, free)
			continue
		}
		if rec.isEnding() {
			free()
			p.giveBack(rec, *c, reasonStopped)
			continue
		}
		p.take(rec, *c, sent, free)
	}
}

// claimNext asks until it has a claim; nil means that ctx ended. sent is the instant before
// the answered request was sent.
func (p *Process) claimNext(ctx context.Context) (c *api.Claim, sent proc.BootTime) {
	var wait backoff
	request := rand.Text()
	unsettled := false // a request with this id may have been granted without our learning of it
	for turn := 0; ctx.Err() == nil; turn++ {
		woken := p.claimsWake() // taken before the records are read
		ids := p.eligible(turn)
		if len(ids) == 0 {
			sleep(ctx, p.clocks.Poll, woken)
			continue
		}
		p.at("claim")
		sent = p.boot()
		c, err := p.hold(ctx, woken, api.ClaimNextRequest{
			WorkerIDs: ids, InstanceID: p.instance, WaitSeconds: int64(p.clocks.Hold / time.Second), RequestID: request,
		})
		switch {
		case c != nil:
			return c, sent
		case err == nil: // nothing came; the id stays, for an earlier request with it may still be under way
			unsettled = false
			if p.boot().Sub(sent) > time.Second {
				wait.reset()
			} else { // it wasn't held, as during a coordinator's shutdown
				sleep(ctx, wait.next(0), woken)
			}
		case errors.Is(err, errHurried):
			unsettled = true // the same request again: if it was granted, the answer is that claim
		default:
			unsettled = unsettled || api.Retriable(err)
			p.claimFailed(ctx, err, &wait, woken)
		}
	}
	if unsettled {
		p.settle(request)
	}
	return nil, 0
}

// hold makes one held request; it ends early when the worker is woken.
func (p *Process) hold(ctx context.Context, woken <-chan struct{}, in api.ClaimNextRequest) (*api.Claim, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answered := make(chan struct{})
	defer close(answered)
	go func() {
		select {
		case <-woken:
			cancel(errHurried)
		case <-answered:
		}
	}()
	c, err := p.client.ClaimNext(ctx, in)
	if c != nil {
		if err = ours(err, c.SessionID == 0 || c.ClaimID.IsZero() || c.ClaimID.Key <= 0, false); err != nil {
			return nil, err
		}
	}
	if err != nil && context.Cause(ctx) != nil {
		return nil, errHurried // or the worker ends, which the caller checks
	}
	return c, err
}

// claimFailed waits before the request is made again.
func (p *Process) claimFailed(ctx context.Context, err error, wait *backoff, woken <-chan struct{}) {
	switch api.CodeOf(err) {
	case api.CodeNotFound, api.CodeInstanceSuperseded:
		p.wakeAll() // a record is gone; its own beat says which
	}
	pause := wait.next(api.RetryAfter(err))
	p.log.Warn("no work could be asked for", "again in", pause, "error", err)
	sleepAwake(ctx, pause, woken)
}

// settle finds out, when the worker ends, whether its last request was granted without its
// learning of it, and gives that claim back.
func (p *Process) settle(request string) {
	ids := p.eligible(0)
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(p.reporting, 2*time.Second)
	defer cancel()
	c, err := p.client.ClaimNext(ctx, api.ClaimNextRequest{WorkerIDs: ids, InstanceID: p.instance, RequestID: request})
	if err != nil {
		p.log.Warn("the last request for work was not settled", "error", err)
		return
	}
	if rec := (*record)(nil); c != nil {
		if rec = p.recordOf(c.WorkerID); rec != nil {
			p.giveBack(rec, *c, reasonStopped)
		}
	}
}

// giveBack releases a claim that was not taken up. If that fails, the claim lapses.
func (p *Process) giveBack(rec *record, c api.Claim, reason string) {
	p.parts.Go(func() {
		ctx, cancel := context.WithTimeout(p.reporting, sendLimit)
		defer cancel()
		at := api.Held{Agent: rec.agent, Worker: c.WorkerID, Session: c.SessionID}
		if _, err := p.client.Release(ctx, at, api.ReleaseRequest{UnderClaim: under(c.ClaimID, p.instance), Reason: reason}); err != nil {
			p.log.Warn("a claim was not given back", "session", c.SessionID, "error", err)
		}
	})
}

// eligible lists the records to claim for; a request takes only so many, so they take turns.
// An agent is left out while it has a session that is over, in this process or an earlier one,
// but may have lapsed before that was reported: otherwise we could be given that very session,
// and run again what already has a result. So is one for which the disk has no room.
func (p *Process) eligible(turn int) []api.WorkerID {
	limits := p.allLimits() // reads files: not under the lock
	full := map[api.AgentID]bool{}
	for agent, l := range limits {
		if full[agent] = p.noRoom(l.root) != ""; full[agent] {
			p.makesRoom()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left := map[api.AgentID]bool{}
	running := map[api.AgentID]int{}
	for _, s := range p.sessions {
		left[s.rec.agent] = left[s.rec.agent] || s.overdue()
		if !s.isOver() {
			running[s.rec.agent]++
		}
	}
	for _, l := range p.leftovers {
		left[l.agent] = true
	}
	var out []api.WorkerID
	for _, r := range p.records {
		most := limits[r.agent].sessions
		r.crowded = most > 0 && running[r.agent] >= most
		if id, ok := r.eligible(); ok && !left[r.agent] && !r.crowded && !full[r.agent] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	if len(out) <= workersPerRequest {
		return out
	}
	from := turn * workersPerRequest % len(out)
	return slices.Concat(out[from:], out[:from])[:workersPerRequest]
}

func (p *Process) wakeAll() {
	for _, r := range p.allRecords() {
		r.wake()
	}
}

// poll looks now and then, on its own clock, at what could be claimed: a held request whose
// wake-up got lost on the way is then made again. contract 10.1
func (p *Process) poll(ctx context.Context) {
	for sleepAwake(ctx, p.pollEvery(), nil) {
		if len(p.slots) == cap(p.slots) && p.allBusy() {
			continue // no slot is free to claim for
		}
		for _, worker := range p.eligible(0) {
			rec := p.recordOf(worker)
			if rec == nil {
				continue
			}
			list, err := p.client.Poll(ctx, rec.agent, worker, p.instance, 0)
			if err != nil {
				rec.log.Debug("poll not answered", "error", err)
				continue
			}
			if list.PendingSignal != nil {
				rec.wake()
			}
			if slices.ContainsFunc(list.Items, func(c api.Claimable) bool { return c.Claimable }) {
				p.wakeClaims()
				break
			}
		}
	}
}

// allBusy reports whether every slot runs a session; the one that waits with a
// held request counts as free.
func (p *Process) allBusy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	busy := 0
	for _, s := range p.sessions {
		if !s.isOver() {
			busy++
		}
	}
	return busy >= cap(p.slots)
}
