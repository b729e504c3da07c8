package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stint/api"
)

// taskFlags are what people set on a task, as flags. Only those that were given go into a
// body.
type taskFlags struct {
	title, slug, description, state, priority, assignee string
	labels, blockedBy, links                            []string
}

func (f *taskFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.description, "description", "", "a Markdown `TEXT`; - reads stdin")
	flags.StringVar(&f.state, "state", "", "the `STATE`: "+joined(api.TaskStates)+"; in_progress also claims it")
	flags.StringVar(&f.priority, "priority", "", "p1, p2 or p3; p1 is the most urgent (p2)")
	flags.StringVar(&f.assignee, "assignee", "", "`WHOSE` it is: me, a user's id, an agent's slug or none")
	flags.StringArrayVar(&f.labels, "label", nil, "a `LABEL`; repeat for more")
	flags.StringArrayVar(&f.blockedBy, "blocked-by", nil, "a `TASK` to be done before it; repeat for more")
	flags.StringArrayVar(&f.links, "link", nil, "a `URL`, and after a space what to call it; repeat for\nmore")
	flags.StringVar(&f.slug, "slug", "", "a `NAME` of letters, digits and dashes to call it by")
}

func (c *cli) completeTaskFlags(cmd *cobra.Command) {
	completeWords(cmd, "state", api.TaskStates)
	completeWords(cmd, "priority", api.TaskPriorities)
	c.completeFlag(cmd, "assignee", assigneeWords)
	c.completeFlag(cmd, "blocked-by", taskWords)
}

// body is what the flags set, in the names of the REST interface.
func (f *taskFlags) body(c *cli, flags *pflag.FlagSet) (map[string]any, error) {
	body := map[string]any{}
	set := func(flag, member string, value any) {
		if flags.Changed(flag) {
			body[member] = value
		}
	}
	if flags.Changed("description") {
		text, err := c.promptText(f.description)
		if err != nil {
			return nil, fmt.Errorf("--description: %w", err)
		}
		body["description"] = text
	}
	if f.assignee == "none" {
		f.assignee = ""
	}
	set("title", "title", f.title)
	set("slug", "slug", f.slug)
	set("state", "state", strings.ReplaceAll(f.state, "-", "_"))
	set("priority", "priority", f.priority)
	set("assignee", "assignee", f.assignee)
	set("label", "labels", nonEmpty(f.labels))
	set("blocked-by", "blockedBy", nonEmpty(f.blockedBy))
	set("link", "links", api.TaskLinksOf(f.links))
	return body, nil
}

func (c *cli) taskCreateCommand() *cobra.Command {
	var f taskFlags
	cmd := &cobra.Command{
		Use: "create TITLE", Short: "Make a task", Args: cobra.ExactArgs(1),
		Example: "stint task create 'Limit requests per key' --slug rate-limits --priority p1\n" +
			"stint task create 'Release notes' --blocked-by rate-limits --assignee me\n" +
			"stint task create 'Fix the flaky test' --description - < report.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot make the task"
			body, err := f.body(c, cmd.Flags())
			if err != nil {
				return usage(what, err.Error(), "stint task create --help")
			}
			body["title"] = args[0]
			t, err := call(cmd.Context(), c, what, "stint task create --help", func(client *api.Client, ctx context.Context) (api.Task, error) {
				return makeTask(ctx, client, body, newKey())
			})
			if err != nil {
				return err
			}
			return c.show(t, t.Key, func() error {
				if err := c.say("%s", t.Key); err != nil {
					return err
				}
				c.hint("Take it with: stint claim %s, or give it to an agent with: stint dispatch %s", t.Key, t.Key)
				return nil
			})
		},
	}
	f.add(cmd.Flags())
	c.completeTaskFlags(cmd)
	return cmd
}

// makeTask sends one creation, again if its answer was lost.
func makeTask(ctx context.Context, client *api.Client, body any, key string) (t api.Task, err error) {
	err = untilAnswered(ctx, func() error {
		t, err = client.CreateTask(ctx, body, key)
		return err
	})
	return t, err
}

func (c *cli) taskEditCommand() *cobra.Command {
	var f taskFlags
	var version int64
	cmd := &cobra.Command{
		Use: "edit TASK", Short: "Change what the flags name of a task", Args: cobra.ExactArgs(1),
		Long: "Changes what the flags name of a task and leaves the rest. A flag that takes\n" +
			"several replaces all there are; '' clears. With --version the change is refused\n" +
			"if the task isn't the one that was read.",
		Example: "stint task edit T-42 --priority p1 --label api --label urgent\n" +
			"stint task edit T-42 --state review --version 7\nstint task edit T-42 --assignee none",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot change the task " + args[0]
			body, err := f.body(c, cmd.Flags())
			if err != nil {
				return usage(what, err.Error(), "stint task edit --help")
			}
			if len(body) == 0 {
				return usage(what, "no flag says what to change", "stint task edit --help")
			}
			if cmd.Flags().Changed("version") {
				if version < 1 {
					return usage(what, "--version is 1 or more", "stint task show "+args[0])
				}
				body["version"] = version
			}
			t, err := onTask(cmd.Context(), c, "change", args[0], func(client *api.Client, ctx context.Context, ref string) (api.Task, error) {
				return client.EditTask(ctx, ref, body)
			})
			if err != nil {
				return err
			}
			return c.done(t, t.Key, "%s is at version %d.", t.Key, t.Version)
		},
	}
	cmd.Flags().StringVar(&f.title, "title", "", "the `TEXT` that says in a line what is to be done")
	f.add(cmd.Flags())
	cmd.Flags().Int64Var(&version, "version", 0, "only if it is at this version")
	c.completeTaskFlags(cmd)
	return cmd
}
