package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"stint/api"
)

// hand is a client that acts as a worker of every agent, over HTTP, and executes
// nothing. It keeps its claim over the coordinator's lives, as a worker does.
type hand struct {
	name  string
	rand  *rand.Rand
	j     *journal
	board *board
	count int

	workers map[api.AgentID]api.WorkerID
	claim   *api.Claim
	steps   int           // still to be done under the claim
	beaten  time.Time     // when it last said that it lives
	drained []api.ClaimID // gone, to be reported
	open    string        // the text of the prompt that it opened
	pending func(l *life) // what to look into, or to repeat
}

func (h *hand) instance() string { return h.name + "-1" }

func (h *hand) live(l *life) {
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

// register makes a record for each agent; made again it is the same record.
func (h *hand) register(l *life) {
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

// seek gets a claim, or says that the worker lives.
func (h *hand) seek(l *life) {
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

// claimNext asks for the best session, and again with the same request until it
// is told. was is the claim that it was answered, unread.
func (h *hand) claimNext(l *life, in api.ClaimNextRequest, was *api.Claim) {
	c, v := ask(l, "claim next", nil, func(ctx context.Context) (*api.Claim, error) { return l.client.ClaimNext(ctx, in) })
	if v == unknown {
		h.pending = func(l *life) { h.claimNext(l, in, was) }
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
		h.pending = func(l *life) { h.claimNext(l, in, c) }
		return
	}
	h.take(c)
}

// lives reports whether a claim is its session's live one, for certain.
func (h *hand) lives(l *life, c api.Claim) bool {
	s, v := ask(l, "show", nil, func(ctx context.Context) (api.Session, error) { return l.client.Session(ctx, c.SessionID) })
	return v == told && s.Status.Running() && s.Fence == c.Fence
}

func (h *hand) take(c *api.Claim) {
	h.claim, h.steps, h.open = c, h.rand.IntN(6), ""
}

var fairClaim = []api.Code{api.CodeAlreadyClaimed, api.CodeNotReady, api.CodeWorkerNotEligible, api.CodeSessionTerminal}

// claimOne asks for one session that may be claimable. Asked again by its holder
// it is the same claim.
func (h *hand) claimOne(l *life) {
	list, v := ask(l, "list", nil, func(ctx context.Context) (api.List[api.Session], error) {
		return l.client.Sessions(ctx, api.SessionFilter{Statuses: []api.Status{api.Queued, api.Stale, api.Active}}, api.Page{Limit: 20})
	})
	if v != told || len(list.Items) == 0 {
		return
	}
	h.claimThis(l, list.Items[h.rand.IntN(len(list.Items))], nil)
}

func (h *hand) claimThis(l *life, s api.Session, was *api.Claim) {
	worker := h.workers[s.AgentID]
	if worker == 0 {
		return // an agent that nobody serves
	}
	c, v := ask(l, "claim", fairClaim, func(ctx context.Context) (api.Claim, error) {
		return l.client.Claim(ctx, s.AgentID, worker, s.ID, api.ClaimRequest{LeaseSeconds: h.lease(), InstanceID: h.instance()})
	})
	if v == unknown {
		h.pending = func(l *life) { h.claimThis(l, s, was) }
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
		h.pending = func(l *life) { h.claimThis(l, s, &c) }
		return
	}
	h.take(&c)
}

func (h *hand) held() api.Held {
	return api.Held{Agent: h.claim.Session.AgentID, Worker: h.claim.WorkerID, Session: h.claim.SessionID}
}

func (h *hand) proof() api.UnderClaim {
	return api.UnderClaim{ClaimID: h.claim.ClaimID, InstanceID: h.instance()}
}

var fairHeld = []api.Code{api.CodeClaimNotActive}

// act does one step under the claim.
func (h *hand) act(l *life) {
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

// lost drops a claim that was refused, and what was made under it goes to the thread.
func (h *hand) lost(l *life) {
	c := *h.claim
	h.claim = nil
	h.drained = append(h.drained, c.ClaimID)
	if h.rand.IntN(2) == 0 {
		h.late(l, c, h.next("is late"))
	}
}

func (h *hand) late(l *life, c api.Claim, text string) {
	// Its lease may be over and not yet taken away: then it is a conflict.
	_, v := ask(l, "late result", []api.Code{api.CodeConflict}, func(ctx context.Context) (struct{}, error) {
		return done(l.client.KeepLateResult(ctx, c.Session.ThreadID, api.CompleteRequest{
			UnderClaim: api.UnderClaim{ClaimID: c.ClaimID, InstanceID: h.instance()}, Result: text, Outcome: "late",
		}))
	})
	if v == unknown {
		h.pending = func(l *life) { h.late(l, c, text) }
		return
	}
	h.once(c.SessionID, text, v)
	if v == unread {
		h.pending = func(l *life) { h.late(l, c, text) }
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

// bounds are how often a thing is there that was to be made once.
func bounds(v verdict) (least, most int) {
	switch v {
	case refused:
		return 0, 0
	case unknown:
		return 0, 1
	}
	return 1, 1
}

func (h *hand) renew(l *life) {
	lease, v := ask(l, "renew", fairHeld, func(ctx context.Context) (api.Lease, error) {
		return l.client.Renew(ctx, h.held(), api.RenewRequest{UnderClaim: h.proof()})
	})
	h.leased(l, lease, v)
}

func (h *hand) extend(l *life) {
	lease, v := ask(l, "extend", fairHeld, func(ctx context.Context) (api.Lease, error) {
		return l.client.Extend(ctx, h.held(), api.ExtendRequest{UnderClaim: h.proof(), AddSeconds: 1})
	})
	h.leased(l, lease, v)
}

func (h *hand) leased(l *life, lease api.Lease, v verdict) {
	switch v {
	case told, unread:
		h.j.sawLease(h.claim.SessionID, h.claim.Fence, lease.LeaseExpiresAt)
	case refused:
		h.lost(l)
	}
}

func (h *hand) activity(l *life) {
	h.sendActivity(l, api.ActivityInput{
		UnderClaim: h.proof(), Key: fmt.Sprint(h.name, "-", h.count), Type: api.ActivityProgress, Text: h.next("does"), Detail: "more",
	}, 0)
}

// sendActivity sends one until it is told; known is its id, 0 where it isn't known.
func (h *hand) sendActivity(l *life, in api.ActivityInput, known api.ActivityID) {
	a, v := ask(l, "activity", fairHeld, func(ctx context.Context) (api.Activity, error) {
		return l.client.AddActivity(ctx, h.held(), in)
	})
	id := h.claim.SessionID
	if known != 0 && v != refused && v != unknown && a.ID != known {
		h.j.fault("an activity of session %s was stored as %s and as %s", id, known, a.ID)
	}
	least, most := bounds(v)
	if known != 0 || v == refused {
		least, most = 0, 1 // it may be there from a call before
	}
	h.j.expect(id, fmt.Sprintf("the activity %q is there %d to %d times", in.Text, least, most), func(v *view) string {
		n := 0
		for _, a := range v.activities {
			if a.Text == in.Text && a.Detail == in.Detail && a.Type == in.Type {
				n++
			}
		}
		if n < least || n > most {
			return fmt.Sprintf("it is there %d times", n)
		}
		return ""
	})
	switch v {
	case unknown, unread:
		known = max(known, a.ID)
		h.pending = func(l *life) { h.sendActivity(l, in, known) }
	case refused:
		h.lost(l)
	}
}

func (h *hand) items(l *life) {
	in := api.ItemsRequest{UnderClaim: h.proof()}
	for range 1 + h.rand.IntN(6) {
		text := h.next("prints")
		in.Items = append(in.Items, api.ItemInput{
			ClientID: text, Kind: api.ItemText, Stream: "stdout", Text: text, At: api.Time{Time: time.Now()},
		})
	}
	h.sendItems(l, in, false)
}

// sendItems sends a batch until it is told.
func (h *hand) sendItems(l *life, in api.ItemsRequest, stored bool) {
	id := h.claim.SessionID
	a, v := ask(l, "items", fairHeld, func(ctx context.Context) (api.ItemsAnswer, error) {
		return l.client.AddItems(ctx, h.held(), in)
	})
	n := len(in.Items)
	if v == told || v == unread {
		if a.Appended != n && a.Appended != 0 || (stored && a.Appended != 0) {
			h.j.fault("%d of %d items of session %s were appended", a.Appended, n, id)
		}
		stored = true
	}
	must := stored
	h.j.expect(id, fmt.Sprintf("the items from %q on are there: %v", in.Items[0].Text, must), func(v *view) string {
		at := slices.IndexFunc(v.items, func(it api.Item) bool { return it.Text == in.Items[0].Text })
		if at < 0 {
			for _, it := range in.Items {
				if v.texts(it.Text) > 0 {
					return "a part of the batch is there"
				}
			}
			if must {
				return "they are not"
			}
			return ""
		}
		if at+n > len(v.items) {
			return "a part of the batch is missing"
		}
		for i, it := range in.Items {
			if got := v.items[at+i]; got.Text != it.Text || got.Kind != it.Kind || got.Stream != it.Stream || v.texts(it.Text) != 1 {
				return fmt.Sprintf("item %d is %+v and not %q", got.Seq, got, it.Text)
			}
		}
		return ""
	})
	switch v {
	case unknown, unread:
		h.pending = func(l *life) { h.sendItems(l, in, stored) }
	case refused:
		h.lost(l)
	}
}

// report sets plan, link and usage at once, all of the same number.
func (h *hand) report(l *life) {
	id := h.claim.SessionID
	n := h.j.nextReport(id)
	plan, link := planOf(n), linkOf(n)
	in := api.SessionPatch{UnderClaim: h.proof(), Plan: &plan, ExternalURL: &link, Usage: &api.Usage{Turns: n, InputTokens: 10 * n}}
	if h.rand.IntN(4) == 0 {
		agentSession := h.next("thinks")
		in.AgentSessionID = &agentSession
	}
	s, v := ask(l, "report", fairHeld, func(ctx context.Context) (api.Session, error) { return l.client.PatchSession(ctx, h.held(), in) })
	switch v {
	case told, unread:
		h.j.sawSession(s)
		h.j.expect(id, fmt.Sprintf("report %d is there", n), func(v *view) string {
			if v.session.Usage.Turns < n || v.session.Usage.InputTokens != 10*v.session.Usage.Turns {
				return fmt.Sprintf("it is at %+v", v.session.Usage)
			}
			return ""
		})
	case refused:
		h.lost(l)
	}
}

// prompt asks a person, or withdraws the question.
func (h *hand) prompt(l *life) {
	id := h.claim.SessionID
	in := api.SessionPatch{UnderClaim: h.proof(), Status: api.Active}
	verb, text := "withdraw prompt", ""
	if h.open == "" {
		text = h.next("wants to know")
		verb, in.Status, in.Prompt = "open prompt", api.AwaitingInput, &api.PromptInput{Text: text}
	}
	s, v := ask(l, verb, append(fairHeld, api.CodePromptOpen, api.CodeConflict), func(ctx context.Context) (api.Session, error) {
		return l.client.PatchSession(ctx, h.held(), in)
	})
	if text != "" {
		h.once(id, text, v)
	}
	switch v {
	case told, unread:
		h.open = text
		h.j.sawSession(s)
	case refused:
		h.lost(l) // or a question is open that it doesn't know of; it lets go
	}
}

// beat says that the worker lives, renews its claim and reports what is gone.
func (h *hand) beat(l *life) {
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

// finish ends the claim in one of the ways.
func (h *hand) finish(l *life) {
	proof := h.proof()
	var next *api.ClaimNextOf
	if h.rand.IntN(3) == 0 {
		next = &api.ClaimNextOf{WorkerIDs: h.ids(), RequestID: h.next("goes on")}
	}
	switch k := h.rand.IntN(20); {
	case k < 12:
		h.complete(l, api.CompleteRequest{UnderClaim: proof, Result: h.next("found") + "\n" + longText(h.rand), Outcome: "fine", ClaimNext: next})
	case k < 14:
		h.fail(l, api.FailRequest{UnderClaim: proof, Code: "BROKEN", Message: h.next("broke"), Result: "half", ClaimNext: next})
	case k < 19:
		in := api.ReleaseRequest{UnderClaim: proof, Reason: h.next("gives back"), ClaimNext: next}
		switch h.rand.IntN(4) {
		case 0:
			in.NotBefore = api.Time{Time: time.Now().Add(time.Duration(h.rand.IntN(500)) * time.Millisecond)}
		case 1:
			in.Park = h.open != ""
		}
		h.release(l, in)
	default:
		h.claim = nil // it lapses
	}
}

func (h *hand) complete(l *life, in api.CompleteRequest) {
	at := h.held()
	h.end(l, ending{
		verb: "complete",
		call: func(l *life, ctx context.Context) (api.Finished, error) { return l.client.Complete(ctx, at, in) },
		count: func(v *view) (int, bool) {
			s := v.session
			if s.Result != in.Result {
				return 0, false
			}
			return 1, s.Status != api.Complete || s.Outcome != in.Outcome || s.EndedAt.IsZero() || v.count("session_complete", "to", "complete") != 1
		},
	}, nil)
}

func (h *hand) fail(l *life, in api.FailRequest) {
	at := h.held()
	h.end(l, ending{
		verb: "fail",
		call: func(l *life, ctx context.Context) (api.Finished, error) { return l.client.Fail(ctx, at, in) },
		count: func(v *view) (int, bool) {
			s := v.session
			if why(s.Error).Message != in.Message {
				return 0, false
			}
			return 1, s.Status != api.Failed || s.Result != in.Result || s.Error.Code != in.Code || v.count("session_error", "code", in.Code) != 1
		},
	}, nil)
}

func (h *hand) release(l *life, in api.ReleaseRequest) {
	at := h.held()
	h.end(l, ending{
		verb: "release",
		call: func(l *life, ctx context.Context) (api.Finished, error) { return l.client.Release(ctx, at, in) },
		count: func(v *view) (int, bool) {
			// Of a session that was asked to stop it is the end.
			return v.count("session_released", "reason", in.Reason) + v.count("session_cancelled", "reason", in.Reason), false
		},
		more: []api.Code{api.CodeConflict}, // the question that it parks on was answered
	}, nil)
}

// ending is a call that ends a claim. It can be repeated for ever and is answered the same.
type ending struct {
	verb  string
	call  func(l *life, ctx context.Context) (api.Finished, error)
	count func(v *view) (n int, torn bool) // how often it is there, and whether in part
	more  []api.Code                       // fair refusals of its own
}

// end ends the claim; was is what it was answered, unread.
func (h *hand) end(l *life, e ending, was *api.Finished) {
	id := h.claim.SessionID
	out, v := ask(l, e.verb, append(e.more, fairHeld...), func(ctx context.Context) (api.Finished, error) { return e.call(l, ctx) })
	least, most := bounds(v)
	if was != nil {
		if v == refused {
			h.j.fault("%s of session %s was done, and refused when it was repeated", e.verb, id)
		}
		least, most = 1, 1
	}
	h.j.expect(id, fmt.Sprintf("its %s by %s is there %d to %d times", e.verb, h.claim.ClaimID.Key, least, most), func(v *view) string {
		if n, torn := e.count(v); n < least || n > most || torn {
			return fmt.Sprintf("it is there %d times; torn: %v", n, torn)
		}
		return ""
	})
	switch v {
	case unknown:
		h.pending = func(l *life) { h.end(l, e, was) }
		return
	case refused:
		h.lost(l)
		return
	}
	h.j.sawSession(out.Session)
	if out.Claim != nil {
		h.j.sawClaim(*out.Claim)
	}
	if v == unread {
		h.pending = func(l *life) { h.end(l, e, &out) }
		return
	}
	if h.claim = nil; out.Claim != nil {
		h.take(out.Claim)
	}
}

func longText(r *rand.Rand) string {
	b := make([]byte, r.IntN(3000))
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return string(b)
}
