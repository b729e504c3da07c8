package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

type taskRow = queries.Task

// DefaultTask is a new task where its creator sets nothing.
func DefaultTask() api.TaskInput {
	return api.TaskInput{State: api.TaskTodo, Priority: "p2", Labels: api.Labels{}, BlockedBy: []string{}, Links: api.TaskLinks{}}
}

// taskOf reads a task by id, key (T-42) or slug. One in another workspace is 404, and so is
// any but its own for an agent's run (contract 8.4).
func taskOf(ctx context.Context, q queries.Querier, c Caller, ref string) (*taskRow, error) {
	t, err := findTask(ctx, q, c.WorkspaceID, ref)
	if err != nil {
		return nil, err
	}
	if c.Run != nil {
		s, err := q.Session(ctx, c.Run.Session)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", c.Run.Session, err)
		}
		if s.TaskID != t.ID {
			return nil, db.NotFound("task")
		}
	}
	return t, nil
}

func findTask(ctx context.Context, q queries.Querier, workspace api.WorkspaceID, ref string) (*taskRow, error) {
	var t taskRow
	var err error
	ref = strings.ToLower(strings.TrimSpace(ref))
	if id, perr := api.ParseTaskID(ref); perr == nil && id != 0 {
		t, err = q.Task(ctx, id)
	} else if number, ok := taskNumber(ref); ok {
		t, err = q.TaskByNumber(ctx, queries.TaskByNumberParams{WorkspaceID: workspace, Number: number})
	} else {
		t, err = q.TaskBySlug(ctx, queries.TaskBySlugParams{WorkspaceID: workspace, Slug: ref})
	}
	if db.None(err) || (err == nil && t.WorkspaceID != workspace) {
		return nil, db.NotFound("task")
	}
	if err != nil {
		return nil, fmt.Errorf("read task %q: %w", ref, err)
	}
	return &t, nil
}

// taskNumber is that of a key, in either case: T-42.
func taskNumber(ref string) (int64, bool) {
	digits, ok := strings.CutPrefix(strings.ToLower(ref), "t-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0
}

func keyOf(t *taskRow) string { return api.TaskKey(t.Number) }

func (e *Engine) logTask(tx *db.Tx, t *taskRow, actor, kind string, data api.EventData) error {
	if data == nil {
		data = api.EventData{}
	}
	data["key"] = keyOf(t)
	return tx.Log(db.Event{Workspace: t.WorkspaceID, Task: t.ID, Actor: actor, Type: kind, Data: data})
}

// CreateTask creates a task. Created in progress it is also claimed. replayed reports that an
// Idempotency-Key matched an earlier one, whose task is returned. Rights: member. Errors: invalid
// with each field, slug_taken, idempotency_key_reused.
func (e *Engine) CreateTask(ctx context.Context, c Caller, in api.TaskInput, idem Idempotency) (out api.Task, replayed bool, err error) {
	if err := c.May(account.EditTasks); err != nil {
		return out, false, err
	}
	idem.Route += " of " + c.WorkspaceID.String()
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		kept, err := e.keptKey(tx, c, idem)
		if err != nil {
			return err
		}
		id := kept.TaskID
		if replayed = id != 0; !replayed {
			if id, err = e.createTaskTx(tx, c, in); err != nil {
				return err
			}
			if err := putKey(tx, c, idem, 0, id); err != nil {
				return err
			}
		}
		out, err = e.showTask(tx.Context(), tx, c, id)
		return err
	})
	return out, replayed, err
}

func (e *Engine) createTaskTx(tx *db.Tx, c Caller, in api.TaskInput) (api.TaskID, error) {
	now := db.Micros(tx.Now)
	number, err := tx.NextTaskNumber(tx.Context(), c.WorkspaceID)
	if err != nil {
		return 0, fmt.Errorf("number a task: %w", err)
	}
	t := taskRow{
		ID: api.TaskID(tx.NewID()), WorkspaceID: c.WorkspaceID, Number: number, State: api.TaskTodo, Priority: in.Priority,
		Version: 1, CreatedBy: c.UserID, CreatedAt: now, UpdatedAt: now,
	}
	if err := CheckTask(&in); err != nil {
		return 0, err
	}
	blockers, err := fillTask(tx, c, &t, api.TaskInput{}, in)
	if err != nil {
		return 0, err
	}
	if err := insertTask(tx, &t); err != nil {
		return 0, err
	}
	if _, err := setBlockers(tx, &t, blockers); err != nil {
		return 0, err
	}
	if err := e.logTask(tx, &t, c.Actor(), api.EventTaskCreated, api.EventData{"title": t.Title}); err != nil {
		return 0, err
	}
	was := t
	if err := e.setTaskState(tx, c, &t, in.State); err != nil {
		return 0, err
	}
	if err := saveTask(tx, &was, &t); err != nil {
		return 0, err
	}
	return t.ID, nil
}

// EditTask changes a task: merge is applied to a copy of what people set and may be called
// more than once. A state that merge sets is a person's: no rule changes it afterwards
// (contract 7.5). Rights: member. Errors: what merge returns, invalid, slug_taken,
// stale_version, already_claimed for in_progress and done, not_found.
func (e *Engine) EditTask(ctx context.Context, c Caller, ref string, merge func(*api.TaskEdit) error) (out api.Task, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		t, err := taskOf(tx.Context(), tx, c, ref)
		if err != nil {
			return err
		}
		if err := c.May(account.EditTasks); err != nil {
			return err
		}
		before, err := taskInput(tx.Context(), tx, t)
		if err != nil {
			return err
		}
		in := api.TaskEdit{TaskInput: before, Version: t.Version}
		in.BlockedBy, in.Links, in.Labels = slices.Clone(in.BlockedBy), slices.Clone(in.Links), slices.Clone(in.Labels)
		in.State = "" // so that setting the present state counts as setting it
		if err := merge(&in); err != nil {
			return err
		}
		if in.Version != 0 && in.Version != t.Version {
			return &api.Error{
				Code: api.CodeStaleVersion, Detail: fmt.Sprintf("%s has changed: it is at version %d, and you have read version %d.", keyOf(t), t.Version, in.Version),
				Fields: []api.FieldError{{Field: "version", Detail: "read the task again and repeat the change if it is still right"}},
			}
		}
		if err := CheckTask(&in.TaskInput); err != nil {
			return err
		}
		if err := e.editTaskTx(tx, c, t, before, in.TaskInput); err != nil {
			return err
		}
		out, err = e.showTask(tx.Context(), tx, c, t.ID)
		return err
	})
	return out, err
}

func (e *Engine) editTaskTx(tx *db.Tx, c Caller, t *taskRow, before, in api.TaskInput) error {
	was := *t
	blockers, err := fillTask(tx, c, t, before, in)
	if err != nil {
		return err
	}
	if err := e.setTaskState(tx, c, t, in.State); err != nil {
		return err
	}
	changed := changedFields(&was, t)
	// Before the row, whose change recounts what is open around it.
	rewired, err := setBlockers(tx, t, blockers)
	if err != nil {
		return err
	}
	if rewired {
		changed = append(changed, "blockedBy")
		t.Version++
		t.UpdatedAt = db.Micros(tx.Now)
	}
	if err := saveTask(tx, &was, t); err != nil {
		return err
	}
	if len(changed) == 0 {
		return nil
	}
	data := api.EventData{"changed": changed}
	if was.State != t.State {
		data["from"], data["to"] = was.State, t.State
	}
	return e.logTask(tx, t, c.Actor(), api.EventTaskEdited, data)
}

// changedFields are what people set and is no longer what it was, under the names of the wire.
func changedFields(was, t *taskRow) []string {
	changed := []string{}
	for _, f := range []struct {
		name string
		same bool
	}{
		{"slug", was.Slug == t.Slug},
		{"title", was.Title == t.Title},
		{"description", was.Description == t.Description},
		{"state", was.State == t.State},
		{"priority", was.Priority == t.Priority},
		{"labels", slices.Equal(was.Labels, t.Labels)},
		{"assignee", was.AssigneeUserID == t.AssigneeUserID && was.AssigneeAgentID == t.AssigneeAgentID},
		{"links", slices.Equal(was.Links, t.Links)},
	} {
		if !f.same {
			changed = append(changed, f.name)
		}
	}
	return changed
}

// setTaskState sets a state for a person. In progress also claims the task; done ends its
// lease and its assignment (contract 7.2, 7.3).
func (e *Engine) setTaskState(tx *db.Tx, c Caller, t *taskRow, state api.TaskState) error {
	if state != "" {
		t.RuleState = "" // a person has decided, also where nothing changes
	}
	if state != "" && state != t.State {
		t.State, t.DoneAt = state, 0
	}
	switch {
	case t.State == api.TaskDone: // also one that was done before and is assigned now
		if err := e.endLeaseOfDone(tx, c, t); err != nil {
			return err
		}
		closeTask(tx, t)
	case state == api.TaskInProgress:
		_, err := e.takeTask(tx, c, t, nil)
		return err
	}
	return nil
}

// closeTask is what a done task is besides its state.
func closeTask(tx *db.Tx, t *taskRow) {
	if t.AssigneeUserID, t.AssigneeAgentID = 0, 0; t.DoneAt == 0 {
		t.DoneAt = db.Micros(tx.Now)
	}
}

// endLeaseOfDone ends the lease of a task that somebody calls done. While somebody else is at
// work on it that takes an admin: else a member could take it from them by closing it and
// opening it again (contract 7.2).
func (e *Engine) endLeaseOfDone(tx *db.Tx, c Caller, t *taskRow) error {
	held := leased(t, db.Micros(tx.Now))
	if held && t.LeaseUserID != c.UserID && !c.Can(account.ForceTasks) {
		return e.taskClaimed(tx, c, t, api.CodeAlreadyClaimed)
	}
	endTaskLease(t)
	if !held {
		return nil
	}
	return e.logTask(tx, t, c.Actor(), api.EventTaskReleased, api.EventData{"reason": "done"})
}

func insertTask(tx *db.Tx, t *taskRow) error {
	err := tx.InsertTask(tx.Context(), queries.InsertTaskParams(*t))
	if db.IsUnique(err) {
		return taskSlugTaken(t.Slug)
	}
	if err != nil {
		return fmt.Errorf("insert task %s: %w", keyOf(t), err)
	}
	return nil
}

func taskSlugTaken(slug string) error {
	return &api.Error{
		Code: api.CodeSlugTaken, Detail: fmt.Sprintf("There is a task %q already.", slug),
		Fields: []api.FieldError{{Field: "slug", Detail: "is taken in this workspace: choose another"}},
	}
}

// saveTask writes what changed of a task, if anything. A change of what people see as the
// task, not of who is at work on it, is a new version.
func saveTask(tx *db.Tx, was, t *taskRow) error {
	if len(changedFields(was, t)) > 0 && t.Version == was.Version {
		t.Version++
		t.UpdatedAt = db.Micros(tx.Now)
	}
	if sameTask(was, t) {
		return nil
	}
	err := db.One(tx.UpdateTask(tx.Context(), queries.UpdateTaskParams{
		Slug: t.Slug, Title: t.Title, Description: t.Description, State: t.State, RuleState: t.RuleState, Priority: t.Priority,
		Labels: t.Labels, Links: t.Links, AssigneeUserID: t.AssigneeUserID, AssigneeAgentID: t.AssigneeAgentID,
		LeaseUserID: t.LeaseUserID, LeaseSessionID: t.LeaseSessionID, LeaseSeconds: t.LeaseSeconds, LeaseExpiresAt: t.LeaseExpiresAt,
		LeasedAt: t.LeasedAt, LastSessionID: t.LastSessionID, LeaseGraced: t.LeaseGraced, LeaseRenewedAt: t.LeaseRenewedAt, Version: t.Version, UpdatedAt: t.UpdatedAt, DoneAt: t.DoneAt,
		ID: t.ID, FromVersion: was.Version, FromState: was.State, FromLeaseUserID: was.LeaseUserID, FromLeaseSessionID: was.LeaseSessionID,
	}))
	if db.IsUnique(err) {
		return taskSlugTaken(t.Slug)
	}
	if err != nil {
		return fmt.Errorf("update task %s: %w", keyOf(t), err)
	}
	if (was.State == api.TaskDone) == (t.State == api.TaskDone) {
		return nil
	}
	return recountAround(tx, t)
}

// sameTask compares all of two rows, those columns too that are added later.
func sameTask(was, t *taskRow) bool {
	a, b := *was, *t
	a.Labels, a.Links, b.Labels, b.Links = nil, nil, nil, nil // compared as lists: none is none
	return len(changedFields(was, t)) == 0 && reflect.DeepEqual(a, b)
}
