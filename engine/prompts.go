package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// askedParts is what a prompt asks beyond its text, as its row stores it.
type askedParts struct {
	Action  *api.AskedAction `json:"action,omitempty"`
	Choices []api.Choice     `json:"choices,omitempty"`
}

func (e *Engine) openPrompt(tx *db.Tx, h held, in api.PromptInput) error {
	if h.s.Status == api.AwaitingInput {
		return &api.Error{Code: api.CodePromptOpen, Status: h.s.Status, Detail: "A prompt is open already; withdraw it first."}
	}
	if h.s.StopRequestedAt != 0 {
		return &api.Error{Code: api.CodeConflict, Status: h.s.Status, Detail: "The session was asked to stop; it asks nobody any more."}
	}
	detail, err := written(askedParts{Action: in.Action, Choices: in.Choices})
	if err != nil {
		return err
	}
	fallback, err := written(in.Default)
	if err != nil {
		return err
	}
	id := api.PromptID(tx.NewID())
	p := queries.InsertPromptParams{
		ID: id, SessionID: h.s.ID, Kind: in.Kind, Text: in.Text, CreatedAt: db.Micros(tx.Now), Detail: detail, Fallback: fallback,
		Secret: db.Flag(slices.ContainsFunc(in.Choices, func(q api.Choice) bool { return q.Secret })),
	}
	if in.DeadlineSeconds > 0 {
		p.DeadlineAt = p.CreatedAt + db.Seconds(in.DeadlineSeconds)
		tx.AfterCommit(e.deadlines.Wake)
	}
	if err := tx.InsertPrompt(tx.Context(), p); err != nil {
		return fmt.Errorf("open a prompt of session %s: %w", h.s.ID, err)
	}
	err = e.addItem(tx, queries.InsertItemParams{SessionID: h.s.ID, Kind: api.ItemPrompt, Text: in.Text, ClientID: "ask-" + id.String(), CallID: id.String()})
	if err != nil {
		return err
	}
	next := *h.s
	next.Status, next.PromptID = api.AwaitingInput, id
	_, err = e.move(tx, h.s, next, h.actor(), api.EventAwaitingInput, api.EventData{"prompt": id.String(), "kind": in.Kind})
	return err
}

// written is a value's JSON, empty for one that says nothing.
func written(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write a prompt's parts: %w", err)
	}
	if s := string(b); s != "null" && s != "{}" && s != "[]" {
		return s, nil
	}
	return "", nil
}

func (e *Engine) withdrawPrompt(tx *db.Tx, h held) error {
	if h.s.Status == api.Active {
		return nil
	}
	next := *h.s
	if err := e.closePrompt(tx, &next, h.actor(), api.PromptWithdrawn); err != nil {
		return err
	}
	next.Status = api.Active
	_, err := e.move(tx, h.s, next, h.actor(), api.EventSessionResumed, api.EventData{"reason": "withdrawn"})
	return err
}

// toPrompt is a prompt's outside form.
func toPrompt(p queries.Prompt) (api.Prompt, error) {
	out := api.Prompt{
		ID: p.ID, SessionID: p.SessionID, Kind: p.Kind, Text: p.Text, DeadlineAt: api.At(p.DeadlineAt), CreatedAt: api.At(p.CreatedAt),
		ClosedAt: api.At(p.ClosedAt), ClosedBy: p.ClosedBy, Resolution: p.Resolution,
	}
	var parts askedParts
	for _, part := range []struct {
		text string
		to   any
	}{{p.Detail, &parts}, {p.Fallback, &out.Default}, {p.AnswerDetail, &out.Answer}} {
		if part.text == "" {
			continue
		}
		if json.Unmarshal([]byte(part.text), part.to) != nil {
			continue // damaged: the question stands without it
		}
	}
	out.Action, out.Choices = parts.Action, parts.Choices
	return out, nil
}

// withheldAnswer stands for a secret answer wherever it is not shown.
const withheldAnswer = "(kept secret)"

// shownPrompt is a prompt as everybody who sees its session may see it: only its claim's
// holder gets secret answers.
func shownPrompt(p queries.Prompt) (out api.Prompt, withheld bool, err error) {
	if out, err = toPrompt(p); err != nil {
		return out, false, err
	}
	return out, withholdSecrets(&out), nil
}

// withholdSecrets removes the answers to secret questions from a prompt; false when there were
// none. Words beside the answers belong to all of the questions, so one secret question makes
// them secret too.
func withholdSecrets(p *api.Prompt) (any bool) {
	for _, q := range p.Choices {
		for _, a := range []*api.Answer{p.Answer, p.Default} {
			if !q.Secret || a == nil {
				continue
			}
			if a.Choices[q.ID] != "" {
				a.Choices[q.ID], any = withheldAnswer, true
			}
			if a.Text != "" {
				a.Text, any = withheldAnswer, true
			}
		}
	}
	return any
}

// forgetSecrets removes from the store the answers to a session's secret questions: the claim
// that asked has them, or there is none any more. Until the end of the turn that asked they
// stay, for a claim that has to begin it again (contract 10.11).
func (e *Engine) forgetSecrets(tx *db.Tx, s *sessionRow) error {
	rows, err := tx.SecretPrompts(tx.Context(), s.ID)
	if err != nil {
		return fmt.Errorf("read the secret answers of session %s: %w", s.ID, err)
	}
	for _, row := range rows {
		p, err := toPrompt(row)
		if err != nil {
			return err
		}
		withholdSecrets(&p)
		stored := queries.ForgetSecretParams{ID: row.ID}
		if stored.AnswerDetail, err = written(p.Answer); err == nil {
			stored.Fallback, err = written(p.Default)
		}
		if err != nil {
			return err
		}
		if err := db.One(tx.ForgetSecret(tx.Context(), stored)); err != nil {
			return fmt.Errorf("forget the secret answers to prompt %s: %w", row.ID, err)
		}
	}
	return nil
}

// Prompt returns a prompt of a session, open or closed, without the answers to
// secret questions. Errors: not_found.
func (e *Engine) Prompt(ctx context.Context, c Caller, session api.SessionID, id api.PromptID) (api.Prompt, error) {
	return e.prompt(ctx, c, session, id, api.ClaimID{})
}

func (e *Engine) prompt(ctx context.Context, c Caller, session api.SessionID, id api.PromptID, claim api.ClaimID) (out api.Prompt, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		s, err := visible(ctx, tx, c, session)
		if err != nil {
			return err
		}
		p, err := tx.Prompt(ctx, id)
		if db.None(err) || (err == nil && p.SessionID != s.ID) {
			return db.NotFound("prompt")
		}
		if err != nil {
			return fmt.Errorf("read prompt %s: %w", id, err)
		}
		var withheld bool
		out, withheld, err = shownPrompt(p)
		if err != nil || !withheld || claim.IsZero() {
			return err
		}
		holds, err := holdsNow(ctx, tx, c, s, claim, db.Micros(e.Now()))
		switch {
		case err != nil:
			return err
		case holds:
			out, err = toPrompt(p)
			return err
		case p.ClosedAt == 0:
			return nil
		}
		return &api.Error{
			Code: api.CodeClaimNotActive, Status: s.Status,
			Detail: "The answer is secret and for the session's live claim alone, which this isn't.",
		}
	})
	return out, err
}

// holdsNow reports whether a claim is the session's live one and its worker the caller's.
func holdsNow(ctx context.Context, q queries.Querier, c Caller, s *sessionRow, claim api.ClaimID, now int64) (bool, error) {
	if c.KeyID != 0 || c.Run != nil || s.ClaimID == 0 {
		return false, nil
	}
	row, err := claimOf(ctx, q, s)
	if err != nil {
		return false, fmt.Errorf("read the claim of session %s: %w", s.ID, err)
	}
	if !proves(claim, &row) || row.ExpiresAt <= now {
		return false, nil
	}
	w, err := workerEvenDeleted(ctx, q, row.WorkerID)
	if err != nil {
		return false, fmt.Errorf("read worker %s: %w", row.WorkerID, err)
	}
	return actsAs(c, &w), nil
}

// AwaitAnswer is Prompt, held until the prompt is closed or wait is over. A caller that names
// the session's live claim, as the worker that holds it does, also gets the answers to secret
// questions. Errors: not_found; claim_not_active when there are some and the claim isn't.
func (e *Engine) AwaitAnswer(ctx context.Context, c Caller, session api.SessionID, id api.PromptID, claim api.ClaimID, wait time.Duration) (out api.Prompt, err error) {
	err = untilFound(ctx, wait, func() (found bool, wake <-chan struct{}, err error) {
		wake = e.Changed()
		out, err = e.prompt(ctx, c, session, id, claim)
		return !out.ClosedAt.IsZero(), wake, err
	})
	return out, err
}
