package main

import (
	"context"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/server"
)

func (c *cli) openCommand() *cobra.Command {
	var page bool
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open the dashboard signed in",
		Long: "Opens the dashboard in your browser, signed in. It writes a page that only you\n" +
			"can read and that posts a link good for once and for 10 minutes.",
		Example: "stint open\nstint open --page    # print the page's file instead",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.openDashboard(cmd.Context(), page)
		},
	}
	cmd.Flags().BoolVar(&page, "page", false, "don't open a browser; print the file that signs it in")
	return cmd
}

func (c *cli) openDashboard(ctx context.Context, page bool) error {
	what := "cannot open the dashboard"
	opener := c.opener()
	if opener == "" && !page {
		return &problem{
			code: exitFailed, what: what, why: "there is no display and no browser here",
			next: "stint open --page    # prints a file that signs in the browser that opens it",
		}
	}
	d, err := c.dataDir()
	if err != nil {
		return err
	}
	p, err := c.find(what)
	if err != nil {
		return err
	}
	client, err := c.clientOf(what, p)
	if err != nil {
		return err
	}
	if p.credentials != nil {
		return c.openElsewhere(what, client, opener, page)
	}
	link, err := client.NewSignInLink(ctx)
	if err != nil {
		return explain(what, err, "stint status")
	}
	file, err := d.writeOpenFile(server.ForBrowsers(client.URL()), link.Link, "")
	if err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if page {
		return c.say("%s", file)
	}
	if err := show(opener, file); err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err), next: "open this file in your browser: " + file}
	}
	c.hint("%s", c.errLook.quiet("If no page appears, open this file in your browser: "+file))
	return nil
}

// openElsewhere opens a dashboard where the browser signs in by itself: a program that was
// signed in doesn't pass its sign-in on.
func (c *cli) openElsewhere(what string, client *api.Client, opener string, page bool) error {
	at := server.ForBrowsers(client.URL())
	if page {
		return usage(what, "--page is for the server on the data directory; sign in at "+at, "stint open")
	}
	if err := show(opener, at); err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err), next: "open this page in your browser: " + at}
	}
	c.hint("%s", c.errLook.quiet("If no page appears, open this one in your browser: "+at))
	return nil
}
