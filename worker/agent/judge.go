package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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
}

// toolAction is one thing that a tool call would do.
type toolAction struct {
	Action
	contained bool // a sandbox or the work folder keeps it harmless
	derived   bool // found in a command line: counts only where a rule covers it
	forbidden bool // nobody may allow it
}

func newJudge(job Job, sandbox bool) *judge {
	return &judge{
		policy: job.Policy, permissions: job.Permissions, dir: resolve(job.Dir), hidden: job.hidden(), job: job, sandbox: sandbox, granted: map[Action]bool{},
	}
}

// verdict is what applies to a tool call: the strictest ruling and the action that it is for.
func (j *judge) verdict(actions []toolAction) (Ruling, Action) {
	worst := Allow
	var at Action
	for i, d := range actions {
		r := j.ruling(d)
		if i == 0 || harder(worst, r) != worst {
			worst, at = harder(worst, r), d.Action
		}
	}
	return worst, at
}

func (j *judge) ruling(d toolAction) Ruling {
	if d.forbidden {
		return Deny
	}
	r := j.policy.ruling(d.Action)
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
func (j *judge) ruled(actions []toolAction) (Ruling, Action) {
	var worst Ruling
	var at Action
	for _, d := range actions {
		r := j.policy.ruling(d.Action)
		if d.forbidden {
			r = Deny
		}
		if r == Ask && j.granted[d.Action] {
			r = Allow
		}
		if harder(worst, r) != worst {
			worst, at = harder(worst, r), d.Action
		}
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
	parsed := parseShell(text)
	if cwd == "" {
		cwd = j.dir
	}
	for _, name := range parsed.writes {
		d := j.write(tool, filepath.Join(cwd, name))
		if filepath.IsAbs(name) {
			d = j.write(tool, name)
		}
		d.contained = d.contained || inside
		out = append(out, d)
	}
	for _, c := range parsed.commands {
		if c.sideEffect() {
			out = append(out, toolAction{Action: Action{SideEffects, c.text, tool}, derived: true})
		}
		if c.connects() {
			out = append(out, toolAction{Action: Action{Network, c.text, tool}, derived: true})
		}
		for _, w := range c.words {
			if filepath.IsAbs(w) && j.hides(resolve(w)) {
				out = append(out, toolAction{Action: Action{Filesystem, w, tool}, forbidden: true})
			}
		}
	}
	if beyond && j.sandbox { // outside it means everything that it would prevent
		out = append(out, toolAction{Action: Action{Filesystem, "/", tool}}, toolAction{Action: Action{Network, text, tool}})
	}
	return out
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
