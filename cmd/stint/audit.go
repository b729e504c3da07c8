package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"stint/api"
)

type auditFlags struct {
	actor, kind, agent, session, since, until, cursor string
	limit                                             int
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
			what := "cannot list the audit"
			filter, err := c.auditFilter(f, what)
			if err != nil {
				return err
			}
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			if filter.Agent, err = findAgent(cmd.Context(), client, f.agent); err != nil {
				return err
			}
			list, err := pages(f.limit, f.cursor, func(p api.Page) (api.List[api.AuditEntry], error) {
				return client.Audit(cmd.Context(), filter, p)
			})
			if err != nil {
				return noAgent(cmd.Context(), client, what, f.agent, err)
			}
			return c.showAudit(list)
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
	flags.IntVar(&f.limit, "limit", 50, "list at most so many")
	flags.StringVar(&f.cursor, "cursor", "", "go on after the page whose nextCursor this is")
	return cmd
}

func (c *cli) auditFilter(f auditFlags, what string) (api.AuditFilter, error) {
	filter := api.AuditFilter{Actor: f.actor, Type: f.kind}
	refuse := func(why string) (api.AuditFilter, error) {
		return api.AuditFilter{}, usage(what, why, "stint audit --help")
	}
	if f.limit < 1 {
		return refuse("--limit is 1 or more")
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
		at, err := parseTime(flag.text, c.now(), true)
		if err != nil {
			return refuse(flag.name + ": " + err.Error())
		}
		flag.to.Time = at.UTC()
	}
	return filter, nil
}

func (c *cli) showAudit(list api.List[api.AuditEntry]) error {
	if c.flags.json {
		return c.document(list)
	}
	t := table{head: []string{"TIME", "WHO", "WHAT", "SESSION", "AGENT", "FROM"}, flex: 1}
	for _, e := range list.Items {
		from := e.From
		if e.Via != "" {
			from = e.Via + " " + from
		}
		t.rows = append(t.rows, []string{e.At.String(), e.ActorName, e.Type, e.SessionID.String(), e.AgentID.String(), from})
		t.ids = append(t.ids, strconv.FormatInt(e.Seq, 10))
	}
	return c.print(t, "Nothing of the kind has happened.")
}
