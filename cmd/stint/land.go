package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

// landWait is how long a command waits for the worker by itself.
const landWait = 2 * time.Minute

func (c *cli) diffCommand() *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:     "diff SESSION",
		Short:   "Show what a session changed in its repository",
		Long:    "Prints a unified diff of what the session's workspace holds beside what it began\nwith, committed or not, as its worker last recorded it.",
		Example: "stint diff ses_02r3v0n8e2\nstint diff ses_02r3v0n8e2 --stat",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot show the changes of the session " + args[0]
			return c.withSession(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, id api.SessionID) error {
				got, err := client.Changes(ctx, id)
				if err != nil {
					return explain(what, err, "stint show "+id.String())
				}
				return c.show(got, id.String(), func() error {
					if err := c.sayChanges(got, stat); err != nil {
						return err
					}
					c.hintChanges(got)
					return nil
				})
			})
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "only the files, with how many lines")
	return cmd
}

// sayChanges prints a diff, or its files alone.
func (c *cli) sayChanges(got api.Changes, stat bool) error {
	for _, f := range got.Files {
		name := f.Path
		if f.OldPath != "" {
			name = f.OldPath + " => " + f.Path
		}
		if stat {
			count := fmt.Sprintf("+%d -%d", f.Added, f.Removed)
			if f.Binary {
				count = "binary"
			}
			if err := c.say("%-12s %s  %s", f.Change, plain(name), count); err != nil {
				return err
			}
			continue
		}
		if err := c.say("%s", strings.TrimSuffix(c.patch(f), "\n")); err != nil {
			return err
		}
		if f.Cut {
			c.hint("The rest of the diff of %s was not kept.", plain(f.Path))
		}
	}
	if left := got.FileCount - int64(len(got.Files)); left > 0 {
		c.hint("%d further files were left out.", left)
	}
	return nil
}

// patch is a file's part of a diff, as other programs read it.
func (c *cli) patch(f api.ChangedFile) string {
	old, now := "a/"+f.Path, "b/"+f.Path
	if f.OldPath != "" {
		old = "a/" + f.OldPath
	}
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", plain(old), plain(now))
	if f.OldPath != "" {
		fmt.Fprintf(&b, "rename from %s\nrename to %s\n", plain(f.OldPath), plain(f.Path))
	}
	switch {
	case f.Binary:
		b.WriteString("Binary files differ\n")
	case f.Patch != "":
		if f.Change == api.FileAdded {
			old = "/dev/null"
		}
		if f.Change == api.FileDeleted {
			now = "/dev/null"
		}
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", plain(old), plain(now))
		for _, r := range api.PatchRows(f.Patch) {
			if r.Kind == '@' {
				fmt.Fprintf(&b, "%s\n", plain(r.Text))
				continue
			}
			fmt.Fprintf(&b, "%c%s\n", r.Kind, plainKeepTabs(r.Text))
		}
	}
	return b.String()
}

// plainKeepTabs is plain for a line of a file.
func plainKeepTabs(line string) string {
	parts := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
	for i := range parts {
		parts[i] = plain(parts[i])
	}
	return strings.Join(parts, "\t")
}

func (c *cli) hintChanges(got api.Changes) {
	where := "in a folder that is not its own"
	if got.Branch != "" {
		where = "on " + plain(got.Branch)
	}
	state := fmt.Sprintf("%d files, +%d -%d, %d commits %s", got.FileCount, got.Added, got.Removed, got.CommitCount, where)
	if got.Dirty && !got.Discarded() {
		state += ", not all committed"
	}
	c.hint("%s.", state)
	if l := got.Landing; l != nil {
		c.hint("%s", plain(landingWords(*l)))
	}
	if got.Why != "" {
		c.hint("%s", plain(got.Why))
	}
}

type landFlags struct {
	keep, push, pr, merge bool
	method, message       string
	noWait                bool
}

func (c *cli) landCommand() *cobra.Command {
	var f landFlags
	cmd := &cobra.Command{
		Use:   "land SESSION",
		Short: "Keep, push or merge what a session changed",
		Long: "Asks the worker that has the session's workspace to commit what is not committed\n" +
			"(--keep), and then to push its branch, to open a pull request, or to merge it into\n" +
			"the branch that it began at. The worker's owner says how far that may go, by the\n" +
			"setting land; nothing is forced, and hooks of the repository are not run.",
		Example: "stint land ses_02r3v0n8e2 --keep\nstint land ses_02r3v0n8e2 --keep --merge --method squash -m 'Add a search'\n" +
			"stint land ses_02r3v0n8e2 --pr",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.land(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.keep, "keep", false, "commit what is not committed, before anything else")
	flags.BoolVar(&f.push, "push", false, "push the branch")
	flags.BoolVar(&f.pr, "pr", false, "push it, and open a pull request or say where to")
	flags.BoolVar(&f.merge, "merge", false, "merge it into the branch that it began at")
	flags.StringVar(&f.method, "method", "", "how to merge: fast_forward, squash or merge_commit;\nby itself fast_forward where that is possible")
	flags.StringVarP(&f.message, "message", "m", "", "the `TEXT` of the commit or pull request (the session's\ntitle)")
	flags.BoolVar(&f.noWait, "no-wait", false, "don't wait for the worker")
	return cmd
}

// verbs are what the flags ask for, in order.
func (f landFlags) verbs() (out []api.LandVerb) {
	for _, v := range []struct {
		on   bool
		verb api.LandVerb
	}{{f.keep, api.VerbKeep}, {f.push, api.VerbPush}, {f.pr, api.VerbPullRequest}, {f.merge, api.VerbMerge}} {
		if v.on {
			out = append(out, v.verb)
		}
	}
	return out
}

func (c *cli) land(ctx context.Context, ref string, f landFlags) error {
	what := "cannot land the session " + ref
	verbs := f.verbs()
	switch {
	case len(verbs) == 0:
		return usage(what, "nothing says how: give --keep, --push, --pr or --merge", "stint land "+ref+" --keep --merge")
	case f.push && f.pr:
		return usage(what, "--pr pushes the branch: leave --push out", "stint land "+ref+" --pr")
	case f.method != "" && !f.merge:
		return usage(what, "--method belongs to --merge", "stint land "+ref+" --merge --method "+f.method)
	case f.noWait && len(verbs) > 1:
		return usage(what, "--no-wait goes with one thing to do: the next one waits for it", "stint land "+ref+" --keep --no-wait")
	}
	return c.withSession(ctx, what, ref, func(ctx context.Context, client *api.Client, id api.SessionID) error {
		if f.keep && len(verbs) > 1 {
			now, err := client.Changes(ctx, id)
			if err != nil {
				return explain(what, err, "stint show "+id.String())
			}
			if !now.Dirty {
				verbs = verbs[1:] // nothing is in the way of the next
			}
		}
		for _, verb := range verbs {
			in := api.LandInput{Verb: verb, Message: f.message}
			if verb == api.VerbMerge {
				in.Method = api.MergeMethod(f.method)
			}
			l, err := c.asked(ctx, client, id, in, f.noWait, what)
			if err != nil {
				return err
			}
			if err := c.showLanding(l, len(verbs)); err != nil {
				return err
			}
			if l.State != api.LandDone {
				return landExit(l)
			}
		}
		return nil
	})
}

// asked makes a request and waits for what comes of it.
func (c *cli) asked(ctx context.Context, client *api.Client, id api.SessionID, in api.LandInput, noWait bool, what string) (api.Landing, error) {
	l, err := client.RequestLanding(ctx, id, in)
	if err != nil {
		return l, explain(what, err, landNext(ctx, client, id, in))
	}
	until := time.Now().Add(landWait)
	for !noWait && l.State == api.LandPending && time.Now().Before(until) {
		if l, err = client.AwaitLanding(ctx, id, l.ID, 20*time.Second); err != nil {
			return l, explain(what, err, "stint diff "+id.String()+" --stat")
		}
	}
	return l, nil
}

// landNext is what to do after a refusal: commit first where that is what is lacking.
func landNext(ctx context.Context, client *api.Client, id api.SessionID, in api.LandInput) string {
	now, err := client.Changes(ctx, id)
	flag := map[api.LandVerb]string{api.VerbPush: "--push", api.VerbPullRequest: "--pr", api.VerbMerge: "--merge"}[in.Verb]
	if err == nil && now.Dirty && flag != "" && slices.Contains(now.Verbs, api.VerbKeep) {
		return "stint land " + id.String() + " --keep " + flag
	}
	return "stint diff " + id.String() + " --stat"
}

func (c *cli) showLanding(l api.Landing, count int) error {
	return c.several(l, l.ID.String(), count, func() error {
		c.hint("%s", plain(landingWords(l)))
		for _, p := range l.Paths {
			c.hint("  %s", plain(p))
		}
		if l.URL != "" {
			return c.say("%s", plain(l.URL))
		}
		return nil
	})
}

// landingWords is a request and what came of it in a sentence.
func landingWords(l api.Landing) string {
	asked := map[api.LandVerb]string{
		api.VerbKeep: "The commit", api.VerbPush: "The push", api.VerbPullRequest: "The pull request",
		api.VerbMerge: "The merge", api.VerbDiscard: "Discarding",
	}[l.Verb]
	state := map[api.LandState]string{
		api.LandPending: "waits for its worker", api.LandDone: "is done", api.LandRefused: "was refused",
		api.LandAsks: "waits for a confirmation", api.LandWithdrawn: "was withdrawn",
	}[l.State]
	words := asked + " " + state
	if l.Commit != "" {
		words += " (" + l.Commit[:min(len(l.Commit), 10)] + ")"
	}
	if l.Detail != "" {
		return words + ": " + l.Detail
	}
	return words + "."
}

func landExit(l api.Landing) error {
	switch l.State {
	case api.LandDone:
		return nil
	case api.LandPending:
		return quietly(exitUnfinished)
	}
	return quietly(exitConflict)
}

func (c *cli) discardCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "discard SESSION",
		Short: "Throw away what a session changed",
		Long: "Removes the session's worktree and branch. Its worker first says what would be\n" +
			"lost; nothing is removed before you agree, and only if nothing changed since.",
		Example: "stint discard ses_02r3v0n8e2",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot discard the changes of the session " + args[0]
			return c.withSession(cmd.Context(), what, args[0], func(ctx context.Context, client *api.Client, id api.SessionID) error {
				return c.discard(ctx, client, id, yes, what)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask, whatever is lost")
	return cmd
}

func (c *cli) discard(ctx context.Context, client *api.Client, id api.SessionID, yes bool, what string) error {
	l, err := c.asked(ctx, client, id, api.LandInput{Verb: api.VerbDiscard}, false, what)
	if err != nil {
		return err
	}
	if l.State == api.LandAsks {
		if !yes {
			c.hint("%s", plain(l.Detail))
			for _, p := range l.Paths {
				c.hint("  %s", plain(p))
			}
			if !isTerminal(c.in) {
				return usage(what, "nothing was discarded: there is nobody to ask", "stint discard "+id.String()+" --yes")
			}
			if yes, err = c.agrees(ctx, "Throw this away?"); err != nil {
				return err
			}
			if !yes {
				return &problem{code: exitConflict, what: what, why: "you did not agree; everything is as it was", next: "stint diff " + id.String()}
			}
		}
		if l, err = c.asked(ctx, client, id, api.LandInput{Verb: api.VerbDiscard, Confirm: l.Token}, false, what); err != nil {
			return err
		}
	}
	if err := c.showLanding(l, 1); err != nil {
		return err
	}
	return landExit(l)
}
