package worker

import (
	"cmp"
	"time"

	"stint/api"
	"stint/worker/setup"
)

// limits are what an owner's files say about an agent apart from its sessions' terms. They are
// read each time, so that a change takes effect at the next request for work. contract 10.5
type limits struct {
	sessions int           // how many may run here at once; 0 = as many as there are slots
	poll     time.Duration // how often to look for work; 0 = the process's own clock
}

// limits reads those of one agent. Files that can't be read limit nothing: the agent's
// sessions say what is wrong with them.
func (p *Process) limits(slug string) limits {
	own, found, err := setup.Find(p.opts.StateDir).Agent(slug)
	if err != nil || !found || own.Workflow == "" {
		return limits{}
	}
	flow, err := p.watcher(own.Workflow).Current()
	if err != nil && flow.Path == "" {
		return limits{}
	}
	out := limits{sessions: flow.Config.Agent.MaxConcurrent}
	if flow.Says("polling.interval_ms") {
		out.poll = flow.Config.PollInterval
	}
	return out
}

func (p *Process) allLimits() map[api.AgentID]limits {
	all := map[api.AgentID]limits{}
	for _, r := range p.allRecords() {
		r.mu.Lock()
		slug := r.slug
		r.mu.Unlock()
		all[r.agent] = p.limits(slug)
	}
	return all
}

// pollEvery is the shortest interval that any agent's workflow asks for, else the process's
// own.
func (p *Process) pollEvery() time.Duration {
	var least time.Duration
	for _, l := range p.allLimits() {
		if l.poll > 0 && (least == 0 || l.poll < least) {
			least = l.poll
		}
	}
	return cmp.Or(least, p.clocks.Poll)
}
