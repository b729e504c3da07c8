package engine_test

import (
	"fmt"
	"slices"

	"stint/api"
	"stint/engine/enginetest"
)

func (p *play) makeWorker() {
	a, ok := pick(p, "agent", p.agents)
	if !ok || len(p.workers) >= 8 {
		return
	}
	k := p.w.Worker(api.Agent{ID: a}, func(in *api.WorkerInput) {
		in.MaxConcurrent = int64(1 + p.d.draw("cap", 2))
		in.ProcessID = fmt.Sprintf("process-%d", p.d.draw("process", 3))
		in.FolderKey = []string{"", "folder"}[p.d.draw("folder", 2)]
		in.FolderShared = p.yes("shared", 2)
		if left := p.someUpdates(); len(left) < len(api.TaskUpdates) {
			in.TaskUpdates = &left
		}
		for _, l := range lots[1:] {
			if !p.yes("lacks "+l, 3) {
				in.Labels = append(in.Labels, l)
			}
		}
	})
	p.workers = append(p.workers, k)
	p.judge("make worker", nil)
}

// forget is a worker record that is gone.
func (p *play) forget(k *enginetest.Worker) {
	p.workers = slices.DeleteFunc(slices.Clone(p.workers), func(o *enginetest.Worker) bool { return o.ID == k.ID })
}

func (p *play) deleteWorker() {
	k, ok := pick(p, "worker", p.workers)
	if !ok {
		return
	}
	p.judge("delete worker", p.w.DeleteWorker(p.ctx(), p.w.Owner, k.ID))
	p.forget(k)
	_, err := p.w.Engine.Beat(p.ctx(), k.Caller, k.ID, api.Beat{InstanceID: k.Instance})
	p.judge("beat of a deleted worker", err, api.CodeNotFound)
}

// registerAgain is a worker process that starts again: with proof of the one before, or
// without, which only works when that one is silent.
func (p *play) registerAgain() {
	k, ok := pick(p, "worker", p.workers)
	if !ok {
		return
	}
	w, err := p.w.Engine.Worker(p.ctx(), p.w.Owner, k.ID)
	if err != nil {
		p.broken("read worker %s: %v", k.ID, err)
	}
	a, err := p.w.Engine.Agent(p.ctx(), p.w.Owner, k.Agent.String())
	if err != nil {
		p.broken("read agent %s: %v", k.Agent, err)
	}
	if a.Mode != w.Mode {
		return // it would be another record
	}
	p.requests++
	next := *k
	next.Instance = fmt.Sprintf("boot-again-%d", p.requests)
	in := api.WorkerInput{Name: k.Name, InstanceID: next.Instance, ProcessID: "process-0", MaxConcurrent: w.MaxConcurrent, Labels: w.Labels, TaskUpdates: &w.TaskUpdates}
	proof := p.yes("proof", 2)
	if proof {
		in.PreviousInstanceID = k.Instance
	}
	held := p.live()
	got, err := p.w.RegisterWorker(p.ctx(), p.w.Owner, k.Agent.String(), in)
	if r := p.judge("register again", err, api.CodeWorkerRunning); r != nil {
		if proof || w.State == api.Offline {
			p.broken("a worker that may start was refused: %v", err)
		}
		return
	}
	if got.Worker.ID != k.ID {
		p.broken("worker %s came back as %s", k.ID, got.Worker.ID)
	}
	taken := 0
	for i, g := range p.claims {
		if g.k.ID != k.ID || !slices.ContainsFunc(held, func(h grip) bool { return h.ClaimID == g.ClaimID }) {
			continue
		}
		if handed := slices.ContainsFunc(got.Claims, func(c api.Claim) bool { return c.ClaimID == g.ClaimID }); handed != proof {
			p.broken("claim %s was handed over: %v, with proof: %v", g.ClaimID.Key, handed, proof)
		}
		if proof {
			p.claims[i].k = &next
			taken++
		}
	}
	if len(got.Claims) != taken {
		p.broken("%d claims were handed over, the process before held %d", len(got.Claims), taken)
	}
	p.workers[slices.Index(p.workers, k)] = &next
	_, err = p.w.Engine.Beat(p.ctx(), k.Caller, k.ID, api.Beat{InstanceID: k.Instance})
	p.judge("beat of the process before", err, api.CodeInstanceSuperseded)
}

func (p *play) beat() {
	k, ok := pick(p, "worker", p.workers)
	if !ok {
		return
	}
	p.beatOf(k, false)
}

func (p *play) beatAll() {
	for _, k := range p.workers {
		p.beatOf(k, false)
	}
}

func (p *play) goodbye() {
	if k, ok := pick(p, "worker", p.workers); ok {
		p.beatOf(k, true)
	}
}

// beatOf lists some of the worker's claims, expired ones among them, and reports the closed
// ones as drained.
func (p *play) beatOf(k *enginetest.Worker, goodbye bool) {
	in := api.Beat{InstanceID: k.Instance, Goodbye: goodbye}
	want := map[api.ClaimID]string{}
	for _, g := range p.claims {
		if g.k.ID != k.ID || p.yes("leave out", 4) {
			continue
		}
		in.ClaimIDs = append(in.ClaimIDs, g.ClaimID)
		switch by := p.closedBy(g); {
		case by == "cancel":
			want[g.ClaimID] = api.BeatCancelled
		case !p.alive(g) || goodbye:
			want[g.ClaimID] = api.BeatLost
		case !p.w.Get(g.SessionID).StopRequestedAt.IsZero():
			want[g.ClaimID] = api.BeatStopRequested
		default:
			want[g.ClaimID] = api.BeatRenewed
		}
		if p.closedBy(g) != "" && p.yes("drained", 2) {
			in.Drained = append(in.Drained, g.ClaimID)
		}
	}
	got, err := p.w.Engine.Beat(p.ctx(), k.Caller, k.ID, in)
	p.judge("beat", err)
	for i, c := range got.Claims {
		if c.ClaimID != in.ClaimIDs[i] || c.State != want[c.ClaimID] {
			p.broken("the beat says %s of claim %s, want %s", c.State, c.ClaimID.Key, want[c.ClaimID])
		}
	}
	if p.yes("again", 5) {
		_, err := p.w.Engine.Beat(p.ctx(), k.Caller, k.ID, in)
		p.judge("beat again", err)
	}
}

func (p *play) claim() {
	k, ok := pick(p, "worker", p.workers)
	if !ok {
		return
	}
	sessions := p.sessions
	if !p.yes("any", 5) {
		sessions = p.sessionsOf(k.Agent)
	}
	if s, ok := pick(p, "session", sessions); ok {
		p.claimFor(k, s)
	}
}

func (p *play) claimFor(k *enginetest.Worker, s api.SessionID) {
	before := p.w.Get(s)
	codes := []api.Code{api.CodeAlreadyClaimed, api.CodeNotReady, api.CodeWorkerNotEligible, api.CodeSessionTerminal}
	if before.AgentID != k.Agent {
		codes = []api.Code{api.CodeNotFound}
	}
	in := api.ClaimRequest{InstanceID: k.Instance}
	switch p.d.draw("lease", 4) {
	case 0:
		n := int64(60 + 60*p.d.draw("minutes", 3))
		in.LeaseSeconds = &n
	case 1:
		n := int64(1) << 40
		in.LeaseSeconds = &n
	case 2:
		if p.yes("too short", 4) {
			n := int64(p.d.draw("seconds", 60))
			in.LeaseSeconds = &n
			codes = []api.Code{api.CodeInvalidLease, api.CodeNotFound}
		}
	}
	if g, ok := pick(p, "finish of", p.dead()); ok && p.yes("finishes", 6) {
		in.FinishOf = g.ClaimID
	}
	c, err := p.w.Engine.Claim(p.ctx(), k.Caller, k.ID, s, in)
	if r := p.judge("claim", err, codes...); r != nil {
		if r.Code == api.CodeAlreadyClaimed && (r.Holder == "" || r.ExpiresAt.IsZero()) {
			p.broken("already_claimed names the holder %q until %q", r.Holder, r.ExpiresAt)
		}
		if r.Code == api.CodeSessionTerminal && !p.status(s).Terminal() {
			p.broken("session_terminal of a session that is %s", p.status(s))
		}
		return
	}
	if in.LeaseSeconds != nil && *in.LeaseSeconds > 14400 && !c.CappedToMax {
		p.broken("a lease of %d s was granted uncapped", c.LeaseSeconds)
	}
	p.took(k, c, !in.FinishOf.IsZero())
	if p.yes("again", 5) {
		same, err := p.w.Engine.Claim(p.ctx(), k.Caller, k.ID, s, in)
		if p.judge("claim again", err); same.ClaimID != c.ClaimID || same.Fence != c.Fence {
			p.broken("the same worker's second claim is another one")
		}
	}
}

func (p *play) claimNext() {
	k, ok := pick(p, "worker", p.workers)
	if !ok {
		return
	}
	p.requests++
	in := api.ClaimNextRequest{WorkerIDs: []api.WorkerID{k.ID}, InstanceID: k.Instance, RequestID: fmt.Sprintf("request %d", p.requests)}
	got, err := p.w.ClaimNext(p.ctx(), k.Caller, in)
	p.judge("claim next", err)
	if got == nil {
		return
	}
	p.took(k, *got, false)
	if p.yes("again", 5) {
		same, err := p.w.ClaimNext(p.ctx(), k.Caller, in)
		if p.judge("claim next again", err); same == nil || same.ClaimID != got.ClaimID {
			p.broken("the same request was answered with another claim")
		}
	}
}
