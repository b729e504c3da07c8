package main

import (
	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) workspaceCommand() *cobra.Command {
	return group(&cobra.Command{Use: "workspace", Aliases: []string{"workspaces"}, Short: "List and make workspaces"},
		c.workspaceListCommand(), c.workspaceCreateCommand())
}

func (c *cli) workspaceListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List your workspaces",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot list the workspaces"
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			list, err := client.Workspaces(cmd.Context())
			if err != nil {
				return explain(what, err, "stint status")
			}
			if c.flags.json {
				return c.document(list)
			}
			t := table{head: []string{"WORKSPACE", "SLUG", "NAME"}, flex: 2}
			for _, w := range list.Items {
				t.rows = append(t.rows, []string{w.ID.String(), w.Slug, plain(w.Name)})
			}
			return c.print(t, "You are in no workspace.")
		},
	}
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
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			w, err := client.CreateWorkspace(cmd.Context(), api.WorkspaceInput{Slug: args[0], Name: name})
			if err != nil {
				return explain(what, err, "stint workspace list")
			}
			return c.show(w, w.ID.String(), func() error {
				c.hint("Made the workspace %s. Use it with --workspace %s, or STINT_WORKSPACE=%s.", w.Slug, w.Slug, w.Slug)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what people call it (the slug)")
	return cmd
}
