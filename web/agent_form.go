package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"stint/api"
)

// agentForm is what agent_form.templ draws: what was typed, and what is wrong with it.
type agentForm struct {
	filled
	slug  string // of the agent being edited; "" = a new one
	says  schedulePreview
	zones []string
	from  string // the starter that it was filled from
	asks  string // why it comes back at all, if no field is at fault
}

func (v *visit) newAgent() error {
	if err := v.mayEditAgents(); err != nil {
		return err
	}
	typed := formOf(v.web.engine.DefaultAgent())
	typed.Set("timeZone", v.prefs.zone.String())
	from := v.r.URL.Query().Get("from")
	for _, s := range starters {
		if s.key == from {
			v.begin(s, typed)
		}
	}
	return v.drawAgentForm(http.StatusOK, agentForm{filled: filled{typed: typed}, from: from})
}

func (v *visit) editAgent() error {
	a, err := v.web.engine.Agent(v.r.Context(), v.caller, v.path("agent"))
	if err != nil {
		return err
	}
	if err := v.mayEditAgents(); err != nil {
		return err
	}
	typed := formOf(a.AgentInput)
	if a.Run.WorkFolder == "" {
		typed.Set("folderElsewhere", "true")
	}
	return v.drawAgentForm(http.StatusOK, agentForm{filled: filled{typed: typed}, slug: a.Slug})
}

// mayEditAgents refuses before anything is typed.
func (v *visit) mayEditAgents() error {
	return v.refuse(v.caller.CanEditAgents(), "Agents are made and changed by admins of this workspace")
}

func (v *visit) drawAgentForm(status int, f agentForm) error {
	f.says = v.saySchedule(f.typed.Get("schedule"), f.typed.Get("timeZone"))
	f.says.told = f.errors["schedule"] != "" || f.errors["timeZone"] != ""
	f.zones = commonZones
	title := "New agent"
	if f.slug != "" {
		title = "Edit " + f.slug
	}
	return v.page(status, Shell{Talk: true, Title: title, Place: "agents"}, agentFormPage(f))
}

func (v *visit) createAgent() error {
	in := v.web.engine.DefaultAgent()
	bad := fillAgent(&in, v.r.PostForm)
	needFolder(in, v.r.PostForm, bad)
	var err error
	if len(bad) == 0 {
		if err = v.web.makeFolder(in.Run.WorkFolder, v.caller); err != nil {
			return err
		}
		var a api.Agent
		if a, err = v.web.engine.CreateAgent(v.r.Context(), v.caller, in); err == nil {
			return v.to(agentURL(a.Slug), "Agent made")
		}
	}
	return v.agentRefused(agentForm{}, in, nil, bad, err)
}

func (v *visit) saveAgent() error {
	ctx := v.r.Context()
	var bad map[string]string
	var was *api.Agent
	var in api.AgentInput
	a, err := v.web.engine.EditAgent(ctx, v.caller, v.path("agent"), func(merged *api.AgentInput) error {
		bad = fillAgent(merged, v.r.PostForm)
		needFolder(*merged, v.r.PostForm, bad)
		if in = *merged; len(bad) > 0 {
			return api.Refuse(api.CodeInvalid, "Some fields are not valid.")
		}
		return nil
	})
	if err == nil {
		return v.to(agentURL(a.Slug), "Saved")
	}
	if len(bad) > 0 {
		now, err := v.web.engine.Agent(ctx, v.caller, v.path("agent"))
		if err != nil {
			return err
		}
		was = &now
	}
	return v.agentRefused(agentForm{slug: v.path("agent")}, in, was, bad, err)
}

// agentRefused draws the form again with everything that is wrong: what it couldn't read
// itself and also what the engine says. err is the engine's refusal, if it was called; was is
// the agent being edited, nil for a new one.
func (v *visit) agentRefused(f agentForm, in api.AgentInput, was *api.Agent, bad map[string]string, err error) error {
	f.filled = filled{v.r.PostForm, bad}
	if no := v.mayEditAgents(); no != nil {
		f.errors, f.asks = nil, failureOf(no).text
		return v.drawAgentForm(http.StatusForbidden, f)
	}
	if len(bad) == 0 {
		var ok bool
		if f.errors, ok = fieldErrors(err); !ok {
			return err
		}
		return v.drawAgentForm(http.StatusUnprocessableEntity, f)
	}
	also(bad, v.web.engine.CheckAgent(v.caller, in, was))
	other, err := v.web.engine.Agent(v.r.Context(), v.caller, in.Slug)
	if err == nil && bad["slug"] == "" && (was == nil || other.ID != was.ID) {
		bad["slug"] = "is taken in this workspace: choose another"
	}
	return v.drawAgentForm(http.StatusUnprocessableEntity, f)
}

// needFolder asks for the work folder of an agent that runs on somebody's machine, unless the
// form says that the worker's own file names it.
func needFolder(in api.AgentInput, form url.Values, bad map[string]string) {
	if in.Mode == api.Local && in.Run.WorkFolder == "" && form.Has("workFolder") && form.Get("folderElsewhere") != "true" {
		bad["run.workFolder"] = "is missing: an absolute path on the worker's machine, as of the project that it works on"
	}
}

// agentField is a part of an agent that the form has by a name of its own.
type agentField[T any] struct {
	name string
	of   func(*api.AgentInput) *T
}

var numbers = []agentField[int64]{
	{"catchUpWindowSeconds", func(a *api.AgentInput) *int64 { return &a.CatchUpWindowSeconds }},
	{"jitterSeconds", func(a *api.AgentInput) *int64 { return &a.JitterSeconds }},
	{"maxConcurrent", func(a *api.AgentInput) *int64 { return &a.MaxConcurrent }},
	{"priority", func(a *api.AgentInput) *int64 { return &a.Priority }},
	{"leaseSeconds", func(a *api.AgentInput) *int64 { return &a.LeaseSeconds }},
	{"reclaimDelaySeconds", func(a *api.AgentInput) *int64 { return &a.ReclaimDelaySeconds }},
	{"turnTimeoutSeconds", func(a *api.AgentInput) *int64 { return &a.TurnTimeoutSeconds }},
	{"stallTimeoutSeconds", func(a *api.AgentInput) *int64 { return &a.StallTimeoutSeconds }},
	{"queueTimeoutSeconds", func(a *api.AgentInput) *int64 { return &a.QueueTimeoutSeconds }},
	{"maxLapses", func(a *api.AgentInput) *int64 { return &a.MaxLapses }},
}

var texts = []agentField[string]{
	{"slug", func(a *api.AgentInput) *string { return &a.Slug }},
	{"name", func(a *api.AgentInput) *string { return &a.Name }},
	{"description", func(a *api.AgentInput) *string { return &a.Description }},
	{"expect", func(a *api.AgentInput) *string { return &a.Run.Expect }},
	{"workFolder", func(a *api.AgentInput) *string { return &a.Run.WorkFolder }},
	{"prompt", func(a *api.AgentInput) *string { return &a.Prompt }},
	{"instructions", func(a *api.AgentInput) *string { return &a.Instructions }},
	{"schedule", func(a *api.AgentInput) *string { return &a.Schedule }},
	{"timeZone", func(a *api.AgentInput) *string { return &a.TimeZone }},
	{"mode", func(a *api.AgentInput) *string { return (*string)(&a.Mode) }},
	{"type", func(a *api.AgentInput) *string { return (*string)(&a.Type) }},
	{"catchUp", func(a *api.AgentInput) *string { return (*string)(&a.CatchUp) }},
	{"overlap", func(a *api.AgentInput) *string { return (*string)(&a.Overlap) }},
}

// formOf fills the form from an agent.
func formOf(in api.AgentInput) url.Values {
	out := url.Values{}
	for _, t := range texts {
		out.Set(t.name, *t.of(&in))
	}
	out.Set("command", commandLine(in.Run.Command))
	out.Set("check", commandLine(in.Run.Check))
	out.Set("env", joined(in.Run.Env))
	out.Set("labels", joined(in.Labels))
	out.Set("taskUpdates", joined(in.TaskUpdates))
	for _, n := range numbers {
		out.Set(n.name, strconv.FormatInt(*n.of(&in), 10))
	}
	if in.Paused {
		out.Set("paused", "true")
	}
	if in.Run.Strict {
		out.Set("strict", "true")
	}
	talkForm(in, out)
	return out
}

// fillAgent reads the form into an agent, over its previous values. What can't be read is
// named by field; the engine has the rules themselves.
func fillAgent(in *api.AgentInput, form url.Values) map[string]string {
	bad := map[string]string{}
	for _, t := range texts {
		if form.Has(t.name) {
			*t.of(in) = strings.ReplaceAll(form.Get(t.name), "\r\n", "\n")
		}
	}
	in.Run.WorkFolder = strings.TrimSpace(in.Run.WorkFolder)
	in.Run.Expect = strings.TrimSpace(in.Run.Expect)
	if form.Has("expect") {
		in.Run.Strict = form.Get("strict") == "true"
	}
	in.Paused = form.Get("paused") == "true"
	if form.Has("env") {
		in.Run.Env = nil
		if names := words(form.Get("env")); len(names) > 0 {
			in.Run.Env = names
		}
	}
	if form.Has("labels") {
		in.Labels = words(form.Get("labels"))
	}
	if form.Has("taskUpdates") {
		in.TaskUpdates = words(form.Get("taskUpdates"))
	}
	if in.Type != api.TypeCommand {
		fillTalk(in, form, bad)
	} else if form.Has("command") {
		argv, err := SplitCommand(form.Get("command"))
		if err != nil {
			bad["run.command"] = fmt.Sprintf("can't be read as a command line: %v", err)
		}
		in.Run.Command = argv
	}
	if in.Type == api.TypeCommand && form.Has("check") {
		argv, err := SplitCommand(form.Get("check"))
		if err != nil {
			bad["run.check"] = fmt.Sprintf("can't be read as a command line: %v", err)
		}
		in.Run.Check = nil
		if len(argv) > 0 {
			in.Run.Check = argv
		}
	}
	fillSpend(in, form, bad)
	for _, n := range numbers {
		typed := strings.TrimSpace(form.Get(n.name))
		if typed == "" {
			continue
		}
		value, err := strconv.ParseInt(typed, 10, 64)
		if err != nil {
			bad[n.name] = "must be a whole number"
			continue
		}
		*n.of(in) = value
	}
	return bad
}

// words splits at spaces and commas.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
}

// others are complaints about fields that the form doesn't show.
func (f agentForm) others() string {
	var out []string
	for field, detail := range f.errors {
		if !f.typed.Has(field) && !strings.HasPrefix(field, "run.") {
			out = append(out, field+" "+detail)
		}
	}
	return strings.Join(out, "; ")
}

// limitsWrong counts what is wrong in the folded part.
func (f agentForm) limitsWrong() int {
	n := 0
	for _, field := range numbers {
		if f.errors[field.name] != "" {
			n++
		}
	}
	for _, field := range []string{"labels", "taskUpdates"} {
		if f.errors[field] != "" {
			n++
		}
	}
	return n
}

func (f agentForm) action() string {
	if f.slug == "" {
		return "/agents"
	}
	return agentURL(f.slug) + "/edit"
}

func (f agentForm) back() string {
	if f.slug == "" {
		return "/agents"
	}
	return agentURL(f.slug)
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = capitalised(text)
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// schedulePreview is what the form says about a schedule while it is typed.
type schedulePreview struct {
	api.SchedulePreview
	wrong string
	none  bool
	told  bool // the field already says it
}

func (v *visit) saySchedule(expr, zone string) schedulePreview {
	expr = strings.TrimSpace(expr)
	if expr == "" {
		return schedulePreview{none: true}
	}
	p, err := v.web.engine.Preview(v.r.Context(), expr, zone, v.web.engine.Now(), 5)
	if err != nil {
		bad, _ := fieldErrors(err)
		for _, detail := range bad {
			return schedulePreview{wrong: sentence(detail)}
		}
		return schedulePreview{wrong: "This can't be read as a schedule."}
	}
	return schedulePreview{SchedulePreview: p}
}

// schedule draws only the preview, for the form's script.
func (v *visit) schedule() error {
	q := v.r.URL.Query()
	return v.draw(http.StatusOK, scheduleSays(v.saySchedule(q.Get("schedule"), q.Get("timeZone")), v.prefs.zone), nil)
}

// commonZones are suggested while a zone is typed; any name in the tz database is accepted.
var commonZones = []string{
	"UTC", "Europe/London", "Europe/Berlin", "Europe/Paris", "Europe/Warsaw", "Europe/Madrid", "Europe/Athens", "Europe/Kyiv",
	"America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo", "America/Toronto",
	"Asia/Kolkata", "Asia/Dubai", "Asia/Singapore", "Asia/Tokyo", "Asia/Shanghai", "Asia/Seoul", "Australia/Sydney", "Pacific/Auckland",
}

var overlapOptions = []Option{
	{string(api.OverlapSkip), "Skip the new run"},
	{string(api.OverlapQueueOne), "Let one wait"},
	{string(api.OverlapAllow), "Run both"},
	{string(api.OverlapReplace), "Cancel the old one"},
}

var catchUpOptions = []Option{
	{string(api.CatchUpLatest), "Run the latest missed one"},
	{string(api.CatchUpNone), "Leave missed runs out"},
}
