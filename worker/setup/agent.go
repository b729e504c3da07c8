package setup

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/workflow"
)

// Preset is the name of one of [api.Presets], or command. What the file itself says takes
// precedence over it, and its rules over the preset's.
type Preset string

// PresetCommand is the preset of agents of type command, to which no policy applies.
const PresetCommand Preset = "command"

// DefaultPreset is that of agents that converse.
const DefaultPreset Preset = "ask"

// Agent is what an agent's file says. The zero value of each field means that the file leaves
// it open; then the workflow file's, the agent record's or the default counts.
type Agent struct {
	Type         api.AgentType     `toml:"type,omitempty" comment:"command, claude_code, codex or acp"`
	Executable   []string          `toml:"executable,omitempty" comment:"What to start: a program and its arguments. No shell reads it."`
	Check        []string          `toml:"check,omitempty" comment:"Of type command: run after it ended well; its exit code decides whether that counts."`
	Expect       string            `toml:"expect,omitempty" comment:"What must come of a run beside that it ends well: changes in its git repository, or output:PATTERN that its result must match."`
	Strict       bool              `toml:"strict,omitempty" comment:"A run without what is expected fails, instead of being marked."`
	MayLeave     []string          `toml:"may_leave,omitempty" comment:"Of type command: names of programs that it may leave running, such as gradle*; they are ended, and it is a success all the same."`
	Model        string            `toml:"model,omitempty"`
	Effort       string            `toml:"effort,omitempty" comment:"How much the model is to think, in the program's words, such as low or high."`
	PlanMode     bool              `toml:"plan_mode,omitempty" comment:"It only looks and plans."`
	Models       []string          `toml:"models,omitempty" comment:"The models that a run may choose; any when none is named."`
	Preset       Preset            `toml:"preset,omitempty" comment:"ask, unattended, autonomous or command"`
	Permissions  agent.Permissions `toml:"permissions,omitempty" comment:"approval or autonomous; the preset's when not said"`
	Otherwise    agent.Ruling      `toml:"otherwise,omitempty" comment:"What holds where no rule matches: allow, ask, deny or deny_stop"`
	OwnSettings  bool              `toml:"own_settings,omitempty" comment:"All of [uses] at once."`
	StintTools   bool              `toml:"stint_tools,omitempty" comment:"Give the agent Stint's tools, by which it comments on its task, reports and starts other agents; they act for its run alone."`
	TaskUpdates  *[]string         `toml:"task_updates,omitempty" comment:"What of its sessions may change the state of their tasks: claimed, awaiting_input, completed, failed, released, landed; all that the agent lets when not said."`
	Instructions string            `toml:"instructions,omitempty,multiline" comment:"Trusted text for the agent, up to 2,000 characters."`

	Name     string `toml:"name,omitempty" comment:"What its worker is called, up to 64 characters; the process's own when not said."`
	Folder   string `toml:"folder,omitempty" comment:"Where it works: a folder, or the repository of its worktrees."`
	Shared   bool   `toml:"shared,omitempty" comment:"Several sessions may use the folder at once."`
	Workflow string `toml:"workflow,omitempty" comment:"The WORKFLOW.md to follow."`

	Env      []string `toml:"env,omitempty" comment:"Names of the worker's variables that it gets besides the usual ones."`
	EnvFiles []string `toml:"env_files,omitempty" comment:"Files of NAME=value lines, private to you."`
	Wrapper  []string `toml:"wrapper,omitempty" comment:"A sandbox to start it in, such as bwrap and its arguments."`

	// KeepIgnored are patterns of files that git ignores and somebody wants: worktrees that
	// hold one are never cleaned up.
	KeepIgnored []string `toml:"keep_ignored,omitempty" comment:"Further ignored files for whose sake a workspace is kept, such as *.log; what fits one that begins with ! is not."`

	Land          api.LandLevel `toml:"land,omitempty" comment:"How far its sessions' changes may be landed from elsewhere: off, push, pull_request or merge, each with those before it; off when not said."`
	LandProtected []string      `toml:"land_protected,omitempty" comment:"Branches that nothing is merged into or pushed to from elsewhere, such as main or release/*."`

	MaxRetries *int `toml:"max_retries,omitempty" comment:"How often a failed session is tried again."`

	// AnswerWithin bounds how long a question of the agent waits for a person; 0 = it doesn't
	// wait.
	AnswerWithin int64 `toml:"answer_within_seconds,omitempty" comment:"How long a question waits for a person; then an approval is refused, and a question gets its first option."`

	Workspace Workspace    `toml:"workspace,omitempty"`
	Uses      agent.Uses   `toml:"uses,omitempty" comment:"What the agent may use of what you, or the folder, have already."`
	Spend     Spend        `toml:"spend,omitempty"`
	Rules     []agent.Rule `toml:"rules,omitempty"`
}

// Workspace says how sessions get a place to work in.
type Workspace struct {
	Mode       string `toml:"mode,omitempty" comment:"folder, worktree or empty"`
	Root       string `toml:"root,omitempty" comment:"Where worktrees are made; the worker's state directory when not said."`
	BaseBranch string `toml:"base_branch,omitempty"`
	Directory  string `toml:"directory,omitempty" comment:"Where in the workspace the agent starts."`
}

// Spend bounds what one session may use; 0 = no limit. What an agent may use in a day is in
// its record, which counts all its workers together.
type Spend struct {
	SessionUSD    float64 `toml:"session_usd,omitempty"`
	SessionTokens int64   `toml:"session_tokens,omitempty" comment:"Input and output together."`
}

// SessionMicros is the limit in millionths of a US dollar, as [api.Usage] counts.
func (s Spend) SessionMicros() int64 { return int64(s.SessionUSD * 1e6) }

// Policy is the combination of the preset and the file's rules.
func (a Agent) Policy() agent.Policy {
	preset, _ := api.PresetNamed(string(a.Preset))
	p := agent.PolicyOf(preset.Run)
	if a.Otherwise != "" {
		p.Otherwise = a.Otherwise
	}
	p.Rules = append(p.Rules, a.Rules...)
	return p
}

// Rights are the permissions that the file or its preset give.
func (a Agent) Rights() agent.Permissions {
	if a.Permissions != "" {
		return a.Permissions
	}
	if p, ok := api.PresetNamed(string(a.Preset)); ok {
		return agent.Permissions(p.Run.Permissions)
	}
	return agent.Approval
}

// Choice is what the file says about how its program thinks.
func (a Agent) Choice() api.RunChoice {
	return api.RunChoice{Model: a.Model, Effort: a.Effort, PlanMode: a.PlanMode}
}

// choiceErrors are what its type can't have of that, by the names of the settings.
func (a Agent) choiceErrors() (out []error) {
	var v api.Invalid
	a.Choice().Check(&v, "", a.Type)
	if bad := (*api.Error)(nil); errors.As(v.Err(), &bad) {
		for _, f := range bad.Fields {
			out = append(out, fmt.Errorf("%s: %s", strings.ReplaceAll(f.Field, "planMode", "plan_mode"), f.Detail))
		}
	}
	return out
}

// Used are the switches for what the agent may use of what there is already.
func (a Agent) Used() agent.Uses {
	if a.OwnSettings {
		return agent.UsesAll
	}
	return a.Uses
}

// Under fills in from a workflow what the file leaves open. The file comes first: it belongs
// to the owner alone, while others may be able to write the workflow.
func (a Agent) Under(w workflow.Workflow) Agent {
	c := w.Config
	fill(&a.Folder, c.Workspace.Repository)
	fill(&a.Workspace.Mode, c.Workspace.Mode)
	fill(&a.Workspace.Root, c.Workspace.Root)
	fill(&a.Workspace.BaseBranch, c.Workspace.BaseBranch)
	fill(&a.Workspace.Directory, c.Workspace.Directory)
	if a.MaxRetries == nil && w.Says("agent.max_retry_attempts") {
		a.MaxRetries = &c.Agent.MaxRetryAttempts
	}
	if len(a.Executable) == 0 && a.Type == api.TypeCodex && w.Says("codex.command") {
		a.Executable = c.Codex.Command[:1:1] // the adapter decides about app-server
	}
	return a
}

const maxAnswerWithin = 365 * 24 * 3600 // seconds

func fill(to *string, from string) {
	if *to == "" {
		*to = from
	}
}

// complete checks the settings and makes their paths absolute; ~ is home.
func (a Agent) complete(home string) (Agent, error) {
	var bad []error
	check := func(field string, fine bool, format string, args ...any) {
		if !fine {
			bad = append(bad, fmt.Errorf(field+": "+format, args...))
		}
	}
	place := func(field string, at *string) {
		was := *at
		if was == "" {
			return
		}
		if was == "~" || strings.HasPrefix(was, "~/") {
			*at = filepath.Join(home, was[1:])
		}
		check(field, filepath.IsAbs(*at), "%q is not an absolute path", was)
		*at = filepath.Clean(*at)
	}
	one := func(field string, fine bool, value any, words string) {
		check(field, fine, "%q is not %s", fmt.Sprint(value), words)
	}
	_, known := a.Type.Describe()
	one("type", known || a.Type == "", a.Type, api.AgentTypeNames())
	_, known = api.PresetNamed(string(a.Preset))
	one("preset", known || a.Preset == "" || a.Preset == PresetCommand, a.Preset, "ask, unattended, autonomous or command")
	check("preset", a.Preset != PresetCommand || a.Type == "" || a.Type == api.TypeCommand, "command is for agents of type command, not %s", a.Type)
	one("permissions", slices.Contains([]agent.Permissions{"", agent.Approval, agent.Autonomous}, a.Permissions), a.Permissions, "approval or autonomous")
	one("otherwise", a.Otherwise == "" || slices.Contains(api.Rulings, a.Otherwise), a.Otherwise, "allow, ask, deny or deny_stop")
	bad = append(bad, a.choiceErrors()...)
	check("executable", len(a.Executable) == 0 || a.Executable[0] != "", "its first word is empty")
	check("wrapper", len(a.Wrapper) == 0 || a.Wrapper[0] != "", "its first word is empty")
	check("check", len(a.Check) == 0 || a.Check[0] != "", "its first word is empty")
	if _, err := api.ParseExpect(a.Expect); err != nil {
		check("expect", false, "it %v", err)
	}
	check("strict", !a.Strict || a.Expect != "", "it says what follows when something is missing: say in expect what that is")
	for field, words := range map[string][]string{"executable": a.Executable, "wrapper": a.Wrapper, "check": a.Check} {
		check(field, !slices.ContainsFunc(words, func(s string) bool { return strings.ContainsRune(s, 0) }), "it holds a NUL")
	}
	check("instructions", utf8.RuneCountInString(a.Instructions) <= 2000, "%d characters are more than 2000", utf8.RuneCountInString(a.Instructions))
	check("name", utf8.RuneCountInString(a.Name) <= 64, "it is longer than 64 characters")
	if a.TaskUpdates != nil {
		for _, word := range *a.TaskUpdates {
			one("task_updates", slices.Contains(api.TaskUpdates, word), word, "one of "+strings.Join(api.TaskUpdates, ", "))
		}
	}
	for _, pattern := range a.KeepIgnored {
		_, err := filepath.Match(pattern, "")
		check("keep_ignored", err == nil, "%q is no pattern", pattern)
	}
	for _, pattern := range a.MayLeave {
		_, err := filepath.Match(pattern, "")
		check("may_leave", err == nil && pattern != "", "%q is no pattern", pattern)
	}
	one("land", a.Land == "" || slices.Contains(api.LandLevels, a.Land), a.Land, api.OrList(api.LandLevels))
	for _, pattern := range a.LandProtected {
		_, err := path.Match(pattern, "")
		check("land_protected", err == nil && pattern != "", "%q is no pattern", pattern)
	}
	for _, name := range a.Env {
		check("env", name != "" && !strings.ContainsAny(name, "=\x00") && !strings.HasPrefix(name, "STINT_"), "%q can't be passed on", name)
	}
	place("folder", &a.Folder)
	place("workflow", &a.Workflow)
	place("workspace.root", &a.Workspace.Root)
	a.EnvFiles = slices.Clone(a.EnvFiles)
	for i := range a.EnvFiles {
		place("env_files", &a.EnvFiles[i])
	}
	w := a.Workspace
	one("workspace.mode", slices.Contains([]string{"", workflow.ModeFolder, workflow.ModeWorktree, workflow.ModeEmpty}, w.Mode), w.Mode, "folder, worktree or empty")
	check("workspace.directory", w.Directory == "" || filepath.IsLocal(w.Directory), "%q does not lie inside of the workspace", w.Directory)
	check("workspace.base_branch", !strings.HasPrefix(w.BaseBranch, "-") && !strings.ContainsAny(w.BaseBranch, " \t\n~^:?*[\\"), "%q is not the name of a branch", w.BaseBranch)
	check("max_retries", a.MaxRetries == nil || *a.MaxRetries >= 0 && *a.MaxRetries <= 1000, "it is not 0 to 1000")
	check("answer_within_seconds", a.AnswerWithin >= 0 && a.AnswerWithin <= maxAnswerWithin, "it is not 0 to %d", maxAnswerWithin)
	s := a.Spend
	check("spend", s.SessionUSD >= 0 && s.SessionTokens >= 0, "a limit is negative")
	check("spend", s.SessionUSD <= 1e9, "a limit is more than all the money there is")
	if err := a.Used().Refused(a.Type, a.Executable); err != nil && (a.Type != api.TypeACP || len(a.Executable) > 0) {
		bad = append(bad, err) // of type acp the record may name the program
	}
	for i, r := range a.Rules {
		field := fmt.Sprintf("rules[%d]", i)
		one(field+".area", slices.Contains(api.Areas, r.Area), r.Area,
			"filesystem, shell, network, workspace or side_effects")
		one(field+".ruling", slices.Contains(api.Rulings, r.Ruling), r.Ruling, "allow, ask, deny or deny_stop")
	}
	return a, errors.Join(bad...)
}
