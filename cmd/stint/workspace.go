package main

import (
	"context"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) workspaceCommand() *cobra.Command {
	return group(&cobra.Command{Use: "workspace", Aliases: []string{"workspaces"}, Short: "List and make workspaces"},
		c.workspaceListCommand(), c.workspaceCreateCommand())
}

func (c *cli) workspaceListCommand() *cobra.Command {
	return listing[api.Workspace]{
		what: "cannot list the workspaces",
		page: func(client *api.Client, ctx context.Context, _ api.Page) (api.List[api.Workspace], error) {
			return client.Workspaces(ctx)
		},
		head: []string{"WORKSPACE", "SLUG", "NAME"}, flex: 2,
		row:  func(w api.Workspace) []string { return []string{w.ID.String(), w.Slug, plain(w.Name)} },
		none: "You are in no workspace.",
	}.command(c, "List your workspaces")
}

func (c *cli) workspaceCreateCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "create SLUG",
		Short:   "Make a workspace that you own",
		Example: "stint workspace create lab --name Laboratory\nstint --workspace lab agent list",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot make the workspace " + args[0]
			w, err := call(cmd.Context(), c, what, "stint workspace list", func(client *api.Client, ctx context.Context) (api.Workspace, error) {
				return client.CreateWorkspace(ctx, api.WorkspaceInput{Slug: args[0], Name: name})
			})
			if err != nil {
				return err
			}
			return c.done(w, w.ID.String(), "Made the workspace %s. Use it with --workspace %s, or STINT_WORKSPACE=%s.", w.Slug, w.Slug, w.Slug)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what people call it (the slug)")
	return cmd
}
