package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// TaskView is a task as pages show it; in lists and on the board without the tasks around it.
type TaskView struct {
	api.Task
	OpenBlockers int64 // tasks that it waits for
	Mine         bool  // assigned to the caller
	Holds        bool  // the caller is at work on it, by themselves or by a session of theirs

	LeaseLength time.Duration // from the last renewal to the end; 0 without a lease that has one
}

// TaskListView is one page of the list of tasks.
type TaskListView struct {
	View
	Rows       []TaskView
	NextCursor string
	Counts     map[api.TaskState]int64 // of the whole workspace
}

// TaskChoices are whom a list of tasks can be narrowed to.
type TaskChoices struct {
	Agents []api.Person
	People []api.Person // who may work on tasks
}

// TaskColumn is one state of the board.
type TaskColumn struct {
	State api.TaskState
	Rows  []TaskView
	More  bool // there are others that fit, or that weren't looked at
}

// TaskBoardView is the tasks by state: of each the most urgent ones, and what was done last.
type TaskBoardView struct {
	View
	Columns []TaskColumn
	Counts  map[api.TaskState]int64 // of the whole workspace
}

// boardColumn is how many tasks of a state the board shows.
const boardColumn = 30

// task is a task with what else pages show of it.
func (r *viewReader) task(shown api.Task, t *taskRow) TaskView {
	return TaskView{
		Task: shown, LeaseLength: time.Duration(t.LeaseExpiresAt-t.LeaseRenewedAt) * time.Microsecond, OpenBlockers: t.OpenBlockers,
		Mine: assigned(t) == assignment{User: r.c.UserID}, Holds: leased(t, r.now) && t.LeaseUserID == r.c.UserID,
	}
}

// taskRow is a task as a list shows it.
func (r *viewReader) taskRow(ctx context.Context, y *taskView, t *taskRow) (TaskView, error) {
	shown, err := y.summary(ctx, t)
	return r.task(shown, t), err
}

func (r *viewReader) taskChoices(ctx context.Context) (out TaskChoices, err error) {
	agents, err := r.q.ViewAgents(ctx, queries.ViewAgentsParams{WorkspaceID: r.c.WorkspaceID, N: db.MaxPage})
	if err != nil {
		return out, fmt.Errorf("list agents: %w", err)
	}
	for _, a := range agents {
		out.Agents = append(out.Agents, api.Person{Type: api.PersonAgent, ID: a.ID.String(), Name: a.Slug})
	}
	rows, err := r.q.MembersOf(ctx, queries.MembersOfParams{WorkspaceID: r.c.WorkspaceID, Before: math.MaxInt64, N: db.MaxPage})
	if err != nil {
		return out, fmt.Errorf("list members: %w", err)
	}
	for _, m := range rows {
		if !m.Role.AtLeast(api.Member) {
			continue
		}
		out.People = append(out.People, api.Person{Type: api.PersonUser, ID: m.UserID.String(), Name: m.Name})
	}
	return out, nil
}

// ChoicesOfTasks reads whom a task can be assigned to. Rights: viewer.
func (e *Engine) ChoicesOfTasks(ctx context.Context, c Caller) (out TaskChoices, err error) {
	_, err = e.readView(ctx, c, func(r *viewReader) error {
		out, err = r.taskChoices(ctx)
		return err
	})
	return out, err
}

// TaskList reads a page of tasks, newest first. Rights: viewer. Errors: invalid for an
// assignee that isn't here.
func (e *Engine) TaskList(ctx context.Context, c Caller, f api.TaskFilter, page api.Page) (out TaskListView, err error) {
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	out.View, err = e.viewBy(ctx, c, e.lookThroughTasks(f), func(r *viewReader) error {
		list, err := e.newTaskSearch(ctx, r.q, c, f)
		if err != nil {
			return err
		}
		y := e.taskView(r.q, c)
		rows, err := tasksPage(ctx, r.q, list, n, before,
			func(t *taskRow) (TaskView, error) { return r.taskRow(ctx, y, t) },
			func(v *TaskView) *api.Task { return &v.Task })
		if err != nil {
			return err
		}
		out.Rows, out.NextCursor = rows.Items, rows.NextCursor
		out.Counts, err = taskCounts(ctx, r.q, c)
		return err
	})
	return out, err
}

// TaskChanges is what a live list of tasks needs: the rows it shows as they are now, and how
// many newer ones fit its filter.
type TaskChanges struct {
	View
	Rows   []TaskView
	Newer  int
	Counts map[api.TaskState]int64
}

// newerTasks bounds how many new tasks a live list counts.
const newerTasks = 100

// TasksAgain reads rows of a list again.
func (e *Engine) TasksAgain(ctx context.Context, c Caller, f api.TaskFilter, ids []api.TaskID, newest api.TaskID) (out TaskChanges, err error) {
	out.View, err = e.viewBy(ctx, c, e.lookThroughTasks(f), func(r *viewReader) error {
		list, err := e.newTaskSearch(ctx, r.q, c, f)
		if err != nil {
			return err
		}
		y := e.taskView(r.q, c)
		for _, id := range ids {
			t, err := r.q.Task(ctx, id)
			if db.None(err) || (err == nil && t.WorkspaceID != c.WorkspaceID) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read task %s: %w", id, err)
			}
			shown, err := r.taskRow(ctx, y, &t)
			if err != nil {
				return err
			}
			out.Rows = append(out.Rows, shown)
		}
		fresh, err := list.rows(ctx, r.q, math.MaxInt64, newerTasks)
		if err != nil {
			return fmt.Errorf("count newer tasks: %w", err)
		}
		for _, t := range fresh {
			if t.ID > newest && list.fits(&t) {
				out.Newer++
			}
		}
		out.Counts, err = taskCounts(ctx, r.q, c)
		return err
	})
	return out, err
}

// TaskBoard reads the board: of each state the tasks that fit the filter, whose own states
// don't count. Rights: viewer. Errors: as for [Engine.TaskList].
func (e *Engine) TaskBoard(ctx context.Context, c Caller, f api.TaskFilter) (out TaskBoardView, err error) {
	f.States = nil
	out.View, err = e.viewBy(ctx, c, e.lookThroughTasks(f), func(r *viewReader) error {
		list, err := e.newTaskSearch(ctx, r.q, c, f)
		if err != nil {
			return err
		}
		y := e.taskView(r.q, c)
		for _, state := range api.TaskStates {
			rows, err := list.column(ctx, r.q, state, boardColumn+1)
			if err != nil {
				return fmt.Errorf("list the tasks in %s: %w", state, err)
			}
			column := TaskColumn{State: state, More: len(rows) > boardColumn || list.looked >= columnLooked}
			for _, t := range rows[:min(len(rows), boardColumn)] {
				shown, err := r.taskRow(ctx, y, &t)
				if err != nil {
					return err
				}
				column.Rows = append(column.Rows, shown)
			}
			out.Columns = append(out.Columns, column)
		}
		out.Counts, err = taskCounts(ctx, r.q, c)
		return err
	})
	return out, err
}

// column reads at most n tasks of one state that fit: the most urgent ones first and of those
// the oldest, or what was done last.
func (l *taskSearch) column(ctx context.Context, q queries.Querier, state api.TaskState, n int64) ([]taskRow, error) {
	l.looked = 0
	if state == api.TaskDone {
		before, id := int64(math.MaxInt64), api.TaskID(0)
		return l.fitting(n, func(step int64) ([]taskRow, error) {
			rows, err := q.DoneTasks(ctx, queries.DoneTasksParams{WorkspaceID: l.c.WorkspaceID, Before: before, BeforeID: id, N: step})
			if k := len(rows); k > 0 {
				before, id = rows[k-1].DoneAt, rows[k-1].ID
			}
			return rows, err
		})
	}
	var out []taskRow
	for _, priority := range api.TaskPriorities {
		after := api.TaskID(0)
		rows, err := l.fitting(n-int64(len(out)), func(step int64) ([]taskRow, error) {
			rows, err := q.BoardTasks(ctx, queries.BoardTasksParams{WorkspaceID: l.c.WorkspaceID, State: state, Priority: priority, After: after, N: step})
			if k := len(rows); k > 0 {
				after = rows[k-1].ID
			}
			return rows, err
		})
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

// fitting collects at most n rows that fit from those that read gives step by step, within
// what a column looks at.
func (l *taskSearch) fitting(n int64, read func(step int64) ([]taskRow, error)) (out []taskRow, err error) {
	for int64(len(out)) < n && l.looked < columnLooked {
		rows, err := read(n)
		l.looked += int64(len(rows))
		if err != nil {
			return nil, err
		}
		for _, t := range rows {
			if l.fits(&t) && int64(len(out)) < n {
				out = append(out, t)
			}
		}
		if int64(len(rows)) < n {
			return out, nil
		}
	}
	return out, nil
}

// TaskNextView is what somebody is to do, as of an instant.
type TaskNextView struct {
	View
	Items []api.NextTask
}

// pageNext is how many tasks the page of what is next shows.
const pageNext = 50

// TasksNext is [Engine.NextTasks] for a page.
func (e *Engine) TasksNext(ctx context.Context, c Caller) (out TaskNextView, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		out.Items, err = e.nextTasks(ctx, r.q, c, pageNext)
		return err
	})
	return out, err
}
