package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

// The verbs of leases take a task or a session. A session is named by its whole id or its
// beginning, with the prefix; everything else names a task.
func namesSession(ref string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(ref)), sessionPrefix)
}

const sessionProof = "For a session the claim is proven by STINT_CLAIM_ID and STINT_INSTANCE_ID, or by\na run's own token."

// wholeSeconds reads the length of a lease. A plain number is seconds, whatever it is: the
// coordinator knows the bounds.
func wholeSeconds(text, what, name, next string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, nil
	}
	if err := (seconds{&n}).Set(text); err != nil {
		return 0, usage(what, name+": "+err.Error(), next)
	}
	return n, nil
}

func (c *cli) claimCommand() *cobra.Command {
	var lease, worker string
	cmd := &cobra.Command{
		Use: "claim TASK|SESSION", Short: "Take the lease on a task, or a worker's on a session", Args: cobra.ExactArgs(1),
		Long: "Takes the lease on a task, so that nobody else works on it, and makes it yours.\n" +
			"Your own is renewed. A session is claimed for a worker of yours that you play by\n" +
			"hand, whose instance is STINT_INSTANCE_ID; that prints the claim's id.",
		Example: "stint claim T-42\nstint claim rate-limits --lease 30m\nstint claim ses_02r3v0n8e2 --as-worker wrk_02r3v0n8e1",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot claim " + args[0]
			var asked *int64
			if cmd.Flags().Changed("lease") {
				n, err := wholeSeconds(lease, what, "--lease", "stint claim --help")
				if err != nil {
					return err
				}
				asked = &n
			}
			if namesSession(args[0]) {
				return c.claimSession(cmd.Context(), args[0], worker, asked)
			}
			if worker != "" {
				return usage(what, "--as-worker is for a session; a task is claimed by who you are", "stint claim "+args[0])
			}
			got, err := onTask(cmd.Context(), c, "claim", args[0], func(client *api.Client, ctx context.Context, ref string) (api.TaskHeld, error) {
				return client.ClaimTask(ctx, ref, api.TaskClaimInput{LeaseSeconds: asked})
			})
			if err != nil {
				return err
			}
			return c.showHeld(got)
		},
	}
	cmd.Flags().StringVar(&lease, "lease", "", "for how long: 30m, 2h (2h)")
	cmd.Flags().StringVar(&worker, "as-worker", "", "the `WORKER` that claims a session")
	return cmd
}

// showHeld tells of a lease on a task that the caller has.
func (c *cli) showHeld(got api.TaskHeld) error {
	t := got.Task
	return c.show(got, t.Key, func() error {
		until := ""
		if t.Lease != nil {
			until = c.leaseEnd(*t.Lease, c.when)
		}
		if got.TookOverFrom != nil {
			c.hint("It was assigned to %s until now.", personName(got.TookOverFrom))
		}
		if got.CappedToMax {
			c.hint("That is the longest: a lease ends at most %s from now.", span(time.Duration(got.MaxLeaseSeconds)*time.Second))
		}
		return c.say("%s\t%s", t.Key, until)
	})
}

func (c *cli) claimSession(ctx context.Context, ref, worker string, lease *int64) error {
	what := "cannot claim the session " + ref
	if worker == "" {
		return usage(what, "a session is claimed for a worker: --as-worker is missing", "stint worker list")
	}
	by, err := wholeID[api.WorkerID](worker, what, "worker", "stint worker list")
	if err != nil {
		return err
	}
	return c.withSession(ctx, what, ref, func(ctx context.Context, client *api.Client, id api.SessionID) error {
		s, err := client.Session(ctx, id)
		if err != nil {
			return explain(what, err, nextFor(err, id))
		}
		got, err := client.Claim(ctx, s.AgentID, by, id, api.ClaimRequest{LeaseSeconds: lease, InstanceID: c.env("STINT_INSTANCE_ID")})
		if err != nil {
			return explain(what, err, nextFor(err, id))
		}
		return c.show(got, got.ClaimID.String(), func() error {
			c.hint("The lease ends %s.", c.when(got.LeaseExpiresAt))
			return c.say("%s", got.ClaimID)
		})
	})
}

// heldVerb makes a call on a session under the claim that the environment proves.
func heldVerb[T any](ctx context.Context, c *cli, verb, ref string, do func(context.Context, *api.Client, api.Held, api.UnderClaim) (T, error)) (out T, id api.SessionID, err error) {
	what := "cannot " + verb + " the session " + ref
	err = c.withSession(ctx, what, ref, func(ctx context.Context, client *api.Client, found api.SessionID) error {
		id = found
		proof, err := c.hookClaim()
		if err != nil {
			return usage(what, err.Error(), "stint "+verb+" --help")
		}
		s, err := client.Session(ctx, id)
		if err == nil && s.WorkerID == 0 {
			return &problem{code: exitConflict, what: what, why: "no worker holds it", next: "stint show " + id.String()}
		}
		if err == nil {
			out, err = do(ctx, client, api.Held{Agent: s.AgentID, Worker: s.WorkerID, Session: id}, proof)
		}
		return explain(what, err, nextFor(err, id))
	})
	return out, id, err
}

// showLease tells of the lease on a session.
func (c *cli) showLease(l api.Lease, id api.SessionID) error {
	return c.show(l, id.String(), func() error {
		if l.CappedToMax {
			c.hint("That is the longest that a lease may last.")
		}
		if l.StopRequested {
			c.hint("The session was asked to stop.")
		}
		return c.say("%s\t%s", id, c.when(l.LeaseExpiresAt))
	})
}

func (c *cli) renewCommand() *cobra.Command {
	return &cobra.Command{
		Use: "renew TASK|SESSION", Short: "Renew your lease on a task or a session", Args: cobra.ExactArgs(1),
		Long:    "Renews your lease on a task or a session and prints when it ends.\n" + sessionProof,
		Example: "stint renew T-42",
		RunE: func(cmd *cobra.Command, args []string) error {
			if namesSession(args[0]) {
				l, id, err := heldVerb(cmd.Context(), c, "renew", args[0], func(ctx context.Context, client *api.Client, h api.Held, proof api.UnderClaim) (api.Lease, error) {
					return client.Renew(ctx, h, api.RenewRequest{UnderClaim: proof})
				})
				if err != nil {
					return err
				}
				return c.showLease(l, id)
			}
			got, err := onTask(cmd.Context(), c, "renew the lease on", args[0], (*api.Client).RenewTask)
			if err != nil {
				return err
			}
			return c.showHeld(got)
		},
	}
}

func (c *cli) extendCommand() *cobra.Command {
	return &cobra.Command{
		Use: "extend TASK|SESSION TIME", Short: "Stretch your lease on a task or a session", Args: cobra.ExactArgs(2),
		Long: "Stretches your lease by a length of time and prints when it ends. Past the\n" +
			"longest lease it is capped, which is said; it is never made shorter.\n" + sessionProof,
		Example: "stint extend T-42 2h",
		RunE: func(cmd *cobra.Command, args []string) error {
			add, err := wholeSeconds(args[1], "cannot extend the lease on "+args[0], "the time", "stint extend "+args[0]+" 2h")
			if err != nil {
				return err
			}
			if namesSession(args[0]) {
				l, id, err := heldVerb(cmd.Context(), c, "extend", args[0], func(ctx context.Context, client *api.Client, h api.Held, proof api.UnderClaim) (api.Lease, error) {
					return client.Extend(ctx, h, api.ExtendRequest{UnderClaim: proof, AddSeconds: add})
				})
				if err != nil {
					return err
				}
				return c.showLease(l, id)
			}
			got, err := onTask(cmd.Context(), c, "extend the lease on", args[0], func(client *api.Client, ctx context.Context, ref string) (api.TaskHeld, error) {
				return client.ExtendTask(ctx, ref, api.TaskExtendInput{AddSeconds: add})
			})
			if err != nil {
				return err
			}
			return c.showHeld(got)
		},
	}
}

func (c *cli) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "release TASK|SESSION", Short: "Give your lease on a task or a session back", Args: cobra.ExactArgs(1),
		Long: "Gives your lease on a task back, and the task itself if it is assigned to you.\n" +
			"Doing that twice changes nothing. A session goes back to its queue.\n" + sessionProof,
		Example: "stint release T-42",
		RunE: func(cmd *cobra.Command, args []string) error {
			if namesSession(args[0]) {
				got, id, err := heldVerb(cmd.Context(), c, "release", args[0], func(ctx context.Context, client *api.Client, h api.Held, proof api.UnderClaim) (api.Finished, error) {
					return client.Release(ctx, h, api.ReleaseRequest{UnderClaim: proof})
				})
				if err != nil {
					return err
				}
				return c.done(got, id.String(), "%s is %s.", id, got.Session.Status)
			}
			got, err := onTask(cmd.Context(), c, "release", args[0], (*api.Client).ReleaseTask)
			if err != nil {
				return err
			}
			said := "You held no lease on %s."
			switch {
			case got.Released:
				said = "%s is free."
			case got.Task.Assignee == nil:
				said = "You held no lease on %s, and it is nobody's now."
			}
			return c.done(got, got.Task.Key, said, got.Task.Key)
		},
	}
}

func (c *cli) claimsCommand() *cobra.Command {
	var mine bool
	var expiring time.Duration
	p := paging{}
	cmd := &cobra.Command{
		Use: "claims", Short: "List the tasks that somebody is at work on", Args: cobra.NoArgs,
		Example: "stint claims --mine\nstint claims --expiring 10m",
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot list the claims"
			if err := p.check(what, "stint claims --help"); err != nil {
				return err
			}
			filter := api.TaskFilter{Holder: "any"}
			if mine {
				filter.Holder = "me"
			}
			return c.tasks(what, "Nobody is at work on a task.", func(client *api.Client, ctx context.Context, p api.Page) (api.List[api.Task], error) {
				found, err := client.Tasks(ctx, filter, p)
				if cmd.Flags().Changed("expiring") {
					found.Items = endingBefore(found.Items, c.now().Add(expiring))
				}
				return found, err
			}).run(cmd.Context(), c, p)
		},
	}
	cmd.Flags().BoolVar(&mine, "mine", false, "only yours")
	cmd.Flags().Var(length{&expiring}, "expiring", "only those that end within this `TIME`")
	p.add(cmd.Flags())
	return cmd
}

// endingBefore keeps the tasks whose lease ends by its clock before an instant.
func endingBefore(tasks []api.Task, end time.Time) []api.Task {
	out := []api.Task{}
	for _, t := range tasks {
		if t.Lease != nil && !t.Lease.Bound && t.Lease.ExpiresAt.Before(end) {
			out = append(out, t)
		}
	}
	return out
}
