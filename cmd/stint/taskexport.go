package main

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/engine/taskfile"
)

func (c *cli) taskExportCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "export", Short: "Print all tasks as JSON or CSV", Args: cobra.NoArgs,
		Long: "Prints all tasks, the oldest first, in the form that stint task import reads.\n" +
			"Comments and leases aren't in it.",
		Example: "stint task export > tasks.json\nstint task export --format csv > tasks.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot export the tasks"
			if c.flags.json && !cmd.Flags().Changed("format") {
				format = "json"
			}
			write, known := map[string]func(io.Writer, []taskfile.Row) error{"json": taskfile.WriteJSON, "csv": taskfile.WriteCSV}[format]
			if !known || c.flags.json && format != "json" {
				return usage(what, "--format is json or csv", "stint task export --format csv")
			}
			found, err := call(cmd.Context(), c, what, taskHelp, func(client *api.Client, ctx context.Context) (api.List[api.Task], error) {
				return pages(math.MaxInt, "", func(p api.Page) (api.List[api.Task], error) { return client.Tasks(ctx, api.TaskFilter{}, p) })
			})
			if err != nil {
				return err
			}
			rows := make([]taskfile.Row, 0, len(found.Items))
			for _, t := range slices.Backward(found.Items) {
				if c.flags.quiet {
					if err := c.say("%s", t.Key); err != nil {
						return err
					}
				}
				rows = append(rows, taskfile.RowOf(t))
			}
			if c.flags.quiet {
				return nil
			}
			return write(c.out, rows)
		},
	}
	cmd.Flags().StringVar(&format, "format", "json", "json or csv")
	completeWords(cmd, "format", []string{"json", "csv"})
	return cmd
}
