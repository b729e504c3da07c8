package agent

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// claudeOthers are patterns for the conversations other than this one, including later ones:
// rules have no exceptions, so there is a pattern for each way to differ.
func claudeOthers(job Job) (out []string) {
	if job.talks == "" {
		return nil
	}
	for _, pattern := range claudeOtherNames(or(job.Session, job.Begin)) {
		out = append(out, job.talks+"/*/"+pattern)
	}
	return out
}

// claudeInNames are the characters of names for which there are patterns. Small letters stand
// for both.
const claudeInNames = "0123456789abcdefghijklmnopqrstuvwxyz_.-"

// claudeOtherNames are patterns for the names that differ from one in a character: as many as it
// has. The program knows no negated classes.
func claudeOtherNames(own string) (out []string) {
	for i := range own {
		out = append(out, fmt.Sprintf("%s[%s]*", own[:i], strings.ReplaceAll(claudeInNames, strings.ToLower(own[i:i+1]), "")))
	}
	return out
}

// claudeFew is how many names in a folder are listed one by one.
const claudeFew = 32

// claudeBeside are patterns for what lies in a hidden folder beside the way to the work folder.
// Their number doesn't grow with that of the folders beside it: the program gets them as an
// argument, whose length is limited, and there may be thousands of worktrees.
func claudeBeside(path, dir string) (out []string) {
	if path == dir {
		return nil
	}
	if !within(dir, path) {
		return []string{path}
	}
	own, _, _ := strings.Cut(strings.TrimPrefix(dir, strings.TrimSuffix(path, "/")+"/"), "/")
	inside := contents(path)
	var patterns []string
	if len(inside) > claudeFew && plainName(own) {
		patterns = append(claudeOtherNames(own), own+"["+claudeInNames+"]*")
	}
	for _, other := range inside {
		name := filepath.Base(other)
		if name != own && (patterns == nil || !claudeDiffers(name, own)) {
			out = append(out, other)
		}
	}
	for _, pattern := range patterns {
		out = append(out, filepath.Join(path, pattern))
	}
	return append(out, claudeBeside(filepath.Join(path, own), dir)...)
}

func plainName(name string) bool {
	return strings.Trim(strings.ToLower(name), claudeInNames) == ""
}

// claudeDiffers reports whether the patterns for names other than own fit a name.
func claudeDiffers(name, own string) bool {
	name, own = strings.ToLower(name), strings.ToLower(own)
	for i := range len(name) {
		if i == len(own) || name[i] != own[i] {
			return strings.IndexByte(claudeInNames, name[i]) >= 0
		}
	}
	return false // it is the beginning of own
}

// claudeSandbox reports whether Claude Code can confine commands here. On Linux it needs two
// programs, which Debian calls bubblewrap and socat.
func claudeSandbox(job Job) bool {
	if job.boundless() {
		return false
	}
	if onMac {
		return true
	}
	_, bwrap := lookPath(job.Env, "bwrap")
	_, socat := lookPath(job.Env, "socat")
	return onLinux && bwrap && socat
}

// claudeSettings are the settings that win over every file of the user and of the work folder.
// The policy's rules aren't among them: the program asks about each tool call before it runs
// (see claudeTalk.hook), whatever its settings allow.
func claudeSettings(job Job) map[string]any {
	hidden, parts, rules, refused, opened := job.hidden(), []string{}, []string{}, []string{}, []string{}
	for _, path := range hidden {
		parts = append(parts, beside(path, resolve(job.Dir))...)
		rules = append(rules, claudeBeside(path, resolve(job.Dir))...)
	}
	// These rules have no exceptions. They keep out searches of enclosing folders; a call that
	// names a hidden file is refused earlier, see claudeTalk.hook.
	for _, part := range rules {
		refused = append(refused, "Read(/"+part+")", "Read(/"+part+"/**)", "Edit(/"+part+")", "Edit(/"+part+"/**)")
	}
	for _, pattern := range claudeOthers(job) {
		refused = append(refused, "Read(/"+pattern+")", "Edit(/"+pattern+")")
	}
	out := map[string]any{
		"autoMemoryEnabled": job.Uses.Settings, // one session's notes would be orders to the next
		"permissions":       map[string]any{"deny": refused, "disableBypassPermissionsMode": "disable"},
	}
	if job.Uses.Provider && !job.Uses.Settings {
		maps.Copy(out, claudeProvider(job.Env).rest)
	}
	if !claudeSandbox(job) {
		out["sandbox"] = map[string]any{"enabled": false}
		return out
	}
	keys := make([]map[string]any, len(claudeKeys))
	for i, name := range claudeKeys {
		keys[i] = map[string]any{"name": name, "mode": "deny"}
	}
	if job.Uses.Skills && !job.Uses.Settings { // their scripts are reached by links there
		opened = append(opened, filepath.Join(job.StateDir, "skills"))
	}
	if job.Policy.open(Filesystem) { // then a hidden folder isn't opened again even for what may be written
		hidden = parts
	}
	// A folder that can't be read is an empty one of its own within the sandbox, but for the work
	// folder in it: what is written there reaches nothing. Refused in so many words, the work folder
	// would be refused with it.
	unwritten := slices.DeleteFunc(slices.Clone(hidden), func(path string) bool { return within(resolve(job.Dir), path) })
	files := map[string]any{"denyRead": hidden, "denyWrite": unwritten}
	if job.talks != "" {
		files["denyRead"] = append(slices.Clone(hidden), job.talks)
		opened = append(opened, claudeOwn(job))
	}
	if len(opened) > 0 {
		files["allowRead"] = opened
	}
	switch {
	case job.Policy.shut(Filesystem):
		files["denyWrite"] = append([]string{resolve(job.Dir)}, hidden...)
	case job.Policy.open(Filesystem):
		files["allowWrite"] = []string{"/"}
	}
	network := map[string]any{"strictAllowlist": job.Permissions == Autonomous || job.Policy.Unattended || job.Policy.shut(Network)}
	if job.Policy.open(Network) {
		network["allowedDomains"] = []string{"*"}
	}
	out["sandbox"] = map[string]any{
		"enabled": true, "failIfUnavailable": true, "autoAllowBashIfSandboxed": true,
		"allowUnsandboxedCommands": job.Permissions != Autonomous,
		"filesystem":               files, "network": network,
		"credentials": map[string]any{"envVars": keys},
	}
	return out
}

// claudeUnheld says which parts of the policy nothing enforces here.
func claudeUnheld(job Job) []string {
	if claudeSandbox(job) {
		return nil
	}
	if job.boundless() {
		return []string{"Everything is allowed, so Claude Code runs commands without its sandbox: they can read the worker's own files and the model's key."}
	}
	missing := "Claude Code has no sandbox here: it needs bubblewrap and socat in the agent's PATH. "
	if !onLinux {
		missing = "Claude Code has no sandbox on this system. "
	}
	out := []string{missing + "A command that is allowed can read and write whatever the worker's user can, the worker's own files and the model's key included."}
	if job.Policy.shut(Network) {
		out = append(out, "The refusal of the network holds for Claude Code's web tools and the usual programs, not for every command.")
	}
	return out
}
