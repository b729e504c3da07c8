package arrivals

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/kballard/go-shellquote"
)

// Dagu reads a file of Dagu, whose path is name. Steps that run one after the other become the
// lines of one command; a graph that branches, and what only Dagu does, is refused.
func Dagu(name string, text []byte, here Here) []Job {
	j := Job{Source: path.Base(name)}
	d := dagu{home: here.Home}
	if err := yaml.Unmarshal(text, &d.top); err != nil {
		j.refuse("It can't be read: %s", firstLine(yaml.FormatError(err, false, false)))
		return []Job{j}
	}
	var order struct {
		Steps yaml.MapSlice `yaml:"steps"`
	}
	if yaml.Unmarshal(text, &order) == nil { // it fails for a list
		d.named = order.Steps
	}
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	j.Agent = Agent{
		Slug: cmp.Or(word(d.top["name"]), base), CatchUp: "none", WorkFolder: path.Dir(name),
		Name: limited(strings.TrimSpace(word(d.top["description"])), 100), Description: "Imported from the Dagu file " + path.Base(name) + ".",
	}
	schedules, why := d.read(&j)
	if why != "" {
		j.refuse("%s", why)
		return []Job{j}
	}
	var jobs []Job
	for _, at := range schedules {
		one := j
		one.Notes = slices.Clone(j.Notes)
		one.Agent.TimeZone = here.Zone
		for _, prefix := range []string{"CRON_TZ=", "TZ="} {
			if zone, ok := strings.CutPrefix(at, prefix); ok {
				one.Agent.TimeZone, at, _ = strings.Cut(zone, " ")
			}
		}
		one.Agent.Schedule = strings.Join(strings.Fields(at), " ")
		if why := unfit(one.Agent.Schedule, one.Agent.TimeZone, here); why != "" {
			one.refuse("%s", why)
		}
		jobs = append(jobs, one)
	}
	if len(schedules) == 0 {
		j.note("It has no schedule, here either: start it by hand.")
		jobs = append(jobs, j)
	}
	return jobs
}

type dagu struct {
	home  string
	top   map[string]any
	named yaml.MapSlice // the steps in their order, where they are no list
}

// What of a file, and of a step, comes; what is left out without harm and said; all else is
// refused.
var (
	daguKnown     = []string{"name", "description", "schedule", "env", "params", "workingDir", "timeoutSec", "steps", "type", "tags", "labels", "group", "maxActiveRuns", "maxActiveSteps"}
	daguLost      = []string{"mailOn", "smtp", "errorMail", "infoMail", "histRetentionDays", "logDir", "logOutput", "queue", "restartWaitSec", "delaySec", "skipIfSuccessful", "maxCleanUpTimeSec", "retryPolicy"}
	daguStepKnown = []string{"name", "id", "description", "command", "args", "script", "depends", "dir", "workingDir", "continueOn"}
	daguStepLost  = []string{"retryPolicy", "mailOnError", "signalOnStop", "stdout", "stderr"}
)

// read makes the agent of the file and returns its times.
func (d dagu) read(j *Job) (schedules []string, refused string) {
	a := &j.Agent
	if refused = d.fits(d.top, daguKnown, daguLost, "The file", j); refused != "" {
		return nil, refused
	}
	if named := word(d.top["workingDir"]); named != "" {
		dir, why := d.folder(named)
		if why != "" {
			return nil, "Its workingDir " + why + "."
		}
		if !path.IsAbs(dir) {
			dir = path.Join(a.WorkFolder, dir)
		}
		a.WorkFolder = dir
	}
	if seconds, ok := d.top["timeoutSec"].(uint64); ok {
		a.Timeout = int64(min(seconds, 1<<31)) //nolint:gosec // it is small by then
	}
	env, refused := d.environment()
	if refused != "" {
		return nil, refused
	}
	lines, refused := d.steps(j)
	if refused != "" {
		return nil, refused
	}
	a.Command = []string{"/bin/sh", "-ec", strings.Join(lines, "\n")}
	j.sets("file", env)
	switch at := d.top["schedule"].(type) {
	case nil:
	case string:
		schedules = []string{at}
	case []any:
		for _, one := range at {
			text, ok := one.(string)
			if !ok {
				return nil, "A schedule of it is no text."
			}
			schedules = append(schedules, text)
		}
	default:
		return nil, "It has times to start, stop or restart at; an agent has only times to start."
	}
	return schedules, ""
}

// fits refuses what changes what runs and has no place here, and notes what gets lost.
func (d dagu) fits(of map[string]any, known, lost []string, what string, j *Job) (refused string) {
	var gone []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		switch {
		case slices.Contains(known, key):
		case slices.Contains(lost, key):
			gone = append(gone, key)
		default:
			return fmt.Sprintf("%s has %s, which no agent has. An agent can run the file with Dagu itself: dagu start FILE.", what, key)
		}
	}
	if len(gone) > 0 {
		j.note("%s has settings that don't come: %s.", what, strings.Join(gone, ", "))
	}
	return ""
}

// environment is what the file sets, and the defaults of its named parameters.
func (d dagu) environment() (env []string, refused string) {
	add := func(key string, value any) {
		text := word(value)
		if strings.ContainsAny(text, "`$") {
			refused = fmt.Sprintf("It computes %s (%s): let the command do that.", key, text)
		}
		env = append(env, key+"="+text)
	}
	for _, field := range []string{"env", "params"} {
		switch set := d.top[field].(type) {
		case nil:
		case string:
			words, err := shellquote.Split(set)
			if err != nil {
				return nil, fmt.Sprintf("Its %s can't be read.", field)
			}
			for _, one := range words {
				key, value, ok := strings.Cut(one, "=")
				if !ok {
					return nil, "It has parameters without names, which no agent has."
				}
				add(key, value)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(set)) {
				add(key, set[key])
			}
		case []any:
			for _, one := range set {
				switch one := one.(type) {
				case map[string]any:
					for _, key := range slices.Sorted(maps.Keys(one)) {
						add(key, one[key])
					}
				case string:
					key, value, ok := strings.Cut(one, "=")
					if !ok {
						return nil, "It has parameters without names, which no agent has."
					}
					add(key, value)
				}
			}
		default:
			return nil, fmt.Sprintf("Its %s can't be read.", field)
		}
	}
	return env, refused
}

// steps are the lines of the command.
func (d dagu) steps(j *Job) (lines []string, refused string) {
	steps, refused := d.ordered()
	if refused != "" {
		return nil, refused
	}
	if len(steps) == 0 {
		return nil, "It has no steps."
	}
	before := ""
	depends := false
	for i, s := range steps {
		name := cmp.Or(word(s["name"]), word(s["id"]), fmt.Sprintf("step %d", i+1))
		if refused = d.fits(s, daguStepKnown, daguStepLost, "The step "+name, j); refused != "" {
			return nil, refused
		}
		on := texts(s["depends"])
		if len(on) > 1 || len(on) == 1 && on[0] != before {
			return nil, fmt.Sprintf("The step %s depends on more than the one above it: an agent's command runs line by line.", name)
		}
		depends = depends || len(on) > 0
		if i > 0 && len(on) == 0 && (depends || word(d.top["type"]) == "graph") {
			return nil, fmt.Sprintf("The step %s runs beside others: an agent's command runs line by line.", name)
		}
		line, why := d.stepLine(s)
		if why != "" {
			return nil, fmt.Sprintf("The step %s %s.", name, why)
		}
		if len(on) == 0 && i == 1 {
			j.note("Its steps run one after the other, in the file's order.")
		}
		lines = append(lines, line)
		before = name
	}
	if strings.Contains(strings.Join(lines, "\n"), "${DAG_") {
		return nil, "It uses variables that only Dagu sets (DAG_…)."
	}
	j.Agent.Slug = cmp.Or(j.Agent.Slug, called(lines[0]))
	return lines, ""
}

// ordered are the steps as a list, in the file's order.
func (d dagu) ordered() (steps []map[string]any, refused string) {
	list, ok := d.top["steps"].([]any)
	if !ok {
		bodies, _ := d.top["steps"].(map[string]any)
		for _, item := range d.named {
			name := word(item.Key)
			s, ok := bodies[name].(map[string]any)
			if !ok {
				return nil, "A step of it can't be read."
			}
			s["name"] = cmp.Or(word(s["name"]), name)
			steps = append(steps, s)
		}
		return steps, ""
	}
	for _, one := range list {
		switch one := one.(type) {
		case string:
			steps = append(steps, map[string]any{"command": one})
		case map[string]any:
			steps = append(steps, one)
		default:
			return nil, "It has steps that run beside each other: an agent's command runs line by line."
		}
	}
	return steps, ""
}

// folder is a folder as Dagu finds it: ~ and $HOME are whose the files are, and other variables
// can't be told here. refused says why in words after what names it.
func (d dagu) folder(named string) (dir, refused string) {
	for _, home := range []string{"~", "$HOME", "${HOME}"} {
		rest, ok := strings.CutPrefix(named, home)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		if d.home == "" {
			return "", "is in a home folder (" + named + ") that isn't known here: write its whole path"
		}
		named = d.home + rest
		break
	}
	switch {
	case strings.HasPrefix(named, "~"):
		return "", "is in somebody's home folder (" + named + "): write its whole path"
	case strings.ContainsAny(named, "$`"):
		return "", "has a variable (" + named + "), which only Dagu knows: write its whole path"
	}
	return named, ""
}

// stepLine is a step as lines of a shell that ends at the first failure.
func (d dagu) stepLine(s map[string]any) (line, refused string) {
	switch command := s["command"].(type) {
	case nil:
	case string:
		line = strings.TrimSpace(command)
	case []any:
		line = shellquote.Join(texts(command)...)
	default:
		return "", "has a command that can't be read"
	}
	if args := texts(s["args"]); len(args) > 0 {
		line += " " + shellquote.Join(args...)
	}
	if script := word(s["script"]); script != "" {
		if line != "" && line != "sh" && line != "bash" {
			return "", "gives its script to " + line + ", which is no shell: put it into a file"
		}
		line = strings.TrimSpace(script)
	}
	if line == "" {
		return "", "has no command"
	}
	if named := cmp.Or(word(s["dir"]), word(s["workingDir"])); named != "" {
		dir, why := d.folder(named)
		if why != "" {
			return "", "works in a folder that " + why
		}
		line = "cd " + shellquote.Join(dir) + "\n" + line
	}
	switch on := s["continueOn"].(type) {
	case nil:
		return "(\n" + line + "\n)", ""
	case string:
		if on == "failed" || on == "failure" {
			return mayFail(line), ""
		}
	case map[string]any:
		if failure, ok := on["failure"].(bool); len(on) == 1 && ok && failure {
			return mayFail(line), ""
		}
	}
	return "", "goes on under conditions (continueOn) that no agent knows"
}

// mayFail runs lines in a shell of their own: in this one -e would be off for all of them.
func mayFail(lines string) string {
	return shellquote.Join("/bin/sh", "-ec", lines) + " || true"
}

// word is a scalar as text.
func word(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// texts is a scalar or a list as texts.
func texts(v any) (out []string) {
	switch v := v.(type) {
	case nil:
	case []any:
		for _, one := range v {
			out = append(out, word(one))
		}
	default:
		out = []string{word(v)}
	}
	return out
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
