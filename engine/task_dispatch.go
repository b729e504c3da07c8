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

// DispatchTask claims the task and makes a session of an agent that works on it, in one
// transaction: the session holds the lease, and its end, whatever it is, ends that
// (contract 7.4). replayed reports that an Idempotency-Key matched an earlier one. Rights: a
// member who may trigger the agent; force: admin. Errors: already_claimed with the holder,
// task_done, task_blocked, not_found, forbidden, invalid, idempotency_key_reused.
func (e *Engine) DispatchTask(ctx context.Context, c Caller, ref string, in api.DispatchInput, idem Idempotency) (out api.Dispatched, replayed bool, err error) {
	s := api.SessionInput{Prompt: in.Prompt, Priority: in.Priority}
	if err := checkSession(&s); err != nil {
		return out, false, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		out, replayed = api.Dispatched{}, false
		t, err := taskOf(tx.Context(), tx, c, ref)
		if err != nil {
			return err
		}
		if err := mayDispatch(c, in.Force); err != nil {
			return err
		}
		if out.Briefing, err = briefing(tx.Context(), tx, t); err != nil {
			return err
		}
		key := idem
		key.Route += " of " + t.ID.String()
		if key.Key != "" {
			first, err := e.replay(tx, c, key)
			if err != nil {
				return err
			}
			if first != 0 {
				replayed = true
				return e.dispatchedBefore(tx, c, t, first, &out)
			}
		}
		return e.dispatchTx(tx, c, t, in, s, key, &out)
	})
	return out, replayed, err
}

func mayDispatch(c Caller, force bool) error {
	if err := c.May(account.EditTasks); err != nil {
		return err
	}
	if force {
		return c.May(account.ForceTasks)
	}
	return nil
}

// dispatchedBefore answers as the first call with the same key did.
func (e *Engine) dispatchedBefore(tx *db.Tx, c Caller, t *taskRow, first api.SessionID, out *api.Dispatched) error {
	s, err := e.sessionTx(tx.Context(), tx, c, first, db.Micros(tx.Now))
	if err != nil {
		return err
	}
	out.Agent, out.Session, out.Prompt = s.AgentSlug, &s, s.Prompt
	out.Task, err = e.showTask(tx.Context(), tx, c, t.ID)
	return err
}

func (e *Engine) dispatchTx(tx *db.Tx, c Caller, t *taskRow, in api.DispatchInput, input api.SessionInput, key Idempotency, out *api.Dispatched) error {
	a, err := dispatchAgent(tx.Context(), tx, c, t, in.Agent)
	if err != nil {
		return err
	}
	if err := c.MayTrigger(a.Mode); err != nil {
		return err
	}
	if err := e.mayStart(tx, c, t, in.Force); err != nil {
		return err
	}
	out.Agent, out.Prompt = a.Slug, a.Prompt
	if in.Prompt != nil {
		out.Prompt = *in.Prompt
	}
	if in.Print {
		out.Task, err = e.showTask(tx.Context(), tx, c, t.ID)
		return err
	}
	was := *t
	forced := heldAgainst(c.UserID, t, db.Micros(tx.Now))
	if forced && t.LeaseSessionID != 0 {
		seen, err := newVisibility(tx, c).seesSession(tx.Context(), t.LeaseSessionID)
		if err != nil {
			return err
		}
		if seen {
			out.Displaced = t.LeaseSessionID
		}
	}
	if err := e.lapseTask(tx, t); err != nil {
		return err
	}
	input.Title, input.UntrustedContext = api.Excerpt(keyOf(t)+" "+t.Title, maxTitle), out.Briefing
	s, err := e.newSession(tx, a, newSession{
		by: api.ByUser, user: c.UserID, actor: c.Actor(), at: manualTrigger(a, db.Micros(tx.Now)), in: input, attempt: 1, task: t.ID,
	})
	if err != nil {
		return err
	}
	if err := e.keepKey(tx, c, key, s); err != nil {
		return err
	}
	bindTask(tx, t, s, c.UserID)
	data := api.EventData{"agent": a.Slug, "session": s.ID.String()}
	if forced {
		data["forced"] = true
	}
	if assigned(t) != (assignment{Agent: a.ID}) {
		if from := assignTo(c.UserID, t, data); from != nil {
			if out.TookOverFrom, err = whoIs(tx.Context(), tx, *from); err != nil {
				return err
			}
		}
	}
	if err := saveTask(tx, &was, t); err != nil {
		return err
	}
	if err := e.logTask(tx, t, c.Actor(), api.EventTaskDispatched, data); err != nil {
		return err
	}
	if out.Task, err = e.showTask(tx.Context(), tx, c, t.ID); err != nil {
		return err
	}
	shown, err := e.present(tx.Context(), tx, s, a, db.Micros(tx.Now))
	out.Session = &shown
	return err
}

// mayStart refuses a task that nobody should begin now.
func (e *Engine) mayStart(tx *db.Tx, c Caller, t *taskRow, force bool) error {
	switch {
	case t.State == api.TaskDone:
		return taskIsDone(t)
	case t.OpenBlockers > 0:
		before, err := blockersOf(tx.Context(), tx, t)
		if err != nil {
			return err
		}
		return api.Refuse(api.CodeTaskBlocked, keyOf(t)+" waits for "+strings.Join(api.OpenKeys(before), ", ")+".")
	case !force && heldAgainst(c.UserID, t, db.Micros(tx.Now)):
		return e.taskClaimed(tx, c, t, api.CodeAlreadyClaimed)
	}
	return nil
}

// namedAgents is how many agents a refusal names.
const namedAgents = 5

// dispatchAgent is the agent that is to work on a task: the one named, else its assignee, else
// the workspace's only one.
func dispatchAgent(ctx context.Context, q queries.Querier, c Caller, t *taskRow, named string) (*agentRow, error) {
	if named != "" {
		a, err := agentOf(ctx, q, c, named)
		if api.CodeOf(err) != "" {
			return nil, api.BadField("agent", fmt.Sprintf("names %q, which is no agent of this workspace", named))
		}
		return a, err
	}
	if t.AssigneeAgentID != 0 {
		a, err := q.Agent(ctx, t.AssigneeAgentID)
		if err == nil {
			return &a, nil
		}
		if !db.None(err) {
			return nil, fmt.Errorf("read agent %s: %w", t.AssigneeAgentID, err)
		}
	}
	rows, err := q.ListAgents(ctx, queries.ListAgentsParams{WorkspaceID: c.WorkspaceID, Before: 1 << 62, N: namedAgents + 1})
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	switch len(rows) {
	case 0:
		return nil, api.BadField("agent", "is missing, and there is no agent in this workspace yet: make one first")
	case 1:
		return &rows[0], nil
	}
	var slugs []string
	for _, a := range rows[:min(len(rows), namedAgents)] {
		slugs = append(slugs, a.Slug)
	}
	if len(rows) > namedAgents {
		slugs = append(slugs, "…")
	}
	return nil, api.BadField("agent", "is missing: name the agent that is to work on the task, of "+strings.Join(slugs, ", "))
}

// aboutTask fills in the task that a new session is about, for one that isn't dispatched: it
// holds no lease. The briefing joins what people wrote (contract 7.4).
func (e *Engine) aboutTask(tx *db.Tx, c Caller, n *newSession) error {
	if n.in.Task == "" {
		return nil
	}
	t, err := taskOf(tx.Context(), tx, c, n.in.Task)
	if api.CodeOf(err) != "" {
		return api.BadField("task", fmt.Sprintf("names %q, which is no task that you can see in this workspace", n.in.Task))
	}
	if err != nil {
		return err
	}
	text, err := briefing(tx.Context(), tx, t)
	if err != nil {
		return err
	}
	n.task = t.ID
	if n.in.UntrustedContext != "" {
		text += "\n" + n.in.UntrustedContext
	}
	if len(text) > maxContext {
		return api.BadField("untrustedContext", fmt.Sprintf("is too long together with the task's briefing: at most %d bytes fit", maxContext))
	}
	n.in.UntrustedContext = text
	return nil
}
