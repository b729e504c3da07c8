package workflow

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	shellquote "github.com/kballard/go-shellquote"
)

// Config is what the supported fields say, with defaults filled in.
type Config struct {
	Workspace Workspace
	Hooks     Hooks
	Agent     Agent
	Codex     Codex
	// PollInterval is how often to ask for sessions (polling.interval_ms); 30 s, at
	// least a second.
	PollInterval time.Duration
}

// Workspace says where sessions work (workspace.*). The worker owner's own file decides what
// is empty.
type Workspace struct {
	Root       string // below which workspaces are made, absolute; Symphony's field
	Repository string // the folder, or the repository of the worktrees, absolute
	Mode       string // folder, worktree or empty
	BaseBranch string // what a worktree's branch begins at
	Directory  string // where in the workspace the agent starts, relative, clean, inside
}

// Hooks are shell scripts at four points of a workspace's existence (hooks.*); an empty one is
// none.
type Hooks struct {
	AfterCreate  string
	BeforeRun    string
	AfterRun     string
	BeforeRemove string
	Timeout      time.Duration // of each; 60 s
}

// Agent bounds turns and tries (agent.*).
type Agent struct {
	MaxConcurrent    int           // max_concurrent_agents; 10
	MaxTurns         int           // max_turns; 20
	MaxRetryBackoff  time.Duration // max_retry_backoff_ms; 5 minutes
	MaxRetryAttempts int           // max_retry_attempts; 0
}

// Codex says how the agent program is run (codex.*).
type Codex struct {
	Command      []string      // argv: codex or an absolute path to it, app-server
	TurnTimeout  time.Duration // turn_timeout_ms; 1 hour
	StallTimeout time.Duration // stall_timeout_ms; 5 minutes, 0 = off
	ReadTimeout  time.Duration // read_timeout_ms; 5 s
}

// Defaults is the configuration of a file that says nothing.
func Defaults() Config {
	return Config{
		Hooks:        Hooks{Timeout: time.Minute},
		Agent:        Agent{MaxConcurrent: 10, MaxTurns: 20, MaxRetryBackoff: 5 * time.Minute},
		Codex:        Codex{Command: []string{"codex", "app-server"}, TurnTimeout: time.Hour, StallTimeout: 5 * time.Minute, ReadTimeout: 5 * time.Second},
		PollInterval: 30 * time.Second,
	}
}

// The workspace modes.
const (
	ModeFolder   = "folder"   // the repository folder itself
	ModeWorktree = "worktree" // a git worktree and branch per session
	ModeEmpty    = "empty"    // a new folder per session, which the hook after_create fills
)

type kind int

const (
	words kind = iota // text
	whole             // a whole number
)

// field is a supported one: how its value is written and where it goes.
type field struct {
	kind      kind
	executing bool // decides what is executed or where
	set       func(c *Config, text string, at origin) error
}

// sections are the fields of the top level that hold others.
var sections = map[string]bool{"workspace": true, "hooks": true, "agent": true, "codex": true, "polling": true}

var supported = map[string]field{
	"workspace.root":        {words, true, path(func(c *Config) *string { return &c.Workspace.Root })},
	"workspace.repository":  {words, true, path(func(c *Config) *string { return &c.Workspace.Repository })},
	"workspace.mode":        {words, true, setMode},
	"workspace.base_branch": {words, true, setBase},
	"workspace.directory":   {words, true, setDirectory},

	"hooks.after_create":  {words, true, script(func(c *Config) *string { return &c.Hooks.AfterCreate })},
	"hooks.before_run":    {words, true, script(func(c *Config) *string { return &c.Hooks.BeforeRun })},
	"hooks.after_run":     {words, true, script(func(c *Config) *string { return &c.Hooks.AfterRun })},
	"hooks.before_remove": {words, true, script(func(c *Config) *string { return &c.Hooks.BeforeRemove })},
	"hooks.timeout_ms":    {whole, true, millis(1, func(c *Config) *time.Duration { return &c.Hooks.Timeout })},

	"agent.max_concurrent_agents": {whole, false, count(1, 1000, func(c *Config) *int { return &c.Agent.MaxConcurrent })},
	"agent.max_turns":             {whole, false, count(1, 100000, func(c *Config) *int { return &c.Agent.MaxTurns })},
	"agent.max_retry_backoff_ms":  {whole, false, millis(1, func(c *Config) *time.Duration { return &c.Agent.MaxRetryBackoff })},
	"agent.max_retry_attempts":    {whole, false, count(0, 1000, func(c *Config) *int { return &c.Agent.MaxRetryAttempts })},

	"codex.command":          {words, true, setCommand},
	"codex.turn_timeout_ms":  {whole, false, millis(1, func(c *Config) *time.Duration { return &c.Codex.TurnTimeout })},
	"codex.stall_timeout_ms": {whole, false, setStall},
	"codex.read_timeout_ms":  {whole, false, millis(1, func(c *Config) *time.Duration { return &c.Codex.ReadTimeout })},

	"polling.interval_ms": {whole, false, setPoll},
}

// ignoredSections are fields of the top level whose members are each reported.
var ignoredSections = map[string]string{
	"tracker": "tasks come from Stint, which has a tracker of its own",
}

var ignoredFields = map[string]string{
	"codex.approval_policy":                "permissions and policy rules are in the worker's own file",
	"codex.thread_sandbox":                 "the sandbox follows from the policy rules in the worker's own file",
	"codex.turn_sandbox_policy":            "the sandbox follows from the policy rules in the worker's own file",
	"thread_sandbox":                       "the sandbox follows from the policy rules in the worker's own file",
	"turn_sandbox_policy":                  "the sandbox follows from the policy rules in the worker's own file",
	"codex.model":                          "the model is set in the worker's own file",
	"agent.max_concurrent_agents_by_state": "one number bounds how many sessions run at once, whatever their tasks' states",
}

// talkOnly are the fields that are about a conversation. Time limits are not among them: they
// hold for every kind of agent.
var talkOnly = map[string]string{
	"agent.max_turns":       "a command has no turns",
	"codex.command":         "the agent runs a command of its own",
	"codex.read_timeout_ms": "a command is not asked anything that it could answer late",
}

// WithoutConversation are the fields of the file that have no effect on an agent that is a
// plain command, by name.
func (w Workflow) WithoutConversation() (out []Ignored) {
	for _, field := range slices.Sorted(maps.Keys(talkOnly)) {
		if w.Says(field) {
			out = append(out, Ignored{Field: field, Reason: talkOnly[field]})
		}
	}
	return out
}

func whyIgnored(name string) string {
	if why := ignoredFields[name]; why != "" {
		return why
	}
	section, _, _ := strings.Cut(name, ".")
	if why := ignoredSections[section]; why != "" {
		return why
	}
	return "no field of this name is known"
}

// config is what the fields mean at a place, or what is wrong with them.
func (f fields) config(at origin) (Config, []Problem) {
	c := Defaults()
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(f)) {
		known, ok := supported[name]
		if !ok { // kept by a version that knew it
			continue
		}
		if err := known.set(&c, f[name], at); err != nil {
			problems = append(problems, Problem{Field: name, Message: err.Error()})
		}
	}
	return c, problems
}

// longest bounds every length of time; anything longer is a typo.
const longest = 31 * 24 * time.Hour

func number(text string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is not %d to %d", text, least, most)
	}
	return n, nil
}

func millis(least int64, to func(*Config) *time.Duration) func(*Config, string, origin) error {
	return func(c *Config, text string, _ origin) error {
		n, err := number(text, least, longest.Milliseconds())
		*to(c) = time.Duration(n) * time.Millisecond
		return err
	}
}

func count(least, most int64, to func(*Config) *int) func(*Config, string, origin) error {
	return func(c *Config, text string, _ origin) error {
		n, err := number(text, least, most)
		*to(c) = int(n)
		return err
	}
}

func script(to func(*Config) *string) func(*Config, string, origin) error {
	return func(c *Config, text string, _ origin) error {
		if strings.TrimSpace(text) != "" {
			*to(c) = text
		}
		return nil
	}
}

func setStall(c *Config, text string, _ origin) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n <= 0 {
		c.Codex.StallTimeout = 0
		return nil
	}
	return millis(1, func(c *Config) *time.Duration { return &c.Codex.StallTimeout })(c, text, origin{})
}

func setPoll(c *Config, text string, at origin) error {
	err := millis(1, func(c *Config) *time.Duration { return &c.PollInterval })(c, text, at)
	c.PollInterval = max(c.PollInterval, time.Second)
	return err
}

func setMode(c *Config, text string, _ origin) error {
	switch text {
	case ModeFolder, ModeWorktree, ModeEmpty:
		c.Workspace.Mode = text
		return nil
	}
	return fmt.Errorf("%q is not %s, %s or %s", text, ModeFolder, ModeWorktree, ModeEmpty)
}

func setBase(c *Config, text string, _ origin) error {
	if text == "" || strings.HasPrefix(text, "-") || strings.ContainsAny(text, " \t\n~^:?*[\\") || strings.Contains(text, "..") || strings.Contains(text, "@{") {
		return fmt.Errorf("%q is not the name of a branch", text)
	}
	c.Workspace.BaseBranch = text
	return nil
}

func setDirectory(c *Config, text string, _ origin) error {
	if !filepath.IsLocal(text) {
		return fmt.Errorf("%q does not lie inside of the workspace", text)
	}
	c.Workspace.Directory = filepath.Clean(text)
	return nil
}

// setCommand takes the one program that is run. No shell reads it: what needs one would be
// another program. contract 10.5
func setCommand(c *Config, text string, _ origin) error {
	argv, err := shellquote.Split(text)
	fine := err == nil && len(argv) == 2 && argv[1] == "app-server" && !strings.ContainsAny(text, "\n$`;&|<>") &&
		(argv[0] == "codex" || filepath.IsAbs(argv[0]) && filepath.Base(argv[0]) == "codex")
	if !fine {
		return fmt.Errorf(`%q is not run; write codex app-server, or the absolute path of codex and app-server after it`, text)
	}
	c.Codex.Command = argv
	return nil
}

// path makes a path absolute: ~ is the home, $NAME and ${NAME} are variables, and
// what is relative begins at the file's folder. A path that is nothing but an empty
// variable is as if it weren't there.
func path(to func(*Config) *string) func(*Config, string, origin) error {
	return func(c *Config, text string, at origin) error {
		var unset []string
		expanded := os.Expand(text, func(name string) string {
			value := at.env(name)
			if value == "" {
				unset = append(unset, name)
			}
			return value
		})
		if expanded == "" {
			*to(c) = ""
			return nil
		}
		if len(unset) > 0 {
			return fmt.Errorf("the variable %s of %q is not set", unset[0], text)
		}
		if expanded == "~" || strings.HasPrefix(expanded, "~/") {
			home := at.env("HOME")
			if home == "" {
				return fmt.Errorf("there is no HOME for the ~ of %q", text)
			}
			expanded = filepath.Join(home, expanded[1:])
		}
		if strings.HasPrefix(expanded, "~") {
			return errors.New("the home of another user can't be named by ~")
		}
		if !filepath.IsAbs(expanded) {
			expanded = filepath.Join(at.dir, expanded)
		}
		*to(c) = filepath.Clean(expanded)
		return nil
	}
}
