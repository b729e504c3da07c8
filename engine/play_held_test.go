package engine_test

import (
	"fmt"
	"slices"
	"time"

	"stint/api"
)

// write judges a write under a claim: it is accepted exactly while the claim holds.
func (p *play) write(verb string, do func(g grip) error) (g grip, ok bool) {
	p.Helper()
	if g, ok = pick(p, "claim", p.inUse()); !ok {
		return g, false
	}
	p.judge(verb, do(g))
	return g, true
}

func (p *play) renew() {
	p.write("renew", func(g grip) error {
		l, err := g.k.Renew(g.Claim)
		if err == nil && l.LeaseExpiresAt.Before(p.w.Clock.Now().Add(time.Duration(g.LeaseSeconds)*time.Second).Truncate(time.Microsecond)) {
			p.broken("renewed until %s only", l.LeaseExpiresAt)
		}
		return err
	})
}

func (p *play) extend() {
	p.write("extend", func(g grip) error {
		before := p.w.Get(g.SessionID).LeaseExpiresAt
		in := api.ExtendRequest{UnderClaim: g.k.Under(g.ClaimID), AddSeconds: []int64{1, 600, 14400, 1 << 62}[p.d.draw("add", 4)]}
		l, err := p.w.Extend(p.ctx(), g.k.Caller, g.k.ID, g.SessionID, in)
		if err == nil && (l.LeaseExpiresAt.Before(before.Time) || l.LeaseExpiresAt.After(p.w.Clock.Now().Add(4*time.Hour)) && l.LeaseExpiresAt.After(before.Time)) {
			p.broken("extended from %s to %s", before, l.LeaseExpiresAt)
		}
		return err
	})
}

func (p *play) report() {
	p.write("report", func(g grip) error {
		proof, key := g.k.Under(g.ClaimID), fmt.Sprintf("%d", p.d.draw("key", 3))
		switch p.d.draw("what", 3) {
		case 0:
			_, err := p.w.AddActivity(p.ctx(), g.k.Caller, g.k.ID, g.SessionID, api.ActivityInput{UnderClaim: proof, Key: key, Type: api.ActivityProgress, Text: "on"})
			return err
		case 1:
			_, err := p.w.AddItems(p.ctx(), g.k.Caller, g.k.ID, g.SessionID, api.ItemsRequest{UnderClaim: proof, Items: []api.ItemInput{{ClientID: key, Kind: api.ItemText, Text: "line"}, {Kind: api.ItemText, Text: "more"}}})
			return err
		}
		name := "conversation " + key
		_, err := p.w.PatchSession(p.ctx(), g.k.Caller, g.k.ID, g.SessionID, api.SessionPatch{UnderClaim: proof, AgentSessionID: &name, Usage: &api.Usage{Turns: int64(p.steps), CostMicros: int64(100 * p.d.draw("cost", 5))}})
		return err
	})
}

// ask opens a prompt, or withdraws the open one.
func (p *play) ask() {
	g, ok := pick(p, "claim", p.inUse())
	if !ok {
		return
	}
	s := p.w.Get(g.SessionID)
	if s.Status == api.AwaitingInput && p.yes("withdraw", 2) {
		_, err := p.w.PatchSession(p.ctx(), g.k.Caller, g.k.ID, g.SessionID, api.SessionPatch{UnderClaim: g.k.Under(g.ClaimID), Status: api.Active})
		p.judge("withdraw", err)
		return
	}
	var codes []api.Code
	switch {
	case s.Status == api.AwaitingInput:
		codes = append(codes, api.CodePromptOpen)
	case !s.StopRequestedAt.IsZero():
		codes = append(codes, api.CodeConflict)
	}
	_, err := g.k.Ask(g.Claim, "May I?")
	p.judge("ask", err, codes...)
}

// ending is one way to finish a claim: the call, and the statuses it may lead to.
type ending struct {
	verb string
	do   func(g grip) (api.Finished, error)
	to   []api.Status
}

func (p *play) complete() {
	if p.yes("and claims the next", 3) {
		p.completeAndGoOn()
		return
	}
	p.finish(ending{"complete", func(g grip) (api.Finished, error) { return g.k.Complete(g.Claim, "well") }, []api.Status{api.Complete}})
}

// completeAndGoOn completes a claim and asks for the next one in the same call,
// which grants what claim-next would.
func (p *play) completeAndGoOn() {
	g, ok := pick(p, "claim", p.inUse())
	if !ok {
		return
	}
	p.requests++
	next := api.ClaimNextOf{WorkerIDs: []api.WorkerID{g.k.ID}, RequestID: fmt.Sprintf("request %d", p.requests)}
	got, err := p.w.Engine.Complete(p.ctx(), g.k.Caller, g.k.ID, g.SessionID, api.CompleteRequest{UnderClaim: g.k.Under(g.ClaimID), ClaimNext: &next})
	p.judge("complete and go on", err)
	if got.Claim != nil {
		p.took(g.k, *got.Claim, false)
	}
}

func (p *play) fail() {
	p.finish(ending{"fail", func(g grip) (api.Finished, error) { return g.k.Fail(g.Claim, "AGENT_EXIT_NONZERO") }, []api.Status{api.Failed}})
}

func (p *play) release() {
	var change func(*api.ReleaseRequest)
	to := []api.Status{api.Queued, api.Cancelled}
	switch p.d.draw("how", 4) {
	case 0:
		at := p.w.Clock.Now().Add(time.Duration(p.d.draw("seconds", 60)-10) * time.Second)
		change = func(in *api.ReleaseRequest) { in.NotBefore = api.Time{Time: at} }
		to = append(to, api.Pending)
	case 1, 2:
		change = func(in *api.ReleaseRequest) { in.Park = true }
		to = []api.Status{api.Pending, api.Cancelled}
	default:
		change = func(*api.ReleaseRequest) {}
	}
	p.finish(ending{"release", func(g grip) (api.Finished, error) { return g.k.Release(g.Claim, change) }, to})
}

// finish ends a claim, sometimes twice, and then in another way, which must change nothing.
func (p *play) finish(e ending) {
	g, ok := pick(p, "claim", p.inUse())
	if !ok {
		return
	}
	got, err := e.do(g)
	if p.judge(e.verb, err, api.CodeConflict) != nil {
		if e.verb != "release" {
			p.broken("%s of a live claim was refused: %v", e.verb, err)
		}
		return // there was no prompt to park on
	}
	if !slices.Contains(e.to, got.Session.Status) {
		p.broken("%s made the session %s", e.verb, got.Session.Status)
	}
	if !p.yes("again", 5) {
		return
	}
	before := p.w.Hash()
	if again, err := e.do(g); err != nil || again.Session.Status != p.status(g.SessionID) {
		p.broken("the second %s answered %v", e.verb, err)
	}
	_, err = g.k.Complete(g.Claim, "otherwise")
	p.judge("finish otherwise", err, api.CodeOutcomeConflict)
	if p.w.Hash() != before {
		p.broken("repeating %s changed something", e.verb)
	}
}

// useDeadClaim does any of the writes under a claim that is over: whatever the answer, nothing
// may change (contract 4.3, I3).
func (p *play) useDeadClaim() {
	g, ok := pick(p, "dead claim", p.dead())
	if !ok {
		return
	}
	k, s, proof := g.k, g.SessionID, g.k.Under(g.ClaimID)
	switch p.d.draw("forge", 5) {
	case 0:
		proof.ClaimID.Secret[3] ^= 1
	case 1:
		if other, ok := pick(p, "other session", p.sessions); ok && p.agentOf(other) == p.agentOf(s) {
			s = other
		}
	}
	ctx, c := p.ctx(), k.Caller
	writes := []func() error{
		func() error { _, err := p.w.Renew(ctx, c, k.ID, s, api.RenewRequest{UnderClaim: proof}); return err },
		func() error {
			_, err := p.w.Extend(ctx, c, k.ID, s, api.ExtendRequest{UnderClaim: proof, AddSeconds: 60})
			return err
		},
		func() error {
			_, err := p.w.Complete(ctx, c, k.ID, s, api.CompleteRequest{UnderClaim: proof, Result: "late"})
			return err
		},
		func() error {
			_, err := p.w.Fail(ctx, c, k.ID, s, api.FailRequest{UnderClaim: proof, Code: "LATE"})
			return err
		},
		func() error {
			_, err := p.w.Release(ctx, c, k.ID, s, api.ReleaseRequest{UnderClaim: proof, Reason: "late"})
			return err
		},
		func() error {
			_, err := p.w.AddActivity(ctx, c, k.ID, s, api.ActivityInput{UnderClaim: proof, Type: api.ActivityProgress, Text: "late"})
			return err
		},
		func() error {
			_, err := p.w.AddItems(ctx, c, k.ID, s, api.ItemsRequest{UnderClaim: proof, Items: []api.ItemInput{{Kind: api.ItemText, Text: "late"}}})
			return err
		},
		func() error {
			_, err := p.w.PatchSession(ctx, c, k.ID, s, api.SessionPatch{UnderClaim: proof, Usage: &api.Usage{Turns: 1 << 20}})
			return err
		},
		func() error {
			_, err := p.w.PatchSession(ctx, c, k.ID, s, api.SessionPatch{UnderClaim: proof, Status: api.AwaitingInput, Prompt: &api.PromptInput{Text: "late"}})
			return err
		},
	}
	before := p.w.Hash()
	err := writes[p.d.draw("write", len(writes))]()
	p.stale++
	p.judge("use a dead claim", err, api.CodeClaimNotActive, api.CodeOutcomeConflict)
	if err == nil {
		p.broken("a write under a dead claim was accepted")
	}
	if p.w.Hash() != before {
		p.broken("a write under a dead claim changed something")
	}
}
