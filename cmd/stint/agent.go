package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	shellquote "github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) agentCommand() *cobra.Command {
	return group(&cobra.Command{Use: "agent", Aliases: []string{"agents"}, Short: "Make and manage agents"},
		c.agentCreateCommand(), c.agentListCommand(), c.agentShowCommand(), c.agentEditCommand(),
		c.agentPauseCommand(), c.agentResumeCommand(), c.agentDeleteCommand())
}

func (c *cli) agentCreateCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "create SLUG --run 'COMMAND ARG…' | --type TYPE",
		Short: "Make an agent",
		Example: `stint agent create backup --run 'rsync -a /home /mnt' \
    --work-folder ~/backup --schedule '0 3 * * *' --tz Europe/Berlin
stint agent create report --run "sh -c 'make report | mail -s report me'"
stint agent create review --type claude_code --preset ask --daily-limit 5
stint agent create helper --type acp --executable opencode
stint agent create nightly --type codex --preset unattended \
    --allow 'shell:make test*' --schedule @daily --prompt 'Mend the tests'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot create the agent " + args[0]
			body, err := c.agentBody(cmd.Flags(), &f, what)
			if err != nil {
				return err
			}
			if (f.kind == "" || f.kind == string(api.TypeCommand)) && f.run == "" {
				return usage(what, "--run is missing: the command and its arguments, in quotes", "stint agent create --help")
			}
			if f.kind == string(api.TypeACP) && f.run == "" && f.executable == "" {
				return usage(what, "--executable is missing: "+api.ACPNames(), "or another program and its arguments: --run 'PROGRAM ARG…'")
			}
			body["slug"] = args[0]
			c.proposeFolder(body)
			c.proposeZone(body)
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			a, err := client.CreateAgent(cmd.Context(), body)
			if err != nil {
				return explain(what, err, nextForAgent(err, args[0], "stint agent create --help"))
			}
			return c.show(a, a.ID.String(), func() error {
				if err := c.say("%s", a.ID); err != nil {
					return err
				}
				c.hint("Created the agent %s. Run it with: stint run %s", a.Slug, a.Slug)
				c.hintSchedule(a)
				return nil
			})
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// nextForAgent suggests what helps after a creation was refused.
func nextForAgent(err error, slug, otherwise string) string {
	if api.CodeOf(err) == api.CodeSlugTaken {
		return "stint agent edit " + slug + " …, or choose another slug"
	}
	return otherwise
}

func (c *cli) hintSchedule(a api.Agent) {
	if a.Schedule == "" {
		return
	}
	if a.NextSlotAt.IsZero() {
		why := "it never fires"
		if a.Paused {
			why = "it is paused"
		}
		c.hint("%s; %s.", a.ScheduleWords, why)
		return
	}
	c.hint("%s; next %s.", a.ScheduleWords, relative(a.NextSlotAt.Time, c.now())+" ("+clock(a.NextSlotAt.Time, c.now())+")")
}

func (c *cli) agentEditCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:     "edit AGENT",
		Short:   "Change an agent; what no flag names stays as it is",
		Example: "stint agent edit backup --schedule '0 4 * * *'\nstint agent edit backup --schedule ''   # no schedule any more",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot change the agent " + args[0]
			patch, err := c.agentBody(cmd.Flags(), &f, what)
			if err != nil {
				return err
			}
			if len(patch) == 0 {
				return usage(what, "no flag says what to change", "stint agent edit --help")
			}
			return c.withAgent(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, ref string) error {
				a, err := client.EditAgent(ctx, ref, patch)
				if err != nil {
					return noAgent(ctx, client, what, ref, err)
				}
				return c.show(a, a.ID.String(), func() error {
					c.hint("Changed the agent %s.", a.Slug)
					c.hintSchedule(a)
					return nil
				})
			})
		},
	}
	cmd.Flags().StringVar(&f.slug, "slug", "", "a new `SLUG`")
	f.add(cmd.Flags())
	return cmd
}

// withAgent connects and finds the agent that an argument names.
func (c *cli) withAgent(ctx context.Context, what, ref string, do func(context.Context, *api.Client, string) error) error {
	client, err := c.connect(what)
	if err != nil {
		return err
	}
	if ref, err = findAgent(ctx, client, ref); err != nil {
		return err
	}
	return do(ctx, client, ref)
}

func (c *cli) agentListCommand() *cobra.Command {
	l := listing[api.Agent]{
		what: "cannot list the agents", page: (*api.Client).Agents,
		head: []string{"AGENT", "TYPE", "STATE", "RUNNING", "SCHEDULE", "NEXT"}, flex: 4,
		row: func(a api.Agent) []string {
			row := []string{a.Slug, string(a.Type), c.agentState(a), strconv.FormatInt(a.Running, 10), c.scheduleCell(a), c.ago(a.NextSlotAt)}
			if !c.tty {
				row = append([]string{a.ID.String()}, row...)
			}
			return row
		},
		id:   func(a api.Agent) string { return a.ID.String() },
		none: "There is no agent yet. Make one with: stint agent create SLUG --run 'COMMAND'",
	}
	return l.paged(c, "List agents")
}

func (c *cli) agentState(a api.Agent) string {
	switch {
	case a.Paused:
		return c.outLook.sgr("33", "paused")
	case a.ScheduleError != "":
		return c.outLook.bad("schedule error")
	}
	return "ready"
}

func (c *cli) scheduleCell(a api.Agent) string {
	if a.Schedule == "" || !c.tty {
		return a.Schedule
	}
	return a.Schedule + " " + a.TimeZone
}

func (c *cli) agentShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show AGENT",
		Short: "Show one agent",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot show the agent " + args[0]
			return c.withAgent(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, ref string) error {
				a, err := client.Agent(ctx, ref)
				if err != nil {
					return noAgent(ctx, client, what, ref, err)
				}
				return c.show(a, a.ID.String(), func() error { return c.agentFacts(a).print(c) })
			})
		},
	}
}

func (c *cli) agentFacts(a api.Agent) *facts {
	f := &facts{}
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	state := c.agentState(a)
	if a.PausedReason != "" {
		state += ": " + plain(a.PausedReason)
	}
	f.add("slug", a.Slug)
	f.add("id", a.ID.String())
	f.add("name", plain(a.Name))
	f.add("description", plain(a.Description))
	f.add("state", state)
	f.add("type", string(a.Type))
	f.add("run", plain(shellquote.Join(a.Run.Command...)))
	f.add("check", plain(shellquote.Join(a.Run.Check...)))
	f.add("expects", expectWords(a.Run))
	f.add("work folder", plain(a.Run.WorkFolder))
	f.add("environment", strings.Join(a.Run.Env, " "))
	talkFacts(f, a)
	f.add("prompt", opening(a.Prompt))
	f.add("schedule", a.Schedule)
	f.add("time zone", a.TimeZone)
	f.add("means", a.ScheduleWords)
	f.add("schedule error", a.ScheduleError)
	f.add("next slot", c.when(a.NextSlotAt))
	f.add("catch-up", string(a.CatchUp))
	f.add("overlap", string(a.Overlap))
	f.add("jitter", seconds{&a.JitterSeconds}.String())
	f.add("running", number(a.Running))
	f.add("at most at once", number(a.MaxConcurrent))
	f.add("priority", number(a.Priority))
	f.add("labels", strings.Join(a.Labels, " "))
	f.add("lease", seconds{&a.LeaseSeconds}.String())
	f.add("turn time-out", seconds{&a.TurnTimeoutSeconds}.String())
	f.add("stall time-out", seconds{&a.StallTimeoutSeconds}.String())
	f.add("queue time-out", seconds{&a.QueueTimeoutSeconds}.String())
	f.add("task updates", updatesWords(a.TaskUpdates))
	f.add("failures in a row", number(a.FailuresInRow))
	f.add("changed", c.when(a.UpdatedAt))
	return f
}

// expectWords say what must come of a run, "" for nothing.
func expectWords(r api.Run) string {
	if r.Strict {
		return plain(r.Expect) + ", or it fails"
	}
	return plain(r.Expect)
}

// updatesWords are the task updates that are let, "" for all.
func updatesWords(updates api.Labels) string {
	switch len(updates) {
	case 0:
		return "none"
	case len(api.TaskUpdates):
		return ""
	}
	return strings.Join(updates, " ")
}

func (c *cli) agentPauseCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause AGENT",
		Short: "Keep an agent's sessions from starting; running ones go on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.changeAgent(cmd, args[0], "pause", func(ctx context.Context, client *api.Client, ref string) (api.AgentChanged, error) {
				return client.PauseAgent(ctx, ref, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a `TEXT` that says why")
	return cmd
}

func (c *cli) agentResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume AGENT",
		Short: "End a pause; slots that passed meanwhile don't run",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.changeAgent(cmd, args[0], "resume", func(ctx context.Context, client *api.Client, ref string) (api.AgentChanged, error) {
				return client.ResumeAgent(ctx, ref)
			})
		},
	}
}

func (c *cli) changeAgent(cmd *cobra.Command, ref, verb string, do func(context.Context, *api.Client, string) (api.AgentChanged, error)) error {
	what := "cannot " + verb + " the agent " + ref
	return c.withAgent(cmd.Context(), what, ref, func(ctx context.Context, client *api.Client, ref string) error {
		answer, err := do(ctx, client, ref)
		if err != nil {
			return noAgent(ctx, client, what, ref, err)
		}
		return c.show(answer, answer.Agent.ID.String(), func() error {
			if !answer.Changed {
				c.hint("The agent %s was %sd already.", answer.Agent.Slug, verb)
				return nil
			}
			c.hint("The agent %s is %sd.", answer.Agent.Slug, verb)
			return nil
		})
	})
}

func (c *cli) agentDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete AGENT", Aliases: []string{"rm"},
		Short: "Delete an agent and cancel its sessions",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot delete the agent " + args[0]
			return c.withAgent(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, ref string) error {
				a, err := client.Agent(ctx, ref)
				if err != nil {
					return noAgent(ctx, client, what, ref, err)
				}
				if err := c.confirm(what, a.Slug, yes); err != nil {
					return err
				}
				if err := client.DeleteAgent(ctx, a.ID.String()); err != nil {
					return explain(what, err, "stint agent show "+a.Slug)
				}
				return c.done(map[string]string{"deleted": a.ID.String()}, a.ID.String(), "Deleted the agent %s.", a.Slug)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	return cmd
}

// confirm has a person type the name of what is about to be lost.
func (c *cli) confirm(what, name string, yes bool) error {
	if yes {
		return nil
	}
	if !isTerminal(c.in) || !c.talks {
		return usage(what, "it deletes things and nobody is there to ask", "add --yes")
	}
	fmt.Fprintf(c.err, "This deletes %s and cancels its sessions. Type %s to go on: ", name, name)
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && answer == "" || strings.TrimSpace(answer) != name {
		return &problem{code: exitUsage, what: what, why: "the name was not typed, so nothing was deleted"}
	}
	return nil
}
