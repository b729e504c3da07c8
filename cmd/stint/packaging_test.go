package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"

	"stint/api"
	"stint/server"
)

// The packages' units are those that the program itself writes. UPDATE_PACKAGING=1 writes them.
func TestPackaging_UnitsAreTheProgramsOwn(t *testing.T) {
	for dir, s := range map[string]service{"system": packaged(true), "user": packaged(false)} {
		for name, text := range s.units() {
			path := filepath.Join("../../packaging/systemd", dir, name)
			if os.Getenv("UPDATE_PACKAGING") != "" {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // units are read by everybody
					t.Fatal(err)
				}
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("%s isn't what the program writes (%v): UPDATE_PACKAGING=1 go test -run TestPackaging ./cmd/stint", path, err)
			}
		}
	}
}

// The packages' file of settings lists each setting, each as it is without the file.
func TestPackaging_TheFileOfSettingsListsAll(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "")
	var b strings.Builder
	b.WriteString("# Settings of Stint, for the server, for workers and for commands. Variables and flags win over them; stint config show\n" +
		"# --origin says what holds. A person's own file, ~/.config/stint/config.toml, is read in place of this one. docs/configuration.md\n" +
		"# says what each means; what is shown here is what holds without it.\n")
	section := ""
	for _, s := range settings() {
		in, name, _ := cutLast(s.key)
		if in != section {
			section = in
			b.WriteString("\n[" + in + "]\n")
		}
		b.WriteString("# " + name + " = " + s.example() + "\n")
	}
	text := b.String()
	path := "../../packaging/config.toml"
	if os.Getenv("UPDATE_PACKAGING") != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // settings are read by everybody
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s doesn't list the settings (%v): UPDATE_PACKAGING=1 go test -run TestPackaging ./cmd/stint", path, err)
	}
	// Uncommented, with values for those that have none, it is a file that is taken.
	filled := strings.NewReplacer("# data_dir", "data_dir", "\n# ", "\n").Replace(text)
	filled = strings.Replace(filled, "# Settings", "\n#", 1)
	lines := strings.Split(filled, "\n")
	for i, line := range lines {
		if !strings.Contains(line, " = ") && !strings.HasPrefix(line, "[") {
			lines[i] = ""
		}
	}
	if file, err := parseSettings(secretFile(t), []byte(strings.Join(lines, "\n"))); err != nil || len(file.values) != len(settings()) {
		t.Errorf("as it is shown it isn't taken: %d values, %v", len(file.values), err)
	}
}

// secretFile is a file that its owner alone can read.
func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// example is what holds without a setting, as the file has it.
func (s setting) example() string {
	switch s.kind {
	case kindNumber, kindSwitch:
		return s.otherwise
	case kindList:
		return "[]"
	case kindLength:
		if _, err := api.ParseLength(s.otherwise); err != nil {
			return `"0s" # ` + s.otherwise
		}
	case kindText:
		if strings.Contains(s.otherwise, " ") || strings.HasPrefix(s.otherwise, "/") {
			words := map[string]string{"data_dir": "$XDG_DATA_HOME/stint", "worker.state_dir": "$XDG_STATE_HOME/stint/worker"}
			return `"" # ` + cmp.Or(words[s.key], s.otherwise)
		}
	}
	return strconv.Quote(s.otherwise)
}

// The image has a user without rights, one volume and a check by the program itself, and calls
// the program by commands that there are.
func TestPackaging_Dockerfile(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var last map[string][]string // the instructions of the last stage
	for _, line := range strings.Split(strings.ReplaceAll(string(text), "\\\n", " "), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
			continue
		case !regexp.MustCompile(`^[A-Z]+$`).MatchString(word):
			t.Fatalf("%q is no instruction", line)
		case word == "FROM":
			last = map[string][]string{}
		}
		last[word] = append(last[word], rest)
	}
	for word, want := range map[string]string{"FROM": "scratch", "USER": "65532:65532", "VOLUME": "/data", "EXPOSE": "7717", "STOPSIGNAL": "SIGTERM"} {
		if got := last[word]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %s", word, got, want)
		}
	}
	c := newCLI()
	for _, word := range []string{"HEALTHCHECK", "CMD"} {
		_, list, _ := strings.Cut(last[word][0]+" ", "[")
		var args []string
		if err := json.Unmarshal([]byte("["+strings.TrimSpace(list)), &args); err != nil {
			t.Errorf("%s isn't the form without a shell, which the image doesn't have: %v", word, err)
			continue
		}
		args = slices.DeleteFunc(args, func(arg string) bool { return arg == "/bin/stint" || strings.HasPrefix(arg, "-") })
		if of, rest, err := newRoot(c).Find(args); err != nil || len(rest) > 0 || !of.Runnable() {
			t.Errorf("%s runs %q, which is no command", word, args)
		}
	}
	for _, pair := range strings.Fields(last["ENV"][0]) {
		if name, _, _ := strings.Cut(pair, "="); name != "HOME" && !isVariable(name) {
			t.Errorf("the image sets %s, which nothing reads", name)
		}
	}
}

func isVariable(name string) bool {
	return slices.ContainsFunc(settings(), func(s setting) bool { return s.variable == name })
}

// The example for compose sets what there is, and its networks and volumes fit.
func TestPackaging_Compose(t *testing.T) {
	text, err := os.ReadFile("../../docs/examples/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
			Networks    map[string]struct {
				Address string `yaml:"ipv4_address"`
			} `yaml:"networks"`
		} `yaml:"services"`
		Volumes  map[string]any `yaml:"volumes"`
		Networks map[string]any `yaml:"networks"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	stint := file.Services["stint"]
	for name := range stint.Environment {
		if !isVariable(name) {
			t.Errorf("it sets %s, which nothing reads", name)
		}
	}
	proxy := file.Services["proxy"].Networks["inside"].Address
	public, err := server.ParsePublic(stint.Environment["STINT_BASE_URL"], nil, []string{stint.Environment["STINT_TRUSTED_PROXIES"]})
	if err == nil {
		err = server.CheckAddr("0.0.0.0:7717", public)
	}
	if err != nil || proxy == "" || proxy != stint.Environment["STINT_TRUSTED_PROXIES"] {
		t.Errorf("a server doesn't start so: %v, the proxy is %q", err, proxy)
	}
}
