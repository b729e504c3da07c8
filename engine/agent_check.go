package engine

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stint/api"
	"stint/scheduler"
)

// checkAgent normalises what a person wrote and names each field that breaks a rule. ranAs is
// whose worker ran its sessions until now; only that user can set it to themselves (contract
// 2.0).
func checkAgent(in *api.AgentInput, c Caller, ranAs api.UserID, lease leaseRange, now time.Time) error {
	var v api.Invalid
	in.Slug = strings.ToLower(strings.TrimSpace(in.Slug))
	switch {
	case !api.SlugForm.MatchString(in.Slug):
		v.Add("slug", "must be 2 to 32 characters: a lowercase letter, then letters, digits or hyphens")
	case strings.HasPrefix(in.Slug, "agt_"):
		v.Add("slug", "must not look like an id")
	case in.Slug == "new":
		v.Add("slug", "must not be new: the page for making an agent has that address")
	}
	in.Name = strings.TrimSpace(in.Name)
	if in.Name == "" {
		in.Name = in.Slug
	}
	if n := utf8.RuneCountInString(in.Name); n > maxName {
		v.Add("name", fmt.Sprintf("has %d characters; at most %d fit", n, maxName))
	}
	v.CheckLine("name", in.Name)
	v.CheckText("description", in.Description, maxDescription)
	v.CheckWritten("description", in.Description)
	v.CheckWritten("prompt", in.Prompt)
	v.CheckWritten("instructions", in.Instructions)
	v.CheckText("prompt", in.Prompt, maxPrompt)
	if n := utf8.RuneCountInString(in.Instructions); n > maxInstructions {
		v.Add("instructions", fmt.Sprintf("has %d characters; at most %d fit", n, maxInstructions))
	}
	checkMode(&v, in, c, ranAs)
	checkRun(&v, in)
	checkRules(&v, &in.Run)
	checkSpend(&v, in)
	checkSchedule(&v, in, now)
	checkNumbers(&v, in, lease)
	checkLabels(&v, &in.Labels)
	checkTaskUpdates(&v, &in.TaskUpdates)
	return v.Err()
}

// CheckAgent names everything that is wrong with what a person wrote about an agent, and
// writes nothing: a form calls it, which would otherwise report its own findings first and the
// rest only after they are corrected. was is the agent as it is, nil for a new one. It doesn't
// check whether the slug is free.
func (e *Engine) CheckAgent(c Caller, in api.AgentInput, was *api.Agent) error {
	ranAs, lease := c.UserID, e.leases()
	if was != nil {
		ranAs, lease = was.RunsAsUserID, lease.with(was.LeaseSeconds)
	} else if in.Mode == api.Local && in.RunsAsUserID == 0 {
		in.RunsAsUserID = c.UserID
	}
	return checkAgent(&in, c, ranAs, lease, e.Now())
}

func checkMode(v *api.Invalid, in *api.AgentInput, c Caller, ranAs api.UserID) {
	switch in.Mode {
	case api.Local:
		if in.RunsAsUserID == 0 {
			if in.Schedule != "" {
				v.Add("runsAsUserId", "is missing: a local agent with a schedule runs on the worker of one user")
			}
			return
		}
		if in.RunsAsUserID != ranAs && in.RunsAsUserID != c.UserID {
			v.Add("runsAsUserId", "can only be set to yourself: it makes your worker run the agent")
		}
	case api.Cloud:
		in.RunsAsUserID = 0
	default:
		v.Add("mode", "must be local or cloud")
	}
}

func checkRun(v *api.Invalid, in *api.AgentInput) {
	switch in.Type {
	case api.TypeCommand:
		if in.Mode == api.Local && len(in.Run.Command) == 0 {
			v.Add("run.command", "is missing: give the program and its arguments as a list")
		}
	case api.TypeACP:
		if in.Mode == api.Local && len(in.Run.Command) == 0 && in.Run.Executable == "" {
			v.Add("run.executable", "is missing: name "+api.ACPNames()+", or give another program and its arguments as run.command")
		}
	default:
		if _, known := in.Type.Describe(); !known {
			v.Add("type", "must be "+api.AgentTypeNames())
		}
	}
	in.Run.Choice().Check(v, "run.", in.Type)
	checkArgv(v, "run.command", in.Run.Command)
	checkArgv(v, "run.check", in.Run.Check)
	if len(in.Run.Check) > 0 && in.Type != api.TypeCommand {
		v.Add("run.check", "belongs to an agent of type command")
	}
	if _, err := api.ParseExpect(in.Run.Expect); err != nil {
		v.Add("run.expect", err.Error())
	} else if in.Run.Strict && in.Run.Expect == "" {
		v.Add("run.strict", "needs to be told what must come of a run: changes, or output:PATTERN")
	}
	if f := in.Run.WorkFolder; f != "" {
		if !path.IsAbs(f) && !windowsAbs.MatchString(f) {
			v.Add("run.workFolder", "must be an absolute path on the worker's machine")
		}
		v.CheckText("run.workFolder", f, 4096)
		v.CheckPlace("run.workFolder", f)
	}
	for i, name := range in.Run.Env {
		if !envForm.MatchString(name) {
			v.Add(fmt.Sprintf("run.env[%d]", i), fmt.Sprintf("%q is no name of an environment variable; values stay on the worker", name))
		}
	}
}

func checkArgv(v *api.Invalid, field string, argv []string) {
	size := 0
	for i, arg := range argv {
		size += len(arg)
		if strings.ContainsRune(arg, 0) {
			v.Add(fmt.Sprintf("%s[%d]", field, i), "holds a NUL character")
		}
		if i == 0 && strings.TrimSpace(arg) == "" {
			v.Add(field+"[0]", "is empty: name the program to run")
		}
	}
	if size > maxCommand {
		v.Add(field, fmt.Sprintf("has %d bytes; at most %d fit", size, maxCommand))
	}
}

// The words of a run block that are one of a few.
var (
	permissions = []string{"", "approval", "autonomous"}
	workspaces  = []string{"", "folder", "worktree"}
)

const maxRules = 200

func checkRules(v *api.Invalid, run *api.Run) {
	among := func(field, value string, words []string) {
		if !slices.Contains(words, value) {
			v.Add(field, fmt.Sprintf("%q must be one of %s", value, strings.TrimPrefix(strings.Join(words, ", "), ", ")))
		}
	}
	among("run.permissions", run.Permissions, permissions)
	if len(run.Models) > 100 {
		v.Add("run.models", "has more than 100 names")
	}
	for i, name := range run.Models {
		field := fmt.Sprintf("run.models[%d]", i)
		v.CheckText(field, name, 200)
		v.CheckPlace(field, name)
		if strings.TrimSpace(name) == "" {
			v.Add(field, "is empty: name a model")
		}
	}
	among("run.workspace", run.Workspace, workspaces)
	for _, f := range []struct{ field, text string }{{"run.executable", run.Executable}, {"run.model", run.Model}, {"run.baseBranch", run.BaseBranch}} {
		v.CheckText(f.field, f.text, 1000)
		v.CheckPlace(f.field, f.text)
		if strings.HasPrefix(f.text, "-") {
			v.Add(f.field, "must not begin with a hyphen")
		}
	}
	if run.MaxTurns < 0 || run.MaxTurns > 100_000 {
		v.Add("run.maxTurns", "must be 0 to 100000; 0 means 200")
	}
	if len(run.Rules) > maxRules {
		v.Add("run.rules", fmt.Sprintf("has more than %d rules", maxRules))
	}
	for i, r := range run.Rules {
		field := fmt.Sprintf("run.rules[%d].", i)
		among(field+"area", string(r.Area), words(api.Areas))
		among(field+"ruling", string(r.Ruling), words(api.Rulings))
		v.CheckText(field+"pattern", r.Pattern, 1000)
		v.CheckWritten(field+"pattern", r.Pattern)
	}
}

func words[T ~string](of []T) []string {
	out := make([]string, len(of))
	for i, w := range of {
		out[i] = string(w)
	}
	return out
}

func checkSchedule(v *api.Invalid, in *api.AgentInput, now time.Time) {
	in.Schedule = strings.TrimSpace(in.Schedule)
	// The zone and the expression are read separately, so that both are named when both are
	// wrong.
	checkTime(v, "@daily", in.TimeZone, now)
	if in.Schedule != "" {
		checkTime(v, in.Schedule, "UTC", now)
	}
	if in.CatchUp != api.CatchUpLatest && in.CatchUp != api.CatchUpNone {
		v.Add("catchUp", "must be latest or none")
	}
	if !slices.Contains([]api.Overlap{api.OverlapSkip, api.OverlapQueueOne, api.OverlapAllow, api.OverlapReplace}, in.Overlap) {
		v.Add("overlap", "must be skip, queue_one, allow or replace")
	}
}

func checkTime(v *api.Invalid, expr, zone string, now time.Time) {
	var bad *scheduler.Error
	if _, err := scheduler.Parse(expr, zone, now); errors.As(err, &bad) {
		v.Add(bad.Field, bad.Reason)
	}
}

// leaseRange is what an agent's lease may be, in seconds.
type leaseRange struct{ least, most int64 }

func (e *Engine) leases() leaseRange {
	return leaseRange{int64(e.cfg.MinLease / time.Second), int64(e.cfg.MaxLease / time.Second)}
}

// with is the range with a lease that an agent has already: what isn't changed isn't refused.
func (r leaseRange) with(had int64) leaseRange {
	return leaseRange{min(r.least, had), max(r.most, had)}
}

func checkNumbers(v *api.Invalid, in *api.AgentInput, lease leaseRange) {
	for _, n := range []struct {
		field       string
		value       int64
		least, most int64
		what        string
	}{
		{"catchUpWindowSeconds", in.CatchUpWindowSeconds, 0, maxSeconds, "seconds; 0 means no limit"},
		{"jitterSeconds", in.JitterSeconds, 0, 24 * 3600, "seconds"},
		{"maxConcurrent", in.MaxConcurrent, 1, 1000, "sessions"},
		{"priority", in.Priority, MinPriority, MaxPriority, "; higher runs first"},
		{"leaseSeconds", in.LeaseSeconds, lease.least, lease.most, "seconds"},
		{"reclaimDelaySeconds", in.ReclaimDelaySeconds, 0, maxSeconds, "seconds"},
		{"turnTimeoutSeconds", in.TurnTimeoutSeconds, 0, maxSeconds, "seconds; 0 means none"},
		{"stallTimeoutSeconds", in.StallTimeoutSeconds, 0, maxSeconds, "seconds; 0 means none"},
		{"queueTimeoutSeconds", in.QueueTimeoutSeconds, 0, maxSeconds, "seconds; 0 means none"},
		{"maxLapses", in.MaxLapses, 1, 100, "lapses"},
	} {
		if n.value < n.least || n.value > n.most {
			v.Add(n.field, strings.ReplaceAll(fmt.Sprintf("must be %d to %d %s", n.least, n.most, n.what), " ;", ";"))
		}
	}
}
