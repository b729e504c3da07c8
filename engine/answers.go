package engine

import (
	"context"
	"fmt"
	"strings"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// AnswerPrompt answers the session's open prompt, once. An incomplete answer is refused and
// changes nothing. Approvals need a person's own sign-in, which the right to answer implies
// (contract 6.5). Errors: prompt_closed, naming who was first, invalid, not_found, forbidden.
func (e *Engine) AnswerPrompt(ctx context.Context, c Caller, id api.SessionID, in api.AnswerInput) (out api.Session, err error) {
	var v api.Invalid
	v.CheckText("text", in.Text, maxPromptText)
	v.CheckWritten("text", in.Text)
	if in.PromptID == 0 {
		v.Add("promptId", "is missing: name the prompt that you answer")
	}
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		s, err := answerable(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		p, err := tx.Prompt(tx.Context(), in.PromptID)
		if db.None(err) || (err == nil && p.SessionID != s.ID) {
			return db.NotFound("prompt")
		}
		if err != nil {
			return fmt.Errorf("read prompt %s: %w", in.PromptID, err)
		}
		if p.ClosedAt != 0 {
			by, err := e.nameOf(tx, p.ClosedBy)
			if err != nil {
				return err
			}
			return &api.Error{
				Code: api.CodePromptClosed, Status: s.Status, Holder: by,
				Detail: fmt.Sprintf("This prompt was %s at %s by %s%s", p.Resolution, clock(p.ClosedAt), by, withWhat(p.Answer)),
			}
		}
		asked, err := toPrompt(p)
		if err != nil {
			return err
		}
		if asked.Kind == api.PromptApproval {
			if err := account.InPerson(c.Client); err != nil {
				return err
			}
		}
		if err := checkAnswer(&asked, in.Answer, ""); err != nil {
			return err
		}
		if in.Standing != "" {
			if err := mayStand(tx, s, c); err != nil {
				return err
			}
		}
		if err := e.answerTx(tx, s, &asked, in.Answer, c.Actor()); err != nil {
			return err
		}
		out, err = e.sessionTx(tx.Context(), tx, c, id, db.Micros(tx.Now))
		return err
	})
	return out, err
}

// mayStand refuses to approve for the future on somebody else's worker. contract 15.3
func mayStand(tx *db.Tx, s *sessionRow, c Caller) error {
	owner, err := standingBy(tx.Context(), tx, s)
	if err != nil || owner == c.UserID && owner != 0 {
		return err
	}
	return api.Refuse(api.CodeForbidden, "Only the owner of the worker that runs this session can approve it from now on. You can approve it once.")
}

// standingBy is who may approve something from now on: the owner of the worker that runs a
// session, or ran it last; 0 = nobody. A local session runs on no worker but its owner's.
func standingBy(ctx context.Context, q queries.Querier, s *sessionRow) (api.UserID, error) {
	if s.WorkerID == 0 {
		if s.Mode == api.Local {
			return s.OwnerUserID, nil
		}
		return 0, nil
	}
	w, err := workerEvenDeleted(ctx, q, s.WorkerID)
	if err != nil {
		return 0, fmt.Errorf("read worker %s: %w", s.WorkerID, err)
	}
	return w.OwnerUserID, nil
}

// withWhat ends a sentence about an answered prompt with the answer; those who may answer may
// know it. Secret parts aren't in it.
func withWhat(answer string) string {
	if answer == "" {
		return "."
	}
	return ": “" + api.Excerpt(strings.Join(strings.Fields(answer), " "), 239) + "”"
}

// nameOf is how people know an actor of the log.
func (e *Engine) nameOf(tx *db.Tx, actor string) (string, error) {
	switch kind, _, _ := strings.Cut(actor, "_"); kind {
	case "usr":
		var id api.UserID
		if id.UnmarshalText([]byte(actor)) != nil {
			return actor, nil
		}
		u, err := tx.User(tx.Context(), id)
		if err != nil {
			return "", fmt.Errorf("read user %s: %w", id, err)
		}
		return u.Name, nil
	case "wrk":
		var id api.WorkerID
		if id.UnmarshalText([]byte(actor)) != nil {
			return actor, nil
		}
		w, err := workerEvenDeleted(tx.Context(), tx, id)
		if err != nil {
			return "", fmt.Errorf("read worker %s: %w", id, err)
		}
		return "worker " + w.Name, nil
	}
	return actor, nil
}

// answerTx closes an open prompt with an answer and lets the session continue.
func (e *Engine) answerTx(tx *db.Tx, s *sessionRow, p *api.Prompt, a api.Answer, actor string) error {
	detail, err := written(a)
	if err != nil {
		return err
	}
	shown := answerWords(p, a)
	err = db.One(tx.ClosePrompt(tx.Context(), queries.ClosePromptParams{
		ClosedAt: db.Micros(tx.Now), ClosedBy: actor, Resolution: api.PromptAnswered, Answer: shown, AnswerDetail: detail, ID: p.ID,
	}))
	if err != nil {
		return fmt.Errorf("answer prompt %s: %w", p.ID, err)
	}
	err = e.addItem(tx, queries.InsertItemParams{SessionID: s.ID, Kind: api.ItemPromptResolved, Text: shown, ClientID: "prompt-" + p.ID.String(), CallID: p.ID.String()})
	if err != nil {
		return err
	}
	data := api.EventData{"prompt": p.ID.String(), "resolution": api.PromptAnswered}
	next := *s
	next.PromptID = 0
	switch s.Status {
	case api.AwaitingInput:
		next.Status = api.Active
		_, err = e.move(tx, s, next, actor, api.EventSessionResumed, data)
		return err
	case api.Pending:
		next.Status = api.Queued
		if next.NotBefore > db.Micros(tx.Now) {
			return e.clearPrompt(tx, s, actor, data)
		}
		_, err = e.move(tx, s, next, actor, api.EventSessionQueued, data)
		return err
	}
	// A stale session stays stale and becomes claimable (contract 6.5).
	return e.clearPrompt(tx, s, actor, data)
}

// clearPrompt removes an answered prompt from a session whose status stays.
func (e *Engine) clearPrompt(tx *db.Tx, s *sessionRow, actor string, data api.EventData) error {
	if err := db.One(tx.ClearPrompt(tx.Context(), queries.ClearPromptParams{ID: s.ID, Status: s.Status})); err != nil {
		return fmt.Errorf("clear the prompt of session %s: %w", s.ID, err)
	}
	e.offer(s.AgentID)
	if err := e.logSession(tx, s, actor, api.EventPromptClosed, data); err != nil {
		return err
	}
	if s.Status != api.Stale || s.ReclaimAt > db.Micros(tx.Now) {
		return nil
	}
	return e.claimable(tx, s, gateOpenPrompt)
}

// answerWords is an answer as the transcript shows it; secret parts are left out.
func answerWords(p *api.Prompt, a api.Answer) string {
	switch p.Kind {
	case api.PromptApproval:
		words := "Refused"
		if a.Approved != nil && *a.Approved {
			words = "Approved"
			if a.ForSession {
				words = "Approved for this session"
			}
			if a.Standing != "" {
				words = "Approved from now on (" + a.Standing + ")"
			}
		}
		if a.Text != "" {
			return words + ": " + a.Text
		}
		return words + "."
	case api.PromptQuestions:
		var lines []string
		for _, q := range p.Choices {
			said := a.Choices[q.ID]
			if q.Secret {
				said = withheldAnswer
			}
			lines = append(lines, q.Text+"\n→ "+said)
		}
		return strings.Join(lines, "\n")
	}
	return a.Text
}
