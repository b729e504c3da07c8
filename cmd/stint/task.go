package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
)

// taskHelp is the command that shows which tasks there are.
const taskHelp = "stint task list"

func (c *cli) taskCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "task", Aliases: []string{"tasks"}, Short: "Make and change tasks",
		Long: `Makes and changes tasks: what is to be done, by people and by agents. A TASK is
named by its key (T-42), its id or its slug.

Its assignee says whose it is, and lasts until they release it, somebody else
takes it over, or it is done. Its lease says who is at work on it now, and ends
by its clock, or with the session that works on it. The page /help/tasks of the
dashboard has all the rules.`,
		Example: "stint task create 'Limit requests per key' --priority p1\n" +
			"stint next --claim        # take the most pressing one that is free\n" +
			"stint extend T-42 2h      # keep it for longer\n" +
			"stint dispatch T-42       # give it to an agent; its session holds it\n" +
			"stint task close T-42",
	}, c.taskListCommand(), c.taskShowCommand(), c.taskCreateCommand(), c.taskEditCommand(), c.taskCommentCommand(),
		c.taskCloseCommand(), c.taskImportCommand(), c.taskExportCommand())
}

// taskNext suggests what to do about a refusal that concerns a task.
func taskNext(err error, ref string) string {
	switch api.CodeOf(err) {
	case api.CodeNotFound:
		return taskHelp
	case api.CodeTaskDone:
		return "open it again with: stint task edit " + ref + " --state todo"
	case api.CodeClaimNotActive:
		return "stint claim " + ref
	case api.CodeSlugTaken:
		return "choose another --slug"
	default:
		return "stint task show " + ref
	}
}

// onTask connects and makes one call that concerns the task that an argument names.
func onTask[T any](ctx context.Context, c *cli, verb, ref string, do func(*api.Client, context.Context, string) (T, error)) (out T, err error) {
	what := "cannot " + verb + " the task " + ref
	client, err := c.connect(what)
	if err != nil {
		return out, err
	}
	out, err = do(client, ctx, ref)
	return out, explain(what, err, taskNext(err, ref))
}

type taskListFlags struct {
	states []string
	filter api.TaskFilter
	paging
}

func (c *cli) taskListCommand() *cobra.Command {
	var f taskListFlags
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List tasks, newest first", Args: cobra.NoArgs,
		Example: "stint task list --assignee me --state todo,in_progress\nstint task list --holder any",
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot list the tasks"
			if err := f.check(what, "stint task list --help"); err != nil {
				return err
			}
			for _, word := range f.states {
				f.filter.States = append(f.filter.States, api.TaskState(strings.ReplaceAll(strings.ToLower(word), "-", "_")))
			}
			return c.tasks(what, "There is no such task. Make one with: stint task create TITLE", func(client *api.Client, ctx context.Context, p api.Page) (api.List[api.Task], error) {
				return client.Tasks(ctx, f.filter, p)
			}).run(cmd.Context(), c, f.paging)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.states, "state", nil, "only in these `STATES`: "+joined(api.TaskStates))
	flags.StringVar(&f.filter.Assignee, "assignee", "", "only `WHOSE`: me, none, a user's id or an agent's slug")
	flags.StringVar(&f.filter.Holder, "holder", "", "only at work now, by `WHOM`: me or any")
	flags.StringVar(&f.filter.Label, "label", "", "only with this `LABEL`")
	flags.StringVar((*string)(&f.filter.Priority), "priority", "", "only of this `PRIORITY`: p1, p2 or p3")
	flags.StringVar(&f.filter.Query, "query", "", "only with this `TEXT` in title or description")
	f.paging.add(flags)
	completeWords(cmd, "state", api.TaskStates)
	completeWords(cmd, "priority", api.TaskPriorities)
	c.completeFlag(cmd, "assignee", assigneeWords)
	completeWords(cmd, "holder", []string{"me", "any"})
	return cmd
}

// tasks is a list of tasks as people see it.
func (c *cli) tasks(what, none string, page func(*api.Client, context.Context, api.Page) (api.List[api.Task], error)) listing[api.Task] {
	return listing[api.Task]{
		what: what, next: "stint task list --help", page: page,
		head: []string{"TASK", "STATE", "PRIORITY", "TITLE", "ASSIGNEE", "HELD BY", "UNTIL"}, flex: 3,
		row: c.taskRow, none: none,
	}
}

func (c *cli) taskRow(t api.Task) []string {
	row := []string{t.Key, string(t.State), string(t.Priority), firstLine(t.Title), personName(t.Assignee), "", ""}
	if t.Lease != nil {
		row[5], row[6] = personName(&t.Lease.Holder), c.leaseEnd(*t.Lease, c.ago)
	}
	return row
}

// personName is what people call somebody, "" for nobody.
func personName(p *api.Person) string {
	if p == nil {
		return ""
	}
	return plain(p.Name)
}

// leaseEnd says how long a lease on a task lasts; when puts an instant into words.
func (c *cli) leaseEnd(l api.TaskLease, when func(api.Time) string) string {
	switch {
	case l.SessionID != 0:
		return "the end of " + l.SessionID.String()
	case l.Bound:
		return "the end of a session"
	}
	return when(l.ExpiresAt)
}

func (c *cli) taskShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show TASK", Short: "Show one task, its comments and the sessions about it", Args: cobra.ExactArgs(1),
		Example: "stint task show T-42",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := onTask(cmd.Context(), c, "show", args[0], func(client *api.Client, ctx context.Context, ref string) (api.Task, error) {
				t, err := client.Task(ctx, ref)
				if err != nil {
					return t, err
				}
				return t, c.show(t, t.Key, func() error { return c.taskPage(ctx, client, t) })
			})
			return err
		},
	}
}

// Shown with a task are its latest comments and sessions, this many of each.
const shownWithTask = 10

// taskPage prints a task for people.
func (c *cli) taskPage(ctx context.Context, client *api.Client, t api.Task) error {
	comments, err := client.TaskComments(ctx, t.Key, api.Page{Limit: shownWithTask})
	if err != nil {
		return err
	}
	sessions, err := client.TaskSessions(ctx, t.Key, api.Page{Limit: shownWithTask})
	if err != nil && api.CodeOf(err) != api.CodeUserTokenRequired && api.CodeOf(err) != api.CodeForbidden { // an agent's run may read its task, not the sessions
		return err
	}
	f := c.taskFacts(t)
	for _, s := range sessions.Items {
		f.add("session", s.ID.String()+" "+c.status(s.Status)+" "+s.AgentSlug)
	}
	if err := f.print(c); err != nil {
		return err
	}
	out := output{w: c.out}
	if t.Description != "" {
		if err := out.write("\n" + strings.TrimSpace(t.Description) + "\n"); err != nil {
			return err
		}
	}
	if more := t.Comments - int64(len(comments.Items)); more > 0 {
		c.hint("%d older comments aren't shown.", more)
	}
	for _, m := range slices.Backward(comments.Items) {
		if err := out.write("\n" + personName(&m.Author) + ", " + c.when(m.At) + ":\n" + strings.TrimSpace(m.Text) + "\n"); err != nil {
			return err
		}
	}
	return out.close()
}

func (c *cli) taskFacts(t api.Task) *facts {
	f := &facts{}
	f.add("task", t.Key)
	f.add("slug", t.Slug)
	f.add("title", firstLine(t.Title))
	f.add("state", string(t.State))
	f.add("priority", string(t.Priority))
	f.add("labels", strings.Join(t.Labels, ", "))
	f.add("assignee", personName(t.Assignee))
	if t.Lease != nil {
		f.add("held by", personName(&t.Lease.Holder))
		f.add("held until", c.leaseEnd(*t.Lease, c.when))
	}
	for _, r := range t.BlockedBy {
		f.add("blocked by", taskLine(r))
	}
	for _, r := range t.Blocks {
		f.add("blocks", taskLine(r))
	}
	for _, l := range t.Links {
		f.add("link", strings.TrimSpace(plain(l.URL+" "+l.Title)))
	}
	if t.Comments > 0 {
		f.add("comments", strconv.FormatInt(t.Comments, 10))
	}
	f.add("created", c.when(t.CreatedAt))
	f.add("updated", c.when(t.UpdatedAt))
	f.add("done", c.when(t.DoneAt))
	f.add("version", strconv.FormatInt(t.Version, 10))
	return f
}

// taskLine names a task in what is about something else.
func taskLine(r api.TaskRef) string {
	return fmt.Sprintf("%s %s (%s)", r.Key, firstLine(r.Title), r.State)
}

func (c *cli) taskCommentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "comment TASK TEXT|-", Short: "Write a comment on a task", Args: cobra.ExactArgs(2),
		Example: "stint task comment T-42 'The limit is per key, not per address.'\ngit log -1 | stint task comment T-42 -",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := c.promptText(args[1])
			if err != nil {
				return usage("cannot comment on the task "+args[0], "the text: "+err.Error(), "stint task comment --help")
			}
			made, err := onTask(cmd.Context(), c, "comment on", args[0], func(client *api.Client, ctx context.Context, ref string) (api.TaskComment, error) {
				return client.CommentTask(ctx, ref, api.TaskCommentInput{Text: text})
			})
			if err != nil {
				return err
			}
			return c.done(made, made.ID.String(), "Commented on %s.", args[0])
		},
	}
}

func (c *cli) taskCloseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "close TASK…", Short: "Mark tasks as done; that ends their leases", Args: cobra.MinimumNArgs(1),
		Example: "stint task close T-42",
		RunE: func(cmd *cobra.Command, args []string) error {
			return each(cmd.Context(), c, args, func(ref string) error {
				t, err := onTask(cmd.Context(), c, "close", ref, func(client *api.Client, ctx context.Context, ref string) (api.Task, error) {
					return client.EditTask(ctx, ref, map[string]any{"state": api.TaskDone})
				})
				if err != nil {
					return err
				}
				return c.several(t, t.Key, len(args), func() error {
					c.hint("%s is done.", t.Key)
					return nil
				})
			})
		},
	}
}
