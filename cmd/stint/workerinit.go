package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	shellquote "github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker"
	"stint/worker/agent"
	"stint/worker/git"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// initFlags are the answers to what worker init asks.
type initFlags struct {
	agent, kind, preset          string
	folder, mode, base           string
	workflow, name, instructions string
	run, state, land             string
	uses                         []string
	replace, yes                 bool
	branches                     bool // the folder is in a git repository
	settings                     setup.Agent
	existing                     bool // there are settings already
	record                       api.Agent
	client                       *api.Client // nil when no coordinator answers
	files                        setup.Files
	git                          git.Caller
}

func (c *cli) workerInitCommand() *cobra.Command {
	f := &initFlags{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set a worker up for an agent",
		Long: "Writes your settings for an agent: its type, where it works and with which\n" +
			"rights. On a terminal it asks for what no flag says. It looks at git, at the\n" +
			"agent's program and at its sign-in, and makes the agent's record where a\n" +
			"coordinator answers and has none.\n\n" +
			"A program gets nothing of what you, or the folder, have already, but what\n" +
			"--uses names (or [uses] in the settings later):\n" + usesHelp(),
		Example: "stint worker init\n" +
			"stint worker init --agent reviewer --type claude_code --folder ~/app \\\n" +
			"    --mode worktree\n" +
			"stint worker init --agent nightly --type codex --preset unattended",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.initWorker(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.agent, "agent", "", "the `SLUG` of the agent")
	flags.StringVar(&f.kind, "type", "", "its `TYPE`: "+api.AgentTypeNames())
	flags.StringVar(&f.preset, "preset", "", "a `PRESET`: ask (a person decides), unattended or\nautonomous (nobody is asked), or command")
	flags.StringVar(&f.run, "run", "", "what to start instead of the type's own program, as one\n`TEXT` quoted as in a shell; no shell reads it; for acp\nopencode, gemini and the like need no arguments")
	flags.StringVar(&f.folder, "folder", "", "the `DIR` it works in, or of the repository (this one)")
	flags.StringVar(&f.mode, "mode", "", "a `MODE`: folder, worktree (one per session), or empty (a\nnew one, filled by the workflow's hook)")
	flags.StringVar(&f.base, "base", "", "the `BRANCH` that worktrees begin at (the one checked out)")
	flags.StringVar(&f.workflow, "workflow", "", "the `FILE` to follow, as WORKFLOW.md")
	flags.StringVar(&f.name, "name", "", "the `NAME` of its worker (the process's own)")
	flags.StringVar(&f.instructions, "instructions", "", "a trusted `TEXT` for the agent")
	flags.StringVar(&f.land, "land", "", "how far the changes of its sessions may be landed from\nelsewhere: a `LEVEL` of "+joined(api.LandLevels)+" (off)")
	flags.StringSliceVar(&f.uses, "uses", nil, "the `NAMES` of what its program may use, with commas")
	flags.StringVar(&f.state, "state-dir", "", "the worker's own `DIR`, if its settings are to be there")
	flags.BoolVar(&f.replace, "replace", false, "write anew what is there already")
	flags.BoolVar(&f.yes, "yes", false, "ask nothing, and accept what the workflow file executes")
	return cmd
}

func (c *cli) initWorker(ctx context.Context, f *initFlags) error {
	what := "cannot set up a worker"
	asks := isTerminal(c.in) && !f.yes && !c.flags.json && !c.flags.quiet
	f.files = setup.Find(f.state)
	f.git = git.Caller{Env: os.Environ(), Room: worker.Scratch(c.stateDir(f.state))}
	f.client, _ = c.connect(what) // without one only the settings are written
	if f.agent == "" && !asks {
		return usage(what, "--agent is missing", "stint worker init --agent SLUG --type TYPE --folder DIR")
	}
	if asks {
		if err := c.askAgent(ctx, f); err != nil {
			return explain(what, err, "stint worker init --help")
		}
	}
	if err := c.known(ctx, f, what); err != nil {
		return err
	}
	if err := f.begin(ctx, asks); err != nil {
		return usage(what, err.Error(), "stint worker init --help")
	}
	if f.existing && !f.replace && !asks {
		return &problem{code: exitConflict, what: what, why: "there are settings in " + f.files.Path(f.agent) + " already", next: "edit them, or write them anew with --replace"}
	}
	if asks {
		if err := c.askSettings(ctx, f); err != nil {
			return explain(what, err, "stint worker init --help")
		}
	}
	if err := f.finish(ctx); err != nil {
		return usage(what, err.Error(), "stint worker init --help")
	}
	if err := f.files.Save(f.agent, f.settings); err != nil {
		return usage(what, strings.ReplaceAll(err.Error(), "\n", "; "), "stint worker init --help")
	}
	made, err := c.makeRecord(ctx, f, what)
	if err != nil {
		return err
	}
	if err := c.acceptFlow(ctx, f, asks); err != nil {
		return explain(what, err, "stint worker trust "+f.agent)
	}
	seen := worker.Inspect(ctx, c.stateDir(f.state), f.record, f.agent, os.Environ())
	return c.show(initAnswer{Agent: f.agent, File: f.files.Path(f.agent), Created: made, Setup: seen}, f.agent, func() error {
		if err := c.say("%s", f.files.Path(f.agent)); err != nil {
			return err
		}
		c.hintInspection(seen)
		if f.client == nil {
			c.hint("No server answers. With one: stint agent create %s --type %s", f.agent, f.settings.Type)
		}
		c.hint("Look at what it will meet: stint worker doctor %s", f.agent)
		return nil
	})
}

// initAnswer is what worker init has done.
type initAnswer struct {
	Agent   string            `json:"agent"`
	File    string            `json:"file"`
	Created bool              `json:"created"` // the agent's record was made
	Setup   worker.Inspection `json:"setup"`
}

// stateDir is a worker's own folder: the named one, else that of up's worker.
func (c *cli) stateDir(named string) string {
	if named != "" {
		if abs, err := filepath.Abs(named); err == nil {
			return abs
		}
		return named
	}
	d, err := c.dataDir()
	if err != nil {
		return ""
	}
	return d.worker()
}

// known asks the coordinator for the agent, which need not exist.
func (c *cli) known(ctx context.Context, f *initFlags, what string) error {
	f.agent = strings.ToLower(strings.TrimSpace(f.agent))
	if f.client == nil {
		return nil
	}
	a, err := f.client.Agent(ctx, f.agent)
	var silent *api.Unanswered
	switch {
	case err == nil:
		f.record, f.agent = a, a.Slug
	case errors.As(err, &silent):
		f.client = nil
	case api.CodeOf(err) != api.CodeNotFound:
		return explain(what, err, "stint status")
	}
	return nil
}

// begin gathers what is known before anything is asked.
func (f *initFlags) begin(ctx context.Context, asks bool) error {
	s, found, err := f.files.Agent(f.agent)
	f.existing = found
	if err != nil && !f.replace {
		return err
	}
	if !found || f.replace {
		s = setup.Agent{}
	}
	if f.kind == "" && s.Type == "" && !asks {
		if f.record.Type == "" {
			return errors.New("--type is missing: " + api.AgentTypeNames())
		}
		s.Type = f.record.Type
	}
	if f.kind != "" {
		s.Type = api.AgentType(strings.ReplaceAll(f.kind, "-", "_"))
	}
	put(&s.Preset, setup.Preset(f.preset))
	put(&s.Workspace.Mode, f.mode)
	put(&s.Workspace.BaseBranch, f.base)
	put(&s.Name, f.name)
	put(&s.Land, api.LandLevel(strings.ReplaceAll(f.land, "-", "_")))
	put(&s.Instructions, f.instructions)
	for _, p := range []struct {
		to   *string
		from string
	}{{&s.Folder, f.folder}, {&s.Workflow, f.workflow}} {
		if p.from == "" {
			continue
		}
		if *p.to, err = filepath.Abs(expandHome(p.from)); err != nil {
			return err
		}
	}
	if s.Folder == "" {
		if s.Folder, err = os.Getwd(); err != nil {
			return err
		}
	}
	if f.run != "" {
		if s.Executable, err = shellquote.Split(f.run); err != nil || len(s.Executable) == 0 {
			return errors.New("--run names no command, or its quotation marks don't match")
		}
	}
	_, err = git.Open(ctx, s.Folder, f.git)
	f.branches = err == nil
	if len(f.uses) > 0 {
		if s.Uses, err = agent.UsesOf(f.uses); err != nil {
			return fmt.Errorf("--uses: %w", err)
		}
	}
	f.settings = s
	return nil
}

// put sets a value that was given.
func put[T ~string](to *T, given T) {
	if given != "" {
		*to = given
	}
}

// expandHome resolves ~ where no shell has.
func expandHome(path string) string {
	if home, err := os.UserHomeDir(); err == nil && (path == "~" || strings.HasPrefix(path, "~/")) {
		return filepath.Join(home, path[1:])
	}
	return path
}

// finish refuses what can never work and fills in what follows from the rest.
func (f *initFlags) finish(ctx context.Context) error {
	s := &f.settings
	if s.Type == api.TypeCommand {
		put(&s.Preset, setup.PresetCommand)
		if len(s.Executable) == 0 && len(f.record.Run.Command) == 0 {
			return errors.New("an agent of type command needs --run 'COMMAND ARG…'")
		}
	} else if s.Preset == "" {
		s.Preset = setup.DefaultPreset
	}
	if run := f.record.Run; s.Type == api.TypeACP && len(s.Executable) == 0 && run.Executable == "" && len(run.Command) == 0 {
		return errors.New("an agent of type acp needs --run: " + api.ACPNames() + ", or another program and its arguments")
	}
	flow, err := flowOf(s.Workflow)
	if err != nil {
		return err
	}
	// What the workflow file says is left to it.
	if s.Workspace.Mode == "" && !flow.Says("workspace.mode") {
		s.Workspace.Mode = workflow.ModeFolder
	}
	all := s.Under(flow)
	if all.Workspace.Mode == workflow.ModeEmpty {
		s.Folder = ""
		return nil
	}
	if info, err := os.Stat(all.Folder); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no folder", all.Folder)
	}
	if all.Workspace.Mode != workflow.ModeWorktree {
		return nil
	}
	repo, err := git.Open(ctx, all.Folder, f.git)
	if err == nil {
		_, err = repo.Commit(ctx, all.Workspace.BaseBranch)
	}
	if err != nil {
		return fmt.Errorf("worktrees can't be made: %w", err)
	}
	return nil
}

// flowOf reads a workflow file; none is one that says nothing.
func flowOf(path string) (workflow.Workflow, error) {
	if path == "" {
		return workflow.Workflow{}, nil
	}
	return worker.LoadWorkflow(path)
}

// makeRecord creates the agent if a coordinator answers that doesn't know it.
func (c *cli) makeRecord(ctx context.Context, f *initFlags, what string) (made bool, err error) {
	if f.client == nil {
		return false, nil
	}
	if f.record.Slug != "" {
		if f.record.Type != f.settings.Type {
			c.hint("%s", c.errLook.sgr("33", fmt.Sprintf("! The agent's record says %s and your settings %s, which count here.", f.record.Type, f.settings.Type)))
		}
		return false, nil
	}
	run := map[string]any{}
	if f.settings.Folder != "" {
		run["workFolder"] = f.settings.Folder
	}
	if flow, err := flowOf(f.settings.Workflow); err == nil && f.settings.Under(flow).Workspace.Mode == workflow.ModeWorktree {
		run["workspace"] = workflow.ModeWorktree
	}
	switch words := f.settings.Executable; {
	case f.settings.Type == api.TypeACP && len(words) == 1:
		run["executable"] = words[0]
	case f.settings.Type.NamesProgram():
		run["command"] = words
	}
	f.record, err = f.client.CreateAgent(ctx, map[string]any{"slug": f.agent, "type": f.settings.Type, "run": run})
	if err != nil {
		return false, explain(what, err, nextForAgent(err, f.agent, "stint agent create --help"))
	}
	c.hint("Created the agent %s. Run it with: stint run %s", f.agent, f.agent)
	return true, nil
}

// hintInspection tells a person what was found.
func (c *cli) hintInspection(i worker.Inspection) {
	if i.Git != "" {
		c.hint("%s git %s", c.errLook.good("✓"), i.Git)
	}
	if i.Program.Path != "" {
		c.hint("%s %s", c.errLook.good("✓"), strings.TrimSpace(plain(i.Program.Path)+" "+i.Program.Version))
	}
	for _, words := range i.Uses {
		if !strings.HasSuffix(words, " off") {
			c.hint("%s uses %s", c.errLook.good("✓"), plain(words))
		}
	}
	for _, check := range i.Checks {
		if check.Detail != "" {
			c.hint("%s", c.errLook.sgr("33", "! "+plain(check.Name+": "+check.Detail)))
		}
	}
	if i.Workflow != nil {
		for _, field := range i.Workflow.Ignored {
			c.hint("%s", c.errLook.quiet("  ignored in the workflow file: "+plain(field)))
		}
	}
}

// defaultWorkflow is the WORKFLOW.md of a folder, "" when it has none.
func defaultWorkflow(folder string) string {
	path := filepath.Join(folder, "WORKFLOW.md")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}
