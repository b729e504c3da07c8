package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/engine/enginetest"
)

// check is what must hold after every step.
func (p *play) check() {
	p.Helper()
	p.meet()
	found, err := p.w.Engine.Check(p.ctx())
	if err != nil {
		p.broken("check: %v", err)
	}
	if len(found) > 0 {
		p.broken("broken promises: %v", found)
	}
	p.checkWaiting()
}

// checkWaiting is I15: what waitingFor names is what a claim would be answered, and claim-next
// and poll agree with both. Claims are tried and undone.
func (p *play) checkWaiting() {
	p.Helper()
	free := map[api.WorkerID][]api.Session{} // what each worker could claim
	byAgent := map[api.AgentID][]*enginetest.Worker{}
	for _, k := range p.workers {
		byAgent[k.Agent] = append(byAgent[k.Agent], k)
	}
	for _, id := range p.ids("SELECT CAST(id AS TEXT) FROM sessions WHERE status IN ('pending', 'queued', 'stale') ORDER BY id") {
		s := p.w.Get(id)
		if s.WaitingFor == nil {
			p.broken("session %s is %s and waits for nothing", s.ID, s.Status)
		}
		gates := map[string]int{}
		for _, k := range byAgent[s.AgentID] {
			refused, err := p.w.TryClaim(p.ctx(), k.Caller, k.ID, s.ID, api.ClaimRequest{InstanceID: k.Instance})
			if err != nil {
				p.broken("try to claim session %s: %v", s.ID, err)
			}
			if refused == nil {
				gates[p.unasked(k)]++
				free[k.ID] = append(free[k.ID], s)
				continue
			}
			gates[refusal(refused).Gate]++
		}
		if !agrees(s.WaitingFor.Code, gates, len(byAgent[s.AgentID])) {
			p.broken("session %s (%s) waits for %s, but claims are answered %v", s.ID, s.Status, s.WaitingFor.Code, gates)
		}
	}
	for _, k := range p.workers {
		p.checkNext(k, free[k.ID])
		p.checkPoll(k, free[k.ID])
	}
}

// unasked is what keeps a worker that could claim from asking, as far as the rows show.
func (p *play) unasked(k *enginetest.Worker) string {
	p.Helper()
	return p.row("SELECT CASE WHEN state = 'stale' OR lost_at > last_beat_at THEN 'worker_silent' ELSE 'ready' END FROM workers WHERE id = ?1", k.ID)
}

// agrees reports whether the named reason is what claims are answered.
func agrees(code string, gates map[string]int, workers int) bool {
	switch {
	case code == "no_worker":
		return workers == 0
	case code == "ready" || strings.HasPrefix(code, "worker_") || code == "folder_busy" || code == "affinity":
		return gates[code] > 0 && (code == "ready" || gates["ready"] == 0)
	default: // the session's or the agent's own: the same for every worker
		return gates[code] == workers
	}
}

// checkNext: claim-next takes the best of what the worker could claim.
func (p *play) checkNext(k *enginetest.Worker, free []api.Session) {
	p.Helper()
	got, err := p.w.TryClaimNext(p.ctx(), k.Caller, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{k.ID}, InstanceID: k.Instance})
	if err != nil {
		p.broken("try claim-next: %v", err)
	}
	var want api.SessionID
	if len(free) > 0 {
		want = slices.MinFunc(free, func(a, b api.Session) int {
			switch {
			case a.Priority != b.Priority:
				return int(b.Priority - a.Priority)
			case p.waitingWorker(a.ID) != p.waitingWorker(b.ID):
				return cmp.Compare(p.waitingWorker(a.ID), p.waitingWorker(b.ID))
			}
			return int(a.ID - b.ID)
		}).ID
	}
	if got == want {
		return
	}
	why := "nothing"
	if got != 0 {
		refused, err := p.w.TryClaim(p.ctx(), k.Caller, k.ID, got, api.ClaimRequest{InstanceID: k.Instance})
		why = fmt.Sprintf("a session whose claim is answered %v %v", refused, err)
	}
	p.broken("claim-next of worker %s takes %s, %q; the best it could claim is %q", k.ID, why, got, want)
}

// waitingWorker is a session's place among those of its priority.
func (p *play) waitingWorker(s api.SessionID) int64 {
	p.Helper()
	return p.number("SELECT place_at FROM sessions WHERE id = ?1", s)
}

func (p *play) checkPoll(k *enginetest.Worker, free []api.Session) {
	p.Helper()
	list, err := p.w.Poll(p.ctx(), k.Caller, k.ID, k.Instance, 0, 0)
	if err != nil {
		p.broken("poll: %v", err)
	}
	for _, c := range list.Items {
		can := slices.ContainsFunc(free, func(s api.Session) bool { return s.ID == c.Session.ID })
		if c.Claimable != can {
			p.broken("poll says claimable %v of session %s, a claim says %v", c.Claimable, c.Session.ID, can)
		}
		if !can && c.Session.WaitingFor == nil {
			p.broken("poll doesn't say why session %s can't be claimed", c.Session.ID)
		}
	}
	for _, s := range free {
		if !slices.ContainsFunc(list.Items, func(c api.Claimable) bool { return c.Session.ID == s.ID }) {
			p.broken("poll leaves out session %s, which worker %s could claim", s.ID, k.ID)
		}
	}
}
