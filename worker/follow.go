package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"stint/api"
)

// follow keeps the records in step with the agents that this process is to serve, on a clock
// and whenever something about agents changes, until ctx ends. The records' own goroutines run
// as long as beats does. It returns an error when nothing is left to serve.
func (p *Process) follow(ctx, beats context.Context, beating *sync.WaitGroup) error {
	var wait backoff
	for first := true; ; {
		if err := p.over(); err != nil {
			return err
		}
		wanted, err := p.wanted(ctx, first)
		pause := p.clocks.Agents
		switch {
		case err == nil:
			first = false
			wait.reset()
			if err := p.adopt(ctx, beats, beating, wanted); err != nil {
				return err
			}
		case ctx.Err() != nil:
			return nil
		case first && !api.Retriable(err):
			return err
		default:
			pause = min(wait.next(api.RetryAfter(err)), pause)
			p.log.Warn("the agents can't be listed", "again in", pause, "error", err)
		}
		if !sleepAwake(ctx, pause, p.relist) {
			return nil
		}
	}
}

// wanted lists the agents to serve: the named ones, or else every local one of a type that
// this process runs and that runs as this user.
func (p *Process) wanted(ctx context.Context, first bool) ([]api.Agent, error) {
	var out []api.Agent
	for _, ref := range p.opts.Agents {
		a, err := p.client.Agent(ctx, ref)
		if api.CodeOf(err) == api.CodeNotFound && !first {
			continue // it was deleted; its record's beat will say so
		}
		if err != nil {
			return nil, fmt.Errorf("look up the agent %q: %w", ref, err)
		}
		out = append(out, a)
	}
	if len(p.opts.Agents) > 0 {
		return p.withLeftovers(ctx, out)
	}
	for page := (api.Page{Limit: 200}); ; {
		list, err := p.client.Agents(ctx, page)
		if err != nil {
			return nil, fmt.Errorf("list the agents: %w", err)
		}
		for _, a := range list.Items {
			if a.Mode == api.Local && slices.Contains(p.types(), a.Type) && (p.asked(a) || slices.Contains(p.leftAgents(), a.ID)) {
				out = append(out, a)
			}
		}
		if list.NextCursor == "" {
			return out, nil
		}
		page.Cursor = list.NextCursor
	}
}

// withLeftovers adds the agents for which an earlier process still has something to hand in.
func (p *Process) withLeftovers(ctx context.Context, named []api.Agent) ([]api.Agent, error) {
	for _, id := range p.leftAgents() {
		if slices.ContainsFunc(named, func(a api.Agent) bool { return a.ID == id }) {
			continue
		}
		a, err := p.client.Agent(ctx, id.String())
		if api.CodeOf(err) == api.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up an agent that this worker served before: %w", err)
		}
		named = append(named, a)
	}
	return named, nil
}

// asked reports whether this process is to serve an agent.
func (p *Process) asked(a api.Agent) bool {
	if len(p.opts.Agents) == 0 {
		return a.RunsAsUserID == 0 || a.RunsAsUserID == p.me.UserID
	}
	return slices.Contains(p.opts.Agents, a.ID.String()) || slices.Contains(p.opts.Agents, a.Slug)
}

// adopt starts a record for each agent that has none, and registers one again when something
// in the agent that the registration mentions has changed.
func (p *Process) adopt(ctx, beats context.Context, beating *sync.WaitGroup, wanted []api.Agent) error {
	away := false
	for _, a := range wanted {
		p.mu.Lock()
		rec := p.records[a.ID]
		p.mu.Unlock()
		if rec != nil {
			rec.refresh(beats, a)
			continue
		}
		if p.doesNotFit(a) {
			continue
		}
		stays, err := p.staysAway(ctx, a)
		if err != nil {
			return err
		}
		if stays {
			away = true
			p.log.Debug("the worker record for this agent was deleted or asked to stop", "agent", a.Slug)
			continue
		}
		p.serveRecord(beats, beating, a)
	}
	p.mu.Lock()
	none := len(p.records) == 0 && len(p.stopped) == 0
	var refused error
	for id, m := range p.unfit {
		if slices.ContainsFunc(wanted, func(a api.Agent) bool { return a.ID == id }) {
			refused = m.why
		}
	}
	p.mu.Unlock()
	if none && !p.opts.Embedded && refused != nil {
		return refused
	}
	// contract 5.2: 3 when no record is left. A process that was given no agents keeps going
	// while there is none, since one may be created.
	if none && !p.opts.Embedded && (away || (len(p.opts.Agents) > 0 && !p.opts.Register)) {
		return ErrNoRecord
	}
	p.orphans(wanted)
	return nil
}

// misfit is an agent for which the coordinator refused this process.
type misfit struct {
	version int64 // of the agent
	why     error
}

// doesNotFit reports whether this process was refused for the agent as it is now.
func (p *Process) doesNotFit(a api.Agent) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, refused := p.unfit[a.ID]
	if refused && m.version != a.Version {
		delete(p.unfit, a.ID)
		return false
	}
	return refused
}

// serveRecord runs an agent's record until beats ends or the record is gone.
func (p *Process) serveRecord(beats context.Context, beating *sync.WaitGroup, a api.Agent) {
	rec := p.newRecord(a)
	rec.idle = !p.asked(a)
	p.mu.Lock()
	p.records[a.ID] = rec
	p.mu.Unlock()
	beating.Go(func() {
		why := rec.run(beats, a)
		if beats.Err() != nil {
			return
		}
		rec.log.Warn("the worker record has ended", "reason", why)
		p.left(rec, why)
	})
}

// refresh registers the record again when the agent's folder has changed, or whether its
// sessions share it, so that the coordinator keeps sessions of one folder apart and no others; or
// which task updates are left. All may come from the owner's files: from a newly accepted workflow
// file, for example.
func (r *record) refresh(ctx context.Context, a api.Agent) {
	now := r.p.self(a)
	r.mu.Lock()
	stale := r.worker != 0 && r.ending == nil && !now.sameWork(r.said)
	r.mu.Unlock()
	if !stale {
		return
	}
	if err := r.register(ctx, a); err != nil {
		r.log.Warn("not registered with the new settings yet", "error", err)
	}
}

func (p *Process) relistAgents() {
	select {
	case p.relist <- struct{}{}:
	default: // it is due already
	}
}

// hear listens to the live events, which only bring forward what the clocks would do: agents
// that come and go, sessions that are to end.
func (p *Process) hear(ctx context.Context) {
	var wait backoff
	last := int64(-1)
	for {
		opened := func() { // what happened before anybody listened
			p.relistAgents()
			p.wakeAll()
		}
		err := p.client.Follow(ctx, last, opened, func(e api.Event) error {
			last = e.Seq
			wait.reset()
			p.heed(e)
			return nil
		})
		if errors.Is(err, api.ErrReset) {
			last = -1
		}
		p.log.Debug("live events ended", "error", err)
		if !sleepAwake(ctx, wait.next(api.RetryAfter(err)), nil) {
			return
		}
	}
}

func (p *Process) heed(e api.Event) {
	switch {
	case strings.HasPrefix(e.Type, "agent_"), e.Type == "worker_deleted":
		p.relistAgents()
		if e.Type == "worker_deleted" || e.Type == "agent_deleted" {
			p.wakeAll()
		}
	case e.Type == "signal_sent", e.Type == api.EventApprovalRemoval:
		p.heedSignal(e)
	case e.Type == api.EventLandingRequested:
		p.mu.Lock()
		rec := p.records[e.AgentID]
		p.mu.Unlock()
		if rec != nil {
			rec.wake() // the beat says whether it is the one that is asked
		}
	case e.Type == "stop_requested", e.Type == "session_cancelled", e.Type == "session_stale":
		for _, s := range p.sessionsOf(e.AgentID) {
			if s.addr.Session == e.SessionID {
				s.rec.wake()
			}
		}
	}
}

// heedSignal has the record ask at once which signal it was sent, or what it is to remove; one
// that was stopped may be asked to start.
func (p *Process) heedSignal(e api.Event) {
	text, _ := e.Data["worker"].(string)
	worker, err := api.ParseWorkerID(text)
	if err != nil || worker == 0 {
		return
	}
	if rec := p.recordOf(worker); rec != nil {
		rec.wake()
	} else if p.wasStopped(worker) {
		p.relistAgents()
	}
}
