package setup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Variables reads the agent's env files: lines of NAME=value, taken literally except for one
// pair of quotation marks around the value; blank lines and those that begin with # are
// skipped. Later files win. All of it counts as secret: nobody else may be able to read the
// files.
func (a Agent) Variables() (map[string]string, error) {
	all := map[string]string{}
	for _, path := range a.EnvFiles {
		content, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("read the variables: %w", err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("%s: other users can read it; run chmod 600 on it", path)
		}
		set, err := variables(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		maps.Copy(all, set)
	}
	return all, nil
}

// EnvFiles are the files whose variables agents get according to any settings in some
// directories of Stint's, whichever worker reads them. Settings that can't be read name none;
// those with a mistake elsewhere do.
func EnvFiles(dirs []string) (out []string) {
	home, _ := os.UserHomeDir()
	seen := map[Files]bool{}
	for _, dir := range dirs {
		for _, files := range []Files{Files(dir), Find(dir)} {
			if seen[files] {
				continue
			}
			seen[files] = true
			slugs, _ := files.Slugs()
			for _, slug := range slugs {
				content, err := os.ReadFile(files.Path(slug))
				var a Agent
				if err != nil || toml.Unmarshal(content, &a) != nil && len(a.EnvFiles) == 0 {
					continue
				}
				a, _ = Agent{EnvFiles: a.EnvFiles}.complete(home)
				out = append(out, a.EnvFiles...)
			}
		}
	}
	return slices.DeleteFunc(out, func(path string) bool { return !filepath.IsAbs(path) })
}

func variables(text string) (map[string]string, error) {
	set := map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(strings.TrimPrefix(name, "export "))
		switch {
		case !ok || name == "" || strings.ContainsAny(name, " \t"):
			return nil, fmt.Errorf("line %d is not NAME=value", number) // the line may be a secret: it isn't shown
		case strings.HasPrefix(name, "STINT_"):
			return nil, fmt.Errorf("line %d: %s is the worker's own and can't be set", number, name)
		case strings.ContainsRune(value, 0):
			return nil, fmt.Errorf("line %d: the value of %s holds a NUL", number, name)
		}
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		set[name] = value
	}
	return set, nil
}
