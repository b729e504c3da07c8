package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"stint/api"
)

func (h *hand) activity(l *serverRun) {
	h.sendActivity(l, api.ActivityInput{
		UnderClaim: h.proof(), Key: fmt.Sprint(h.name, "-", h.count), Type: api.ActivityProgress, Text: h.next("does"), Detail: "more",
	}, 0)
}

// sendActivity sends one until it gets an answer; known is its id, 0 if that isn't known.
func (h *hand) sendActivity(l *serverRun, in api.ActivityInput, known api.ActivityID) {
	a, v := ask(l, "activity", fairHeld, func(ctx context.Context) (api.Activity, error) {
		return l.client.AddActivity(ctx, h.held(), in)
	})
	id := h.claim.SessionID
	if known != 0 && v != refused && v != unknown && a.ID != known {
		h.j.fault("an activity of session %s was stored as %s and as %s", id, known, a.ID)
	}
	least, most := bounds(v)
	if known != 0 || v == refused {
		least, most = 0, 1 // it may be there from an earlier call
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
		h.pending = func(l *serverRun) { h.sendActivity(l, in, known) }
	case refused:
		h.lost(l)
	}
}

func (h *hand) items(l *serverRun) {
	in := api.ItemsRequest{UnderClaim: h.proof()}
	for range 1 + h.rand.IntN(6) {
		text := h.next("prints")
		in.Items = append(in.Items, api.ItemInput{
			ClientID: text, Kind: api.ItemText, Stream: "stdout", Text: text, At: api.Time{Time: time.Now()},
		})
	}
	h.sendItems(l, in, false)
}

// sendItems sends a batch until it gets an answer.
func (h *hand) sendItems(l *serverRun, in api.ItemsRequest, stored bool) {
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
		h.pending = func(l *serverRun) { h.sendItems(l, in, stored) }
	case refused:
		h.lost(l)
	}
}

// report sets plan, link and usage at once, all with the same number.
func (h *hand) report(l *serverRun) {
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
func (h *hand) prompt(l *serverRun) {
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
		h.lost(l) // or a question is open that it doesn't know of; it gives the claim up
	}
}

func longText(r *rand.Rand) string {
	b := make([]byte, r.IntN(3000))
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return string(b)
}
