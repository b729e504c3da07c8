package main

import (
	"context"
	"fmt"

	"stint/api"
)

func (h *hand) held() api.Held {
	return api.Held{Agent: h.claim.Session.AgentID, Worker: h.claim.WorkerID, Session: h.claim.SessionID}
}

func (h *hand) proof() api.UnderClaim {
	return api.UnderClaim{ClaimID: h.claim.ClaimID, InstanceID: h.instance()}
}

var fairHeld = []api.Code{api.CodeClaimNotActive}

// act does one step under the claim.
func (h *hand) act(l *serverRun) {
	if h.steps <= 0 {
		h.finish(l)
		return
	}
	h.steps--
	switch h.rand.IntN(8) {
	case 0:
		h.renew(l)
	case 1:
		h.extend(l)
	case 2:
		h.activity(l)
	case 3, 4:
		h.items(l)
	case 5:
		h.report(l)
	case 6:
		h.prompt(l)
	case 7:
		h.beat(l)
	}
}

// lost drops a claim that was refused, and what was produced under it goes to the thread.
func (h *hand) lost(l *serverRun) {
	c := *h.claim
	h.claim = nil
	h.drained = append(h.drained, c.ClaimID)
	if h.rand.IntN(2) == 0 {
		h.late(l, c, h.next("is late"))
	}
}

func (h *hand) late(l *serverRun, c api.Claim, text string) {
	// Its lease may be over but not yet taken away: then it is a conflict.
	_, v := ask(l, "late result", []api.Code{api.CodeConflict}, func(ctx context.Context) (struct{}, error) {
		return done(l.client.KeepLateResult(ctx, c.Session.ThreadID, api.CompleteRequest{
			UnderClaim: api.UnderClaim{ClaimID: c.ClaimID, InstanceID: h.instance()}, Result: text, Outcome: "late",
		}))
	})
	if v == unknown {
		h.pending = func(l *serverRun) { h.late(l, c, text) }
		return
	}
	h.once(c.SessionID, text, v)
	if v == unread {
		h.pending = func(l *serverRun) { h.late(l, c, text) }
	}
}

// once expects a text among the items, as often as the verdict says.
func (h *hand) once(id api.SessionID, text string, v verdict) {
	least, most := bounds(v)
	h.j.expect(id, fmt.Sprintf("%q is there %d to %d times", text, least, most), func(v *view) string {
		if n := v.texts(text); n < least || n > most {
			return fmt.Sprintf("it is there %d times", n)
		}
		return ""
	})
}

// bounds are how often a thing exists that was to be created once.
func bounds(v verdict) (least, most int) {
	switch v {
	case refused:
		return 0, 0
	case unknown:
		return 0, 1
	}
	return 1, 1
}

func (h *hand) renew(l *serverRun) {
	lease, v := ask(l, "renew", fairHeld, func(ctx context.Context) (api.Lease, error) {
		return l.client.Renew(ctx, h.held(), api.RenewRequest{UnderClaim: h.proof()})
	})
	h.leased(l, lease, v)
}

func (h *hand) extend(l *serverRun) {
	lease, v := ask(l, "extend", fairHeld, func(ctx context.Context) (api.Lease, error) {
		return l.client.Extend(ctx, h.held(), api.ExtendRequest{UnderClaim: h.proof(), AddSeconds: 1})
	})
	h.leased(l, lease, v)
}

func (h *hand) leased(l *serverRun, lease api.Lease, v verdict) {
	switch v {
	case told, unread:
		h.j.sawLease(h.claim.SessionID, h.claim.Fence, lease.LeaseExpiresAt)
	case refused:
		h.lost(l)
	}
}
