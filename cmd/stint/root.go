package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
)

// The groups of the short help, in order.
const (
	groupDaily  = "daily"
	groupTasks  = "tasks"
	groupAgents = "agents"
	groupServer = "server"
	groupPeople = "people"
)

// newRoot is the whole command line.
func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "stint",
		Short: "Runs AI agents and commands on your machine, on a schedule or on demand.",
		Long: "Stint runs AI agents, or any command, on your own machine: on a schedule or on\n" +
			"demand, no run twice at once. Without a command it shows how things stand.",
		Example: "stint up --demo\n" +
			"stint agent create backup --run 'rsync -a /home /mnt' --schedule '0 3 * * *'\n" +
			"stint run backup --watch\n" +
			"stint sessions",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: c.ready,
		RunE:              c.runRoot,
	}
	flags := root.PersistentFlags()
	flags.BoolVar(&c.flags.json, "json", false, "print JSON in the shapes of the REST interface")
	flags.BoolVarP(&c.flags.quiet, "quiet", "q", false, "print ids alone")
	flags.StringVar(&c.flags.color, "color", colorAuto, "`when` to colour: auto, always or never")
	flags.StringVar(&c.flags.dataDir, "data-dir", "", "the `DIR` that holds the data (STINT_DATA_DIR; else $XDG_DATA_HOME/stint)")
	flags.StringVar(&c.flags.workspace, "workspace", "", "the `WORKSPACE` to work in (STINT_WORKSPACE; else default)")
	flags.SortFlags = false

	c.addCommands(root)

	cobra.EnableCommandSorting = false
	root.SetFlagErrorFunc(flagError)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		group(completion)
	}
	nameArguments(root)
	c.completeArgs(root)
	useHelpFunctions()
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(helpTemplate)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetIn(c.in)
	return root
}

// addCommands gives the root its commands, each in its group of the short help.
func (c *cli) addCommands(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupDaily, Title: "Daily"},
		&cobra.Group{ID: groupTasks, Title: "Tasks and leases"},
		&cobra.Group{ID: groupAgents, Title: "Agents, schedules and workers"},
		&cobra.Group{ID: groupPeople, Title: "People and programs"},
		&cobra.Group{ID: groupServer, Title: "Server"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, cmd := range commands {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	add(groupDaily, c.runCommand(), c.sessionsCommand(), c.showCommand(), c.logsCommand(), c.watchCommand(), c.waitCommand(),
		c.inboxCommand(), c.answerCommand(), c.sayCommand(), c.cancelCommand(), c.stopCommand(), c.retryCommand(), c.archiveCommand(), c.keepCommand(),
		c.diffCommand(), c.landCommand(), c.discardCommand())
	add(groupTasks, c.nextCommand(), c.taskCommand(), c.dispatchCommand(), c.briefingCommand(), c.claimCommand(), c.renewCommand(), c.extendCommand(),
		c.releaseCommand(), c.claimsCommand())
	add(groupAgents, c.agentCommand(), c.scheduleCommand(), c.workerCommand(), c.importCommand(), c.exportCommand(), c.notifyCommand(), c.webhookCommand(), c.triggerURLCommand(), c.hookCommand())
	add(groupPeople, c.loginCommand(), c.logoutCommand(), c.whoamiCommand(), c.contextCommand(), c.memberCommand(), c.keyCommand(), c.accountCommand(), c.programCommand(), c.workspaceCommand(), c.mcpCommand(), c.apiCommand())
	add(groupServer, c.upCommand(), c.serveCommand(), c.serviceCommand(), c.openCommand(), c.statusCommand(), c.configCommand(), c.doctorCommand(), c.auditCommand(), c.backupCommand(), c.restoreCommand(), c.pruneCommand(), c.supportBundleCommand(), c.conformanceCommand())
	root.AddCommand(c.versionCommand(), c.docsCommand(), c.manCommand(), exitCodesTopic(), environmentTopic(), queryTopic())
}

// group makes a command of its subcommands: alone it shows its help.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subs...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		next := cmd.CommandPath() + " --help"
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			next = "did you mean " + cmd.CommandPath() + " " + like[0] + "?"
		}
		return usage(fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()), "", next)
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SetOut(cmd.ErrOrStderr()) // it isn't what was asked for
		if err := cmd.Help(); err != nil {
			return err
		}
		return quietly(exitUsage)
	}
	return cmd
}

// helpTemplate: one sentence, examples first, then commands and flags, each line within 80
// columns.
const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}
{{end}}{{if .HasExample}}
Examples:
  {{indent .Example}}
{{end}}{{if or .Runnable .HasSubCommands}}
Usage:
  {{if .Runnable}}{{.UseLine}}{{else}}{{.CommandPath}} COMMAND{{end}}
{{end}}{{if .HasAvailableSubCommands}}{{$cmd := .}}{{range $group := .Groups}}
{{.Title}}:{{range $cmd.Commands}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}
{{end}}
{{if .Groups}}Other{{else}}Commands{{end}}:{{range .Commands}}{{if and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{wrapped .LocalFlags}}
{{end}}{{if .HasAvailableInheritedFlags}}
Everywhere:
{{wrapped .InheritedFlags}}
{{end}}{{if .HasHelpSubCommands}}
Topics:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  stint help {{.Name}}{{end}}{{end}}
{{end}}`

const helpColumns = 80

func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("The exit codes of stint:\n\n")
	for _, m := range exitMeanings {
		fmt.Fprintf(&b, "  %3d  %s\n", m.code, m.means)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: b.String()}
}

func queryTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("What --query and the search box of the dashboard understand. All parts are\ntrue of each session that is found:\n\n")
	b.WriteString("  text, \"two words\"     part of the title or the prompt\n  an id                 that session\n")
	for _, field := range api.QueryFields() {
		fmt.Fprintf(&b, "  %s\n", field)
	}
	b.WriteString("\nNumbers and lengths are compared by >, >=, < and <=, are one value (tries:2), or\nlie between two (cost:0.5..2). -status: and -phase: mean any other. " +
		"Archived\nsessions are left out unless it says is:archived. There are also is:kept,\nis:marked and is:unlanded. More: stint docs sessions")
	return &cobra.Command{Use: "query", Short: "How sessions are found by a query", Long: b.String()}
}

func environmentTopic() *cobra.Command {
	return &cobra.Command{Use: "environment", Short: "The environment variables that stint reads", Long: `The environment variables that stint reads; a flag wins over them,
and they win over the file of settings, see stint config:

  STINT_CONFIG      the file of settings ($XDG_CONFIG_HOME/stint/config.toml;
                    else /etc/stint/config.toml)
  STINT_ADDR        where up and serve listen (127.0.0.1:7717)
  STINT_DATA_DIR    the data directory ($XDG_DATA_HOME/stint)
  STINT_URL         the server that the other commands call (that of the
                    context in use; else the one on the data directory)
  STINT_TOKEN       the bearer token for it (that of stint login; else
                    owner.token of the data directory)
  STINT_CONTEXT     the context to use, see stint context; local is the server
                    on the data directory
  STINT_WORKSPACE   the workspace to work in (default)
  STINT_BASE_URL, STINT_ALLOWED_HOSTS, STINT_TRUSTED_PROXIES
                    how a server is reached from other machines: see serve
  STINT_WEBHOOKS_INSIDE
                    true: webhooks may send to this machine and its networks
  STINT_METRICS_ADDR
                    a loopback HOST:PORT on which Prometheus reads /metrics
  STINT_METRICS_TOKEN
                    the bearer token with which it reads the server's /metrics
  STINT_RUN_DEPTH, STINT_RUN_STARTS
                    how deep agents start each other (3), and how many
                    sessions under one claim (20)
  STINT_MIN_FREE_MIB
                    MiB that a worker leaves free on its disks (512)
  STINT_WORKSPACES_AGE, STINT_WORKSPACES_SIZE
                    how long a worker keeps workspaces that nobody uses (14d;
                    never removes none), and how much they may take (20GB)
  STINT_DATA_MIB    MiB that the database may take (0: as many as there are)
  STINT_SESSION_OUTPUT_MIB
                    MiB of one session's output that are kept (64)
  STINT_STREAMS_PERSON, STINT_STREAMS_ADDRESS, STINT_STREAMS_ALL
                    live streams at a time of one person (128), from one
                    address (512) and in all (2048)
  STINT_WAITS_PERSON, STINT_WAITS_ADDRESS, STINT_WAITS_ALL
                    the same for held requests of workers (2048, 4096, 8192)
  STINT_BACKUP_EVERY, STINT_BACKUP_KEEP, STINT_BACKUP_DIR
                    how often a server backs itself up (never), how many of
                    those backups stay (7), and where they are (backups in
                    the data directory)
  STINT_LOG_LEVEL   debug, info, warn or error
  STINT_LOG_FORMAT  text or json
  NO_COLOR          anything: no colour
  CLICOLOR_FORCE    anything but 0: colour in pipes too
  TZ                the zone in which times are shown and schedules proposed

Clocks, read by up, serve and worker run at their start. Each is a length such
as 30s, 15m or 2h, down to one second:

` + clockHelp()}
}
