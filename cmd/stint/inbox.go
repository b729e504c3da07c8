package main

import (
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) inboxCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "List what waits for a person",
		Long: "Lists what waits for a person: questions of agents, sessions that lost their\n" +
			"worker or failed, agents that failures have paused, webhooks and channels that were disabled,\n" +
			"schedules that were due and ran nothing, spend limits that were reached; for admins also\n" +
			"trouble with disk and backup.",
		Example: "stint inbox\nstint inbox --json | jq '.items[] | select(.kind == \"prompt\")'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, err := call(cmd.Context(), c, "cannot read the inbox", "stint status", (*api.Client).Inbox)
			if err != nil {
				return err
			}
			return c.showInbox(in)
		},
	}
}

func (c *cli) showInbox(in api.Inbox) error {
	if c.flags.json {
		return c.document(in)
	}
	t := table{head: []string{"WAITS", "ID", "AGENT", "WHAT", "SINCE"}, flex: 3}
	asks := false
	for _, i := range in.Items {
		asks = asks || i.Kind == api.InboxPrompt && i.MayAct
		row := c.inboxRow(i)
		t.rows, t.ids = append(t.rows, row), append(t.ids, row[1])
	}
	if err := c.print(t, "Nothing waits for you."); err != nil {
		return err
	}
	if asks && c.tty {
		c.hint("%s", c.errLook.quiet("See a question in full, and answer it, with: stint answer SESSION"))
	}
	return nil
}

// inboxRow names what waits, as other commands call it.
func (c *cli) inboxRow(i api.InboxItem) []string {
	row := []string{string(i.Kind), "", "", "", c.ago(i.Since)}
	switch {
	case i.Title != "":
		row[3] = plain(i.Detail)
		if i.Agent != nil {
			row[1], row[2] = i.Agent.ID.String(), i.Agent.Slug
		}
	case i.Session != nil:
		row[1], row[2], row[3] = i.Session.ID.String(), i.Session.AgentSlug, inboxWhat(i)
	case i.Agent != nil:
		row[1], row[2], row[3] = i.Agent.ID.String(), i.Agent.Slug, plain(i.Agent.PausedReason)
	case i.Worker != nil:
		row[1], row[2] = i.Worker.ID.String(), i.Worker.AgentSlug
		for _, n := range i.Worker.Notices {
			row[3] = strings.TrimSpace(row[3] + " " + plain(n.Text))
		}
	case i.Channel != nil:
		row[1], row[3] = i.Channel.ID.String(), plain(i.Channel.Target+": "+i.Channel.DisabledReason)
	case i.Webhook != nil:
		row[1], row[3] = i.Webhook.ID.String(), plain(i.Webhook.URL+": "+i.Webhook.DisabledReason)
	}
	return row
}

func inboxWhat(i api.InboxItem) string {
	s := i.Session
	switch {
	case s.Prompted != nil:
		return asked(s.Prompted)
	case s.Error != nil:
		return plain(strings.TrimSuffix(s.Error.Code+": "+s.Error.Message, ": "))
	case s.WaitingFor != nil:
		return plain(s.WaitingFor.Sentence)
	}
	return title(*s)
}

// asked is a prompt's question, on one line.
func asked(p *api.Prompt) string {
	if p.Action != nil && !p.Repeats() {
		return visible(p.Text + ": " + p.Action.What)
	}
	return promptText(p)
}
