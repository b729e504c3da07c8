package engine

import (
	"context"
	"fmt"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// leased reports whether somebody is at work on the task: its lease lives with its session,
// whose end ends it, or by its clock (contract 7.2).
func leased(t *taskRow, now int64) bool {
	return t.LeaseUserID != 0 && (t.LeaseSessionID != 0 || t.LeaseExpiresAt > now)
}

// holdsTask reports whether the caller is who holds the lease: the user, or the agent of the
// session that it is bound to.
func holdsTask(c Caller, t *taskRow) bool {
	if c.Run != nil {
		return t.LeaseSessionID == c.Run.Session
	}
	return t.LeaseUserID == c.UserID
}

// heldAgainst reports whether a task is held by somebody else than a user, or by a session,
// also one that they dispatched: then they neither dispatch nor release it.
func heldAgainst(user api.UserID, t *taskRow, now int64) bool {
	return leased(t, now) && (t.LeaseUserID != user || t.LeaseSessionID != 0)
}

func taskIsDone(t *taskRow) error {
	return api.Refuse(api.CodeTaskDone, keyOf(t)+" is done: open it again before somebody works on it.")
}

func endTaskLease(t *taskRow) {
	t.LeaseUserID, t.LeaseSessionID, t.LeaseSeconds, t.LeaseExpiresAt, t.LeasedAt, t.LeaseRenewedAt, t.LeaseGraced = 0, 0, 0, 0, 0, 0, 0
}

// taskTerm is how long a lease on a task lasts: what is asked for, else the default; more than
// the most is capped and less than the least refused, as for sessions (contract 4.2).
func (e *Engine) taskTerm(asked *int64) (term, error) {
	lo, hi := int64(e.cfg.MinLease/time.Second), int64(e.cfg.MaxTaskLease/time.Second)
	if asked == nil {
		return term{seconds: int64(e.cfg.TaskLease / time.Second)}, nil
	}
	return boundLease(*asked, lo, hi, "")
}

// taken says what a claim of a task changed.
type taken struct {
	term    term
	renewed bool
	from    *assignment // whose it was
}

// assignment is whose a task is: a user's or an agent's, nobody's when both are zero.
type assignment struct {
	User  api.UserID
	Agent api.AgentID
}

func (a assignment) id() string {
	if a.Agent != 0 {
		return a.Agent.String()
	}
	return a.User.String()
}

func assigned(t *taskRow) assignment { return assignment{t.AssigneeUserID, t.AssigneeAgentID} }

// assignTo makes a task a user's. If it was somebody else's it notes that for the event, and
// returns whose; else nil.
func assignTo(user api.UserID, t *taskRow, data api.EventData) *assignment {
	was := assigned(t)
	t.AssigneeUserID, t.AssigneeAgentID = user, 0
	if was == (assignment{}) || was == (assignment{User: user}) {
		return nil
	}
	data["tookOverFrom"] = was.id()
	return &was
}

// takeTask gives the caller the task's lease and, once, the assignment; its own lease is
// renewed. Errors: already_claimed naming the holder, invalid_lease.
func (e *Engine) takeTask(tx *db.Tx, c Caller, t *taskRow, asked *int64) (taken, error) {
	out := taken{}
	var err error
	if out.term, err = e.taskTerm(asked); err != nil {
		return out, err
	}
	now := db.Micros(tx.Now)
	switch {
	case t.State == api.TaskDone:
		return out, taskIsDone(t)
	case leased(t, now) && !holdsTask(c, t):
		return out, e.taskClaimed(tx, c, t, api.CodeAlreadyClaimed)
	case leased(t, now):
		out.renewed = true
		renewTask(t, out.term.seconds, now)
	default:
		if err := e.lapseTask(tx, t); err != nil {
			return out, err
		}
		t.LeaseUserID, t.LeaseSeconds, t.LeasedAt = c.UserID, out.term.seconds, now
		t.LastSessionID = 0 // no retry takes it back from who takes it by hand
		t.LeaseExpiresAt, t.LeaseRenewedAt = now+db.Seconds(out.term.seconds), now
	}
	data := api.EventData{"leaseSeconds": out.term.seconds}
	out.from = assignTo(c.UserID, t, data)
	if out.renewed && out.from == nil {
		return out, nil
	}
	return out, e.logTask(tx, t, c.Actor(), api.EventTaskClaimed, data)
}

// renewTask moves the end of a lease by its clock forward; one that lives with a session has
// none.
func renewTask(t *taskRow, seconds, now int64) {
	if t.LeaseSessionID != 0 {
		return
	}
	if until := renewedUntil(t.LeaseExpiresAt, seconds, now); until > t.LeaseExpiresAt {
		t.LeaseExpiresAt, t.LeaseRenewedAt, t.LeaseSeconds, t.LeaseGraced = until, now, seconds, 0
	}
}

// taskClaimed refuses what takes the lease that somebody else has, and names them.
func (e *Engine) taskClaimed(tx *db.Tx, c Caller, t *taskRow, code api.Code) error {
	u, err := tx.User(tx.Context(), t.LeaseUserID)
	if err != nil {
		return fmt.Errorf("read user %s: %w", t.LeaseUserID, err)
	}
	out := &api.Error{Code: code, Holder: u.Name, ExpiresAt: api.At(t.LeaseExpiresAt)}
	if t.LeaseSessionID == 0 {
		out.Detail = fmt.Sprintf("%s holds %s until %s.", u.Name, keyOf(t), clock(t.LeaseExpiresAt))
		return out
	}
	seen, err := newVisibility(tx, c).seesSession(tx.Context(), t.LeaseSessionID)
	if err != nil {
		return err
	}
	out.Detail = fmt.Sprintf("%s holds %s for as long as a session of theirs works on it.", u.Name, keyOf(t))
	if seen {
		out.Detail = fmt.Sprintf("%s holds %s for as long as session %s works on it.", u.Name, keyOf(t), t.LeaseSessionID)
	}
	return out
}

// onTask runs one verb on a task: fn changes the row, which is then written.
func (e *Engine) onTask(ctx context.Context, c Caller, ref string, fn func(tx *db.Tx, t *taskRow) error) (out api.Task, at api.Time, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		t, err := taskOf(tx.Context(), tx, c, ref)
		if err != nil {
			return err
		}
		was := *t
		if err := fn(tx, t); err != nil {
			return err
		}
		if err := saveTask(tx, &was, t); err != nil {
			return err
		}
		at = api.At(db.Micros(tx.Now))
		out, err = e.showTask(tx.Context(), tx, c, t.ID)
		return err
	})
	return out, at, err
}

// ClaimTask gives the caller the lease on a task, or renews the one they have, and makes it
// theirs; a task to be done becomes one in progress. Rights: member. Errors: already_claimed
// with holder and expiry, task_done, invalid_lease, not_found.
func (e *Engine) ClaimTask(ctx context.Context, c Caller, ref string, in api.TaskClaimInput) (out api.TaskHeld, err error) {
	var got taken
	out.Task, out.ServerTime, err = e.onTask(ctx, c, ref, func(tx *db.Tx, t *taskRow) error {
		if err := c.May(account.EditTasks); err != nil {
			return err
		}
		out.TookOverFrom = nil
		var err error
		if got, err = e.takeTask(tx, c, t, in.LeaseSeconds); err != nil {
			return err
		}
		if got.from != nil {
			if out.TookOverFrom, err = whoIs(tx.Context(), tx, *got.from); err != nil {
				return err
			}
		}
		if t.State == api.TaskTodo && !got.renewed { // a renewal overrules no person who set it back
			t.State, t.RuleState = api.TaskInProgress, api.TaskInProgress
		}
		return nil
	})
	out.Renewed = got.renewed
	e.capTask(&out, got.term.capped)
	return out, err
}

// capTask notes that a lease is no longer than the longest.
func (e *Engine) capTask(out *api.TaskHeld, capped bool) {
	if capped {
		out.CappedToMax, out.MaxLeaseSeconds = true, int64(e.cfg.MaxTaskLease/time.Second)
	}
}

// heldTask reads the lease that the caller has. An agent's run needs no right for its own.
// Errors: claim_not_active naming the holder, if there is one.
func (e *Engine) heldTask(tx *db.Tx, c Caller, t *taskRow) error {
	if c.Run == nil {
		if err := c.May(account.EditTasks); err != nil {
			return err
		}
	}
	switch {
	case !leased(t, db.Micros(tx.Now)):
		return api.Refuse(api.CodeClaimNotActive, "Nobody holds "+keyOf(t)+" now: claim it again.")
	case !holdsTask(c, t):
		return e.taskClaimed(tx, c, t, api.CodeClaimNotActive)
	}
	return nil
}

// RenewTask sets the lease's end to now + its length, never shorter. Errors: claim_not_active
// naming the holder, if there is one.
func (e *Engine) RenewTask(ctx context.Context, c Caller, ref string) (out api.TaskHeld, err error) {
	out.Renewed = true
	out.Task, out.ServerTime, err = e.onTask(ctx, c, ref, func(tx *db.Tx, t *taskRow) error {
		if err := e.heldTask(tx, c, t); err != nil {
			return err
		}
		renewTask(t, t.LeaseSeconds, db.Micros(tx.Now))
		return nil
	})
	return out, err
}

// ExtendTask stretches the lease by in.AddSeconds for a known idle gap. Past now + the maximum
// it is capped and says so; it never shortens. Errors: as for [Engine.RenewTask], and
// invalid_lease.
func (e *Engine) ExtendTask(ctx context.Context, c Caller, ref string, in api.TaskExtendInput) (out api.TaskHeld, err error) {
	if err := checkExtension(in.AddSeconds); err != nil {
		return out, err
	}
	capped := false
	out.Task, out.ServerTime, err = e.onTask(ctx, c, ref, func(tx *db.Tx, t *taskRow) error {
		if err := e.heldTask(tx, c, t); err != nil || t.LeaseSessionID != 0 {
			return err
		}
		now := db.Micros(tx.Now)
		var until int64
		if until, capped = extendedUntil(t.LeaseExpiresAt, in.AddSeconds, now, e.cfg.MaxTaskLease); until > t.LeaseExpiresAt {
			t.LeaseExpiresAt, t.LeaseRenewedAt, t.LeaseGraced = until, now, 0
		}
		return e.logTask(tx, t, c.Actor(), api.EventTaskExtended, api.EventData{"until": api.At(t.LeaseExpiresAt).String()})
	})
	out.Renewed = true
	e.capTask(&out, capped)
	return out, err
}

// ReleaseTask gives the caller's lease back and ends their assignment, also one without a
// lease. Repeating it changes nothing. A lease that lives with a session is the session's, also
// for who dispatched it. Errors: not_claim_holder naming who holds it.
func (e *Engine) ReleaseTask(ctx context.Context, c Caller, ref string) (out api.TaskReleased, err error) {
	out.Task, _, err = e.onTask(ctx, c, ref, func(tx *db.Tx, t *taskRow) error {
		if err := c.May(account.EditTasks); err != nil {
			return err
		}
		now := db.Micros(tx.Now)
		if heldAgainst(c.UserID, t, now) {
			return e.taskClaimed(tx, c, t, api.CodeNotClaimHolder)
		}
		if err := e.lapseTask(tx, t); err != nil {
			return err
		}
		out.Released = leased(t, now)
		mine := assigned(t) == assignment{User: c.UserID}
		if !out.Released && !mine {
			return nil
		}
		endTaskLease(t)
		if mine {
			t.AssigneeUserID, t.AssigneeAgentID = 0, 0
		}
		undoClaim(t)
		return e.logTask(tx, t, c.Actor(), api.EventTaskReleased, api.EventData{"reason": "released"})
	})
	return out, err
}

// undoClaim moves back to todo what a claim moved to in_progress. What is in review or blocked
// stays so: the work is done, or waits.
func undoClaim(t *taskRow) {
	if t.RuleState == api.TaskInProgress {
		applyRule(t, api.TaskTodo)
	}
}

// lapseTask ends a lease whose time is over. The assignment stands (contract 7.2).
func (e *Engine) lapseTask(tx *db.Tx, t *taskRow) error {
	if t.LeaseUserID == 0 || leased(t, db.Micros(tx.Now)) {
		return nil
	}
	return e.endTask(tx, t)
}

// endTask ends a lease as if its time were over.
func (e *Engine) endTask(tx *db.Tx, t *taskRow) error {
	holder := t.LeaseUserID
	endTaskLease(t)
	return e.logTask(tx, t, api.ActorSystem, api.EventTaskLapsed, api.EventData{"holder": holder.String()})
}

// taskLapses are leases on tasks that are over.
func (e *Engine) taskLapses() timed {
	return timed{
		what: "end a lapsed lease on a task",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			ids, err := tx.DueTaskLapses(ctx, queries.DueTaskLapsesParams{Now: now, N: n})
			return keysOf(ids, func(id api.TaskID) int64 { return int64(id) }), err
		},
		do: func(tx *db.Tx, id int64) error {
			t, err := tx.Task(tx.Context(), api.TaskID(id))
			if err != nil {
				return err
			}
			was := t
			if err := e.lapseTask(tx, &t); err != nil {
				return err
			}
			return saveTask(tx, &was, &t)
		},
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) { return tx.NextTaskLapse(ctx, now) },
	}
}

// endTasksOf ends the leases and assignments of a user who may no longer work here.
func (e *Engine) endTasksOf(tx *db.Tx, c Caller, user api.UserID) error {
	held, err := tx.TasksHeldBy(tx.Context(), queries.TasksHeldByParams{WorkspaceID: c.WorkspaceID, UserID: user})
	if err != nil {
		return fmt.Errorf("list the tasks that user %s holds: %w", user, err)
	}
	own, err := tx.TasksOfUser(tx.Context(), queries.TasksOfUserParams{WorkspaceID: c.WorkspaceID, UserID: user})
	if err != nil {
		return fmt.Errorf("list the tasks of user %s: %w", user, err)
	}
	for _, t := range append(held, own...) {
		if err := e.retireTask(tx, c, t.ID, assignment{User: user}); err != nil {
			return err
		}
	}
	return nil
}

// endTasksOfAgent ends the assignments to an agent that is deleted.
func (e *Engine) endTasksOfAgent(tx *db.Tx, c Caller, agent *agentRow) error {
	own, err := tx.TasksOfAgent(tx.Context(), queries.TasksOfAgentParams{WorkspaceID: agent.WorkspaceID, AgentID: agent.ID})
	if err != nil {
		return fmt.Errorf("list the tasks of agent %s: %w", agent.ID, err)
	}
	for _, t := range own {
		if err := e.retireTask(tx, c, t.ID, assignment{Agent: agent.ID}); err != nil {
			return err
		}
	}
	return nil
}

// retireTask takes a task from somebody who is gone: their lease and their assignment.
func (e *Engine) retireTask(tx *db.Tx, c Caller, id api.TaskID, from assignment) error {
	t, err := tx.Task(tx.Context(), id) // anew: it may have been both held and assigned
	if err != nil {
		return fmt.Errorf("read task %s: %w", id, err)
	}
	was := t
	held, bound := from.User != 0 && t.LeaseUserID == from.User, t.LeaseSessionID != 0
	if !held && assigned(&t) != from {
		return nil
	}
	if held {
		endTaskLease(&t)
	}
	if assigned(&t) == from {
		t.AssigneeUserID, t.AssigneeAgentID = 0, 0
	}
	if t.LeaseUserID == 0 && !bound { // a session that goes on is still at work on it
		undoClaim(&t)
	}
	if err := saveTask(tx, &was, &t); err != nil {
		return err
	}
	return e.logTask(tx, &t, c.Actor(), api.EventTaskReleased, api.EventData{"reason": "gone"})
}
