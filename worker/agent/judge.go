package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// judge decides for one conversation what its policy says to a tool call. It reads
// what the agent wants to do and what the worker's owner set, nothing else.
type judge struct {
	policy      Policy
	permissions Permissions
	dir         string   // the work folder, links resolved
	hidden      []string // links resolved
	sandbox     bool     // commands run in one
	granted     map[Action]bool
}

// deed is one thing that a tool call would do.
type deed struct {
	Action
	covered bool // a sandbox or the work folder keeps it harmless
	derived bool // found in a command line: counts only where a rule speaks of it
	barred  bool // nobody may allow it
}

func newJudge(job Job, sandbox bool) *judge {
	j := &judge{policy: job.Policy, permissions: job.Permissions, dir: resolve(job.Dir), sandbox: sandbox, granted: map[Action]bool{}}
	for _, h := range job.Hidden {
		j.hidden = append(j.hidden, resolve(h))
	}
	return j
}

// verdict is what holds for a tool call: the hardest ruling and the deed it is for.
func (j *judge) verdict(deeds []deed) (Ruling, Action) {
	worst := Allow
	var at Action
	for i, d := range deeds {
		r := j.ruling(d)
		if i == 0 || harder(worst, r) != worst {
			worst, at = harder(worst, r), d.Action
		}
	}
	return worst, at
}

func (j *judge) ruling(d deed) Ruling {
	if d.barred {
		return Deny
	}
	r := j.policy.ruling(d.Action)
	switch {
	case r != "":
	case d.derived, d.covered:
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

// ruled is what rules, or what nobody may lift, say to a tool call before the
// program's own judgment; "" where they leave it to that.
func (j *judge) ruled(deeds []deed) (Ruling, Action) {
	var worst Ruling
	var at Action
	for _, d := range deeds {
		r := j.policy.ruling(d.Action)
		if d.barred {
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
func (j *judge) grant(deeds []deed) {
	for _, d := range deeds {
		if !d.barred {
			j.granted[d.Action] = true
		}
	}
}

// command is what a command line would do, in the sandbox or beyond it.
func (j *judge) command(tool, text, cwd string, beyond bool) []deed {
	inside := j.sandbox && !beyond
	out := []deed{{Action: Action{Shell, text, tool}, covered: inside}}
	parsed := parseShell(text)
	if cwd == "" {
		cwd = j.dir
	}
	for _, name := range parsed.writes {
		d := j.write(tool, filepath.Join(cwd, name))
		if filepath.IsAbs(name) {
			d = j.write(tool, name)
		}
		d.covered = d.covered || inside
		out = append(out, d)
	}
	for _, c := range parsed.commands {
		if c.sideEffect() {
			out = append(out, deed{Action: Action{SideEffects, c.text, tool}, derived: true})
		}
		if c.connects() {
			out = append(out, deed{Action: Action{Network, c.text, tool}, derived: true})
		}
		for _, w := range c.words {
			if filepath.IsAbs(w) && j.hides(resolve(w)) {
				out = append(out, deed{Action: Action{Filesystem, w, tool}, barred: true})
			}
		}
	}
	if beyond && j.sandbox { // out of it means everything that it would keep from
		out = append(out, deed{Action: Action{Filesystem, "/", tool}}, deed{Action: Action{Network, text, tool}})
	}
	return out
}

// write is the change of a file.
func (j *judge) write(tool, name string) deed {
	what, inside := j.path(name)
	return deed{Action: Action{Filesystem, what, tool}, covered: inside && !guarded(what), barred: j.hides(what)}
}

// read is a look at a file or folder; one inside the work folder is nothing to rule over.
func (j *judge) read(tool, name string) []deed {
	what, inside := j.path(name)
	if inside {
		return nil
	}
	return []deed{{Action: Action{Filesystem, what, tool}, covered: j.sandbox, barred: j.hides(what)}}
}

// path is a file's name as rules see it, links resolved: ./x in the work folder.
func (j *judge) path(name string) (what string, inside bool) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(j.dir, name)
	}
	full := resolve(name)
	rel, err := filepath.Rel(j.dir, full)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return full, false
	}
	return "./" + strings.TrimPrefix(filepath.ToSlash(rel), "./"), true
}

func (j *judge) hides(full string) bool {
	return slices.ContainsFunc(j.hidden, func(h string) bool {
		return full == h || strings.HasPrefix(full, strings.TrimSuffix(h, "/")+"/")
	})
}

// guarded are parts of a work folder that programs take orders from; a change there
// is never covered.
func guarded(what string) bool {
	for part := range strings.SplitSeq(strings.ToLower(what), "/") {
		switch part {
		case ".git", ".claude", ".codex", ".mcp.json", ".gitmodules", ".vscode", ".idea", ".husky", ".envrc":
			return true
		}
	}
	return false
}

// resolve is a path without links as far as it exists, also where its end doesn't yet.
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
