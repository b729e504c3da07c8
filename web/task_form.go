package web

import (
	"net/http"
	"net/url"
	"strconv"
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
	return v.drawTaskForm(http.StatusOK, taskForm{filled: filled{typed: typedTask(t)}, key: t.Key})
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
	t, err := v.web.engine.CreateTask(v.r.Context(), v.caller, in)
	if bad, ok := fieldErrors(err); ok {
		return v.drawTaskForm(http.StatusUnprocessableEntity, taskForm{filled: filled{typed: v.r.PostForm, errors: bad}})
	}
	if err != nil {
		return err
	}
	return v.to(taskURL(t.Key), t.Key+" made")
}

// saveTask saves an edit of the version that the form was filled from; a task that was changed
// meanwhile comes back with what was typed.
func (v *visit) saveTask() error {
	form, key := v.r.PostForm, v.path("task")
	t, err := v.web.engine.EditTask(v.r.Context(), v.caller, key, func(in *api.TaskEdit) error {
		fillTaskForm(&in.TaskInput, form)
		version, err := strconv.ParseInt(form.Get("version"), 10, 64)
		if err == nil {
			in.Version = version
		}
		return nil
	})
	if api.CodeOf(err) == api.CodeStaleVersion {
		now, err := v.web.engine.Task(v.r.Context(), v.caller, key)
		if err != nil {
			return err
		}
		form.Set("version", strconv.FormatInt(now.Version, 10))
		return v.drawTaskForm(http.StatusConflict, taskForm{
			filled: filled{typed: form}, key: key,
			stale: "Somebody changed it while you wrote: look at the task beside this form. Saving now puts what stands here in its place.",
		})
	}
	if bad, ok := fieldErrors(err); ok {
		return v.drawTaskForm(http.StatusUnprocessableEntity, taskForm{filled: filled{typed: form, errors: bad}, key: key})
	}
	if err != nil {
		return err
	}
	return v.to(taskURL(t.Key), "Saved")
}

// typedTask is a task as its form shows it.
func typedTask(t api.Task) url.Values {
	in := api.TaskInput{Slug: t.Slug, Title: t.Title, Description: t.Description, Priority: t.Priority, Labels: t.Labels, Links: t.Links}
	if t.Assignee != nil {
		if in.Assignee = t.Assignee.ID; t.Assignee.Type == api.PersonAgent {
			in.Assignee = t.Assignee.Name
		}
	}
	for _, b := range t.BlockedBy {
		in.BlockedBy = append(in.BlockedBy, b.Key)
	}
	out := taskFormOf(in)
	out.Set("version", strconv.FormatInt(t.Version, 10))
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

// assigneeOptions are whom a task can be, or a list can be narrowed to. nobody is the value
// that means nobody, if it isn't the empty one.
func assigneeOptions(c engine.TaskChoices, empty, nobody string) []Option {
	out := []Option{{"", empty}, {"me", "Yours"}}
	if nobody != "" {
		out = append(out, Option{nobody, "Nobody's"})
	}
	for _, slug := range c.Agents {
		out = append(out, Option{slug, slug + " (agent)"})
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
