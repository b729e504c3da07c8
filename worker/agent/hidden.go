package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hidden are the paths that a job hides, links resolved, none within another. A path is hidden
// with everything in it, including what is put there later; only the work folder stays open if
// it lies within.
func (j Job) hidden() []string {
	var all, out []string
	for _, path := range j.Hidden {
		all = append(all, resolve(path))
	}
	slices.Sort(all)
	dir := resolve(j.Dir)
	for _, path := range slices.Compact(all) {
		switch {
		case !within(path, dir) && slices.ContainsFunc(out, func(other string) bool { return within(path, other) }):
		case path == dir: // the owner has the agent work right there
			out = append(out, contents(path)...)
		default:
			out = append(out, path)
		}
	}
	return out
}

// within reports whether a path is another or lies in it. Both are clean.
func within(path, other string) bool {
	return path == other || strings.HasPrefix(path, strings.TrimSuffix(other, "/")+"/")
}

// contents are the paths of what lies in a folder now.
func contents(dir string) (out []string) {
	entries, _ := os.ReadDir(dir) // one that can't be read shows nobody anything
	for _, e := range entries {
		out = append(out, filepath.Join(dir, e.Name()))
	}
	return out
}

// beside is a path, or, if something to keep lies in it, what else lies there now: for where a
// hidden folder can't be opened in part.
func beside(path string, remaining ...string) []string {
	if slices.Contains(remaining, path) {
		return nil
	}
	if !slices.ContainsFunc(remaining, func(k string) bool { return within(k, path) }) {
		return []string{path}
	}
	var out []string
	for _, inner := range contents(path) {
		out = append(out, beside(inner, remaining...)...)
	}
	return out
}

// private are the agent programs' own files that none of an agent's tools needs to read:
// sign-ins, settings and conversations of the user who runs them. Each program reads its own
// outside its tools' sandbox.
func private(env []string) []string {
	var out []string
	if home := variable(env, "HOME"); home != "" {
		out = append(out, filepath.Join(home, ".claude.json"))
	}
	if dir := claudeHome(env); dir != "" {
		for _, name := range []string{".credentials.json", ".claude.json", ".config.json", "settings.json", "settings.local.json", "history.jsonl", "backups", "projects", "file-history", "paste-cache"} {
			out = append(out, filepath.Join(dir, name))
		}
	}
	if dir := codexHome(env); dir != "" {
		out = append(out, dir)
	}
	return append(out, keysOfOthers(env)...)
}

// keysOfOthers are the files in which the programs that speak ACP keep their sign-ins.
func keysOfOthers(env []string) (out []string) {
	home := variable(env, "HOME")
	if home == "" {
		return nil
	}
	data := or(variable(env, "XDG_DATA_HOME"), filepath.Join(home, ".local", "share"))
	config := or(variable(env, "XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	for _, name := range []string{"auth.json", "mcp-auth.json"} {
		out = append(out, filepath.Join(data, "opencode", name))
	}
	for _, name := range []string{".gemini/oauth_creds.json", ".gemini/.env", ".qwen/oauth_creds.json", ".qwen/.env", ".copilot/config.json", ".kimi/credentials", ".cursor/auth.json"} {
		out = append(out, filepath.Join(home, name))
	}
	return append(out, filepath.Join(config, "goose", "secrets.yaml"), filepath.Join(config, "cursor", "auth.json"))
}
