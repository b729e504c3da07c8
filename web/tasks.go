package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// The views of the tasks.
const (
	tasksList  = "" // newest first
	tasksBoard = "board"
	tasksNext  = "next" // what the reader is to do, the most pressing first
)

// taskQuery is the filter of the tasks, and how they are shown, in the form that the address
// has.
type taskQuery struct {
	view     string
	states   []api.TaskState
	assignee string
	holder   string
	label    string
	priority api.TaskPriority
	text     string
}

// readTasks reads the filter; invalid parts are left out, so that a mistyped address shows the
// list and not an error.
func readTasks(q url.Values) taskQuery {
	out := taskQuery{
		view: q.Get("view"), assignee: strings.TrimSpace(q.Get("assignee")), holder: q.Get("holder"),
		label: strings.TrimSpace(q.Get("label")), priority: api.TaskPriority(q.Get("priority")), text: strings.TrimSpace(q.Get("q")),
	}
	if out.view != tasksBoard && out.view != tasksNext {
		out.view = tasksList
	}
	if out.holder != "me" && out.holder != "any" {
		out.holder = ""
	}
	if !slices.Contains(api.TaskPriorities, out.priority) {
		out.priority = ""
	}
	out.states = knownWords(q.Get("state"), api.TaskStates)
	return out
}

func (q taskQuery) filter() api.TaskFilter {
	return api.TaskFilter{States: q.states, Assignee: q.assignee, Holder: q.holder, Label: q.label, Priority: q.priority, Query: q.text}
}

// values writes the filter back; empty parts are left out.
func (q taskQuery) values() url.Values {
	return filterValues("view", q.view, "state", commaWords(q.states), "assignee", q.assignee, "holder", q.holder,
		"label", q.label, "priority", string(q.priority), "q", q.text)
}

func (q taskQuery) url(more ...string) string {
	return filterURL("/tasks", q.values(), more)
}

// narrowed reports whether anything is left out, besides by how they are shown.
func (q taskQuery) narrowed() bool {
	q.view = tasksList
	return len(q.values()) > 0
}

// as is the same filter in another view. The board shows all states.
func (q taskQuery) as(view string) taskQuery {
	q.view = view
	switch view {
	case tasksBoard:
		q.states = nil
	case tasksNext:
		return taskQuery{view: view}
	}
	return q
}

// only is the list of one state with the same filter; "" is every state.
func (q taskQuery) only(s api.TaskState) taskQuery {
	q.view, q.states = tasksList, nil
	if s != "" {
		q.states = []api.TaskState{s}
	}
	return q
}

func (q taskQuery) isOnly(s api.TaskState) bool {
	if s == "" {
		return len(q.states) == 0
	}
	return len(q.states) == 1 && q.states[0] == s
}

// whose and working switch a part of the filter on, or off if it is on.
func (q taskQuery) whose(assignee string) taskQuery {
	if q.assignee == assignee {
		assignee = ""
	}
	q.assignee = assignee
	return q
}

func (q taskQuery) working(holder string) taskQuery {
	if q.holder == holder {
		holder = ""
	}
	q.holder = holder
	return q
}

// marked is the filter narrowed to one label.
func (q taskQuery) marked(label string) taskQuery {
	q.label = label
	return q
}

// tasksPage is what tasks.templ draws: one of the list, the board and what is next.
type tasksPage struct {
	by      engine.Caller
	query   taskQuery
	at      time.Time
	rows    []engine.TaskView
	columns []engine.TaskColumn
	next    []api.NextTask
	counts  map[api.TaskState]int64
	choices engine.TaskChoices
	cursor  string
	more    string
}

func (v *visit) tasks() error {
	q := v.r.URL.Query()
	p := tasksPage{by: v.caller, query: readTasks(q), cursor: q.Get("cursor")}
	view, err := v.web.readTasksPage(v.r.Context(), &p, v.caller)
	if api.CodeOf(err) == api.CodeInvalid && p.query.assignee != "" { // mistyped, or gone since
		p.query.assignee = ""
		view, err = v.web.readTasksPage(v.r.Context(), &p, v.caller)
	}
	if err != nil {
		return err
	}
	if p.query.view != tasksNext {
		if p.choices, err = v.web.engine.ChoicesOfTasks(v.r.Context(), v.caller); err != nil {
			return err
		}
	}
	shell := Shell{Title: "Tasks", Place: "tasks", Now: p.at, Stream: p.stream(view)}
	return v.page(http.StatusOK, shell, tasks(p))
}

// readTasksPage reads what the page's view shows.
func (d *dashboard) readTasksPage(ctx context.Context, p *tasksPage, c engine.Caller) (engine.View, error) {
	switch p.query.view {
	case tasksBoard:
		board, err := d.engine.TaskBoard(ctx, c, p.query.filter())
		p.at, p.columns, p.counts = board.At, board.Columns, board.Counts
		return board.View, err
	case tasksNext:
		next, err := d.engine.TasksNext(ctx, c)
		p.at, p.next = next.At, next.Items
		return next.View, err
	}
	list, err := d.engine.TaskList(ctx, c, p.query.filter(), api.Page{Cursor: p.cursor})
	p.at, p.rows, p.more, p.counts = list.At, list.Rows, list.NextCursor, list.Counts
	return list.View, err
}

// stream is the address of the page's live stream.
func (p tasksPage) stream(view engine.View) string {
	more := []string{"cursor", p.cursor, rowsParam, rowsOnPage(p.rows, func(r engine.TaskView) api.TaskID { return r.ID })}
	for name, values := range p.query.values() {
		more = append(more, name, values[0])
	}
	return streamURL("tasks", view, more...)
}

// watchTasks keeps the page up to date: the board and what is next as a whole, the list row by
// row, where new ones are only counted, so that nothing moves under the pointer.
func (v *visit) watchTasks(q url.Values) watcher {
	p := tasksPage{by: v.caller, query: readTasks(q), cursor: q.Get("cursor")}
	if p.query.view == tasksList {
		ids, newest := rowsAsked[api.TaskID](q)
		return v.watchTaskList(p, ids, newest)
	}
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		now := tasksPage{by: c, query: p.query}
		view, err := v.web.readTasksPage(ctx, &now, c)
		if err != nil {
			return nil, position{}, err
		}
		if p.query.view == tasksNext {
			return []part{{target: "task-next", draw: taskNext(now)}}, position{seq: view.Seq}, nil
		}
		parts := []part{{target: "board-empty", draw: boardEmpty(now)}}
		for _, column := range now.columns {
			parts = append(parts, part{target: columnID(column.State), draw: taskColumn(now, column)})
		}
		return parts, position{seq: view.Seq}, nil
	}
}

func (v *visit) watchTaskList(p tasksPage, ids []api.TaskID, newest api.TaskID) watcher {
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		again, err := v.web.engine.TasksAgain(ctx, c, p.query.filter(), ids, newest)
		if err != nil {
			return nil, position{}, err
		}
		now := tasksPage{by: c, query: p.query, at: again.At, counts: again.Counts}
		parts := []part{{target: "task-chips", draw: taskChips(now)}}
		for _, r := range again.Rows {
			parts = append(parts, part{target: taskRowID(r.Task), draw: taskRow(now, r)})
		}
		if p.cursor == "" {
			parts = append(parts, part{target: "newer", draw: newerPill(p.query.url(), int64(again.Newer))})
		}
		return parts, position{seq: again.Seq}, nil
	}
}

func taskURL(key string) string { return "/tasks/" + key }

func taskRowID(t api.Task) string { return "task-" + t.Key }

func columnID(s api.TaskState) string { return "column-" + strings.ReplaceAll(string(s), "_", "-") }

func cardID(t api.Task) string { return "card-" + t.Key }

// taskLooks are how the states of tasks are shown; each borrows a session status's hue.
var taskLooks = map[api.TaskState]struct{ icon, class, word string }{
	api.TaskTodo:       {"circle-dashed", "s-queued", "To do"},
	api.TaskInProgress: {"circle-play", "s-active", "In progress"},
	api.TaskBlocked:    {"circle-slash", "s-stale", "Blocked"},
	api.TaskReview:     {"eye", "s-pending", "In review"},
	api.TaskDone:       {"circle-check", "s-complete", "Done"},
}

func taskIcon(s api.TaskState) string { return taskLooks[s].icon }

func taskClass(s api.TaskState) string { return taskLooks[s].class }

func taskWord(s api.TaskState) string { return taskLooks[s].word }

// stateCount is how many tasks are in a state, "" for all of them; nothing when a filter leaves
// others out, because only all are counted.
func (p tasksPage) stateCount(s api.TaskState) string {
	if p.query.only("").narrowed() {
		return ""
	}
	if s == "" {
		return strconv.FormatInt(taskTotal(p.counts), 10)
	}
	return strconv.FormatInt(p.counts[s], 10)
}

// besides is the state before or after one on the board; "" beyond its ends.
func besides(s api.TaskState, step int) api.TaskState {
	i := slices.Index(api.TaskStates, s) + step
	if i < 0 || i >= len(api.TaskStates) {
		return ""
	}
	return api.TaskStates[i]
}

// taskTotal is how many tasks there are.
func taskTotal(counts map[api.TaskState]int64) int64 {
	var sum int64
	for _, n := range counts {
		sum += n
	}
	return sum
}

func personIcon(p api.Person) string {
	if p.Type == api.PersonAgent {
		return "bot"
	}
	return "user"
}

// whoseWords names whose a task is.
func whoseWords(v engine.TaskView) string {
	if v.Mine {
		return "Yours"
	}
	return v.Assignee.Name
}

// workWords say who is at work on a task now.
func workWords(v engine.TaskView) string {
	who := v.Lease.Holder.Name
	if v.Holds {
		who = "You"
	}
	switch {
	case v.Lease.Bound && v.Holds:
		return "A session of yours works on it"
	case v.Lease.Bound:
		return "A session of " + who + "'s works on it"
	case v.Holds:
		return "You are at work on it"
	}
	return who + " is at work on it"
}

// leaseOf is the ring of a lease that has an end.
func leaseOf(v engine.TaskView, now time.Time) Lease {
	return Lease{Ends: v.Lease.ExpiresAt.Time, Length: v.LeaseLength, Now: now, Small: true}
}

// columnCount is how many tasks a column is about: of all when nothing is left out.
func (p tasksPage) columnCount(c engine.TaskColumn) string {
	if !p.query.narrowed() {
		return strconv.FormatInt(p.counts[c.State], 10)
	}
	n := strconv.Itoa(len(c.Rows))
	if c.More {
		n += "+"
	}
	return n
}

// moveURL is where the form of a card posts to: it comes back to the same board.
func (p tasksPage) moveURL(t api.Task) string {
	return taskURL(t.Key) + "/state?" + p.query.values().Encode()
}
