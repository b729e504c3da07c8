package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker/setup"
)

func (c *cli) workerRulesCommand() *cobra.Command {
	var state, remove string
	var all bool
	cmd := &cobra.Command{
		Use:   "rules [AGENT]",
		Short: "List and take back what you allowed from now on",
		Long: "Lists what you allowed an agent, or every agent, from now on by your answers to\n" +
			"its questions, as it is kept on this machine for the workers of this user, with\n" +
			"how often each was used. What is taken back is asked about again, at once. An\n" +
			"approval never lifts a rule that refuses. The worker's page shows the same.",
		Example: "stint worker rules\nstint worker rules reviewer\nstint worker rules reviewer --remove ok-4f7k2q\nstint worker rules reviewer --remove-all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			what := "cannot look at what is allowed from now on"
			if len(args) == 0 {
				if remove != "" || all {
					return usage(what, "say whose is removed: stint worker rules AGENT", "stint worker rules --help")
				}
				return c.showAllApprovals(setup.Find(state), what)
			}
			what = "cannot look at what is allowed to " + args[0]
			if remove != "" && all {
				return usage(what, "--remove and --remove-all exclude each other", "stint worker rules --help")
			}
			files := setup.Find(state)
			if remove != "" || all {
				return c.revoke(files, args[0], remove, what)
			}
			return c.showApprovals(files, args[0], what)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&remove, "remove", "", "take back the one of this `NAME`")
	flags.BoolVar(&all, "remove-all", false, "take back all of them")
	flags.StringVar(&state, "state-dir", "", "the worker's own `DIR`, if its settings are there")
	return cmd
}

// approvalsShown is how --json and the coordinator have them. Names of people are on this
// machine alone.
func approvalsShown(files setup.Files, slug string, all []setup.Approval) ([]api.StandingApproval, error) {
	uses, err := files.Uses(slug)
	if err != nil {
		return nil, err
	}
	out := make([]api.StandingApproval, len(all))
	for i, a := range all {
		out[i] = a.Shown(uses[a.ID]).Standing(slug)
	}
	return out, nil
}

// ruled are the standing approvals of one agent, with who gave each.
type ruled struct {
	shown []api.StandingApproval
	by    []string
}

func readRules(files setup.Files, slug string) (r ruled, err error) {
	all, err := files.Approvals(slug)
	if err != nil {
		return r, err
	}
	for _, a := range all {
		r.by = append(r.by, a.ByName)
	}
	r.shown, err = approvalsShown(files, slug, all)
	return r, err
}

func (c *cli) showAllApprovals(files setup.Files, what string) error {
	slugs, err := files.Approving()
	var all ruled
	for _, slug := range slugs {
		r, wrong := readRules(files, slug)
		if wrong != nil {
			err = errors.Join(err, wrong)
		}
		all.shown, all.by = append(all.shown, r.shown...), append(all.by, r.by...)
	}
	if err != nil {
		return &problem{code: exitError, what: what, why: err.Error()}
	}
	return c.listApprovals(all, "Nothing is allowed to any agent from now on.")
}

func (c *cli) showApprovals(files setup.Files, slug, what string) error {
	r, err := readRules(files, slug)
	if err != nil {
		return &problem{code: exitError, what: what, why: err.Error(), next: "stint worker doctor " + slug}
	}
	return c.listApprovals(r, "Nothing is allowed to "+slug+" from now on.")
}

func (c *cli) listApprovals(r ruled, none string) error {
	if r.shown == nil {
		r.shown = []api.StandingApproval{}
	}
	return c.show(r.shown, "", func() error {
		if len(r.shown) == 0 {
			c.hint("%s", none)
		}
		for i, a := range r.shown {
			if err := approvalFacts(a, r.by[i]).print(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func approvalFacts(a api.StandingApproval, by string) *facts {
	f := &facts{}
	f.add("name", a.ID)
	f.add("agent", a.AgentSlug)
	f.add("allows", fmt.Sprintf("%s, %s", visible(a.What), a.Words))
	f.add("area", string(a.Area)+", "+plain(a.Tool))
	since := a.ApprovedAt.Local().Format(time.DateTime)
	if by != "" {
		since += " by " + plain(by)
	}
	if a.SessionID != 0 {
		since += ", asked by " + a.SessionID.String()
	}
	f.add("since", since)
	used := "never"
	if a.Uses > 0 {
		used = fmt.Sprintf("%d times, last at %s", a.Uses, a.LastUsedAt.Local().Format(time.DateTime))
	}
	f.add("used", used)
	return f
}

func (c *cli) revoke(files setup.Files, slug, id, what string) error {
	gone, err := files.Revoke(slug, id)
	if err != nil {
		return &problem{code: exitError, what: what, why: err.Error(), next: "stint worker rules " + slug}
	}
	if len(gone) == 0 && id != "" {
		return &problem{code: exitNotFound, what: what, why: "there is no standing approval " + id, next: "stint worker rules " + slug}
	}
	shown, err := approvalsShown(files, slug, gone)
	if err != nil {
		return &problem{code: exitError, what: what, why: err.Error(), next: "stint worker rules " + slug}
	}
	return c.show(shown, "", func() error {
		for _, a := range gone {
			c.hint("Taken back: %s (%s).", visible(a.What), a.ID)
		}
		return nil
	})
}
