package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/server"
)

func (c *cli) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how things stand",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.standing(cmd.Context()) },
	}
}

// runRoot is stint without a command: the overall state if a server is there, else the short
// help.
func (c *cli) runRoot(cmd *cobra.Command, _ []string) error {
	d, err := c.dataDir()
	if err != nil {
		return err
	}
	stored, err := newVault().read()
	if err != nil {
		return &problem{code: exitFailed, what: "cannot tell how things stand", why: api.Plain(err)}
	}
	if c.env("STINT_URL") == "" && c.contextName(stored) == localContext && !lockHeld(d) {
		return cmd.Help()
	}
	return c.standing(cmd.Context())
}

func (c *cli) standing(ctx context.Context) error {
	what := "cannot tell how things stand"
	client, err := c.connect(what)
	if err != nil {
		return err
	}
	o, err := client.Overview(ctx)
	if err != nil {
		return explain(what, err, "stint up")
	}
	return c.show(o, o.URL, func() error { return c.printOverview(o) })
}

// statusLimit bounds how much of a list is looked at where it is shown as a whole.
const statusLimit = 1000

// nextShown is how many of the coming slots people are shown.
const nextShown = 5

func (c *cli) printOverview(o api.Overview) error {
	f := &facts{}
	f.add("server", c.shown(o.URL)+" (stint "+plain(o.Version)+")")
	f.add("signed in as", plain(o.User))
	paused, scheduled := int64(0), []api.Agent{}
	for _, a := range o.Agents {
		if a.Paused {
			paused++
		}
		if !a.NextSlotAt.IsZero() {
			scheduled = append(scheduled, a)
		}
	}
	f.add("agents", counted(int64(len(o.Agents)), paused, "paused"))
	f.add("workers", counted(o.Processes.All, o.Processes.Online, "online"))
	f.add("needs you", needs(o.Inbox))
	f.add("running", c.counts(o, api.Active))
	f.add("waiting", c.counts(o, api.Queued, api.Pending))
	slices.SortFunc(scheduled, func(a, b api.Agent) int { return a.NextSlotAt.Compare(b.NextSlotAt.Time) })
	for _, a := range scheduled[:min(nextShown, len(scheduled))] {
		f.add("next", a.Slug+" "+c.when(a.NextSlotAt))
	}
	if err := f.print(c); err != nil {
		return err
	}
	if o.Processes.Online == 0 {
		c.hint("%s", c.errLook.sgr("33", "! No worker is online. Start one with: stint worker run"))
	}
	return nil
}

func counted(n, of int64, word string) string {
	return fmt.Sprintf("%d (%d %s)", n, of, word)
}

// needs says how much of each kind waits for a person.
func needs(inbox []api.InboxItem) string {
	count := map[api.InboxKind]int{}
	var kinds []api.InboxKind
	for _, i := range inbox {
		if count[i.Kind]++; count[i.Kind] == 1 {
			kinds = append(kinds, i.Kind)
		}
	}
	if len(kinds) == 0 {
		return "nothing"
	}
	parts := make([]string, len(kinds))
	for i, kind := range kinds {
		parts[i] = fmt.Sprintf("%d %s", count[kind], strings.ReplaceAll(string(kind), "_", " "))
	}
	return strings.Join(parts, ", ")
}

// counts says how many sessions are in each of some statuses.
func (c *cli) counts(o api.Overview, statuses ...api.Status) string {
	var parts []string
	for _, s := range statuses {
		if o.Sessions.ByStatus[s] > 0 || len(statuses) == 1 {
			parts = append(parts, fmt.Sprintf("%s %s", o.Sessions.Text(s), s))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// shown is a server's address for the reader of the output: people get the one that their
// browser is signed in at, programs the one that every resolver knows.
func (c *cli) shown(address string) string {
	if !c.tty {
		return address
	}
	return server.ForBrowsers(address)
}
