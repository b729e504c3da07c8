package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/engine/taskfile"
	"stint/engine/workspacefile"
)

func (c *cli) exportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "export [FILE|-]", Short: "Write the workspace as one JSON document", Args: cobra.MaximumNArgs(1),
		Long: "Writes what people set in the workspace, as far as you may read it, to a new\n" +
			"FILE or to standard output: agents, tasks with their comments, and of webhooks,\n" +
			"channels and trigger URLs everything but their addresses and secrets. Sessions,\n" +
			"output, members, tokens and keys aren't in it: for those, see stint backup.\n" +
			"stint import workspace makes it anew.",
		Example: "stint export lab.json\nstint --workspace lab export | stint --workspace den import workspace -",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot export the workspace"
			d, err := call(cmd.Context(), c, what, "stint status", func(client *api.Client, ctx context.Context) (workspacefile.Document, error) {
				return workspaceOf(ctx, client)
			})
			if err != nil {
				return err
			}
			for _, one := range d.LeftOut {
				c.hint("Not in it, because you may not read them: %s", plain(one))
			}
			var text bytes.Buffer
			if err := workspacefile.Write(&text, d); err != nil {
				return err
			}
			to := append(args, "-")[0]
			if to == "-" {
				_, err := c.out.Write(text.Bytes())
				return err
			}
			if err := newFile(to, text.Bytes()); err != nil {
				return usage(what, api.Plain(err), "stint export, with a file that isn't there yet")
			}
			c.hint("Wrote %s and %s to %s.", numberOf(len(d.Agents), "agent", "agents"), numberOf(len(d.Tasks), "task", "tasks"), to)
			return nil
		},
	}
}

// newFile writes a file that isn't there yet, or none.
func newFile(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errors.New(name + " is there already")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = cmp.Or(err, f.Close()); err != nil {
		_ = os.Remove(name)
	}
	return err
}

// workspaceOf reads a workspace, page by page, with the caller's rights.
func workspaceOf(ctx context.Context, client *api.Client) (d workspacefile.Document, err error) {
	agents, err := everything(func(p api.Page) (api.List[api.Agent], error) { return client.Agents(ctx, p) })
	if err != nil {
		return d, err
	}
	slices.SortFunc(agents, func(a, b api.Agent) int { return cmp.Compare(a.Slug, b.Slug) })
	for _, a := range agents {
		d.Agents = append(d.Agents, workspacefile.AgentOf(a))
	}
	tasks, err := everything(func(p api.Page) (api.List[api.Task], error) { return client.Tasks(ctx, api.TaskFilter{}, p) })
	if err != nil {
		return d, err
	}
	for _, t := range slices.Backward(tasks) {
		row := taskfile.RowOf(t)
		if t.Comments > 0 {
			found, err := commentsOf(ctx, client, t.Key)
			if err != nil {
				return d, err
			}
			for _, one := range found {
				row.Comments = append(row.Comments, taskfile.CommentOf(one))
			}
		}
		d.Tasks = append(d.Tasks, row)
	}
	return d, byHandOf(ctx, client, agents, &d)
}

// byHandOf reads what a document has only in part, because the rest is secret. What the caller
// may not read is named in it.
func byHandOf(ctx context.Context, client *api.Client, agents []api.Agent, d *workspacefile.Document) error {
	webhooks, err := everything(func(p api.Page) (api.List[api.Webhook], error) { return client.Webhooks(ctx, p) })
	if err := leftOut(d, err, "the webhooks, and the channels of the workspace"); err != nil {
		return err
	}
	for _, w := range slices.Backward(webhooks) {
		d.Webhooks = append(d.Webhooks, workspacefile.WebhookOf(w))
	}
	channels, err := everything(func(p api.Page) (api.List[api.Channel], error) { return client.Channels(ctx, p) })
	if err := leftOut(d, err, "the channels"); err != nil {
		return err
	}
	for _, ch := range slices.Backward(channels) {
		d.Channels = append(d.Channels, workspacefile.ChannelOf(ch))
	}
	for _, a := range agents {
		urls, err := everything(func(p api.Page) (api.List[api.TriggerURL], error) { return client.TriggerURLs(ctx, a.ID.String(), p) })
		if err := leftOut(d, err, "the trigger URLs of "+a.Slug); err != nil {
			return err
		}
		for _, u := range slices.Backward(urls) {
			d.TriggerURLs = append(d.TriggerURLs, workspacefile.TriggerURLOf(a.Slug, u))
		}
	}
	return nil
}

// leftOut notes what the caller may not read; other errors stay.
func leftOut(d *workspacefile.Document, err error, what string) error {
	switch api.CodeOf(err) {
	case api.CodeForbidden, api.CodeUserTokenRequired:
		d.LeftOut = append(d.LeftOut, what)
		return nil
	}
	return err
}

// everything gathers all pages of a list.
func everything[T any](page func(api.Page) (api.List[T], error)) ([]T, error) {
	found, err := pages(math.MaxInt, "", page)
	return found.Items, err
}

// commentsOf are the comments on a task, the oldest first.
func commentsOf(ctx context.Context, client *api.Client, key string) ([]api.TaskComment, error) {
	found, err := everything(func(p api.Page) (api.List[api.TaskComment], error) { return client.TaskComments(ctx, key, p) })
	slices.Reverse(found)
	return found, err
}
