package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"
)

type upFlags struct {
	serverFlags
	demo   bool
	noOpen bool
}

func (c *cli) upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run the server and a worker, and open the dashboard",
		Long: "Runs the server and a worker for all your agents in the foreground, prints the\n" +
			"URL on one line when it is ready, and opens the dashboard signed in. Ctrl-C ends\n" +
			"it, and so does closing the terminal, unless nohup started it; sessions that run\n" +
			"then are given back.",
		Example: "stint up --demo\nstint up --no-open --addr 127.0.0.1:8080",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.up(cmd.Context(), f) },
	}
	cmd.Flags().BoolVar(&f.demo, "demo", false, "make an agent that shows what runs look like, and run it")
	cmd.Flags().BoolVar(&f.noOpen, "no-open", false, "don't open a browser")
	f.serverFlags.add(cmd.Flags())
	return cmd
}

func (c *cli) up(ctx context.Context, f upFlags) error {
	log, err := c.newLog(slog.LevelWarn)
	if err != nil {
		return err
	}
	k, err := c.open(ctx, f.serverFlags, log)
	if err != nil {
		return explain("cannot start", err, "stint up --help")
	}
	k.works = true
	var page string
	if f.demo {
		// Before the program says that it is ready, so that whoever reads that finds it.
		if page, err = k.demonstrate(ctx); err != nil {
			return explain("cannot start the demo", errors.Join(err, k.close()), "stint up")
		}
	}
	return c.serve(ctx, k, func(ctx context.Context) error {
		if err := c.welcome(ctx, k, f, page); err != nil {
			log.Warn("The dashboard was not opened.", "cause", err)
		}
		return c.work(ctx, k)
	})
}
