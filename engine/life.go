package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Life is what of an ended session may be told to whoever measures: when it waited, ran and
// asked, and how each of these ended. It has no text of a person's, an agent's or a worker's,
// and no name but slugs.
type Life struct {
	Workspace, Agent string // slugs
	AgentType        api.AgentType
	Session          api.SessionID
	Thread           api.ThreadID
	RetryOf, Parent  api.SessionID // 0 = of none
	TriggeredBy      api.Trigger
	Status           api.Status
	ErrorCode        string // "" = none
	Attempt          int64
	Usage            api.Usage
	CreatedAt        api.Time
	EndedAt          api.Time
	Claims           []LifeClaim  // oldest first, of many the first
	Prompts          []LifePrompt // likewise
}

// LifeClaim is one claim on the session.
type LifeClaim struct {
	Fence      int64
	WorkerMode api.Mode
	GrantedAt  api.Time
	ClosedAt   api.Time
	ClosedBy   string // complete, fail, release, lapse, offline, deleted, cancel or restore
}

// Lost reports whether the claim ended without its holder.
func (c LifeClaim) Lost() bool {
	switch c.ClosedBy {
	case closedByLapse, closedByOffline, closedByDeletion, closedByRestore:
		return true
	}
	return false
}

// Failed reports whether its holder said that the work failed.
func (c LifeClaim) Failed() bool { return c.ClosedBy == closedByFail }

// LifePrompt is one question that the session asked.
type LifePrompt struct {
	Kind       string // text, approval or questions
	AskedAt    api.Time
	ClosedAt   api.Time
	Resolution string // answered, withdrawn, cancelled …
}

// lifeMost is how many claims, and how many questions, of one session are told.
const lifeMost = 200

// Life reads an ended session's, on connections that no request takes. It asks nobody for
// rights: it is for the process itself. Errors: not_found, also of a session that hasn't ended.
func (e *Engine) Life(ctx context.Context, id api.SessionID) (out Life, err error) {
	err = e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		s, err := tx.Session(ctx, id)
		if db.None(err) || (err == nil && !s.Status.Terminal()) {
			return db.NotFound("ended session")
		}
		if err != nil {
			return fmt.Errorf("read session %s: %w", id, err)
		}
		a, err := agentEvenDeleted(ctx, tx, s.AgentID)
		if err != nil {
			return fmt.Errorf("read agent %s: %w", s.AgentID, err)
		}
		ws, err := tx.Workspace(ctx, s.WorkspaceID)
		if err != nil {
			return fmt.Errorf("read workspace %s: %w", s.WorkspaceID, err)
		}
		claims, err := tx.ClaimsOfSession(ctx, queries.ClaimsOfSessionParams{SessionID: id, N: lifeMost})
		if err != nil {
			return fmt.Errorf("read the claims of session %s: %w", id, err)
		}
		prompts, err := tx.PromptsOfSession(ctx, queries.PromptsOfSessionParams{SessionID: id, N: lifeMost})
		if err != nil {
			return fmt.Errorf("read the prompts of session %s: %w", id, err)
		}
		out = Life{
			Workspace: ws.Slug, Agent: a.Slug, AgentType: a.Type, Session: s.ID, Thread: s.ThreadID, RetryOf: s.RetryOf, Parent: s.ParentID,
			TriggeredBy: s.TriggeredBy, Status: s.Status, ErrorCode: s.ErrorCode, Attempt: s.Attempt,
			Usage:     api.Usage{InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CostMicros: s.CostMicros, Turns: s.Turns},
			CreatedAt: api.At(s.CreatedAt), EndedAt: api.At(s.EndedAt),
		}
		for _, c := range claims {
			out.Claims = append(out.Claims, LifeClaim{
				Fence: c.Fence, WorkerMode: api.Mode(c.WorkerMode), GrantedAt: api.At(c.GrantedAt), ClosedAt: api.At(c.ClosedAt), ClosedBy: c.ClosedBy,
			})
		}
		for _, p := range prompts {
			out.Prompts = append(out.Prompts, LifePrompt{Kind: p.Kind, AskedAt: api.At(p.CreatedAt), ClosedAt: api.At(p.ClosedAt), Resolution: p.Resolution})
		}
		return nil
	})
	return out, err
}
