package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"charm.land/huh/v2"
	shellquote "github.com/kballard/go-shellquote"

	"stint/api"
	"stint/worker"
	"stint/worker/git"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// errAborted says that a person left a form.
var errAborted = quietly(exitInterrupted)

// form shows questions on the terminal. With ACCESSIBLE it asks line by line, for screen
// readers.
func (c *cli) form(ctx context.Context, fields ...huh.Field) error {
	err := huh.NewForm(huh.NewGroup(fields...)).
		WithInput(c.in).WithOutput(c.err).WithShowHelp(true).
		WithAccessible(c.env("ACCESSIBLE") != "" || c.env("TERM") == "dumb" || !c.talks).
		RunWithContext(ctx)
	if errors.Is(err, huh.ErrUserAborted) {
		return errAborted
	}
	return err
}

// agrees asks a question whose answer is no unless a person says yes.
func (c *cli) agrees(ctx context.Context, question string) (yes bool, err error) {
	err = c.form(ctx, huh.NewConfirm().Title(question).Affirmative("Yes").Negative("No").Value(&yes))
	return yes, err
}

func (c *cli) askAgent(ctx context.Context, f *initFlags) error {
	if f.agent != "" {
		return nil
	}
	var words []string
	if f.client != nil {
		for _, w := range agentWords(ctx, f.client) {
			slug, _, _ := strings.Cut(w, "\t")
			words = append(words, slug)
		}
	}
	return c.form(ctx, huh.NewInput().Title("Agent (its slug; a new one is made)").Suggestions(words).Value(&f.agent).Validate(func(s string) error {
		if !api.SlugForm.MatchString(strings.ToLower(strings.TrimSpace(s))) {
			return errors.New("2 to 32 lowercase letters, digits and hyphens, a letter first")
		}
		return nil
	}))
}

// askSettings asks for what no flag said, suggesting the current values.
func (c *cli) askSettings(ctx context.Context, f *initFlags) error {
	s := &f.settings
	if f.existing && !f.replace {
		yes, err := c.agrees(ctx, "There are settings for "+f.agent+" already. Change them?")
		if err != nil {
			return err
		}
		if !yes {
			return errAborted
		}
	}
	if f.kind == "" {
		if s.Type == "" {
			s.Type = f.record.Type
		}
		if s.Type == "" {
			s.Type = api.TypeClaudeCode
		}
		var types []huh.Option[api.AgentType]
		for _, p := range append(api.AgentTypes[1:len(api.AgentTypes):len(api.AgentTypes)], api.AgentTypes[0]) { // a command last
			types = append(types, huh.NewOption(p.Word, p.Type))
		}
		if err := c.form(ctx, huh.NewSelect[api.AgentType]().Title("Type").Value(&s.Type).Options(types...)); err != nil {
			return err
		}
	}
	if err := c.askRights(ctx, f); err != nil {
		return err
	}
	if err := c.askPlace(ctx, f); err != nil {
		return err
	}
	return c.askWords(ctx, f)
}

func (c *cli) askRights(ctx context.Context, f *initFlags) error {
	s := &f.settings
	if s.Type == api.TypeCommand {
		s.Preset = setup.PresetCommand
		if len(s.Executable) > 0 || len(f.record.Run.Command) > 0 {
			return nil
		}
		var err error
		s.Executable, err = c.askCommandLine(ctx, huh.NewInput().Title("Command and its arguments (no shell reads it)"), "")
		return err
	}
	if err := c.askProgram(ctx, f); err != nil {
		return err
	}
	if f.preset != "" {
		return nil
	}
	preset := string(s.Preset)
	var options []huh.Option[string]
	for _, p := range api.Presets() {
		options = append(options, huh.NewOption(p.Title, p.Name))
	}
	err := c.form(ctx, huh.NewSelect[string]().Title("Who decides what it may do?").Options(options...).Value(&preset).
		DescriptionFunc(func() string { p, _ := api.PresetNamed(preset); return p.Sentence }, &preset))
	s.Preset = setup.Preset(preset)
	return err
}

// askProgram asks which program it is that speaks ACP, where nothing names one.
func (c *cli) askProgram(ctx context.Context, f *initFlags) error {
	s := &f.settings
	if s.Type != api.TypeACP || len(s.Executable) > 0 || f.record.Run.Executable != "" || len(f.record.Run.Command) > 0 {
		return nil
	}
	var names []string
	for _, p := range api.ACPPrograms {
		names = append(names, p.Name)
	}
	var err error
	s.Executable, err = c.askCommandLine(ctx, huh.NewInput().Title("Program ("+api.ACPNames()+", or another with its arguments)").Suggestions(names), names[0])
	return err
}

// askCommandLine has a person write a program with its arguments, and returns them apart.
func (c *cli) askCommandLine(ctx context.Context, input *huh.Input, text string) ([]string, error) {
	err := c.form(ctx, input.Value(&text).Validate(func(text string) error {
		if words, err := shellquote.Split(text); err != nil || len(words) == 0 {
			return errors.New("name a program; quotation marks must match")
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return shellquote.Split(text)
}

func (c *cli) askPlace(ctx context.Context, f *initFlags) error {
	s := &f.settings
	if f.folder == "" {
		err := c.form(ctx, huh.NewInput().Title("Folder (it works there, or in worktrees of its repository)").Value(&s.Folder).Validate(func(text string) error {
			if info, err := os.Stat(expandHome(strings.TrimSpace(text))); err != nil || !info.IsDir() {
				return errors.New("there is no such folder")
			}
			return nil
		}))
		if err != nil {
			return err
		}
		if s.Folder, err = filepath.Abs(expandHome(strings.TrimSpace(s.Folder))); err != nil {
			return err
		}
		_, err = git.Open(ctx, s.Folder, f.git)
		f.branches = err == nil
	}
	flow, err := c.askFlow(ctx, f)
	if err != nil {
		return err
	}
	if f.mode == "" && (s.Workspace.Mode != "" || !flow.Says("workspace.mode")) {
		options := []huh.Option[string]{huh.NewOption("the folder itself, one session at a time", workflow.ModeFolder)}
		if f.branches {
			options = append(options, huh.NewOption("a git worktree and branch for each session", workflow.ModeWorktree))
			if s.Workspace.Mode == "" && s.Type != api.TypeCommand {
				s.Workspace.Mode = workflow.ModeWorktree
			}
		}
		options = append(options, huh.NewOption("a new empty folder for each session, filled by the workflow's hook", workflow.ModeEmpty))
		if s.Workspace.Mode == "" {
			s.Workspace.Mode = workflow.ModeFolder
		}
		if err := c.form(ctx, huh.NewSelect[string]().Title("Where do sessions work?").Options(options...).Value(&s.Workspace.Mode)); err != nil {
			return err
		}
	}
	if f.base != "" || flow.Says("workspace.base_branch") || s.Under(flow).Workspace.Mode != workflow.ModeWorktree {
		return nil
	}
	return c.form(ctx, huh.NewInput().Title("Base branch (empty: what is checked out then)").Value(&s.Workspace.BaseBranch).Validate(func(name string) error {
		repo, err := git.Open(ctx, s.Folder, f.git)
		if err != nil {
			return err
		}
		_, err = repo.Commit(ctx, name)
		return err
	}))
}

func (c *cli) askWords(ctx context.Context, f *initFlags) error {
	s := &f.settings
	var fields []huh.Field
	if f.name == "" {
		fields = append(fields, huh.NewInput().Title("Worker name (empty: the process's own)").CharLimit(64).Value(&s.Name))
	}
	if f.instructions == "" {
		fields = append(fields, huh.NewText().Title("Instructions for the agent (trusted; empty: none)").Value(&s.Instructions).Validate(func(text string) error {
			if n := utf8.RuneCountInString(text); n > 2000 {
				return fmt.Errorf("%d characters are more than 2000", n)
			}
			return nil
		}))
	}
	if len(fields) == 0 {
		return nil
	}
	return c.form(ctx, fields...)
}

// askFlow asks for the workflow file, which may leave fewer questions.
func (c *cli) askFlow(ctx context.Context, f *initFlags) (workflow.Workflow, error) {
	s := &f.settings
	if f.workflow == "" {
		if s.Workflow == "" {
			s.Workflow = defaultWorkflow(s.Folder)
		}
		err := c.form(ctx, huh.NewInput().Title("Workflow file (- is none)").Value(&s.Workflow).Validate(func(path string) error {
			_, err := flowAt(path)
			return err
		}))
		if err != nil {
			return workflow.Workflow{}, err
		}
	}
	w, err := flowAt(s.Workflow)
	s.Workflow = w.Path
	return w, err
}

// flowAt reads the file that a person named; - and an empty answer mean none.
func flowAt(path string) (workflow.Workflow, error) {
	path = strings.TrimSpace(path)
	if path == "" || path == "-" {
		return workflow.Workflow{}, nil
	}
	abs, err := filepath.Abs(expandHome(path))
	if err != nil {
		return workflow.Workflow{}, err
	}
	return worker.LoadWorkflow(abs)
}
