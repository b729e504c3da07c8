package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const maxBlocked = 50 // tasks that wait for one and are shown with it

func taskRef(t *taskRow) api.TaskRef {
	return api.TaskRef{ID: t.ID, Key: keyOf(t), Title: t.Title, State: t.State}
}

// blockersOf are the tasks that are to be done before one, done ones too.
func blockersOf(ctx context.Context, q queries.Querier, t *taskRow) ([]api.TaskRef, error) {
	rows, err := q.BlockersOf(ctx, t.ID)
	if err != nil {
		return nil, fmt.Errorf("list what task %s waits for: %w", keyOf(t), err)
	}
	out := make([]api.TaskRef, 0, len(rows))
	for _, r := range rows {
		out = append(out, api.TaskRef{ID: r.ID, Key: api.TaskKey(r.Number), Title: r.Title, State: r.State})
	}
	return out, nil
}

// whoIs names whose a task is; nil for nobody.
func whoIs(ctx context.Context, q queries.Querier, a assignment) (*api.Person, error) {
	switch {
	case a.User != 0:
		u, err := q.User(ctx, a.User)
		if err != nil {
			return nil, fmt.Errorf("read user %s: %w", a.User, err)
		}
		return &api.Person{Type: api.PersonUser, ID: a.User.String(), Name: u.Name}, nil
	case a.Agent != 0:
		g, err := agentEvenDeleted(ctx, q, a.Agent)
		if err != nil {
			return nil, fmt.Errorf("read agent %s: %w", a.Agent, err)
		}
		return &api.Person{Type: api.PersonAgent, ID: a.Agent.String(), Name: g.Slug}, nil
	}
	return nil, nil
}

// taskView shows tasks to one caller, and reads each person once.
type taskView struct {
	q       queries.Querier
	visible *visibility
	people  map[assignment]*api.Person
	now     int64
}

func (e *Engine) taskView(q queries.Querier, c Caller) *taskView {
	return &taskView{q: q, visible: newVisibility(q, c), people: map[assignment]*api.Person{}, now: db.Micros(e.Now())}
}

func (y *taskView) person(ctx context.Context, a assignment) (*api.Person, error) {
	if p, ok := y.people[a]; ok {
		return p, nil
	}
	p, err := whoIs(ctx, y.q, a)
	if err == nil {
		y.people[a] = p
	}
	return p, err
}

// summary shows a task without the tasks around it, as lists of many do.
func (y *taskView) summary(ctx context.Context, t *taskRow) (out api.Task, err error) {
	out = api.Task{
		ID: t.ID, Number: t.Number, Key: keyOf(t), Slug: t.Slug, Title: t.Title, Description: t.Description, State: t.State,
		Priority: t.Priority, Labels: t.Labels, Links: t.Links, Comments: t.Comments, CreatedBy: t.CreatedBy,
		BlockedBy: []api.TaskRef{}, Blocks: []api.TaskRef{},
		CreatedAt: api.At(t.CreatedAt), UpdatedAt: api.At(t.UpdatedAt), DoneAt: api.At(t.DoneAt), Version: t.Version,
	}
	if out.Assignee, err = y.person(ctx, assigned(t)); err != nil {
		return out, err
	}
	out.Lease, err = y.lease(ctx, t)
	return out, err
}

func (y *taskView) show(ctx context.Context, t *taskRow) (api.Task, error) {
	out, err := y.summary(ctx, t)
	if err != nil {
		return out, err
	}
	if out.BlockedBy, err = blockersOf(ctx, y.q, t); err != nil {
		return out, err
	}
	behind, err := y.q.BlockedBy(ctx, queries.BlockedByParams{BlockerID: t.ID, N: maxBlocked})
	if err != nil {
		return out, fmt.Errorf("list what waits for task %s: %w", keyOf(t), err)
	}
	for _, r := range behind {
		out.Blocks = append(out.Blocks, api.TaskRef{ID: r.ID, Key: api.TaskKey(r.Number), Title: r.Title, State: r.State})
	}
	return out, nil
}

func (y *taskView) lease(ctx context.Context, t *taskRow) (*api.TaskLease, error) {
	if !leased(t, y.now) {
		return nil, nil
	}
	holder, err := y.person(ctx, assignment{User: t.LeaseUserID})
	if err != nil {
		return nil, err
	}
	out := &api.TaskLease{Holder: *holder, Bound: t.LeaseSessionID != 0, ClaimedAt: api.At(t.LeasedAt), ExpiresAt: api.At(t.LeaseExpiresAt)}
	if !out.Bound {
		return out, nil
	}
	seen, err := y.visible.seesSession(ctx, t.LeaseSessionID)
	if seen {
		out.SessionID = t.LeaseSessionID
	}
	return out, err
}

// showTask reads a task as the caller sees it, after whatever was written.
func (e *Engine) showTask(ctx context.Context, q queries.Querier, c Caller, id api.TaskID) (api.Task, error) {
	t, err := q.Task(ctx, id)
	if err != nil {
		return api.Task{}, fmt.Errorf("read task %s: %w", id, err)
	}
	return e.taskView(q, c).show(ctx, &t)
}

// taskInput is what people set on a task, as they would set it.
func taskInput(ctx context.Context, q queries.Querier, t *taskRow) (api.TaskInput, error) {
	in := api.TaskInput{
		Slug: t.Slug, Title: t.Title, Description: t.Description, State: t.State, Priority: t.Priority,
		Labels: t.Labels, Links: t.Links, BlockedBy: []string{},
	}
	switch {
	case t.AssigneeUserID != 0:
		in.Assignee = t.AssigneeUserID.String()
	case t.AssigneeAgentID != 0:
		in.Assignee = t.AssigneeAgentID.String()
	}
	before, err := blockersOf(ctx, q, t)
	for _, r := range before {
		in.BlockedBy = append(in.BlockedBy, r.Key)
	}
	return in, err
}

// readTask reads something of one task.
func (e *Engine) readTask(ctx context.Context, c Caller, ref string, fn func(tx *db.ReadTx, t *taskRow) error) error {
	return e.store.Read(ctx, func(tx *db.ReadTx) error {
		t, err := taskOf(ctx, tx, c, ref)
		if err != nil {
			return err
		}
		return fn(tx, t)
	})
}

// Task returns one task. Rights: viewer.
func (e *Engine) Task(ctx context.Context, c Caller, ref string) (out api.Task, err error) {
	err = e.readTask(ctx, c, ref, func(tx *db.ReadTx, t *taskRow) error {
		out, err = e.taskView(tx, c).show(ctx, t)
		return err
	})
	return out, err
}

// taskSearch reads the rows of a list of tasks by the index that fits its filter best.
type taskSearch struct {
	c    Caller
	f    api.TaskFilter
	who  assignment
	now  int64
	only bool // those assigned to who

	looked int64 // how many tasks this page has looked at
	rest   int64 // where to continue when that was enough; 0 = there are no more
}

// tasksLooked is how many tasks a page of a list, and each column of the board, looks at to
// find those that fit.
const (
	tasksLooked  = 5000
	columnLooked = 1000
)

// next reads up to n rows before an id, within what a page looks at.
func (l *taskSearch) next(ctx context.Context, q queries.Querier, before, n int64) ([]taskRow, error) {
	most := min(n, tasksLooked-l.looked)
	rows, err := l.rows(ctx, q, before, most)
	l.looked += int64(len(rows))
	l.rest = 0
	if k := int64(len(rows)); k == most && most < n {
		l.rest = before
		if k > 0 {
			l.rest = int64(rows[k-1].ID)
		}
	}
	return rows, err
}

// looksThroughTasks reports whether a list may have to look at thousands of tasks to find those that fit.
func looksThroughTasks(f api.TaskFilter) bool {
	return len(f.States) > 1 || f.Assignee == "none" || f.Holder == "me" || f.Label != "" || f.Priority != "" || f.Query != ""
}

// lookThroughTasks is where a list of tasks is read: what looks through thousands of them stops no page.
func (e *Engine) lookThroughTasks(f api.TaskFilter) func(context.Context, func(*db.ReadTx) error) error {
	if !looksThroughTasks(f) {
		return e.store.Read
	}
	return func(ctx context.Context, fn func(*db.ReadTx) error) error {
		return e.store.Search(ctx, "by state or assignee, or ask for fewer at once", fn)
	}
}

// newTaskSearch resolves the filter's names. Errors: invalid for an assignee that isn't here.
func (e *Engine) newTaskSearch(ctx context.Context, q queries.Querier, c Caller, f api.TaskFilter) (*taskSearch, error) {
	l := &taskSearch{c: c, f: f, now: db.Micros(e.Now()), only: f.Assignee != ""}
	if !l.only || f.Assignee == "none" {
		return l, nil
	}
	var err error
	if l.who.User, l.who.Agent, err = assigneeNamed(ctx, q, c, f.Assignee); api.CodeOf(err) != "" {
		return nil, api.BadField("assignee", "names no member and no agent of this workspace: give a user's id, an agent's slug, me or none")
	}
	return l, err
}

func (l *taskSearch) rows(ctx context.Context, q queries.Querier, before, n int64) ([]taskRow, error) {
	at := api.TaskID(before)
	switch {
	case l.f.Holder != "":
		return q.TasksLeased(ctx, queries.TasksLeasedParams{WorkspaceID: l.c.WorkspaceID, Before: at, N: n})
	case l.only && l.who != (assignment{}):
		return q.TasksAssigned(ctx, queries.TasksAssignedParams{WorkspaceID: l.c.WorkspaceID, AssigneeUserID: l.who.User, AssigneeAgentID: l.who.Agent, Before: at, N: n})
	case len(l.f.States) == 1:
		return q.TasksInState(ctx, queries.TasksInStateParams{WorkspaceID: l.c.WorkspaceID, State: l.f.States[0], Before: at, N: n})
	}
	return q.TasksBefore(ctx, queries.TasksBeforeParams{WorkspaceID: l.c.WorkspaceID, Before: at, N: n})
}

func (l *taskSearch) fits(t *taskRow) bool {
	f, query := l.f, strings.ToLower(l.f.Query)
	switch {
	case len(f.States) > 0 && !slices.Contains(f.States, t.State):
	case l.only && assigned(t) != l.who:
	case f.Holder != "" && !leased(t, l.now):
	case f.Holder == "me" && t.LeaseUserID != l.c.UserID:
	case f.Label != "" && !slices.Contains(t.Labels, f.Label):
	case f.Priority != "" && t.Priority != f.Priority:
	case query != "" && !strings.Contains(strings.ToLower(t.Title), query) && !strings.Contains(strings.ToLower(t.Description), query):
	default:
		return true
	}
	return false
}

// Tasks lists tasks, newest first. Rights: viewer. Errors: invalid for an assignee that isn't
// here.
func (e *Engine) Tasks(ctx context.Context, c Caller, f api.TaskFilter, page api.Page) (api.List[api.Task], error) {
	out := api.List[api.Task]{Items: []api.Task{}}
	if c.Run != nil {
		return e.tasksOfRun(ctx, c)
	}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.lookThroughTasks(f)(ctx, func(tx *db.ReadTx) error {
		list, err := e.newTaskSearch(ctx, tx, c, f)
		if err != nil {
			return err
		}
		view := e.taskView(tx, c)
		out, err = tasksPage(ctx, tx, list, n, before,
			func(t *taskRow) (api.Task, error) { return view.show(ctx, t) },
			func(t *api.Task) *api.Task { return t })
		return err
	})
	return out, err
}

// tasksPage makes a page of the tasks that fit a filter, each as show has it; of says which task
// it is.
func tasksPage[T any](ctx context.Context, q queries.Querier, list *taskSearch, n, before int64, show func(*taskRow) (T, error), of func(*T) *api.Task) (api.List[T], error) {
	return gathering[taskRow, T]{
		read: func(before, n int64) ([]taskRow, error) { return list.next(ctx, q, before, n) },
		rest: func() int64 { return list.rest },
		key:  func(t taskRow) int64 { return int64(t.ID) },
		take: func(t taskRow) (shown T, fits bool, err error) {
			if !list.fits(&t) {
				return shown, false, nil
			}
			shown, err = show(&t)
			return shown, true, err
		},
		size: func(shown *T) int { return len(of(shown).Title) + len(of(shown).Description) },
	}.page(n, before)
}

// tasksOfRun lists what an agent's run may see: the task of its session.
func (e *Engine) tasksOfRun(ctx context.Context, c Caller) (api.List[api.Task], error) {
	out := api.List[api.Task]{Items: []api.Task{}}
	err := e.store.Read(ctx, func(tx *db.ReadTx) error {
		s, err := tx.Session(ctx, c.Run.Session)
		if err != nil || s.TaskID == 0 {
			return err
		}
		t, err := e.showTask(ctx, tx, c, s.TaskID)
		out.Items = append(out.Items, t)
		return err
	})
	return out, err
}

// TaskCounts counts the tasks of the workspace by state. Rights: viewer.
func (e *Engine) TaskCounts(ctx context.Context, c Caller) (out map[api.TaskState]int64, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		out, err = taskCounts(ctx, tx, c)
		return err
	})
	return out, err
}

func taskCounts(ctx context.Context, q queries.Querier, c Caller) (map[api.TaskState]int64, error) {
	out := map[api.TaskState]int64{}
	for _, s := range api.TaskStates {
		out[s] = 0
	}
	rows, err := q.CountTasks(ctx, c.WorkspaceID)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	for _, r := range rows {
		out[r.State] = r.N
	}
	return out, nil
}

// TaskEvents returns what happened to a task, newest first. Rights: viewer.
func (e *Engine) TaskEvents(ctx context.Context, c Caller, ref string, page api.Page) (out api.List[api.Event], err error) {
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.readTask(ctx, c, ref, func(tx *db.ReadTx, t *taskRow) error {
		rows, err := tx.EventsOfTask(ctx, queries.EventsOfTaskParams{TaskID: t.ID, Before: before, N: n + 1})
		if err != nil {
			return fmt.Errorf("list the events of task %s: %w", keyOf(t), err)
		}
		out = db.ListOf(rows, n, toEvent, func(r queries.Event) int64 { return r.Seq })
		return newVisibility(tx, c).redactAll(ctx, out.Items)
	})
	return out, err
}

// TaskSessions lists the sessions about a task that the caller may see, newest first.
// Rights: viewer.
func (e *Engine) TaskSessions(ctx context.Context, c Caller, ref string, page api.Page) (api.List[api.Session], error) {
	out := api.List[api.Session]{Items: []api.Session{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.readTask(ctx, c, ref, func(tx *db.ReadTx, t *taskRow) error {
		now := db.Micros(e.Now())
		out, err = gathering[api.SessionID, api.Session]{
			read: func(before, n int64) ([]api.SessionID, error) {
				return tx.SessionsOfTask(ctx, queries.SessionsOfTaskParams{TaskID: t.ID, Before: api.SessionID(before), N: n})
			},
			key: func(id api.SessionID) int64 { return int64(id) },
			take: func(id api.SessionID) (api.Session, bool, error) {
				s, err := e.sessionTx(ctx, tx, c, id, now)
				if api.CodeOf(err) != "" {
					return s, false, nil // somebody else's local session
				}
				return s, err == nil, err
			},
			size: sizeOfSession,
		}.page(n, before)
		return err
	})
	return out, err
}
