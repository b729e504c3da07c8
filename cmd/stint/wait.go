package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) waitCommand() *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "wait SESSION…",
		Short: "Wait until sessions have ended, or ask a person",
		Long: "Waits until each session has ended or asks a person. The exit code says how: that\n" +
			"of the first one that isn't complete.",
		Example: "stint wait ses_02r3v0n8e2 --timeout 10m || stint show ses_02r3v0n8e2",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := limited(cmd.Context(), limit)
			defer cancel()
			var first error
			for _, ref := range args {
				err := c.withSession(ctx, "cannot wait for the session "+ref, ref, func(ctx context.Context, client *api.Client, id api.SessionID) error {
					return c.wait(ctx, client, id)
				})
				var ended quietly
				if err != nil && !errors.As(err, &ended) || ctx.Err() != nil {
					return err
				}
				if first == nil {
					first = err
				}
			}
			return first
		},
	}
	cmd.Flags().Var(length{&limit}, "timeout", "give up after this `TIME`")
	return cmd
}
