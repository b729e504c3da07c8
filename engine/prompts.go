package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

func (e *Engine) openPrompt(tx *db.Tx, h held, in api.PromptInput) error {
	if h.s.Status == api.AwaitingInput {
		return &api.Error{Code: api.CodePromptOpen, Status: h.s.Status, Detail: "A prompt is open already; withdraw it first."}
	}
	if h.s.StopRequestedAt != 0 {
		return &api.Error{Code: api.CodeConflict, Status: h.s.Status, Detail: "The session was asked to stop; it asks nobody any more."}
	}
	if in.Kind == "" {
		in.Kind = "text"
	}
	id := api.PromptID(tx.NewID())
	err := tx.InsertPrompt(wctx(), queries.InsertPromptParams{ID: id, SessionID: h.s.ID, Kind: in.Kind, Text: in.Text, CreatedAt: micros(tx.Now)})
	if err != nil {
		return fmt.Errorf("open a prompt of session %s: %w", h.s.ID, err)
	}
	if err := e.addItem(tx, h.s.ID, api.ItemPrompt, in.Text, "ask-"+id.String()); err != nil {
		return err
	}
	next := *h.s
	next.Status, next.PromptID = api.AwaitingInput, id
	_, err = e.move(tx, h.s, next, h.actor(), evAwaitingInput, api.EventData{"prompt": id.String(), "kind": in.Kind})
	return err
}

func (e *Engine) withdrawPrompt(tx *db.Tx, h held) error {
	if h.s.Status == api.Active {
		return nil
	}
	next := *h.s
	if err := e.closePrompt(tx, &next, h.actor(), "withdrawn"); err != nil {
		return err
	}
	next.Status = api.Active
	_, err := e.move(tx, h.s, next, h.actor(), evSessionResumed, api.EventData{"reason": "withdrawn"})
	return err
}

// AnswerPrompt answers the session's open prompt, once. Errors: prompt_closed,
// naming who was first, not_found, forbidden.
func (e *Engine) AnswerPrompt(ctx context.Context, c Caller, id api.SessionID, in api.AnswerInput) (out api.Session, err error) {
	var v api.Invalid
	checkText(&v, "text", in.Text, maxPromptText)
	if in.PromptID == 0 {
		v.Add("promptId", "is missing: name the prompt that you answer")
	}
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		s, err := visible(wctx(), tx, c, id)
		if err != nil {
			return err
		}
		if err := c.mayWith(s, toAnswer); err != nil {
			return err
		}
		p, err := tx.Prompt(wctx(), in.PromptID)
		if none(err) || (err == nil && p.SessionID != s.ID) {
			return notFound("prompt")
		}
		if err != nil {
			return fmt.Errorf("read prompt %s: %w", in.PromptID, err)
		}
		if p.ClosedAt != 0 {
			return &api.Error{
				Code: api.CodePromptClosed, Status: s.Status, Holder: p.ClosedBy,
				Detail: fmt.Sprintf("This prompt was %s at %s by %s.", p.Resolution, clock(p.ClosedAt), p.ClosedBy),
			}
		}
		if err := e.answerTx(tx, c, s, p, in.Text); err != nil {
			return err
		}
		out, err = e.sessionTx(wctx(), tx, c, id, micros(tx.Now))
		return err
	})
	return out, err
}

func (e *Engine) answerTx(tx *db.Tx, c Caller, s *sessionRow, p queries.Prompt, text string) error {
	err := one(tx.ClosePrompt(wctx(), queries.ClosePromptParams{
		ClosedAt: micros(tx.Now), ClosedBy: c.actor(), Resolution: "answered", Answer: text, ID: p.ID,
	}))
	if err != nil {
		return fmt.Errorf("answer prompt %s: %w", p.ID, err)
	}
	if err := e.addItem(tx, s.ID, api.ItemPromptResolved, text, "prompt-"+p.ID.String()); err != nil {
		return err
	}
	data := api.EventData{"prompt": p.ID.String(), "resolution": "answered"}
	next := *s
	next.PromptID = 0
	switch s.Status {
	case api.AwaitingInput:
		next.Status = api.Active
		_, err = e.move(tx, s, next, c.actor(), evSessionResumed, data)
		return err
	case api.Pending:
		next.Status = api.Queued
		if next.NotBefore > micros(tx.Now) {
			return e.clearPrompt(tx, s, c, data)
		}
		_, err = e.move(tx, s, next, c.actor(), evSessionQueued, data)
		return err
	}
	// A stale session stays stale and becomes claimable (contract 6.5).
	return e.clearPrompt(tx, s, c, data)
}

// clearPrompt takes an answered prompt off a session whose status stays.
func (e *Engine) clearPrompt(tx *db.Tx, s *sessionRow, c Caller, data api.EventData) error {
	if err := one(tx.ClearPrompt(wctx(), queries.ClearPromptParams{ID: s.ID, Status: s.Status})); err != nil {
		return fmt.Errorf("clear the prompt of session %s: %w", s.ID, err)
	}
	e.offer(tx, s.AgentID)
	return e.logSession(tx, s, c.actor(), evPromptClosed, data)
}
