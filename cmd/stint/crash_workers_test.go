package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"stint/api"
)

// hand is a client that acts as a worker of every agent, over HTTP, and executes nothing. It
// keeps its claim across the coordinator's restarts, as a worker does.
type hand struct {
	name  string
	rand  *rand.Rand
	j     *journal
	board *board
	count int

	workers map[api.AgentID]api.WorkerID
	claim   *api.Claim
	steps   int                // still to be done under the claim
	beaten  time.Time          // when it last reported being alive
	drained []api.ClaimID      // gone, to be reported
	open    string             // the text of the prompt that it opened
	pending func(l *serverRun) // what to look into, or to repeat
}

func (h *hand) instance() string { return h.name + "-1" }

func (h *hand) live(l *serverRun) {
	for !l.wire.isOver() {
		switch {
		case h.pending != nil:
			look := h.pending
			h.pending = nil
			look(l)
		case len(h.workers) < len(h.board.agents):
			h.register(l)
		case time.Since(h.beaten) > time.Second:
			h.beat(l)
		case h.claim == nil:
			h.seek(l)
		default:
			h.act(l)
		}
	}
}

func (h *hand) next(what string) string {
	h.count++
	return fmt.Sprintf("%s %s %d", h.name, what, h.count)
}

func (h *hand) ids() (ids []api.WorkerID) {
	for _, id := range h.workers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// register creates a record for each agent; repeated, it returns the same record.
func (h *hand) register(l *serverRun) {
	for _, slug := range h.board.agents {
		r, v := ask(l, "register", nil, func(ctx context.Context) (api.Registered, error) {
			return l.client.RegisterWorker(ctx, slug, api.WorkerInput{
				Name: h.name, InstanceID: h.instance(), ProcessID: h.name, MaxConcurrent: 3, FolderShared: true,
			})
		})
		if v == unknown {
			return
		}
		if was, known := h.workers[r.Worker.AgentID]; known && was != r.Worker.ID {
			h.j.fault("worker %s of agent %s was %s and is %s", h.name, slug, was, r.Worker.ID)
		}
		h.workers[r.Worker.AgentID] = r.Worker.ID
	}
}

// seek gets a claim, or reports that the worker is alive.
func (h *hand) seek(l *serverRun) {
	switch {
	case h.rand.IntN(3) > 0:
		h.claimNext(l, api.ClaimNextRequest{
			WorkerIDs: h.ids(), InstanceID: h.instance(), LeaseSeconds: h.lease(),
			WaitSeconds: int64(h.rand.IntN(4) / 3), RequestID: h.next("asks"),
		}, nil)
	default:
		h.claimOne(l)
	}
}

func (h *hand) lease() *int64 {
	n := int64(1 + h.rand.IntN(4))
	return &n
}

// claimNext asks for the best session, repeating the request until it gets an answer. was is
// the claim in an answer that was lost.
func (h *hand) claimNext(l *serverRun, in api.ClaimNextRequest, was *api.Claim) {
	c, v := ask(l, "claim next", nil, func(ctx context.Context) (*api.Claim, error) { return l.client.ClaimNext(ctx, in) })
	if v == unknown {
		h.pending = func(l *serverRun) { h.claimNext(l, in, was) }
		return
	}
	if was != nil && (c == nil || c.ClaimID.Key != was.ClaimID.Key) && h.lives(l, *was) {
		h.j.fault("the request that got claim %s, which lives, was answered %+v", was.ClaimID.Key, c)
	}
	if c == nil {
		return
	}
	h.j.sawClaim(*c)
	if v == unread {
		h.pending = func(l *serverRun) { h.claimNext(l, in, c) }
		return
	}
	h.take(c)
}

// lives reports whether a claim is its session's live one, for certain.
func (h *hand) lives(l *serverRun, c api.Claim) bool {
	s, v := ask(l, "show", nil, func(ctx context.Context) (api.Session, error) { return l.client.Session(ctx, c.SessionID) })
	return v == told && s.Status.Running() && s.Fence == c.Fence
}

func (h *hand) take(c *api.Claim) {
	h.claim, h.steps, h.open = c, h.rand.IntN(6), ""
}

var fairClaim = []api.Code{api.CodeAlreadyClaimed, api.CodeNotReady, api.CodeWorkerNotEligible, api.CodeSessionTerminal}

// claimOne asks for one session that may be claimable. If its holder asks again it gets the
// same claim.
func (h *hand) claimOne(l *serverRun) {
	list, v := ask(l, "list", nil, func(ctx context.Context) (api.List[api.Session], error) {
		return l.client.Sessions(ctx, api.SessionFilter{Statuses: []api.Status{api.Queued, api.Stale, api.Active}}, api.Page{Limit: 20})
	})
	if v != told || len(list.Items) == 0 {
		return
	}
	h.claimThis(l, list.Items[h.rand.IntN(len(list.Items))], nil)
}

func (h *hand) claimThis(l *serverRun, s api.Session, was *api.Claim) {
	worker := h.workers[s.AgentID]
	if worker == 0 {
		return // an agent that nobody serves
	}
	c, v := ask(l, "claim", fairClaim, func(ctx context.Context) (api.Claim, error) {
		return l.client.Claim(ctx, s.AgentID, worker, s.ID, api.ClaimRequest{LeaseSeconds: h.lease(), InstanceID: h.instance()})
	})
	if v == unknown {
		h.pending = func(l *serverRun) { h.claimThis(l, s, was) }
		return
	}
	if v == refused {
		return
	}
	h.j.sawClaim(c)
	if was != nil && was.Fence == c.Fence && was.ClaimID != c.ClaimID {
		h.j.fault("session %s was claimed twice with fence %d", s.ID, c.Fence)
	}
	if v == unread {
		h.pending = func(l *serverRun) { h.claimThis(l, s, &c) }
		return
	}
	h.take(&c)
}

// beat reports that the worker is alive, renews its claim and reports what is gone.
func (h *hand) beat(l *serverRun) {
	for agent, worker := range h.workers {
		in := api.Beat{InstanceID: h.instance(), Drained: h.drained}
		mine := h.claim != nil && h.claim.WorkerID == worker
		if mine {
			in.ClaimIDs = []api.ClaimID{h.claim.ClaimID}
		}
		out, v := ask(l, "beat", nil, func(ctx context.Context) (api.BeatAnswer, error) { return l.client.Beat(ctx, agent, worker, in) })
		if v == unknown {
			return
		}
		if !mine {
			continue
		}
		switch c := out.Claims[0]; c.State {
		case api.BeatRenewed, api.BeatStopRequested:
			h.j.sawLease(h.claim.SessionID, h.claim.Fence, c.LeaseExpiresAt)
		default:
			h.lost(l)
		}
	}
	h.drained, h.beaten = nil, time.Now()
}
