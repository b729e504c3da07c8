package engine

import (
	"context"
	"fmt"
	"slices"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// rule is what of a session changes the state of the task that it holds, and to which.
type rule struct {
	update string // of [api.TaskUpdates]
	state  api.TaskState
}

// ruleOf is the rule for a session that goes from one status to another; none when the task keeps
// its state (contract 7.5).
func ruleOf(before api.Status, next *sessionRow) rule {
	released := rule{api.UpdateReleased, api.TaskTodo}
	switch next.Status {
	case api.Active:
		return rule{api.UpdateClaimed, api.TaskInProgress}
	case api.AwaitingInput:
		return rule{api.UpdateAwaitingInput, api.TaskBlocked}
	case api.Failed:
		return rule{api.UpdateFailed, api.TaskBlocked}
	case api.Complete:
		if next.Outcome == api.OutcomeStopped {
			return released // a person ended it before its work was done
		}
		return rule{api.UpdateCompleted, api.TaskReview}
	case api.Cancelled:
		return released
	case api.Queued, api.Pending, api.Stale:
		if before.Running() && next.PromptID == 0 { // else its question still waits for a person
			return released
		}
	}
	return rule{}
}

// allowedRule is the rule for a session's move if its agent lets it count, and the worker that has
// the session, or had it until now, doesn't leave it out: that narrows what the agent lets and
// never widens it.
func allowedRule(tx *db.Tx, before, next *sessionRow) (rule, error) {
	r := ruleOf(before.Status, next)
	if r.update == "" {
		return r, nil
	}
	var worker api.WorkerID
	if next.Status.Running() {
		worker = next.WorkerID
	} else if before.Status.Running() {
		worker = before.WorkerID
	}
	if allowed, err := letsCount(tx, next.AgentID, worker, r.update); err != nil || !allowed {
		return rule{}, err
	}
	return r, nil
}

// letsCount reports whether an agent, and a worker if there is one, let something change tasks.
func letsCount(tx *db.Tx, agent api.AgentID, worker api.WorkerID, update string) (bool, error) {
	a, err := agentEvenDeleted(tx.Context(), tx, agent)
	if err != nil {
		return false, fmt.Errorf("read agent %s: %w", agent, err)
	}
	left := api.TaskUpdates
	if worker != 0 {
		w, err := workerEvenDeleted(tx.Context(), tx, worker)
		if err != nil {
			return false, fmt.Errorf("read worker %s: %w", worker, err)
		}
		left = w.TaskUpdates
	}
	this := api.Labels{update}
	return a.TaskUpdates.Has(this) && left.Has(this), nil
}

// checkTaskUpdates refuses words that name nothing that changes a task's state.
func checkTaskUpdates(v *api.Invalid, updates *api.Labels) {
	*updates = updates.Normal()
	for _, word := range *updates {
		if !slices.Contains(api.TaskUpdates, word) {
			v.Add("taskUpdates", fmt.Sprintf("%q changes no task: use %s", word, api.OrList(api.TaskUpdates)))
		}
	}
}

// applyRule sets a state for a rule, unless a person has set one since the rules began.
func applyRule(t *taskRow, state api.TaskState) {
	if state == "" || t.RuleState == "" || t.State == api.TaskDone {
		return
	}
	t.State, t.RuleState = state, state
}

// taskActor names who moved a session in what everybody here reads: a worker is known to
// fewer people than the task (contract 8.3), so its session stands for it.
func taskActor(s *sessionRow, actor string) string {
	if id, err := api.ParseWorkerID(actor); err == nil && id != 0 {
		return s.ID.String()
	}
	return actor
}

// taskFollows does what follows for a task from a move of the session that holds it: its
// state changes by the rules, and the lease ends with the session, in the same transaction.
func (e *Engine) taskFollows(tx *db.Tx, before, s *sessionRow, actor string) error {
	t, err := taskOfSession(tx.Context(), tx, s)
	if err != nil || t == nil || t.LeaseSessionID != s.ID {
		return err
	}
	was, actor := *t, taskActor(s, actor)
	r, err := allowedRule(tx, before, s)
	if err != nil {
		return err
	}
	applyRule(t, r.state)
	if s.Status.Terminal() {
		endTaskLease(t)
	}
	if err := saveTask(tx, &was, t); err != nil {
		return err
	}
	data := api.EventData{"session": s.ID.String(), "status": s.Status}
	if t.State != was.State {
		data["from"], data["to"] = was.State, t.State
		if err := e.logTask(tx, t, actor, api.EventTaskMoved, data); err != nil {
			return err
		}
	}
	if s.Status.Terminal() {
		return e.logTask(tx, t, actor, api.EventTaskReleased, api.EventData{"session": s.ID.String(), "reason": s.Status})
	}
	return nil
}

// taskLanded moves the task of a session whose changes were merged to done, where its agent and
// the worker that merged let that count (contract 16.4).
func (e *Engine) taskLanded(tx *db.Tx, s *sessionRow, l api.Landing) error {
	t, err := taskOfSession(tx.Context(), tx, s)
	if err != nil || t == nil || t.LastSessionID != s.ID || t.LeaseUserID != 0 {
		return err // what somebody is at work on isn't done
	}
	allowed, err := letsCount(tx, s.AgentID, l.WorkerID, api.UpdateLanded)
	if err != nil || !allowed {
		return err
	}
	was := *t
	applyRule(t, api.TaskDone)
	if t.State == was.State {
		return nil
	}
	closeTask(tx, t)
	if err := saveTask(tx, &was, t); err != nil {
		return err
	}
	data := api.EventData{"session": s.ID.String(), "landing": l.ID.String(), "from": was.State, "to": t.State}
	return e.logTask(tx, t, s.ID.String(), api.EventTaskMoved, data)
}

// bindTask lets a new session hold its task's lease: from now on the rules may change the
// state that the task has at this moment.
func bindTask(tx *db.Tx, t *taskRow, s *sessionRow, holder api.UserID) {
	endTaskLease(t)
	t.LeaseUserID, t.LeaseSessionID, t.LastSessionID, t.LeasedAt = holder, s.ID, s.ID, db.Micros(tx.Now)
	t.RuleState = t.State
}

// taskOfSession is the task that a session is about; nil for none, and for one whose row is
// missing, which must not keep the session from being shown or from ending.
func taskOfSession(ctx context.Context, q queries.Querier, s *sessionRow) (*taskRow, error) {
	if s.TaskID == 0 {
		return nil, nil
	}
	t, err := q.Task(ctx, s.TaskID)
	if db.None(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read task %s: %w", s.TaskID, err)
	}
	return &t, nil
}

// claimedTask is the task of a session for its worker; nil for none.
func claimedTask(tx *db.Tx, s *sessionRow) (*api.ClaimTask, error) {
	t, err := taskOfSession(tx.Context(), tx, s)
	if err != nil || t == nil {
		return nil, err
	}
	return &api.ClaimTask{TaskRef: taskRef(t), Description: t.Description, Priority: t.Priority, Labels: t.Labels}, nil
}

// carryTask hands the task's lease over to the session that goes on with the work of an ended
// one, if that one, or one of its conversation, was the last to hold it, nobody else has it and
// the task isn't done (contract 2.6, 7.2). A state that a person set stays theirs.
func (e *Engine) carryTask(tx *db.Tx, from, s *sessionRow, actor string) error {
	t, err := taskOfSession(tx.Context(), tx, s)
	if err != nil || t == nil || t.State == api.TaskDone || t.LastSessionID == 0 {
		return err
	}
	if t.LastSessionID != from.ID {
		last, err := tx.Session(tx.Context(), t.LastSessionID)
		if err != nil {
			return fmt.Errorf("read session %s: %w", t.LastSessionID, err)
		}
		if last.ThreadID != from.ThreadID {
			return nil
		}
	}
	holder := s.TriggeredByUserID
	if holder == 0 || heldAgainst(holder, t, db.Micros(tx.Now)) {
		return nil
	}
	was := *t
	if err := e.lapseTask(tx, t); err != nil {
		return err
	}
	bindTask(tx, t, s, holder)
	if was.RuleState == "" {
		t.RuleState = ""
	}
	if err := saveTask(tx, &was, t); err != nil {
		return err
	}
	return e.logTask(tx, t, actor, api.EventTaskClaimed, api.EventData{"session": s.ID.String()})
}
