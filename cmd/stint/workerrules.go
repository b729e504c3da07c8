package main

import (
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
		Use:   "rules AGENT",
		Short: "List and take back what you allowed from now on",
		Long: "Lists what you allowed an agent from now on by your answers to its questions,\n" +
			"as it is kept on this machine for the workers of this user. What is taken back\n" +
			"is asked about again, at once. An approval never lifts a rule that refuses.",
		Example: "stint worker rules reviewer\nstint worker rules reviewer --remove ok-4f7k2q\nstint worker rules reviewer --remove-all",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			what := "cannot look at what is allowed to " + args[0]
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

// approvalShown is a standing approval as --json has it.
type approvalShown struct {
	ID      string   `json:"id"`
	Area    api.Area `json:"area"`
	Tool    string   `json:"tool"`
	What    string   `json:"what"`
	Any     bool     `json:"any,omitzero"`
	Beyond  bool     `json:"beyond,omitzero"`
	Session string   `json:"session"`
	At      api.Time `json:"at"`
	Words   string   `json:"words"`
}

func approvalsShown(all []setup.Approval) []approvalShown {
	out := make([]approvalShown, len(all))
	for i, a := range all {
		out[i] = approvalShown{ID: a.ID, Area: a.Area, Tool: a.Tool, What: a.What, Any: a.Any, Beyond: a.Beyond, Session: a.Session, At: api.Time{Time: a.At}, Words: a.Words()}
	}
	return out
}

func (c *cli) showApprovals(files setup.Files, slug, what string) error {
	all, err := files.Approvals(slug)
	if err != nil {
		return &problem{code: exitError, what: what, why: err.Error(), next: "stint worker doctor " + slug}
	}
	shown := approvalsShown(all)
	return c.show(shown, "", func() error {
		if len(shown) == 0 {
			c.hint("Nothing is allowed to %s from now on.", slug)
			return nil
		}
		for _, a := range shown {
			f := &facts{}
			f.add("name", a.ID)
			f.add("allows", fmt.Sprintf("%s, %s", visible(a.What), a.Words))
			f.add("area", string(a.Area)+", "+plain(a.Tool))
			f.add("since", a.At.Local().Format(time.DateTime)+", asked by "+plain(a.Session))
			if err := f.print(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *cli) revoke(files setup.Files, slug, id, what string) error {
	gone, err := files.Revoke(slug, id)
	if err != nil {
		return &problem{code: exitError, what: what, why: err.Error(), next: "stint worker rules " + slug}
	}
	if len(gone) == 0 && id != "" {
		return &problem{code: exitNotFound, what: what, why: "there is no standing approval " + id, next: "stint worker rules " + slug}
	}
	return c.show(approvalsShown(gone), "", func() error {
		for _, a := range gone {
			c.hint("Taken back: %s (%s).", visible(a.What), a.ID)
		}
		return nil
	})
}
