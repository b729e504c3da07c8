package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"stint/api"
)

type auditFlags struct {
	actor, kind, agent, session, since, until string
	paging
}

func (c *cli) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who did what and from where, the newest first",
		Long: "Lists the log of all changes, which nobody can edit. It takes the role admin.\n" +
			"With --json each page is the API's own; follow nextCursor with --cursor for an export.",
		Example: "stint audit --since yesterday\nstint audit --type session_cancelled --agent backup\nstint audit --actor scheduler --limit 1000 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := c.auditFilter(f, auditListing.what)
			if err != nil {
				return err
			}
			return auditListing.ofAgent(cmd.Context(), c, f.agent, f.paging, func(ctx context.Context, client *api.Client, agent string, p api.Page) (api.List[api.AuditEntry], error) {
				filter.Agent = agent
				return client.Audit(ctx, filter, p)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.actor, "actor", "", "only by this `ID` of a user or worker, or scheduler, system")
	flags.StringVar(&f.kind, "type", "", "only events of this `TYPE`, such as session_cancelled")
	flags.StringVar(&f.agent, "agent", "", "only about this `AGENT`")
	flags.StringVar(&f.session, "session", "", "only about this `SESSION`")
	flags.StringVar(&f.since, "since", "", "only since this `TIME`: 2h, yesterday, 2026-11-01")
	flags.StringVar(&f.until, "until", "", "only before this `TIME`")
	f.paging.add(flags)
	return cmd
}

func (c *cli) auditFilter(f auditFlags, what string) (api.AuditFilter, error) {
	filter := api.AuditFilter{Actor: f.actor, Type: f.kind}
	refuse := func(why string) (api.AuditFilter, error) {
		return api.AuditFilter{}, usage(what, why, "stint audit --help")
	}
	if err := f.check(what, "stint audit --help"); err != nil {
		return filter, err
	}
	if err := filter.Session.UnmarshalText([]byte(f.session)); err != nil {
		return refuse("--session: " + err.Error())
	}
	for _, flag := range []struct {
		name, text string
		to         *api.Time
	}{{"--since", f.since, &filter.Since}, {"--until", f.until, &filter.Until}} {
		if flag.text == "" {
			continue
		}
		at, err := api.ParseTime(flag.text, c.now(), true)
		if err != nil {
			return refuse(flag.name + ": " + err.Error())
		}
		flag.to.Time = at.UTC()
	}
	return filter, nil
}

var auditListing = listing[api.AuditEntry]{
	what: "cannot list the audit",
	head: []string{"TIME", "WHO", "WHAT", "SESSION", "AGENT", "FROM"}, flex: 1,
	row: func(e api.AuditEntry) []string {
		from := e.From
		if e.Via != "" {
			from = e.Via + " " + from
		}
		return []string{e.At.String(), e.ActorName, e.Type, e.SessionID.String(), e.AgentID.String(), from}
	},
	id:   func(e api.AuditEntry) string { return strconv.FormatInt(e.Seq, 10) },
	none: "Nothing of the kind has happened.",
}
