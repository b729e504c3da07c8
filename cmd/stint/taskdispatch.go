package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) dispatchCommand() *cobra.Command {
	var in api.DispatchInput
	var prompt string
	cmd := &cobra.Command{
		Use: "dispatch TASK", Short: "Claim a task and queue a session that works on it", Args: cobra.ExactArgs(1),
		Long: "Claims a task and queues a session of an agent that works on it, in one step.\n" +
			"The session holds the task until it ends. The agent is the one named, else the\n" +
			"task's assignee, else the workspace's only one. A task that somebody holds, that\n" +
			"is done, or that waits for another is refused. --print changes nothing and shows\n" +
			"what the agent would be told.",
		Example: "stint dispatch T-42 --agent review\nstint dispatch T-42 --print",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("prompt") {
				text, err := c.promptText(prompt)
				if err != nil {
					return usage("cannot dispatch the task "+args[0], "--prompt: "+err.Error(), "stint dispatch --help")
				}
				in.Prompt = &text
			}
			got, err := onTask(cmd.Context(), c, "dispatch", args[0], func(client *api.Client, ctx context.Context, ref string) (api.Dispatched, error) {
				return dispatch(ctx, client, ref, in)
			})
			if err != nil {
				return err
			}
			if in.Print {
				return c.showPlanned(got)
			}
			return c.showDispatched(got)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&in.Agent, "agent", "", "the `AGENT` that works on it")
	flags.StringVar(&prompt, "prompt", "", "the `TEXT` that it is told (the agent's own); - reads stdin")
	flags.BoolVar(&in.Force, "force", false, "although somebody holds it; for admins")
	flags.BoolVar(&in.Print, "print", false, "change nothing: show what would start")
	return cmd
}

// dispatch sends one dispatch, again if its answer was lost.
func dispatch(ctx context.Context, client *api.Client, ref string, in api.DispatchInput) (out api.Dispatched, err error) {
	key := ""
	if !in.Print {
		key = newKey()
	}
	err = untilAnswered(ctx, func() error {
		out, err = client.DispatchTask(ctx, ref, in, key)
		return err
	})
	return out, err
}

func (c *cli) showDispatched(got api.Dispatched) error {
	s := got.Session
	return c.show(got, s.ID.String(), func() error {
		if err := c.say("%s", s.ID); err != nil {
			return err
		}
		if got.TookOverFrom != nil {
			c.hint("%s was assigned to %s until now.", got.Task.Key, personName(got.TookOverFrom))
		}
		c.hint("%s is to work on %s: %s. Follow it with: stint watch %s", got.Agent, got.Task.Key, s.Status, s.ID)
		if s.WaitingFor != nil {
			c.hint("%s", s.WaitingFor.Sentence)
		}
		if got.Displaced != 0 {
			c.hint("Session %s, which had it, goes on. End it with: stint cancel %s", got.Displaced, got.Displaced)
		}
		return nil
	})
}

// showPlanned prints what a dispatch would start.
func (c *cli) showPlanned(got api.Dispatched) error {
	return c.show(got, got.Task.Key, func() error {
		f := &facts{}
		f.add("task", got.Task.Key)
		f.add("agent", got.Agent)
		f.add("prompt", opening(got.Prompt))
		if err := f.print(c); err != nil {
			return err
		}
		return c.printText("\n" + got.Briefing)
	})
}

// printText prints a text of several lines that people wrote.
func (c *cli) printText(text string) error {
	out := output{w: c.out}
	if err := out.write(strings.TrimRight(text, "\n") + "\n"); err != nil {
		return err
	}
	return out.close()
}

func (c *cli) briefingCommand() *cobra.Command {
	return &cobra.Command{
		Use: "briefing TASK", Short: "Print what an agent is told about a task", Args: cobra.ExactArgs(1),
		Example: "stint briefing T-42",
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := onTask(cmd.Context(), c, "brief anybody on", args[0], (*api.Client).TaskBriefing)
			if err != nil {
				return err
			}
			return c.show(got, got.Task.Key, func() error { return c.printText(got.Text) })
		},
	}
}

func (c *cli) nextCommand() *cobra.Command {
	var n int
	var claim bool
	cmd := &cobra.Command{
		Use: "next", Aliases: []string{"queue"}, Short: "List what you are to do next, the most pressing first", Args: cobra.NoArgs,
		Long: "Lists the tasks that are yours or nobody's and aren't done, the most pressing\n" +
			"first, with the reason for each place. --claim takes the first that can be begun:\n" +
			"to do or in progress, with nobody at work on it and nothing that it waits for.",
		Example: "stint next\nstint next --claim",
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot tell what is next"
			if n < 1 || n > pageSize {
				return usage(what, "-n is 1 to 200", "stint next --help")
			}
			if claim {
				return c.claimNext(cmd.Context())
			}
			found, err := call(cmd.Context(), c, what, taskHelp, func(client *api.Client, ctx context.Context) (api.NextTasks, error) {
				return client.NextTasks(ctx, api.Page{Limit: n})
			})
			if err != nil {
				return err
			}
			return c.showNext(found)
		},
	}
	cmd.Flags().IntVarP(&n, "count", "n", 20, "how many, 1 to 200")
	cmd.Flags().BoolVar(&claim, "claim", false, "claim the first that is free")
	return cmd
}

func (c *cli) showNext(found api.NextTasks) error {
	if c.flags.json {
		return c.document(found)
	}
	t := table{head: []string{"TASK", "PRIORITY", "STATE", "TITLE", "WHY", "HELD BY"}, flex: 3}
	for _, one := range found.Items {
		holder := ""
		if one.Task.Lease != nil {
			holder = personName(&one.Task.Lease.Holder)
		}
		t.rows = append(t.rows, []string{one.Task.Key, string(one.Task.Priority), string(one.Task.State), firstLine(one.Task.Title), one.Why, holder})
	}
	return c.print(t, "There is nothing for you to do.")
}

// claimNext claims the most pressing task that is free. Somebody else may be quicker: then it
// is the one after that.
func (c *cli) claimNext(ctx context.Context) error {
	what := "cannot claim the next task"
	got, err := call(ctx, c, what, taskHelp, func(client *api.Client, ctx context.Context) (api.TaskHeld, error) {
		found, err := client.NextTasks(ctx, api.Page{Limit: pageSize})
		if err != nil {
			return api.TaskHeld{}, err
		}
		for _, one := range found.Items {
			if !one.Ready {
				continue
			}
			got, err := client.ClaimTask(ctx, one.Task.Key, api.TaskClaimInput{})
			switch api.CodeOf(err) {
			case api.CodeAlreadyClaimed, api.CodeTaskDone, api.CodeNotFound:
				continue
			}
			return got, err
		}
		return api.TaskHeld{}, &problem{code: exitNotFound, what: what, why: "no task that is yours or nobody's is free", next: "stint next"}
	})
	if err != nil {
		return err
	}
	return c.showHeld(got)
}
