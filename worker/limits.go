package worker

import (
	"cmp"
	"time"

	"stint/api"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// limits are what an owner's files say about an agent apart from its sessions' terms. They are
// read each time, so that a change takes effect at the next request for work. contract 10.5
type limits struct {
	sessions int           // how many may run here at once; 0 = as many as there are slots
	poll     time.Duration // how often to look for work; 0 = the process's own clock
	root     string        // of its workspaces; empty = the state directory's
}

// ownersFiles are what the owner's files say of one agent, as they were at one moment.
type ownersFiles struct {
	setup.Agent
	found   bool
	err     error             // of the owner's own file
	flow    workflow.Workflow // the last good one; without a path there is none
	flowErr error
}

func (p *Process) ownersFiles(slug string) (f ownersFiles) {
	if f.Agent, f.found, f.err = setup.Find(p.opts.StateDir).Agent(slug); f.err == nil && f.found && f.Workflow != "" {
		f.flow, f.flowErr = p.watcher(f.Workflow).Current()
	}
	return f
}

// limits are those of one agent. Files that can't be read limit nothing: the agent's sessions say
// what is wrong with them.
func (p *Process) limits(slug string) limits { return p.ownersFiles(slug).limits() }

func (f ownersFiles) limits() limits {
	if f.err != nil || !f.found {
		return limits{}
	}
	out := limits{root: f.Workspace.Root}
	if f.flow.Path == "" {
		return out
	}
	out.sessions = f.flow.Config.Agent.MaxConcurrent
	if out.root == "" {
		out.root = f.flow.Config.Workspace.Root
	}
	if f.flow.Says("polling.interval_ms") {
		out.poll = f.flow.Config.PollInterval
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
