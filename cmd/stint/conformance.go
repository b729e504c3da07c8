package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker/conformance"
)

type conformanceFlags struct {
	url, token, workspace string
	rules                 []string
	list                  bool
}

func (c *cli) conformanceCommand() *cobra.Command {
	var f conformanceFlags
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Judge a coordinator by the contract that workers rely on",
		Long: "Drives a coordinator through the worker's contract over HTTP alone and prints a\n" +
			"verdict on each rule. What it makes hangs on agents of its own, which it deletes.\n" +
			"It takes a few minutes where the shortest lease is a minute: it waits for leases\n" +
			"to lapse. The exit code is 1 when a rule is broken.",
		Example: "stint conformance\nSTINT_TOKEN=… stint conformance --url https://stint.example --json\nstint conformance --rule claim --rule lapse",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.conform(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.url, "url", "", "the coordinator's `URL` (the one that the other commands call)")
	flags.StringVar(&f.token, "token", "", "the `TOKEN` of a user who may make agents; others on this\nmachine can read it there, so prefer STINT_TOKEN")
	flags.StringVar(&f.workspace, "workspace", "default", "the `WORKSPACE` to try it in")
	flags.StringArrayVar(&f.rules, "rule", nil, "only rules that begin with this `WORD`; repeat for more")
	flags.BoolVar(&f.list, "list", false, "list the rules and try nothing")
	return cmd
}

func (c *cli) conform(ctx context.Context, f conformanceFlags) error {
	what := "cannot judge the coordinator"
	if f.list {
		return c.showRules()
	}
	p := target{url: f.url, token: f.token}
	if p.token == "" && f.url != "" {
		p.token = c.env("STINT_TOKEN")
	}
	if p.url == "" || p.token == "" {
		found, err := c.find(what)
		if err != nil {
			return err
		}
		if p.url != "" && !sameServer(p.url, found.url) {
			return usage(what, "no token is given for "+p.url, "STINT_TOKEN=… stint conformance --url "+p.url)
		}
		client, err := c.clientOf(what, found)
		if err != nil {
			return err
		}
		token, err := client.Token(ctx)
		if err != nil {
			return explain(what, err, "stint login")
		}
		p = target{url: orElse(p.url, found.url), token: orElse(p.token, token)}
	}
	report, err := conformance.Run(ctx, conformance.Target{
		URL: p.url, Token: p.token, Workspace: f.workspace, Rules: f.rules, Judged: c.sayVerdict,
	})
	if errors.Is(err, context.Canceled) {
		return quietly(exitInterrupted)
	}
	if err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err), next: "stint conformance --help"}
	}
	if c.flags.json {
		if err := c.document(report); err != nil {
			return err
		}
	}
	for _, id := range report.LeftOver {
		c.hint("The agent %s could not be deleted, which only an owner may; it is paused.", id)
	}
	if report.Failed > 0 {
		c.hint("%d of %d rules are broken.", report.Failed, len(report.Verdicts))
		return quietly(exitFailed)
	}
	c.hint("All %d rules are kept.", report.Passed)
	return nil
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// sayVerdict prints a verdict as it is reached. A broken pipe is noticed at the end.
func (c *cli) sayVerdict(v conformance.Verdict) {
	switch {
	case c.flags.json:
	case v.Passed && !c.flags.quiet:
		_ = c.say("kept\t%s", v.Rule)
	case !v.Passed:
		_ = c.say("broken\t%s\t%s (contract %s) It didn't: %s", v.Rule, v.Says, v.Contract, firstLine(v.Why))
	}
}

func (c *cli) showRules() error {
	all := conformance.Rules()
	if c.flags.json {
		return c.document(struct {
			Items []conformance.Verdict `json:"items"`
		}{all})
	}
	for _, v := range all {
		text := v.Rule
		if !c.flags.quiet {
			text = fmt.Sprintf("%s\t%s\t%s", v.Rule, v.Contract, v.Says)
		}
		if err := c.say("%s", text); err != nil {
			return err
		}
	}
	return nil
}
