package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"stint/worker/agent/cmdline"
)

// judge decides for one conversation what its policy says about a tool call. It considers what
// the agent wants to do and what the worker's owner set, nothing else.
type judge struct {
	policy      Policy
	permissions Permissions
	dir         string   // the work folder, links resolved
	hidden      []string // links resolved
	job         Job
	sandbox     bool // commands run in one
	granted     map[Action]bool
	stood       map[string]bool // tool calls that a standing approval allowed
}

// toolAction is one thing that a tool call would do.
type toolAction struct {
	Action
	contained bool     // a sandbox or the work folder keeps it harmless
	derived   bool     // found in a command line: counts only where a rule covers it
	forbidden bool     // nobody may allow it
	unseen    bool     // what it does isn't known exactly: only a rule for all of its area allows it
	beyond    bool     // it is asked to happen out of the sandbox
	found     *reading // what a command line has of it; nil = it is what it says
}

// rules is what the policy's rules say about it.
func (d toolAction) rules(p Policy) Ruling {
	r := p.ruling(d.Action)
	if d.unseen {
		r = harder(p.match(d.Area, d.What, false), p.against(d.Area, reading{unclear: true}))
	}
	if d.found != nil {
		r = harder(r, p.against(d.Area, *d.found))
	}
	return r
}

func newJudge(job Job, sandbox bool) *judge {
	return &judge{
		policy: job.Policy, permissions: job.Permissions, dir: resolve(job.Dir), hidden: job.hidden(), job: job, sandbox: sandbox, granted: map[Action]bool{}, stood: map[string]bool{},
	}
}

// verdict is what applies to a tool call: the strictest ruling and the action that it is for.
// call is its id, "" where it has none.
func (j *judge) verdict(call string, actions []toolAction) (Ruling, Action) {
	r, at, standing := j.decide(actions)
	if r == Allow && standing.ID != "" {
		j.stand(call, actions, standing)
	}
	return r, at
}

// decide is verdict, with the standing approval that it depends on, if any; nothing is reported.
func (j *judge) decide(actions []toolAction) (worst Ruling, at Action, used Standing) {
	worst = Allow
	standing, stands := j.approved(actions)
	for i, d := range actions {
		r := j.ruling(d)
		if r != Allow && stands && j.open(d) {
			r, used = Allow, standing
		}
		if i == 0 || harder(worst, r) != worst {
			worst, at = harder(worst, r), d.Action
		}
	}
	return worst, at, used
}

// open reports whether no rule refuses an action: then a person may allow it.
func (j *judge) open(d toolAction) bool {
	r := d.rules(j.policy)
	return !d.forbidden && (r == "" || r == Ask)
}

func (j *judge) ruling(d toolAction) Ruling {
	if d.forbidden {
		return Deny
	}
	r := d.rules(j.policy)
	switch {
	case r != "":
	case d.derived, d.contained:
		return Allow
	case j.permissions == Autonomous:
		r = harder(Deny, j.policy.Otherwise)
	default:
		r = j.policy.otherwise()
	}
	if r == Ask && j.granted[d.Action] {
		return Allow
	}
	return j.policy.attended(r)
}

// ruled is what the rules, or fixed limits that nobody may lift, say about a tool call before
// the program's own judgment; "" where they leave it to that.
func (j *judge) ruled(call string, actions []toolAction) (Ruling, Action) {
	var worst Ruling
	var at Action
	standing, stands := j.approved(actions)
	used := false
	for _, d := range actions {
		r := d.rules(j.policy)
		if d.forbidden {
			r = Deny
		}
		if r == Ask && j.granted[d.Action] {
			r = Allow
		}
		if r == Ask && stands {
			r, used = Allow, true
		}
		if harder(worst, r) != worst {
			worst, at = harder(worst, r), d.Action
		}
	}
	if used && worst == Allow {
		j.stand(call, actions, standing)
	}
	return j.policy.attended(worst), at
}

// grant remembers that a person allowed a tool call for the rest of the session.
func (j *judge) grant(actions []toolAction) {
	for _, d := range actions {
		if !d.forbidden {
			j.granted[d.Action] = true
		}
	}
}

// command returns what a command line would do, in the sandbox or outside it.
func (j *judge) command(tool, text, cwd string, beyond bool) []toolAction {
	inside := j.sandbox && !beyond
	out := []toolAction{{Action: Action{Shell, text, tool}, contained: inside}}
	line := cmdline.Read(text)
	for _, name := range line.Writes {
		d := j.redirected(tool, name, or(cwd, j.dir))
		d.contained = d.contained || inside
		out = append(out, d)
	}
	for _, act := range line.Acts {
		if is := sideEffect(act); is != cmdline.No {
			out = append(out, derived(Action{SideEffects, act.Text, tool}, act, is))
		}
		if is := connects(act); is != cmdline.No && !act.Loose {
			out = append(out, derived(Action{Network, act.Text, tool}, act, is))
		}
		for _, w := range act.Words {
			if filepath.IsAbs(w) && j.hides(resolve(w)) {
				out = append(out, toolAction{Action: Action{Filesystem, w, tool}, forbidden: true})
			}
		}
	}
	if line.Unclear != "" {
		out = append(out, toolAction{Action: Action{SideEffects, text, tool}, derived: true, found: &reading{unclear: true}})
		if !inside { // there it has no network
			out = append(out, toolAction{Action: Action{Network, text, tool}, derived: true, found: &reading{unclear: true}})
		}
	}
	if beyond && j.sandbox { // outside it means everything that it would prevent
		out = append(out, toolAction{Action: Action{Filesystem, "/", tool}, beyond: true}, toolAction{Action: Action{Network, text, tool}, beyond: true})
	}
	return out
}

// derived is an action that was found in a command line, surely or perhaps.
func derived(a Action, act cmdline.Act, is cmdline.Answer) toolAction {
	return toolAction{Action: a, derived: true, found: &reading{acts: []cmdline.Act{act}, perhaps: is == cmdline.Maybe}}
}

// redirected is the change of a file that a line writes by >. Its name may not be known.
func (j *judge) redirected(tool, name, cwd string) toolAction {
	full := name
	if !filepath.IsAbs(name) {
		full = filepath.Join(cwd, name)
	}
	d := j.write(tool, full)
	if cmdline.Unknown(name) {
		if cmdline.Unknown(name[:min(len(name), utf8.UTFMax)]) {
			d.What = name // it may lie anywhere
		}
		d.derived, d.forbidden = true, false
		d.found = &reading{acts: []cmdline.Act{{Text: d.What, Words: []string{d.What}}}}
	}
	return d
}

// write is the change of a file.
func (j *judge) write(tool, name string) toolAction {
	what, full, inside := j.path(name)
	return toolAction{Action: Action{Filesystem, what, tool}, contained: inside && !guarded(what), forbidden: j.hides(full)}
}

// read is reading a file or folder; no rules apply inside the work folder, or to what the
// program itself has stored for this conversation.
func (j *judge) read(tool, name string) []toolAction {
	what, full, inside := j.path(name)
	if _, own := j.job.inTalks(full); own {
		return nil
	}
	if dir := j.job.FilesDir; dir != "" && within(full, resolve(dir)) {
		return nil
	}
	if hides := j.hides(full); hides || !inside {
		return []toolAction{{Action: Action{Filesystem, what, tool}, contained: j.sandbox, forbidden: hides}}
	}
	return nil
}

// path is a file's name as rules see it, ./x in the work folder, and in full, links resolved.
func (j *judge) path(name string) (what, full string, inside bool) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(j.dir, name)
	}
	full = resolve(name)
	if !within(full, j.dir) {
		return full, full, false
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(full, j.dir), "/")
	return "./" + filepath.ToSlash(or(rel, ".")), full, true
}

// hides reports whether a path, links resolved, is hidden: the innermost of the hidden paths
// and the work folder decides.
func (j *judge) hides(full string) bool {
	if any, own := j.job.inTalks(full); any && !own {
		return true
	}
	return slices.ContainsFunc(j.hidden, func(h string) bool {
		return within(full, h) && !(within(full, j.dir) && within(j.dir, h))
	})
}

// guarded are parts of a work folder that programs take orders from; no sandbox covers a
// change there.
func guarded(what string) bool {
	for part := range strings.SplitSeq(strings.ToLower(what), "/") {
		switch part {
		case ".git", ".claude", ".codex", ".mcp.json", ".gitmodules", ".vscode", ".idea", ".husky", ".envrc":
			return true
		}
	}
	return false
}

// resolve returns a path with its links resolved where it exists; its end may not exist yet.
func resolve(name string) string { return resolveLinks(name, 0) }

func resolveLinks(name string, links int) string {
	name = filepath.Clean(name)
	rest := ""
	for at := name; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if target, err := os.Readlink(at); err == nil && links < 40 { // to what isn't there yet
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			return resolveLinks(filepath.Join(target, rest), links+1)
		}
		if at == filepath.Dir(at) {
			return name
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// lookPath finds an executable in the PATH of an environment.
func lookPath(env []string, name string) (string, bool) {
	for _, dir := range filepath.SplitList(variable(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, name)
		if st, err := os.Stat(full); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return full, true
		}
	}
	return "", false
}

// variable is the last value of a variable.
func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

const onLinux, onMac = runtime.GOOS == "linux", runtime.GOOS == "darwin"
