package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// holder is a session that is in the way of another: in its folder, its thread or in a place
// of its agent.
type holder struct {
	id       api.SessionID
	slug     string // of its agent
	ancestor bool   // it started the other, itself or through others, and is still running
}

// held is a gate that another session holds, naming that session where permitted.
func (f *facts) held(code, sentence string) *api.Waiting {
	h := f.holder
	if h == nil {
		return hold(code, sentence)
	}
	w := hold(code, sentence)
	w.SessionID, w.Ancestor = h.id, h.ancestor
	if !h.ancestor {
		w.Sentence += fmt.Sprintf(" Session %s of agent %s is in the way; it goes on when that ends.", h.id, h.slug)
		return w
	}
	mend := "give one of the two agents a work folder of its own"
	if code == gateAgentFull {
		mend = "let the agent run more at once"
	}
	w.Sentence += fmt.Sprintf(" Session %s of agent %s, which started this one, is in the way. If that waits for it, both wait for ever: don't wait for it there, or %s.", h.id, h.slug, mend)
	return w
}

const mostHolders = 50 // sessions in the way that are looked through

// loadHolder reads which session holds a gate; nil for a gate that no session holds, and for
// one that not everybody who sees the waiting session may see.
func (f *facts) loadHolder(ctx context.Context, q queries.Querier, code string) (*holder, error) {
	rows, err := f.inTheWay(ctx, q, code)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	elders, err := ancestors(ctx, q, f.s)
	if err != nil {
		return nil, err
	}
	var first *holder
	var above int64
	for _, h := range rows {
		s := h.session
		if s.WorkspaceID != f.s.WorkspaceID || s.Mode == api.Local && s.OwnerUserID != f.s.OwnerUserID {
			continue
		}
		ancestor := elders[s.ID] && s.Status.Running()
		if ancestor {
			above++
		}
		if first == nil || ancestor && !first.ancestor {
			first = &holder{s.ID, h.slug, ancestor}
		}
	}
	if first != nil && code == gateAgentFull && above < f.a.MaxConcurrent {
		first.ancestor = false // another place will be free
	}
	return first, nil
}

type holding struct {
	session *sessionRow
	slug    string
}

func (f *facts) inTheWay(ctx context.Context, q queries.Querier, code string) (out []holding, err error) {
	switch code {
	case gateThreadBusy:
		rows, err := q.HoldersOfThread(ctx, queries.HoldersOfThreadParams{ThreadID: f.s.ThreadID, Except: f.s.ID, N: mostHolders})
		for i := range rows {
			out = append(out, holding{&rows[i].Session, rows[i].Slug})
		}
		return out, err
	case gateAgentFull:
		rows, err := q.HoldersOfAgent(ctx, queries.HoldersOfAgentParams{AgentID: f.a.ID, N: mostHolders})
		for i := range rows {
			out = append(out, holding{&rows[i].Session, rows[i].Slug})
		}
		return out, err
	case gateFolderBusy:
		for i := range f.workers {
			wf := &f.workers[i]
			if wf.inFolder == 0 {
				continue
			}
			rows, err := q.HoldersOfFolder(ctx, queries.HoldersOfFolderParams{FolderKey: plainFolder(wf.w), N: mostHolders})
			for i := range rows {
				out = append(out, holding{&rows[i].Session, rows[i].Slug})
			}
			return out, err
		}
	}
	return nil, nil
}

// ancestors are the sessions that started a session: its parent, that one's, and so on.
func ancestors(ctx context.Context, q queries.Querier, s *sessionRow) (map[api.SessionID]bool, error) {
	out := map[api.SessionID]bool{}
	for id := s.ParentID; id != 0 && !out[id]; {
		p, err := q.Session(ctx, id)
		if db.None(err) {
			break // retention took it
		}
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", id, err)
		}
		out[id] = true
		id = p.ParentID
	}
	return out, nil
}

func (e *Engine) sessionTx(ctx context.Context, q queries.Querier, c Caller, id api.SessionID, now int64) (api.Session, error) {
	s, err := visible(ctx, q, c, id)
	if err != nil {
		return api.Session{}, err
	}
	a, err := agentEvenDeleted(ctx, q, s.AgentID)
	if err != nil {
		return api.Session{}, fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	return e.present(ctx, q, s, &a, now)
}

// present makes a session's outside form: the row, its lease, its open prompt
// and why it waits.
func (e *Engine) present(ctx context.Context, q queries.Querier, s *sessionRow, a *agentRow, now int64) (api.Session, error) {
	out := toSession(s, a.Slug)
	if s.ClaimID != 0 {
		c, err := claimOf(ctx, q, s)
		if err != nil {
			return out, fmt.Errorf("read the claim of session %s: %w", s.ID, err)
		}
		out.LeaseExpiresAt = api.At(c.ExpiresAt)
	}
	if s.PromptID != 0 {
		p, err := promptOf(ctx, q, s)
		if err != nil {
			return out, fmt.Errorf("read prompt %s: %w", s.PromptID, err)
		}
		asked, _, err := shownPrompt(p)
		if err != nil {
			return out, err
		}
		if a := asked.Action; a != nil && len(a.Standing) > 0 {
			if a.StandingBy, err = standingBy(ctx, q, s); err != nil {
				return out, err
			}
		}
		out.Prompted = &asked
	}
	t, err := taskOfSession(ctx, q, s)
	if err != nil {
		return out, err
	}
	if t != nil {
		ref := taskRef(t)
		out.Task = &ref
	}
	w, err := waiting(ctx, q, s, a, now)
	if err != nil {
		return out, fmt.Errorf("say why session %s waits: %w", s.ID, err)
	}
	out.WaitingFor = w
	return out, nil
}
