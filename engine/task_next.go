package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// NextTasks ranks what the caller is to do: what is theirs or nobody's and isn't done. Their
// own p1 come first, then what others wait for, then the most urgent, then the oldest; what is
// blocked or in review, or waits for another task, comes last, and after that one (contract 7.4).
// limit is clamped to 1–200.
func (e *Engine) NextTasks(ctx context.Context, c Caller, limit int) (out api.NextTasks, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		out.Items, err = e.nextTasks(ctx, tx, c, int64(min(max(limit, 1), db.MaxPage)))
		return err
	})
	return out, err
}

func (e *Engine) nextTasks(ctx context.Context, q queries.Querier, c Caller, n int64) ([]api.NextTask, error) {
	out := []api.NextTask{}
	rows, err := nextRows(ctx, q, c, n)
	if err != nil {
		return nil, err
	}
	size := 0
	view := e.taskView(q, c)
	for _, t := range rows {
		shown, err := view.show(ctx, &t)
		if err != nil {
			return nil, err
		}
		if size += len(shown.Title) + len(shown.Description); size > pageTexts && len(out) > 0 {
			return out, nil
		}
		out = append(out, api.NextTask{Task: shown, Why: whyNext(c, &t, shown), InFlight: shown.Lease != nil, Ready: shown.Lease == nil && begins(&t)})
	}
	return out, nil
}

func nextRows(ctx context.Context, q queries.Querier, c Caller, n int64) ([]taskRow, error) {
	var ready, blocked []taskRow
	for _, read := range []struct {
		into *[]taskRow
		rows func() ([]taskRow, error)
	}{
		{&ready, func() ([]taskRow, error) {
			return q.UrgentTasks(ctx, queries.UrgentTasksParams{WorkspaceID: c.WorkspaceID, AssigneeUserID: c.UserID, N: n})
		}},
		{&ready, func() ([]taskRow, error) {
			return q.ReadyTasks(ctx, queries.ReadyTasksParams{WorkspaceID: c.WorkspaceID, AssigneeUserID: c.UserID, N: n})
		}},
		{&ready, func() ([]taskRow, error) {
			return q.ReadyTasks(ctx, queries.ReadyTasksParams{WorkspaceID: c.WorkspaceID, N: n})
		}},
		{&blocked, func() ([]taskRow, error) {
			return q.LaterTasks(ctx, queries.LaterTasksParams{WorkspaceID: c.WorkspaceID, AssigneeUserID: c.UserID, N: n})
		}},
		{&blocked, func() ([]taskRow, error) {
			return q.LaterTasks(ctx, queries.LaterTasksParams{WorkspaceID: c.WorkspaceID, N: n})
		}},
	} {
		rows, err := read.rows()
		if err != nil {
			return nil, fmt.Errorf("list what is next: %w", err)
		}
		*read.into = append(*read.into, rows...)
	}
	rank(c, ready)
	ready = slices.CompactFunc(ready, func(a, b taskRow) bool { return a.ID == b.ID })
	if left := n - int64(len(ready)); left > 0 {
		rank(c, blocked)
		ordered, err := blockersFirst(ctx, q, blocked)
		if err != nil {
			return nil, err
		}
		ready = append(ready, ordered...)
	}
	return ready[:min(int64(len(ready)), n)], nil
}

// rank sorts tasks by how pressing they are for the caller. Equal ones stand beside each other.
func rank(c Caller, rows []taskRow) {
	slices.SortFunc(rows, func(a, b taskRow) int {
		return cmp.Or(
			cmp.Compare(db.Flag(urgent(c, &b)), db.Flag(urgent(c, &a))),
			cmp.Compare(min(b.OpenBlocked, 1), min(a.OpenBlocked, 1)),
			cmp.Compare(a.Priority, b.Priority),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

// begins reports whether somebody could begin with a task now, or go on with it.
func begins(t *taskRow) bool {
	return t.OpenBlockers == 0 && (t.State == api.TaskTodo || t.State == api.TaskInProgress)
}

func urgent(c Caller, t *taskRow) bool { return t.AssigneeUserID == c.UserID && t.Priority == "p1" }

// blockersFirst orders tasks so that none stands before one that it waits for, and else as
// they are.
func blockersFirst(ctx context.Context, q queries.Querier, rows []taskRow) ([]taskRow, error) {
	waits := map[api.TaskID][]api.TaskID{}
	left := map[api.TaskID]bool{}
	for _, t := range rows {
		left[t.ID] = true
	}
	for _, t := range rows {
		before, err := q.BlockerIDs(ctx, t.ID)
		if err != nil {
			return nil, fmt.Errorf("list what task %s waits for: %w", keyOf(&t), err)
		}
		waits[t.ID] = before
	}
	out := make([]taskRow, 0, len(rows))
	for len(out) < len(rows) {
		placed := len(out)
		for _, t := range rows {
			if left[t.ID] && !slices.ContainsFunc(waits[t.ID], func(id api.TaskID) bool { return left[id] }) {
				delete(left, t.ID)
				out = append(out, t)
				break
			}
		}
		if len(out) == placed {
			return out, nil // a circle, which no verb makes
		}
	}
	return out, nil
}

// whyNext says in a line why a task stands where it does.
func whyNext(c Caller, t *taskRow, shown api.Task) string {
	var parts []string
	switch {
	case urgent(c, t):
		parts = append(parts, "yours and p1")
	case t.AssigneeUserID == c.UserID:
		parts = append(parts, "yours")
	default:
		parts = append(parts, "nobody has it")
	}
	switch t.State {
	case api.TaskBlocked:
		parts = append(parts, "blocked")
	case api.TaskReview:
		parts = append(parts, "in review")
	}
	switch {
	case t.OpenBlockers > 0:
		parts = append(parts, "waits for "+strings.Join(api.OpenKeys(shown.BlockedBy), ", "))
	case t.OpenBlocked == 1:
		parts = append(parts, "another task waits for it")
	case t.OpenBlocked > 1:
		parts = append(parts, fmt.Sprintf("%d other tasks wait for it", t.OpenBlocked))
	}
	switch {
	case shown.Lease == nil:
	case t.LeaseUserID == c.UserID && t.LeaseSessionID != 0:
		parts = append(parts, "a session of yours is at work on it")
	case t.LeaseUserID == c.UserID:
		parts = append(parts, "you are at work on it")
	default:
		parts = append(parts, shown.Lease.Holder.Name+" is at work on it")
	}
	return strings.Join(parts, "; ")
}
