package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"stint/api"
)

// chosen are the sessions that a verb is about: those named, or all that fit a query.
type chosen struct {
	query    string
	yes      bool
	unlanded bool // it is said how many of those that fit have changes that wait to be landed
}

// unasked is how many sessions a query may be about without a question.
const unasked = 20

// add gives a command of a verb its flags; with --query it needs no session.
func (b *chosen) add(cmd *cobra.Command, example string) {
	cmd.Flags().StringVar(&b.query, "query", "", "all sessions that fit a `QUERY`, such as '"+example+"'")
	cmd.Flags().BoolVar(&b.yes, "yes", false, fmt.Sprintf("with --query, don't ask, even if more than %d fit", unasked))
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if b.query == "" {
			return cobra.MinimumNArgs(1)(cmd, args)
		}
		return nil
	}
}

// sessions are the ids of those chosen, the oldest first so that what is done in turn is done in theirs.
// With a query they are those of some statuses that fit it now; those that come later are left
// alone.
func (b *chosen) sessions(ctx context.Context, c *cli, client *api.Client, verb string, args []string, statuses []api.Status) ([]string, error) {
	if b.query == "" {
		return args, nil
	}
	what := "cannot " + verb + " what fits the query"
	if len(args) > 0 {
		return nil, usage(what, "sessions are named beside it", "give either --query or sessions")
	}
	asked, err := api.ParseSessionQuery(b.query, c.now())
	if bad, ok := errors.AsType[*api.Error](err); ok {
		return nil, badQuery(what, bad)
	}
	filter, clash := asked.And(api.SessionFilter{Statuses: statuses})
	if clash != "" {
		return nil, usage(what, "the query asks for none of the states that "+verb+" is for: "+joined(statuses), "stint "+verb+" --help")
	}
	ids, err := fitting(ctx, client, filter)
	if err != nil {
		return nil, explain(what, err, "stint sessions --query …")
	}
	if b.unlanded && !filter.Unlanded {
		filter.Unlanded = true
		waiting, err := fitting(ctx, client, filter)
		if err != nil {
			return nil, explain(what, err, "stint sessions --query …")
		}
		if n := len(waiting); n > 0 {
			c.hint("%d of %d have changes that nobody has landed; they stay found with: stint sessions --query 'is:archived is:unlanded'", n, len(ids))
		}
	}
	return ids, b.agree(ctx, c, what, verb, len(ids))
}

// fitting are the ids of all sessions that fit a filter, the oldest first.
func fitting(ctx context.Context, client *api.Client, filter api.SessionFilter) (ids []string, err error) {
	for page := (api.Page{Limit: pageSize}); ; {
		list, err := client.Sessions(ctx, filter, page)
		if err != nil {
			return nil, err
		}
		for _, s := range list.Items {
			ids = append(ids, s.ID.String())
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			slices.Reverse(ids)
			return ids, nil
		}
	}
}

// agree asks before many sessions are meant.
func (b *chosen) agree(ctx context.Context, c *cli, what, verb string, n int) error {
	switch {
	case n == 0:
		c.hint("Nothing to do: no session fits.")
		return nil
	case n <= unasked || b.yes:
		return nil
	case !isTerminal(c.in) || !c.talks:
		return usage(what, fmt.Sprintf("%d sessions fit and nobody is there to ask", n), "add --yes")
	}
	yes, err := c.agrees(ctx, fmt.Sprintf("%d sessions fit. Go on to %s all of them?", n, verb))
	if err == nil && !yes {
		err = &problem{code: exitUsage, what: what, why: "it wasn't agreed to, so nothing was done"}
	}
	return err
}

func (c *cli) archiveCommand() *cobra.Command {
	of := chosen{unlanded: true}
	cmd := &cobra.Command{
		Use:     "archive SESSION… | --query QUERY",
		Short:   "Take ended sessions out of the lists; they stay found by id",
		Example: "stint archive ses_02r3v0n8e2\nstint archive --query 'agent:deps until:30d' --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.eachSession(cmd.Context(), "archive", of, args, []api.Status{api.Complete, api.Failed, api.Cancelled}, func(ctx context.Context, client *api.Client, id api.SessionID, count int) error {
				answer, err := client.ArchiveSession(ctx, id)
				if err != nil {
					return err
				}
				return c.showChanged(answer, "archived", count)
			})
		},
	}
	of.add(cmd, "agent:deps until:30d")
	return cmd
}
