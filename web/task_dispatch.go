package web

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"

	"stint/api"
	"stint/engine"
)

// dispatchPage is what task_dispatch.templ draws.
type dispatchPage struct {
	engine.DispatchView
	filled
	refused string // why it was refused, if no field is at fault
}

func (v *visit) dispatchForm() error {
	return v.drawDispatch(http.StatusOK, url.Values{"key": {rand.Text()}}, nil, "")
}

func (v *visit) drawDispatch(status int, typed url.Values, bad map[string]string, refused string) error {
	view, err := v.web.engine.DispatchOf(v.r.Context(), v.caller, v.path("task"))
	if err != nil {
		return err
	}
	if !typed.Has("agent") {
		typed.Set("agent", view.Chosen)
	}
	p := dispatchPage{view, filled{typed, bad}, refused}
	return v.page(status, Shell{Title: "Dispatch " + view.Key, Place: "tasks", Now: view.At}, dispatchForm(p))
}

// dispatchTask claims the task and starts the session that works on it. The form's own key
// makes a second press of the button return the first one's session.
func (v *visit) dispatchTask() error {
	form, key := v.r.PostForm, v.path("task")
	in := api.DispatchInput{Agent: form.Get("agent"), Force: form.Get("force") == "true"}
	if prompt := lines(form.Get("prompt")); prompt != "" {
		in.Prompt = &prompt
	}
	idem := engine.Idempotency{}
	if typed := form.Get("key"); typed != "" {
		idem = engine.Idempotency{Key: typed, Route: "page:/tasks/dispatch", Body: []byte(form.Encode())}
	}
	done, _, err := v.web.engine.DispatchTask(v.r.Context(), v.caller, key, in, idem)
	if err == nil {
		return v.to(sessionURL(done.Session.ID), "Dispatched "+done.Agent+" on "+done.Task.Key)
	}
	form.Set("key", rand.Text()) // what was refused began nothing
	if bad, ok := fieldErrors(err); ok {
		return v.drawDispatch(http.StatusUnprocessableEntity, form, bad, "")
	}
	switch api.CodeOf(err) {
	case api.CodeAlreadyClaimed, api.CodeTaskBlocked, api.CodeTaskDone, api.CodeForbidden:
		f := failureOf(err)
		return v.drawDispatch(f.status, form, nil, f.text)
	}
	return err
}

// agentOptions are the agents that could work on it.
func (p dispatchPage) agentOptions() []Option {
	out := make([]Option, 0, len(p.Agents)+1)
	if p.Chosen == "" {
		out = append(out, Option{"", "Choose one"})
	}
	for _, a := range p.Agents {
		out = append(out, Option{a.Slug, a.Name + " (" + a.Slug + ")"})
	}
	return out
}

// command is the same on the command line.
func (p dispatchPage) command() string {
	if p.Chosen == "" {
		return "stint dispatch " + p.Key + " --agent AGENT"
	}
	return "stint dispatch " + p.Key
}

// impossible says why no agent could begin with the task now, whoever asks; "" if one could.
func (p dispatchPage) impossible() string {
	switch open := api.OpenKeys(p.BlockedBy); {
	case p.State == api.TaskDone:
		return "It is done. Open it again first."
	case len(open) > 0:
		return "It waits for " + strings.Join(open, ", ") + "."
	case p.Against && !p.Forces:
		return "Somebody is at work on it, and only an admin takes it from them."
	}
	return ""
}
