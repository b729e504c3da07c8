package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stint/api"
	"stint/engine"
	"stint/worker/places"
)

// setting is one thing that a flag, a variable or the file of settings can set, in this order.
type setting struct {
	key       string // in the file
	variable  string // "" = none
	flag      string // "" = none
	command   string // whose flag it is, where it has no variable
	kind      settingKind
	secret    bool
	otherwise string // what holds when nothing sets it, for people
}

// settingKind is how a value is written in the file.
type settingKind string

const (
	kindText   settingKind = "a text"
	kindNumber settingKind = "a number"
	kindSwitch settingKind = "true or false"
	kindList   settingKind = "a list of texts"
	kindLength settingKind = "a length of time, as a text such as '30s', '15m' or '2h'"
)

const workerRun = "stint worker run"

// settings lists all of them, in the order in which they are shown.
func settings() []setting {
	all := []setting{
		{key: "data_dir", variable: "STINT_DATA_DIR", flag: "data-dir", kind: kindText, otherwise: places.Data()},
		{key: "log.level", variable: "STINT_LOG_LEVEL", kind: kindText, otherwise: "warn for up, else info"},
		{key: "log.format", variable: "STINT_LOG_FORMAT", kind: kindText, otherwise: "text on a terminal, else json"},
		{key: "server.addr", variable: "STINT_ADDR", flag: "addr", kind: kindText, otherwise: defaultAddr},
		{key: "server.base_url", variable: "STINT_BASE_URL", flag: "base-url", kind: kindText},
		{key: "server.allowed_hosts", variable: "STINT_ALLOWED_HOSTS", flag: "allowed-host", kind: kindList},
		{key: "server.trusted_proxies", variable: "STINT_TRUSTED_PROXIES", flag: "trusted-proxy", kind: kindList},
		{key: "server.webhooks_inside", variable: "STINT_WEBHOOKS_INSIDE", flag: "webhooks-inside", kind: kindSwitch, otherwise: "false"},
		{key: "server.register_programs", variable: "STINT_REGISTER_PROGRAMS", flag: "register-programs", kind: kindSwitch, otherwise: "false"},
		{key: "server.metrics_addr", variable: "STINT_METRICS_ADDR", flag: "metrics-addr", kind: kindText},
		{key: "server.metrics_token", variable: "STINT_METRICS_TOKEN", kind: kindText, secret: true},
		{key: "oidc.issuer", variable: "STINT_OIDC_ISSUER", flag: "oidc-issuer", kind: kindText},
		{key: "oidc.client_id", variable: "STINT_OIDC_CLIENT_ID", flag: "oidc-client-id", kind: kindText},
		{key: "oidc.client_secret_file", variable: "STINT_OIDC_CLIENT_SECRET_FILE", flag: "oidc-client-secret-file", kind: kindText},
		{key: "oidc.name", variable: "STINT_OIDC_NAME", flag: "oidc-name", kind: kindText},
		{key: "oidc.viewers", variable: "STINT_OIDC_VIEWERS", flag: "oidc-viewers", kind: kindList},
		{key: "oidc.inside", variable: "STINT_OIDC_INSIDE", flag: "oidc-inside", kind: kindSwitch, otherwise: "false"},
		{key: "backup.every", variable: "STINT_BACKUP_EVERY", flag: "backup-every", kind: kindLength, otherwise: "never"},
		{key: "backup.keep", variable: "STINT_BACKUP_KEEP", flag: "backup-keep", kind: kindNumber, otherwise: strconv.Itoa(defaultKeep)},
		{key: "backup.dir", variable: "STINT_BACKUP_DIR", flag: "backup-dir", kind: kindText, otherwise: "backups in the data directory"},
	}
	kept := engine.DefaultRetention()
	for _, k := range engine.RetentionKinds {
		all = append(all, setting{key: "retention." + k.Name, variable: retentionVariable(k.Name), flag: "retention-" + k.Name, kind: kindText, otherwise: spoken(k.In(&kept).Age)})
	}
	for _, l := range limitTable {
		all = append(all, setting{key: "limits." + keyOf(l.name), variable: l.name, kind: kindNumber, otherwise: l.byDefault()})
	}
	normal := defaultClocks()
	for _, k := range clockTable {
		all = append(all, setting{key: "clocks." + keyOf(k.name), variable: k.name, kind: kindLength, otherwise: brief(*k.in(&normal))})
	}
	return append(all,
		setting{key: "worker.name", flag: "name", command: workerRun, kind: kindText, otherwise: "made of random letters"},
		setting{key: "worker.agents", flag: "agent", command: workerRun, kind: kindList, otherwise: "all of yours"},
		setting{key: "worker.slots", flag: "slots", command: workerRun, kind: kindNumber, otherwise: "4"},
		setting{key: "worker.labels", flag: "label", command: workerRun, kind: kindList},
		setting{key: "worker.env", flag: "env", command: workerRun, kind: kindList},
		setting{key: "worker.state_dir", flag: "state-dir", command: workerRun, kind: kindText, otherwise: filepath.Join(places.State(), "worker")},
		setting{key: "worker.shared_folders", flag: "shared-folders", command: workerRun, kind: kindSwitch, otherwise: "false"},
		setting{key: "worker.retries", flag: "retries", command: workerRun, kind: kindNumber, otherwise: "0"},
		setting{key: "worker.min_free_mib", variable: "STINT_MIN_FREE_MIB", kind: kindNumber, otherwise: strconv.Itoa(minFreeMiB)},
		setting{key: "worker.workspaces_age", variable: workspacesAge, kind: kindText, otherwise: spoken(keepFor)},
		setting{key: "worker.workspaces_size", variable: workspacesSize, kind: kindText},
		setting{key: "worker.on_restart", flag: "on-restart", command: workerRun, kind: kindText, otherwise: restartRespawns},
		setting{key: "client.url", variable: "STINT_URL", kind: kindText, otherwise: "that of the context in use"},
		setting{key: "client.token", variable: "STINT_TOKEN", kind: kindText, secret: true, otherwise: "that of stint login, or the owner's"},
		setting{key: "client.context", variable: "STINT_CONTEXT", kind: kindText, otherwise: "the one in use"},
		setting{key: "client.workspace", variable: "STINT_WORKSPACE", flag: "workspace", kind: kindText, otherwise: "default"},
	)
}

func keyOf(variable string) string { return strings.ToLower(strings.TrimPrefix(variable, "STINT_")) }

// settingsFile is what a file of settings says: values as variables and flags have them.
type settingsFile struct {
	path   string // "" = there is none
	values map[string]string
	lists  map[string][]string // of those that are lists
}

const (
	configVariable = "STINT_CONFIG"
	systemConfig   = "/etc/stint/config.toml"
)

// useSettings reads the file of settings, if there is one, and lets it say what the environment
// doesn't. An agent's commands take what their run says, and none of its owner's settings.
func (c *cli) useSettings() error {
	if c.env("STINT_SESSION_ID") != "" && c.env("STINT_TOKEN") != "" {
		return nil
	}
	file, err := readSettings(c.configPaths())
	if err != nil {
		return &problem{code: exitUsage, what: "cannot use the settings", why: err.Error(), next: "stint config show lists the settings and what they are"}
	}
	c.file = file
	outer := c.env
	byVariable := map[string]string{}
	for _, s := range settings() {
		if value, ok := file.values[s.key]; ok && s.variable != "" {
			byVariable[s.variable] = value
		}
	}
	c.fromOutside = outer
	c.env = func(name string) string {
		if value := outer(name); value != "" {
			return value
		}
		return byVariable[name]
	}
	return nil
}

// configPaths are the files of which the first that is there is read; one alone must be there.
func (c *cli) configPaths() []string {
	if path := c.env(configVariable); path != "" {
		return []string{path}
	}
	return []string{filepath.Join(places.Config(), "config.toml"), systemConfig}
}

// setFlags gives a command's flags what the file says, where they have no variable and weren't
// given.
func (c *cli) setFlags(cmd *cobra.Command) error {
	for _, s := range settings() {
		value, ok := c.file.values[s.key]
		if !ok || s.variable != "" || cmd.CommandPath() != s.command {
			continue
		}
		f := cmd.Flags().Lookup(s.flag)
		if f == nil || f.Changed {
			continue
		}
		var err error
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(c.file.lists[s.key])
		} else {
			err = f.Value.Set(value)
		}
		if err != nil {
			return usage("cannot use the settings", s.key+" in "+c.file.path+": "+err.Error(), "stint worker run --help")
		}
	}
	return nil
}

func readSettings(paths []string) (out settingsFile, err error) {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && len(paths) > 1 {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("%s can't be read: %s; let its user read it, or name another with %s", path, reason(err), configVariable)
		}
		return parseSettings(path, text)
	}
	return out, nil
}

// parseSettings reads a file. Everything in it is a setting that is known, of the right kind,
// and secrets are in a file that its owner alone can read.
func parseSettings(path string, text []byte) (settingsFile, error) {
	out := settingsFile{path: path, values: map[string]string{}, lists: map[string][]string{}}
	var tree map[string]any
	if err := toml.NewDecoder(bytes.NewReader(text)).Decode(&tree); err != nil {
		var wrong *toml.DecodeError
		if errors.As(err, &wrong) {
			row, _ := wrong.Position()
			return out, fmt.Errorf("%s, line %d, isn't TOML: %s", path, row, strings.TrimPrefix(wrong.Error(), "toml: "))
		}
		return out, fmt.Errorf("%s: %w", path, err)
	}
	known := map[string]setting{}
	for _, s := range settings() {
		known[s.key] = s
	}
	for _, leaf := range leaves("", tree) {
		s, ok := known[leaf.key]
		if !ok {
			return out, fmt.Errorf("%s in %s is no setting%s", leaf.key, path, meant(leaf.key))
		}
		value, list, ok := s.kind.text(leaf.value)
		if !ok {
			return out, fmt.Errorf("%s in %s is %s, not %s", leaf.key, path, s.kind, written(leaf.value, s.secret))
		}
		if s.kind == kindLength {
			if _, err := api.ParseLength(value); err != nil {
				return out, fmt.Errorf("%s in %s: %w", leaf.key, path, err)
			}
		}
		out.values[s.key], out.lists[s.key] = value, list
		if s.secret {
			if err := isPrivate(path, s.key); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func isPrivate(path, key string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return fmt.Errorf("%s in %s is secret, and others may read the file: chmod 600 %s", key, path, inShell(path))
}

// leaf is a value in the file, by its whole name.
type leaf struct {
	key   string
	value any
}

// leaves are a table's values and those of the tables in it, by name.
func leaves(at string, tree map[string]any) (out []leaf) {
	for name, value := range tree {
		key := strings.TrimPrefix(at+"."+name, ".")
		if inner, ok := value.(map[string]any); ok {
			out = append(out, leaves(key, inner)...)
		} else {
			out = append(out, leaf{key, value})
		}
	}
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.key, b.key) })
	return out
}

// meant names the settings that stand where an unknown one does, or that end as it does.
func meant(key string) string {
	section, name, _ := cutLast(key)
	var like, beside []string
	for _, s := range settings() {
		in, last, _ := cutLast(s.key)
		if last == name || strings.ReplaceAll(last, "_", "") == strings.NewReplacer("_", "", "-", "").Replace(name) {
			like = append(like, s.key)
		}
		if in == section {
			beside = append(beside, s.key)
		}
	}
	switch {
	case len(like) > 0:
		return ": did you mean " + strings.Join(like, " or ") + "?"
	case section != "" && len(beside) > 0:
		return "; there are " + strings.Join(beside, ", ")
	}
	return ""
}

func cutLast(key string) (section, name string, found bool) {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		return key[:i], key[i+1:], true
	}
	return "", key, false
}

// text is a value of the file as variables have it, and a list's members.
func (k settingKind) text(value any) (text string, list []string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, nil, k == kindText || k == kindLength
	case int64:
		return strconv.FormatInt(v, 10), nil, k == kindNumber
	case bool:
		return strconv.FormatBool(v), nil, k == kindSwitch
	case []any:
		for _, member := range v {
			word, isText := member.(string)
			if !isText {
				return "", nil, false
			}
			list = append(list, word)
		}
		return strings.Join(list, ","), list, k == kindList
	}
	return "", nil, false
}

// written is a value as an error shows it.
func written(value any, secret bool) string {
	if secret {
		return "what is there"
	}
	text, err := toml.Marshal(map[string]any{"x": value})
	if err != nil {
		return "what is there"
	}
	return strings.TrimSpace(strings.TrimPrefix(string(text), "x = "))
}
