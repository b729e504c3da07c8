package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// TaskPage is a task's page.
type TaskPage struct {
	View
	TaskView                   // with the tasks around it
	Comments []api.TaskComment // the oldest first
	Earlier  bool              // there are older comments
	History  []api.AuditEntry  // what happened to it, newest first
	Sessions []SessionView     // about it, newest first, those that the caller may see
	Changes  *ChangesView      // of the newest of these sessions that has any; nil for none
}

// How much of a task its page shows.
const (
	pageComments = 100
	pageHistory  = 50
	pageSessions = 20
)

// TaskPageOf reads a task's page. Rights: viewer.
func (e *Engine) TaskPageOf(ctx context.Context, c Caller, ref string) (out TaskPage, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		t, err := taskOf(ctx, r.q, c, ref)
		if err != nil {
			return err
		}
		shown, err := e.taskView(r.q, c).show(ctx, t)
		if err != nil {
			return err
		}
		out.TaskView = r.task(shown, t)
		if err := r.taskTalk(ctx, t, &out); err != nil {
			return err
		}
		return r.taskSessions(ctx, t, &out)
	})
	return out, err
}

// taskTalk reads the comments and the history of a task's page.
func (r *viewReader) taskTalk(ctx context.Context, t *taskRow, out *TaskPage) error {
	y := newVisibility(r.q, r.c)
	comments, err := r.q.TaskComments(ctx, queries.TaskCommentsParams{TaskID: t.ID, Before: math.MaxInt64, N: pageComments + 1})
	if err != nil {
		return fmt.Errorf("list the comments of task %s: %w", keyOf(t), err)
	}
	out.Earlier = len(comments) > pageComments
	for _, row := range comments[:min(len(comments), pageComments)] {
		shown, err := showComment(ctx, y, row.TaskComment, row.Author)
		if err != nil {
			return err
		}
		out.Comments = append(out.Comments, shown)
	}
	slices.Reverse(out.Comments)
	rows, err := r.q.EventsOfTask(ctx, queries.EventsOfTaskParams{TaskID: t.ID, Before: math.MaxInt64, N: pageHistory})
	if err != nil {
		return fmt.Errorf("list the events of task %s: %w", keyOf(t), err)
	}
	for _, row := range rows {
		ev := toEvent(row)
		if err := y.redact(ctx, &ev); err != nil {
			return err
		}
		out.History = append(out.History, toAudit(ev))
	}
	return nameActors(ctx, r.q, out.History)
}

func (r *viewReader) taskSessions(ctx context.Context, t *taskRow, out *TaskPage) error {
	ids, err := r.q.SessionsOfTask(ctx, queries.SessionsOfTaskParams{TaskID: t.ID, Before: math.MaxInt64, N: 4 * pageSessions})
	if err != nil {
		return fmt.Errorf("list the sessions of task %s: %w", keyOf(t), err)
	}
	for _, id := range ids {
		s, err := r.q.Session(ctx, id)
		if err != nil {
			return fmt.Errorf("read session %s: %w", id, err)
		}
		if !sees(r.c, &s) || len(out.Sessions) == pageSessions {
			continue
		}
		shown, err := r.session(ctx, &s)
		if err != nil {
			return err
		}
		out.Sessions = append(out.Sessions, shown)
		if out.Changes == nil {
			if out.Changes, err = r.changes(ctx, &s); err != nil {
				return err
			}
		}
	}
	return nil
}

// DispatchView is what the page of a dispatch shows before anything starts.
type DispatchView struct {
	View
	api.Task
	Briefing string
	Agents   []api.Agent // that the caller may run
	Chosen   string      // slug of the agent that would work on it; "" = it has to be said
	Against  bool        // somebody else, or a session, holds it: only force takes it from them
	Forces   bool        // the caller may force it
}

// DispatchOf reads what a dispatch of a task would start. Rights: member.
func (e *Engine) DispatchOf(ctx context.Context, c Caller, ref string) (out DispatchView, err error) {
	if err := c.May(account.EditTasks); err != nil {
		return out, err
	}
	out.Forces = c.Can(account.ForceTasks)
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		t, err := taskOf(ctx, r.q, c, ref)
		if err != nil {
			return err
		}
		if out.Task, err = e.taskView(r.q, c).show(ctx, t); err != nil {
			return err
		}
		if out.Briefing, err = briefing(ctx, r.q, t); err != nil {
			return err
		}
		out.Against = heldAgainst(c.UserID, t, r.now)
		rows, err := r.q.ListAgents(ctx, queries.ListAgentsParams{WorkspaceID: c.WorkspaceID, Before: math.MaxInt64, N: db.MaxPage})
		if err != nil {
			return fmt.Errorf("list agents: %w", err)
		}
		rows = slices.DeleteFunc(rows, func(a agentRow) bool { return !c.CanRun(a.Mode) })
		if a, err := dispatchAgent(ctx, r.q, c, t, ""); err == nil {
			out.Chosen = a.Slug
		} else if api.CodeOf(err) == "" {
			return err
		}
		out.Agents, err = r.shown(ctx, rows)
		return err
	})
	return out, err
}
