package proc

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// passed are the worker's own variables that every agent gets: where programs are, whose home
// it is, language, time zone and terminal. contract 10.4
//
// TMPDIR is not among them: it may lead to a folder of the worker's alone, and programs know
// the system's default without it. An owner who wants it names it.
var passed = []string{"PATH", "HOME", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR"}

// defaultPath is the PATH of an agent whose worker has none.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// ownPrefix begins the names of Stint's own settings, the tokens among them. The worker's own
// never reach an agent; only what the worker sets on purpose does.
const ownPrefix = "STINT_"

// Env builds the exact environment of an agent: the passed variables and the named extras from
// source (the worker's os.Environ, or an env file's lines), with set on top. Nothing else in
// source gets through. The result is sorted by name.
//
// An error names an extra or a variable that can't be one.
func Env(source, named []string, set map[string]string) ([]string, error) {
	for _, name := range named {
		if err := checkName(name); err != nil {
			return nil, err
		}
		if strings.HasPrefix(name, ownPrefix) {
			return nil, fmt.Errorf("environment variable %s is the worker's own and can't be passed on", name)
		}
	}
	env := map[string]string{"PATH": defaultPath}
	for _, assignment := range source {
		name, value, ok := strings.Cut(assignment, "=")
		if ok && (slices.Contains(named, name) || slices.ContainsFunc(passed, func(p string) bool { return matches(p, name) })) {
			env[name] = value
		}
	}
	for name, value := range set {
		if err := checkName(name); err != nil {
			return nil, err
		}
		if strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("environment variable %s has a NUL in its value", name)
		}
		env[name] = value
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list, nil
}

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("%q can't be the name of an environment variable", name)
	}
	return nil
}

// LookPath finds the executable that name means for an agent: with a slash in it, a path,
// relative to dir unless absolute; else the first executable of that name in env's PATH.
// Relative entries of PATH are skipped, since the work folder holds what others wrote.
//
// The error is exec.ErrNotFound, fs.ErrNotExist or fs.ErrPermission.
func LookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", &exec.Error{Name: name, Err: err}
		}
		return path, nil
	}
	found := exec.ErrNotFound
	if name == "" {
		return "", &exec.Error{Name: name, Err: found}
	}
	for _, entry := range filepath.SplitList(lastValue(env, "PATH")) {
		if !filepath.IsAbs(entry) {
			continue
		}
		path := filepath.Join(entry, name)
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode()&0o111 != 0 {
			return path, nil
		}
		found = fs.ErrPermission
	}
	return "", &exec.Error{Name: name, Err: found}
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir(), info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

func lastValue(env []string, name string) string {
	value := ""
	for _, assignment := range env {
		if v, ok := strings.CutPrefix(assignment, name+"="); ok {
			value = v
		}
	}
	return value
}
