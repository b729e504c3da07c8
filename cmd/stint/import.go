package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/cmd/stint/arrivals"
)

func (c *cli) importCommand() *cobra.Command {
	return group(&cobra.Command{Use: "import", Short: "Take over what other schedulers run, or a workspace"},
		c.importCrontabCommand(), c.importSystemdCommand(), c.importClaudeCommand(), c.importDaguCommand(), c.importWorkspaceCommand())
}

func (c *cli) importCrontabCommand() *cobra.Command {
	var f importFlags
	var system bool
	cmd := &cobra.Command{
		Use: "crontab [FILE|-]", Short: "Make agents of a crontab's lines", Args: cobra.MaximumNArgs(1),
		Long: "Shows the agents that the lines of a crontab would be, without FILE those of your\n" +
			"own (crontab -l), and says of each what is different here or why it can't come.\n" +
			"With --create it makes them, paused. The crontab is not changed: take the lines\n" +
			"out of it before you resume the agents, or both will run them.",
		Example: "stint import crontab\nstint import crontab --create\nstint import crontab /etc/cron.d/backup --system\nssh nas crontab -l | stint import crontab - --prefix nas-",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot import the crontab"
			text, name, err := c.crontabText(cmd.Context(), args)
			if err != nil {
				return usage(what, api.Plain(err), "stint import crontab --help")
			}
			here, err := c.hereIs()
			if err != nil {
				return usage(what, api.Plain(err), "")
			}
			system = system || name == "/etc/crontab" || filepath.Dir(name) == "/etc/cron.d"
			return c.takeOver(cmd.Context(), what, f, arrivals.Crontab(text, system, here), crontabName(name))
		},
	}
	cmd.Flags().BoolVar(&system, "system", false, "each line names a user, as those of /etc/crontab do")
	f.add(cmd)
	return cmd
}

func (c *cli) importSystemdCommand() *cobra.Command {
	var f importFlags
	var system bool
	cmd := &cobra.Command{
		Use: "systemd [FOLDER...]", Short: "Make agents of systemd's timers",
		Long: "Shows the agents that the timers in the folders would be, without FOLDER those\n" +
			"of your own manager (~/.config/systemd/user), and says of each what is different\n" +
			"here or why it can't come. With --create it makes them, paused. No unit is\n" +
			"changed: disable a timer before you resume its agent, or both will run it.",
		Example: "stint import systemd\nstint import systemd --create\nstint import systemd --system",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot import the timers"
			here, err := c.hereIs()
			if err != nil {
				return usage(what, api.Plain(err), "")
			}
			switch {
			case len(args) > 0:
			case system:
				args = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system"}
			default:
				args = []string{filepath.Join(xdg.ConfigHome, "systemd", "user"), filepath.Join(xdg.DataHome, "systemd", "user")}
			}
			jobs, err := arrivals.Systemd(system, here, foldersOf(args)...)
			if err != nil {
				return usage(what, api.Plain(err), "")
			}
			return c.takeOver(cmd.Context(), what, f, jobs, args...)
		},
	}
	cmd.Flags().BoolVar(&system, "system", false, "they are the machine's: take those of your own user")
	f.add(cmd)
	return cmd
}

func (c *cli) importClaudeCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use: "claude [PROJECT...]", Short: "Make agents of Claude's scheduled tasks",
		Long: "Shows the agents that the scheduled tasks of projects would be, without PROJECT\n" +
			"those of this folder and of your home (.claude/scheduled_tasks.json and\n" +
			".claude/scheduled-tasks). With --create it makes them, paused. Nothing is changed\n" +
			"there: delete a task before you resume its agent, or both will run it.",
		Example: "stint import claude\nstint import claude ~/src/shop --create",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot import the scheduled tasks"
			here, err := c.hereIs()
			if err != nil {
				return usage(what, api.Plain(err), "")
			}
			if len(args) == 0 {
				args = []string{".", here.Home}
			}
			var jobs []arrivals.Job
			seen := map[string]bool{}
			for _, arg := range args {
				folder, err := filepath.Abs(arg)
				if err == nil && !seen[folder] {
					seen[folder] = true
					var found []arrivals.Job
					found, err = arrivals.Claude(os.DirFS(folder), folder, here)
					jobs = append(jobs, found...)
				}
				if err != nil {
					return usage(what, api.Plain(err), "")
				}
			}
			return c.takeOver(cmd.Context(), what, f, jobs, args...)
		},
	}
	f.add(cmd)
	return cmd
}

func (c *cli) importDaguCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use: "dagu [FILE|FOLDER...]", Short: "Make agents of Dagu's files",
		Long: "Shows the agents that files of Dagu would be, without FILE those of your own\n" +
			"(~/.config/dagu/dags). Steps that run one after the other become one command; a\n" +
			"file that needs more of Dagu is refused with the reason. With --create it makes\n" +
			"the agents, paused. No file is changed: stop Dagu's scheduler, or take the\n" +
			"schedule out of the file, before you resume an agent.",
		Example: "stint import dagu\nstint import dagu ~/dags/backup.yaml --create",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot import Dagu's files"
			here, err := c.hereIs()
			if err != nil {
				return usage(what, api.Plain(err), "")
			}
			if len(args) == 0 {
				args = []string{filepath.Join(xdg.ConfigHome, "dagu", "dags")}
			}
			files, err := yamlFiles(args)
			if err != nil {
				return usage(what, api.Plain(err), "")
			}
			var jobs []arrivals.Job
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return usage(what, api.Plain(err), "")
				}
				jobs = append(jobs, arrivals.Dagu(file, text, here)...)
			}
			return c.takeOver(cmd.Context(), what, f, jobs, args...)
		},
	}
	f.add(cmd)
	return cmd
}

func foldersOf(paths []string) []fs.FS {
	out := make([]fs.FS, len(paths))
	for i, p := range paths {
		out[i] = os.DirFS(p)
	}
	return out
}

// yamlFiles are the absolute paths of files, and of the YAML files in folders.
func yamlFiles(paths []string) (files []string, err error) {
	for _, p := range paths {
		full, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(full)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, full)
			continue
		}
		entries, err := os.ReadDir(full)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
				files = append(files, filepath.Join(full, e.Name()))
			}
		}
	}
	return files, nil
}

// importFlags are what all sources have in common.
type importFlags struct {
	create bool
	active bool
	prefix string
}

func (f *importFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.create, "create", false, "make the agents that are shown")
	flags.BoolVar(&f.active, "active", false, "with --create: don't leave them paused")
	flags.StringVar(&f.prefix, "prefix", "", "begin each agent's slug with this `TEXT`")
}

// crontabText reads a file, standard input or the user's own table.
func (c *cli) crontabText(ctx context.Context, args []string) (text, name string, err error) {
	if len(args) > 0 {
		b, err := c.fileText(args[0])
		return string(b), args[0], err
	}
	cmd := exec.CommandContext(ctx, "crontab", "-l")
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		if why := strings.TrimSpace(problem.String()); why != "" {
			return "", "", fmt.Errorf("crontab -l says: %s", why)
		}
		return "", "", fmt.Errorf("your crontab can't be read: %w", err)
	}
	return string(out), "", nil
}

// crontabName is what people call the table.
func crontabName(arg string) string {
	if arg == "-" {
		return "standard input"
	}
	return cmp.Or(arg, "your crontab")
}

// hereIs says who imports, and where.
func (c *cli) hereIs() (arrivals.Here, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return arrivals.Here{}, err
	}
	name := c.env("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return arrivals.Here{User: name, Home: home, Zone: c.machineZone(), Now: c.now()}, nil
}

// takenOver is what an import answers.
type takenOver struct {
	Jobs    []arrivals.Job `json:"jobs"`
	Created []string       `json:"created"` // slugs of the agents that were made
	Skipped []string       `json:"skipped"` // slugs that were there already
}

// takeOver shows the jobs of the places that from names, and makes agents of them if that is asked.
func (c *cli) takeOver(ctx context.Context, what string, f importFlags, jobs []arrivals.Job, from ...string) error {
	out := takenOver{Jobs: jobs, Created: []string{}, Skipped: []string{}}
	if len(jobs) == 0 {
		return usage(what, "there is no job in "+strings.Join(from, ", "), "")
	}
	arrivals.NameThem(jobs, f.prefix)
	if f.create {
		client, err := c.connect(what)
		if err != nil {
			return err
		}
		if slug, err := out.create(ctx, client, f.active); err != nil {
			return explain(what+": cannot make the agent "+slug, err, "nothing is lost: mend it and import again; what was made is left alone")
		}
	}
	if err := c.tellJobs(out, f); err != nil {
		return err
	}
	for _, j := range jobs {
		if j.Refused != "" {
			return quietly(exitProblems)
		}
	}
	return nil
}

// create makes the agents whose slugs are free. With the error comes the slug of the one that
// can't be made.
func (t *takenOver) create(ctx context.Context, client *api.Client, active bool) (slug string, err error) {
	for _, j := range t.Jobs {
		a := j.Agent
		if j.Refused != "" {
			continue
		}
		run := map[string]any{"workFolder": a.WorkFolder}
		if len(a.Command) > 0 {
			run["command"] = a.Command
		}
		in := map[string]any{
			"slug": a.Slug, "type": cmp.Or(a.Type, string(api.TypeCommand)), "turnTimeoutSeconds": a.Timeout, "name": a.Name, "description": a.Description, "prompt": a.Prompt,
			"jitterSeconds": a.Jitter, "paused": !active, "run": run,
		}
		if a.Schedule != "" { // a job whose times nobody knows has neither zone nor catching up
			in["schedule"], in["timeZone"], in["catchUp"] = a.Schedule, a.TimeZone, a.CatchUp
		}
		_, err := client.CreateAgent(ctx, in)
		switch {
		case api.CodeOf(err) == api.CodeSlugTaken:
			t.Skipped = append(t.Skipped, a.Slug)
		case err != nil:
			return a.Slug, err
		default:
			t.Created = append(t.Created, a.Slug)
		}
	}
	return "", nil
}

// tellJobs shows people the jobs, what is different of each, and what comes next.
func (c *cli) tellJobs(out takenOver, f importFlags) error {
	if c.flags.json {
		return c.document(out)
	}
	shown := table{head: []string{"AGENT", "SCHEDULE", "FOLDER", "COMMAND"}, flex: 3}
	refused := 0
	for _, j := range out.Jobs {
		if j.Refused != "" {
			refused++
			continue
		}
		a := j.Agent
		shown.rows = append(shown.rows, []string{a.Slug, a.Schedule, a.WorkFolder, cmp.Or(a.Line(), a.Prompt)})
	}
	if err := c.print(shown, "Nothing of it can come."); err != nil {
		return err
	}
	for _, j := range out.Jobs {
		from := j.Source
		if j.Line > 0 {
			from = fmt.Sprintf("line %d", j.Line)
		}
		if j.Refused != "" {
			c.hint("! %s can't come: %s", from, plain(j.Refused))
			c.hint("    %s", plain(j.Source))
		}
		for _, note := range j.Notes {
			c.hint("· %s, %s: %s", from, j.Agent.Slug, plain(note))
		}
	}
	for _, slug := range out.Skipped {
		c.hint("%s was there already and is left alone; --prefix makes other slugs.", slug)
	}
	switch {
	case !f.create:
		c.hint("%d of %d can come. Nothing is made yet: --create makes them, paused.", len(shown.rows), len(out.Jobs))
	case f.active || len(out.Created) == 0:
		c.hint("Made %s.", numberOf(len(out.Created), "agent", "agents"))
	default:
		c.hint("Made %s, then: %s", numberOf(len(out.Created), "agent, paused. Take it out where it comes from", "agents, paused. Take them out where they come from"), c.inWorkspace("stint agent resume AGENT"))
	}
	if len(shown.rows) == 0 {
		return nil
	}
	c.hint("A slot that comes while a run goes on is skipped, where cron and Dagu may start a second one; see --overlap of stint agent edit.")
	return nil
}
