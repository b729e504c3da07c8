package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"stint/server"
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

// welcomeWithout says how to sign in if no browser was opened. Without one on this machine the
// owner's first sign-in is by a link, as for serve.
func (c *cli) welcomeWithout(ctx context.Context, k *coordinator, f upFlags) error {
	if f.noOpen && !c.talks {
		return nil // nobody asked for one, and nobody is reading
	}
	if c.opener() != "" {
		c.hint("%s", c.errLook.quiet("Open the dashboard signed in with: stint open    End with Ctrl-C."))
		return nil
	}
	needed, err := k.accounts.NeedsSetUp(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("see whether anybody can sign in: %w", err)
	case needed:
		return c.offerSetUp(ctx, k)
	}
	c.hint("%s", c.errLook.quiet("There is no browser here. Sign in at "+k.browserURL()+" with your password, or with the file that stint open --page prints."))
	return nil
}

// welcome opens the browser, or says how to.
func (c *cli) welcome(ctx context.Context, k *coordinator, f upFlags, page string) error {
	opener := ""
	if !f.noOpen {
		opener = c.opener()
	}
	if opener == "" {
		return c.welcomeWithout(ctx, k, f)
	}
	owner, err := k.accounts.Owner(ctx)
	if err != nil {
		return fmt.Errorf("find the owner: %w", err)
	}
	link, err := k.accounts.NewLink(ctx, owner)
	if err != nil {
		return fmt.Errorf("make a sign-in link: %w", err)
	}
	file, err := k.dir.writeOpenFile(server.ForBrowsers(k.url()), link, page)
	if err != nil {
		return err
	}
	return show(opener, file)
}
