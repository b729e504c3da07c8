package main

import (
	"context"
	"fmt"
	"time"

	"stint/api"
)

// finish ends the claim in one of the ways.
func (h *hand) finish(l *serverRun) {
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

func (h *hand) complete(l *serverRun, in api.CompleteRequest) {
	at := h.held()
	h.end(l, ending{
		verb: "complete",
		call: func(l *serverRun, ctx context.Context) (api.Finished, error) { return l.client.Complete(ctx, at, in) },
		count: func(v *view) (int, bool) {
			s := v.session
			if s.Result != in.Result {
				return 0, false
			}
			outcome := in.Outcome
			if !s.StopRequestedAt.IsZero() { // then that is how it ended, whatever the worker says
				outcome = api.OutcomeStopped
			}
			return 1, s.Status != api.Complete || s.Outcome != outcome || s.EndedAt.IsZero() || v.count("session_complete", "to", "complete") != 1
		},
	}, nil)
}

func (h *hand) fail(l *serverRun, in api.FailRequest) {
	at := h.held()
	h.end(l, ending{
		verb: "fail",
		call: func(l *serverRun, ctx context.Context) (api.Finished, error) { return l.client.Fail(ctx, at, in) },
		count: func(v *view) (int, bool) {
			s := v.session
			if why(s.Error).Message != in.Message {
				return 0, false
			}
			return 1, s.Status != api.Failed || s.Result != in.Result || s.Error.Code != in.Code || v.count("session_error", "code", in.Code) != 1
		},
	}, nil)
}

func (h *hand) release(l *serverRun, in api.ReleaseRequest) {
	at := h.held()
	h.end(l, ending{
		verb: "release",
		call: func(l *serverRun, ctx context.Context) (api.Finished, error) { return l.client.Release(ctx, at, in) },
		count: func(v *view) (int, bool) {
			// For a session that was asked to stop it is the end.
			return v.count("session_released", "reason", in.Reason) + v.count("session_cancelled", "reason", in.Reason), false
		},
		more: []api.Code{api.CodeConflict}, // the question that it parks on was answered
	}, nil)
}

// ending is a call that ends a claim. It can be repeated for ever and gets the same answer.
type ending struct {
	verb  string
	call  func(l *serverRun, ctx context.Context) (api.Finished, error)
	count func(v *view) (n int, torn bool) // how often it is there, and whether only in part
	more  []api.Code                       // refusals that are acceptable for it
}

// end ends the claim; was is the answer that was lost on the way.
func (h *hand) end(l *serverRun, e ending, was *api.Finished) {
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
		h.pending = func(l *serverRun) { h.end(l, e, was) }
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
		h.pending = func(l *serverRun) { h.end(l, e, &out) }
		return
	}
	if h.claim = nil; out.Claim != nil {
		h.take(out.Claim)
	}
}
