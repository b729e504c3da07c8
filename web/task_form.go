package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stint/api"
	"stint/engine"
)

// taskForm is what task_form.templ draws: what was typed, and what is wrong with it.
type taskForm struct {
	filled
	key     string // of the task being edited; "" = a new one
	stale   string // why it comes back although no field is at fault: somebody changed the task
	choices engine.TaskChoices
	now     *api.Person // the assignee, who may not be among the choices
}

func (f taskForm) action() string {
	if f.key == "" {
		return "/tasks"
	}
	return taskURL(f.key) + "/edit"
}

func (f taskForm) back() string {
	if f.key == "" {
		return "/tasks"
	}
	return taskURL(f.key)
}

func (v *visit) mayEditTasks() error {
	return v.refuse(v.caller.CanEditTasks(), "Tasks are made and changed by members of this workspace")
}

func (v *visit) newTask() error {
	if err := v.mayEditTasks(); err != nil {
		return err
	}
	return v.drawTaskForm(http.StatusOK, taskForm{filled: filled{typed: taskFormOf(engine.DefaultTask())}})
}

func (v *visit) editTask() error {
	t, err := v.web.engine.Task(v.r.Context(), v.caller, v.path("task"))
	if err != nil {
		return err
	}
	if err := v.mayEditTasks(); err != nil {
		return err
	}
	return v.drawTaskForm(http.StatusOK, taskForm{filled: filled{typed: typedTask(t)}, key: t.Key, now: t.Assignee})
}

func (v *visit) drawTaskForm(status int, f taskForm) error {
	title := "New task"
	if f.key != "" {
		title = "Edit " + f.key
	}
	var err error
	if f.choices, err = v.web.engine.ChoicesOfTasks(v.r.Context(), v.caller); err != nil {
		return err
	}
	return v.page(status, Shell{Title: title, Place: "tasks"}, taskFormPage(f))
}

func (v *visit) createTask() error {
	in := engine.DefaultTask()
	fillTaskForm(&in, v.r.PostForm)
	if state := v.r.PostForm.Get("state"); state != "" {
		in.State = api.TaskState(state)
	}
	t, _, err := v.web.engine.CreateTask(v.r.Context(), v.caller, in, engine.Idempotency{})
	if bad, ok := fieldErrors(err); ok {
		return v.drawTaskForm(http.StatusUnprocessableEntity, taskForm{filled: filled{typed: v.r.PostForm, errors: bad}})
	}
	if err != nil {
		return err
	}
	return v.to(taskURL(t.Key), t.Key+" made")
}

// saveTask saves what was changed of the form. A field that only somebody else has changed since
// the form was filled stays as they left it; one that both changed comes back with what was
// typed, so that neither is lost.
func (v *visit) saveTask() error {
	form, key := v.r.PostForm, v.path("task")
	var both []string
	t, err := v.web.engine.EditTask(v.r.Context(), v.caller, key, func(in *api.TaskEdit) error {
		now := taskFormOf(in.TaskInput)
		if both = conflicts(form, now); len(both) > 0 {
			return api.Refuse(api.CodeStaleVersion, "")
		}
		merged := url.Values{}
		for _, name := range taskFields {
			if merged.Set(name, now.Get(name)); typedInto(form, name) {
				merged.Set(name, form.Get(name))
			}
		}
		fillTaskForm(&in.TaskInput, merged)
		return nil
	})
	if len(both) > 0 {
		return v.drawStaleTask(form, key, both)
	}
	if bad, ok := fieldErrors(err); ok {
		now, err := v.web.engine.Task(v.r.Context(), v.caller, key)
		if err != nil {
			return err
		}
		return v.drawTaskForm(http.StatusUnprocessableEntity, taskForm{filled: filled{typed: form, errors: bad}, key: key, now: now.Assignee})
	}
	if err != nil {
		return err
	}
	return v.to(taskURL(t.Key), "Saved")
}

// drawStaleTask shows the form again with what was typed, beside what the task says now.
func (v *visit) drawStaleTask(form url.Values, key string, both []string) error {
	now, err := v.web.engine.Task(v.r.Context(), v.caller, key)
	if err != nil {
		return err
	}
	theirs := typedTask(now)
	bad := map[string]string{}
	for _, name := range both {
		bad[name] = "was changed by somebody else meanwhile, to: " + quoted(theirs.Get(name))
		form.Set(wasPrefix+name, theirs.Get(wasPrefix+name)) // saving again overwrites what is shown here
	}
	return v.drawTaskForm(http.StatusConflict, taskForm{
		filled: filled{typed: form, errors: bad}, key: key, now: now.Assignee,
		stale: "Somebody changed the same fields while you wrote. Saving again puts what stands in them here in its place.",
	})
}

// quoted is a text as a sentence repeats it.
func quoted(text string) string {
	if text = firstLine(text, 200); text == "" {
		return "nothing"
	}
	return "“" + text + "”"
}

// taskFields are the fields of the form.
var taskFields = []string{"title", "description", "slug", "priority", "assignee", "labels", "blockedBy", "links"}

// wasPrefix begins the name of a hidden field that has the digest of what another was filled with.
const wasPrefix = "was."

func digest(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(lines(text))))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// typedInto reports whether a field isn't as the form was filled.
func typedInto(form url.Values, name string) bool {
	return form.Has(name) && form.Get(wasPrefix+name) != digest(form.Get(name))
}

// conflicts are the fields that were typed into and that somebody else has changed as well.
func conflicts(form, now url.Values) []string {
	var out []string
	for _, name := range taskFields {
		changed := form.Get(wasPrefix+name) != digest(now.Get(name))
		if changed && typedInto(form, name) && digest(form.Get(name)) != digest(now.Get(name)) {
			out = append(out, name)
		}
	}
	return out
}

// typedTask is a task as its form shows it, with the digests of its fields.
func typedTask(t api.Task) url.Values {
	in := api.TaskInput{Slug: t.Slug, Title: t.Title, Description: t.Description, Priority: t.Priority, Labels: t.Labels, Links: t.Links}
	if t.Assignee != nil {
		in.Assignee = t.Assignee.ID
	}
	for _, b := range t.BlockedBy {
		in.BlockedBy = append(in.BlockedBy, b.Key)
	}
	out := taskFormOf(in)
	for _, name := range taskFields {
		out.Set(wasPrefix+name, digest(out.Get(name)))
	}
	return out
}

func taskFormOf(in api.TaskInput) url.Values {
	return url.Values{
		"title": {in.Title}, "description": {in.Description}, "slug": {in.Slug}, "priority": {string(in.Priority)}, "assignee": {in.Assignee},
		"labels": {strings.Join(in.Labels, " ")}, "blockedBy": {strings.Join(in.BlockedBy, " ")}, "links": {in.Links.Lines()},
	}
}

// fillTaskForm reads what was typed. The state isn't in it: it has a form of its own, because setting
// it claims or ends something.
func fillTaskForm(in *api.TaskInput, form url.Values) {
	in.Title, in.Description, in.Slug = form.Get("title"), lines(form.Get("description")), form.Get("slug")
	in.Priority, in.Assignee = api.TaskPriority(form.Get("priority")), form.Get("assignee")
	in.Labels, in.BlockedBy = words(form.Get("labels")), words(form.Get("blockedBy"))
	in.Links = api.TaskLinksOf(strings.Split(lines(form.Get("links")), "\n"))
}

// assigneeOptions are whom a task can be: by id, as the form is filled.
func assigneeOptions(f taskForm) []Option {
	out := andEverybody([]Option{{"", "Nobody"}, {"me", "You"}}, f.choices, func(agent api.Person) string { return agent.ID })
	if f.now != nil && !slices.ContainsFunc(out, func(o Option) bool { return o.Value == f.now.ID }) {
		out = append(out, Option{f.now.ID, f.now.Name})
	}
	return out
}

// whoseOptions are whom a list can be narrowed to, by the names that addresses have.
func whoseOptions(c engine.TaskChoices) []Option {
	return andEverybody([]Option{{"", "Anybody's"}, {"me", "Yours"}, {"none", "Nobody's"}}, c, func(agent api.Person) string { return agent.Name })
}

// andEverybody adds the agents, each by what value says, and the people.
func andEverybody(out []Option, c engine.TaskChoices, value func(agent api.Person) string) []Option {
	for _, a := range c.Agents {
		out = append(out, Option{value(a), a.Name + " (agent)"})
	}
	for _, p := range c.People {
		out = append(out, Option{p.ID, p.Name})
	}
	return out
}

func priorityOptions() []Option {
	return []Option{{"p1", "p1, urgent"}, {"p2", "p2"}, {"p3", "p3, some day"}}
}

func stateOptions() []Option {
	return []Option{{string(api.TaskTodo), taskWord(api.TaskTodo)}, {string(api.TaskInProgress), "In progress: you claim it"}}
}

func linkWords(l api.TaskLink) string {
	if l.Title != "" {
		return l.Title
	}
	return l.URL
}
