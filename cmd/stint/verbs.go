package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"stint/api"
)

func (c *cli) cancelCommand() *cobra.Command {
	var in api.CancelInput
	var of chosen
	cmd := &cobra.Command{
		Use:     "cancel SESSION… | --query QUERY",
		Short:   "Cancel sessions; a running one is killed",
		Example: "stint cancel ses_02r3v0n8e2 --reason 'wrong branch'\nstint cancel --query 'agent:deps status:queued'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.eachSession(cmd.Context(), "cancel", of, args, unended, func(ctx context.Context, client *api.Client, id api.SessionID, count int) error {
				answer, err := client.CancelSession(ctx, id, in)
				if err != nil {
					return err
				}
				return c.showChanged(answer, "cancelled", count)
			})
		},
	}
	cmd.Flags().BoolVar(&in.OnlyPending, "only-pending", false, "leave it alone once it runs")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "a `TEXT` that says why")
	of.add(cmd, "agent:deps status:queued")
	return cmd
}

func (c *cli) stopCommand() *cobra.Command {
	var of chosen
	cmd := &cobra.Command{
		Use:   "stop SESSION… | --query QUERY",
		Short: "Ask sessions to end after their current turn",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.eachSession(cmd.Context(), "stop", of, args, unended, func(ctx context.Context, client *api.Client, id api.SessionID, count int) error {
				answer, err := client.StopSession(ctx, id)
				if err != nil {
					return err
				}
				done := "asked to stop"
				if answer.Session.Status == api.Cancelled { // nothing was running that could have ended by itself
					done = "cancelled: it had not begun"
				}
				return c.showChanged(answer, done, count)
			})
		},
	}
	of.add(cmd, "agent:deps")
	return cmd
}

func (c *cli) retryCommand() *cobra.Command {
	var of chosen
	cmd := &cobra.Command{
		Use:     "retry SESSION… | --query QUERY",
		Short:   "Run ended sessions again, or queue stale ones",
		Example: "stint retry ses_02r3v0n8e2\nstint retry --query 'status:error code:MODEL_UNAVAILABLE since:1d'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.eachSession(cmd.Context(), "retry", of, args, retried, func(ctx context.Context, client *api.Client, id api.SessionID, count int) error {
				s, err := client.RetrySession(ctx, id)
				if err != nil {
					return err
				}
				return c.several(s, s.ID.String(), count, func() error {
					if err := c.say("%s", s.ID); err != nil {
						return err
					}
					if s.ID == id {
						c.hint("%s waits for a worker again.", s.ID)
						return nil
					}
					if !s.Changed {
						c.hint("%s was retried already; that attempt isn't over. Follow it with: stint watch %s", id, s.ID)
						return nil
					}
					c.hint("%s is the new attempt of %s. Follow it with: stint watch %s", s.ID, id, s.ID)
					return nil
				})
			})
		},
	}
	of.add(cmd, "status:error since:1d")
	return cmd
}

// What the query of a verb can be about: a retry runs what is complete once more only by its id.
var (
	unended = slices.DeleteFunc(slices.Clone(api.Statuses), api.Status.Terminal)
	retried = []api.Status{api.Failed, api.Cancelled, api.Stale}
)

// eachSession does one thing to every session that is chosen; do is told how many those are. All are
// tried; the first failure determines the exit code.
func (c *cli) eachSession(ctx context.Context, verb string, of chosen, args []string, statuses []api.Status, do func(ctx context.Context, client *api.Client, id api.SessionID, count int) error) error {
	about := "what fits the query"
	if len(args) > 0 {
		about = "the session " + args[0]
	}
	client, err := c.connect("cannot " + verb + " " + about)
	if err != nil {
		return err
	}
	refs, err := of.sessions(ctx, c, client, verb, args, statuses)
	if err != nil {
		return err
	}
	return each(ctx, c, refs, func(ref string) error {
		id, err := findSession(ctx, client, ref)
		if err != nil {
			return err
		}
		err = do(ctx, client, id, len(refs))
		return explain("cannot "+verb+" the session "+id.String(), err, nextFor(err, id))
	})
}

// nextFor suggests what to do about a refused verb.
func nextFor(err error, id api.SessionID) string {
	switch api.CodeOf(err) {
	case api.CodeNotFound, api.CodeGone:
		return "stint sessions"
	case api.CodeSessionTerminal:
		return "run it again with: stint retry " + id.String()
	case api.CodeSessionRunning:
		return "end it all the same with: stint cancel " + id.String()
	default:
		return "stint show " + id.String()
	}
}

func (c *cli) showChanged(answer api.Changed, done string, count int) error {
	s := answer.Session
	return c.several(answer, s.ID.String(), count, func() error {
		if answer.Changed {
			c.hint("%s is %s.", s.ID, done)
			return nil
		}
		c.hint("Nothing to do: %s is %s.", s.ID, s.Status)
		return nil
	})
}

// several is show for a command that may print many things: JSON is then one
// document a line.
func (c *cli) several(doc any, id string, count int, people func() error) error {
	if c.flags.json && count > 1 {
		return c.line(doc)
	}
	return c.show(doc, id, people)
}
