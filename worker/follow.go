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

// follow keeps the records in step with the agents that this process is to
// serve, on a clock and whenever something about agents happens, until ctx ends.
// The records' own goroutines live as long as beats. It returns an error when
// nothing is left to serve.
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

// wanted lists the agents to serve: those that were named, else every local one
// of a type that this process runs and that runs as this user.
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

// withLeftovers adds the agents for which an earlier life still has something to hand in.
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

// asked reports whether an agent is one that this process is to serve.
func (p *Process) asked(a api.Agent) bool {
	if len(p.opts.Agents) == 0 {
		return a.RunsAsUserID == 0 || a.RunsAsUserID == p.me.UserID
	}
	return slices.Contains(p.opts.Agents, a.ID.String()) || slices.Contains(p.opts.Agents, a.Slug)
}

// adopt starts a record for each agent that has none, and registers one again
// whose agent has changed in what the registration says.
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
		stays, err := p.staysAway(ctx, a)
		if err != nil {
			return err
		}
		if stays {
			away = true
			p.log.Debug("the worker record for this agent was deleted or told to stop", "agent", a.Slug)
			continue
		}
		p.serveRecord(beats, beating, a)
	}
	p.mu.Lock()
	none := len(p.records) == 0 && len(p.stopped) == 0
	p.mu.Unlock()
	// contract 5.2: 3 when no record is left. A process that was given no agents
	// goes on while there is none, since one may be made.
	if none && !p.opts.Embedded && (away || (len(p.opts.Agents) > 0 && !p.opts.Register)) {
		return ErrNoRecord
	}
	p.orphans(wanted)
	return nil
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

// refresh registers the record again when the agent's folder has changed, so
// that the coordinator keeps sessions of one folder apart.
func (r *record) refresh(ctx context.Context, a api.Agent) {
	_, folder, _ := r.p.self(a)
	r.mu.Lock()
	stale := r.worker != 0 && r.ending == nil && folderKey(r.p.machine, folder) != r.folderKey
	r.mu.Unlock()
	if !stale {
		return
	}
	if err := r.register(ctx, a); err != nil {
		r.log.Warn("not registered with the new folder yet", "error", err)
	}
}

func (p *Process) relistAgents() {
	select {
	case p.relist <- struct{}{}:
	default: // it is due already
	}
}

// hear listens to the live events, which only hurry what the clocks would do:
// agents that come and go, sessions that are to end.
func (p *Process) hear(ctx context.Context) {
	var wait backoff
	last := int64(-1)
	for {
		opened := func() { // what happened before, while nobody listened
			p.relistAgents()
			p.kickAll()
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
			p.kickAll()
		}
	case e.Type == "signal_sent":
		p.heedSignal(e)
	case e.Type == "stop_requested", e.Type == "session_cancelled", e.Type == "session_stale":
		for _, s := range p.sessionsOf(e.AgentID) {
			if s.addr.Session == e.SessionID {
				s.rec.kick()
			}
		}
	}
}

// heedSignal has the record ask at once what it was told; one that was stopped
// may be told to start.
func (p *Process) heedSignal(e api.Event) {
	text, _ := e.Data["worker"].(string)
	worker, err := api.ParseWorkerID(text)
	if err != nil || worker == 0 {
		return
	}
	if rec := p.recordOf(worker); rec != nil {
		rec.kick()
	} else if p.wasStopped(worker) {
		p.relistAgents()
	}
}
