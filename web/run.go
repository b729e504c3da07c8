package web

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// runPage is what run.templ draws.
type runPage struct {
	engine.AgentPage
	by     engine.Caller
	typed  url.Values
	errors map[string]string
	zone   *time.Location
}

// chooseAgent leads to a run if no agent was named; the quick form of the home page ends here
// too.
func (v *visit) chooseAgent() error {
	list, err := v.web.engine.AgentList(v.r.Context(), v.caller, "")
	if err != nil {
		return err
	}
	list.Agents = slices.DeleteFunc(list.Agents, func(a engine.AgentView) bool { return !v.caller.CanRun(a.Mode) })
	if err := v.mayRun(api.Local); err != nil {
		return err
	}
	if len(list.Agents) == 1 {
		return v.to(agentURL(list.Agents[0].Slug)+"/run", "")
	}
	return v.page(http.StatusOK, Shell{Title: "Run an agent", Place: "sessions", Now: list.At}, choose(agentsPage{AgentListView: list, by: v.caller, zone: v.prefs.zone}))
}

// quickRun starts a session from the home page.
func (v *visit) quickRun() error {
	form := v.r.PostForm
	var in api.SessionInput
	if typed := lines(form.Get("prompt")); strings.TrimSpace(typed) != "" {
		in.Prompt = &typed
	}
	s, _, err := v.web.engine.CreateSession(v.r.Context(), v.caller, form.Get("agent"), in, engine.Idempotency{})
	if err != nil {
		return err
	}
	return v.to(sessionURL(s.ID), "")
}

func (v *visit) runForm() error {
	a, err := v.web.engine.Agent(v.r.Context(), v.caller, v.path("agent"))
	if err != nil {
		return err
	}
	if err := v.mayRun(a.Mode); err != nil {
		return err
	}
	return v.drawRun(http.StatusOK, url.Values{"key": {rand.Text()}, "task": {v.r.URL.Query().Get("task")}}, nil)
}

// mayRun refuses before anything is typed.
func (v *visit) mayRun(mode api.Mode) error {
	who := "Agents are run by members of this workspace and above"
	if mode == api.Cloud {
		who = "Cloud agents are run by admins of this workspace"
	}
	return v.refuse(v.caller.CanRun(mode), who)
}

func (v *visit) drawRun(status int, typed url.Values, bad map[string]string) error {
	view, err := v.web.engine.AgentPageOf(v.r.Context(), v.caller, v.path("agent"))
	if err != nil {
		return err
	}
	if !typed.Has("prompt") {
		typed.Set("prompt", view.Prompt)
		typed.Set("priority", strconv.FormatInt(view.Priority, 10))
	}
	p := runPage{view, v.caller, typed, bad, v.prefs.zone}
	return v.page(status, Shell{Title: "Run " + view.Name, Place: "agents", Now: view.At}, runDialog(p))
}

// run starts a session. The form's own key makes a second press of the button return the first
// one's session.
func (v *visit) run() error {
	form, slug := v.r.PostForm, v.path("agent")
	in := api.SessionInput{Title: form.Get("title"), UntrustedContext: lines(form.Get("untrustedContext")), Task: strings.TrimSpace(form.Get("task"))}
	in.RunChoice = api.RunChoice{Model: strings.TrimSpace(form.Get("model")), Effort: strings.TrimSpace(form.Get("effort")), PlanMode: form.Get("planMode") == "true"}
	if form.Has("prompt") { // the form shows the agent's own: an emptied field means none
		in.Prompt = new(lines(form.Get("prompt")))
	}
	files, err := v.filesFrom()
	if err != nil {
		return err
	}
	in.Files = files
	bad := map[string]string{}
	if typed := form.Get("priority"); typed != "" {
		n, err := strconv.ParseInt(typed, 10, 64)
		if err != nil {
			bad["priority"] = "must be a whole number"
		}
		in.Priority = &n
	}
	if typed := form.Get("notBefore"); typed != "" {
		t, err := time.ParseInLocation("2006-01-02T15:04", typed, v.prefs.zone)
		if err != nil {
			bad["notBefore"] = "must be a date and a time of day"
		}
		in.NotBefore = api.Time{Time: t.UTC()}
	}
	if len(bad) > 0 {
		return v.drawRun(http.StatusUnprocessableEntity, form, bad)
	}
	idem := engine.Idempotency{}
	if key := form.Get("key"); key != "" {
		idem = engine.Idempotency{Key: key, Route: "page:/agents/" + slug + "/run", Body: []byte(form.Encode() + fingerprint(files))}
	}
	s, _, err := v.web.engine.CreateSession(v.r.Context(), v.caller, slug, in, idem)
	if err != nil {
		if api.CodeOf(err) == api.CodeForbidden {
			return v.drawRun(http.StatusForbidden, form, nil)
		}
		if bad, ok := fieldErrors(err); ok {
			bad["files"] = fileFault(bad, files)
			if bad["Idempotency-Key"] != "" {
				form.Set("key", rand.Text()) // it was changed after a first press: this means a new session
			}
			return v.drawRun(http.StatusUnprocessableEntity, form, bad)
		}
		return err
	}
	return v.to(sessionURL(s.ID), "")
}

// lines undoes what a browser does to line ends.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func (p runPage) input(id, label, hint string) Input {
	return Input{ID: id, Label: label, Hint: hint, Value: p.typed.Get(id), Error: sentence(p.errors[id])}
}

func (p runPage) notBefore() Input {
	in := p.input("notBefore", "Not before", "In your own time ("+p.zone.String()+"). Empty: now.")
	in.Type = "datetime-local"
	return in
}

func (p runPage) priority() Input {
	in := p.input("priority", "Priority", "Higher goes first")
	in.Type = "number"
	return in
}

// model is the field for another model than the agent's, with those to choose from.
func (p runPage) model() Input {
	hint := "Empty: " + cmp.Or(p.Run.Model, "the program's own choice")
	if len(p.Run.Models) > 0 {
		hint += ". Or " + api.OrList(p.Run.Models)
	}
	return p.input("model", "Model", hint)
}

func (p runPage) effort() Input {
	return p.input("effort", "Effort", "How much the model is to think, such as low or high. Empty: "+cmp.Or(p.Run.Effort, "the program's own choice"))
}

// chosen reports whether the form says anything of how the program is to think.
func (p runPage) chosen() bool {
	return p.typed.Get("model")+p.typed.Get("effort")+p.typed.Get("planMode")+p.errors["model"]+p.errors["effort"]+p.errors["planMode"] != ""
}

// waits says beforehand what would keep the session waiting; "" = nothing.
func (p runPage) waits() string {
	switch {
	case p.Paused:
		return "The agent is paused: the session waits until it is resumed."
	case p.Online == 0:
		return "No worker is online: the session waits until one is."
	case p.Running >= p.MaxConcurrent:
		return "The agent is at its limit: the session waits until a run ends."
	default:
		return ""
	}
}
