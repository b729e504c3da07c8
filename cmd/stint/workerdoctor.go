package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	shellquote "github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker"
)

func (c *cli) workerDoctorCommand() *cobra.Command {
	var env []string
	var state string
	cmd := &cobra.Command{
		Use:   "doctor [AGENT…]",
		Short: "Show exactly what a command would meet here",
		Long: "Shows for agents (all, unless some are named) what a worker started here, by\n" +
			"this user, would execute, where, and with which environment, and how your\n" +
			"settings of them stand. It starts git and the agents' programs, to ask for\n" +
			"versions and sign-in, and no command. It exits with 10 if an agent can't run\n" +
			"here.",
		Example: "stint worker doctor backup\nstint worker doctor --json | jq '.items[] | select(.runs | not)'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.workerDoctor(cmd.Context(), args, env, state)
		},
	}
	cmd.Flags().StringArrayVar(&env, "env", nil, "the `NAME` of a variable that worker run would be given;\nrepeat for more")
	cmd.Flags().StringVar(&state, "state-dir", "", "the worker's own `DIR`, if its settings are there")
	return cmd
}

func (c *cli) workerDoctor(ctx context.Context, refs, env []string, state string) error {
	what := "cannot look at what agents would meet here"
	p, err := c.find(what)
	if err != nil {
		return err
	}
	client, err := c.clientOf(what, p)
	if err != nil {
		return err
	}
	all := len(refs) == 0
	if all {
		list, err := pages(statusLimit, "", func(p api.Page) (api.List[api.Agent], error) { return client.Agents(ctx, p) })
		if err != nil {
			return explain(what, err, "stint status")
		}
		for _, a := range list.Items {
			refs = append(refs, a.ID.String())
		}
	}
	reports := api.List[worker.Report]{Items: []worker.Report{}}
	for _, ref := range refs {
		if ref, err = findAgent(ctx, client, ref); err != nil {
			return err
		}
		r, err := worker.Doctor(ctx, worker.Options{URL: p.url, Token: p.token, Credentials: p.credentials, StateDir: c.stateDir(state), Env: env, Version: builtFrom().Version}, ref)
		if err != nil {
			return noAgent(ctx, client, what, ref, err)
		}
		reports.Items = append(reports.Items, r)
	}
	if err := c.showReports(reports, all || len(refs) > 1); err != nil {
		return err
	}
	for _, r := range reports.Items {
		if !r.Runs {
			return quietly(exitProblems)
		}
	}
	return nil
}

// showReports prints one report by itself, several as a list.
func (c *cli) showReports(reports api.List[worker.Report], several bool) error {
	switch {
	case c.flags.json && several:
		return c.document(reports)
	case c.flags.json:
		return c.document(reports.Items[0])
	}
	for i, r := range reports.Items {
		if c.flags.quiet {
			if err := c.say("%s", r.Agent); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			if err := c.say(""); err != nil {
				return err
			}
		}
		if err := c.reportFacts(r).print(c); err != nil {
			return err
		}
	}
	if len(reports.Items) == 0 {
		c.hint("There is no agent yet.")
	}
	return nil
}

func (c *cli) reportFacts(r worker.Report) *facts {
	f := &facts{}
	f.add("agent", r.Agent)
	verdict := c.outLook.good("runs here")
	if !r.Runs {
		verdict = c.outLook.bad("does not run here")
	}
	f.add("verdict", verdict)
	c.checkFacts(f, r.Checks)
	if r.Setup != nil {
		c.setupFacts(f, *r.Setup)
	}
	f.add("command", plain(shellquote.Join(r.Command...)))
	f.add("then checks", plain(shellquote.Join(r.Check...)))
	f.add("executable", plain(r.Executable))
	f.add("work folder", plain(r.WorkFolder))
	if r.RealFolder != r.WorkFolder {
		f.add("really", plain(r.RealFolder))
	}
	f.add("runs as", plain(r.User))
	c.cleanedFacts(f, r.Cleaned)
	for _, v := range r.Env {
		f.add("environment", plain(v.Name+"="+strings.ReplaceAll(v.Value, "\n", `\n`)))
	}
	return f
}

// cleanedFacts are what the worker removed of workspaces by itself.
func (c *cli) cleanedFacts(f *facts, last *worker.Cleaned) {
	if last == nil {
		return
	}
	f.add("cleaned up", fmt.Sprintf("%s, %d left", c.ago(last.At), last.Kept))
	if last.Removed > 0 {
		f.add("removed", fmt.Sprintf("%d, %s, %s", last.Removed, humanize.IBytes(uint64(max(last.FreedBytes, 0))), c.ago(last.RemovedAt))) //nolint:gosec // not negative
	}
	if last.Failed != "" {
		f.add("not removed", c.outLook.bad(plain(last.Failed)))
	}
}

func (c *cli) checkFacts(f *facts, checks []api.Check) {
	for _, check := range checks {
		switch {
		case !check.OK:
			f.add("check", c.outLook.bad(check.Name+": "+check.Code)+" "+plain(check.Detail))
		case check.Detail != "":
			f.add("check", c.outLook.sgr("33", check.Name+":")+" "+plain(check.Detail))
		default:
			f.add("check", check.Name+": good")
		}
		if check.Mend != "" {
			f.add("mend", plain(check.Mend))
		}
	}
}

// setupFacts are what the owner's settings amount to.
func (c *cli) setupFacts(f *facts, i worker.Inspection) {
	c.checkFacts(f, i.Checks)
	if i.Found {
		f.add("settings", plain(i.File))
	}
	f.add("program", strings.TrimSpace(plain(i.Program.Path)+" "+plain(i.Program.Version)))
	f.add("signed in", i.Program.SignedIn)
	f.add("git", plain(i.Git))
	f.add("workspaces", i.Mode)
	f.add("made in", plain(i.Root))
	if w := i.Workflow; w != nil {
		f.add("workflow file", plain(w.Path))
		for _, field := range w.Ignored {
			f.add("ignored", plain(field))
		}
		for _, text := range w.Unknown {
			f.add("left as written", plain(text))
		}
	}
	f.add("env files set", strings.Join(i.Variables, " "))
	if i.Tools {
		f.add("tools", "Stint's own, with the run's token")
	}
	f.add("changes", landWords(i))
	for _, words := range i.Uses {
		f.add("uses", plain(words))
	}
	for _, name := range i.Loads {
		f.add("loads", plain(name))
	}
	f.add("permissions", i.Rights)
	for _, rule := range i.Policy {
		f.add("rule", plain(rule))
	}
	for _, area := range slices.Sorted(maps.Keys(i.Holds)) {
		f.add("holds for "+area, i.Holds[area])
	}
}

// levelWords say how far changes may be landed from elsewhere.
var levelWords = map[api.LandLevel]string{
	api.LandOff: "shown, and landed by the worker's owner alone", api.LandPush: "may be kept, pushed and discarded from elsewhere",
	api.LandPullRequest: "may be kept, pushed, offered in a pull request and discarded from elsewhere",
	api.LandMerge:       "may be kept, pushed, offered in a pull request, merged and discarded from elsewhere",
}

// landWords are those of a worker's settings, with the branches that are spared.
func landWords(i worker.Inspection) string {
	words := levelWords[api.LandLevel(i.Land)]
	if words != "" && i.Land != string(api.LandOff) && len(i.Protected) > 0 {
		words += ", but nothing on " + plain(strings.Join(i.Protected, ", "))
	}
	return words
}
