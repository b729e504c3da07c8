package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker"
	"stint/worker/places"
	"stint/worker/setup"
	"stint/worker/workspace"
)

// What of workspaces the settings say: see cleanUp.
const (
	workspacesAge  = "STINT_WORKSPACES_AGE"
	workspacesSize = "STINT_WORKSPACES_SIZE"

	keepFor = 14 * 24 * time.Hour // how long a workspace that nobody uses is kept
)

// cleanUp are the limits by which workers remove workspaces, and stint worker gc if it isn't
// told others.
func (c *cli) cleanUp() (worker.CleanUp, error) {
	out := worker.CleanUp{OlderThan: keepFor}
	var err error
	switch text := c.env(workspacesAge); text {
	case "":
	case "never":
		out.OlderThan = 0
	default:
		if out.OlderThan, err = api.ParseLength(text); err != nil || out.OlderThan < time.Hour {
			return out, usage("cannot read the settings of workspaces", fmt.Sprintf("%s is never, or a length of time from an hour on such as 14d, not %q", workspacesAge, text), workspacesAge+"=14d stint worker run")
		}
	}
	if text := c.env(workspacesSize); text != "" {
		if out.KeepSize, err = sizeOf(text); err != nil {
			return out, usage("cannot read the settings of workspaces", workspacesSize+" "+err.Error(), workspacesSize+"=20GB stint worker run")
		}
	}
	return out, nil
}

// sizeOf reads a size such as 20GB.
func sizeOf(text string) (int64, error) {
	bytes, err := humanize.ParseBytes(text)
	if err != nil || bytes == 0 || bytes > 1<<62 {
		return 0, fmt.Errorf("%s is no size such as 20GB", text)
	}
	return int64(bytes), nil
}

type gcFlags struct {
	dry      bool
	older    time.Duration
	aged     bool // older was given
	size     string
	roots    []string
	stateDir string
}

func (c *cli) workerGCCommand() *cobra.Command {
	var f gcFlags
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove workspaces that nobody needs",
		Long: "Removes worktrees and folders that were made for sessions and have not been\n" +
			"used for a while. It never removes one that is in use, whose session may go on,\n" +
			"or in which something would be lost: files that are not committed, commits that\n" +
			"are nowhere else, stashes, and of the files that git ignores those that nothing\n" +
			"brings back (.env, databases, keys) and those that your settings name; nor one\n" +
			"that a process works in (on Linux). It says of each one that it keeps why.\n" +
			"Workers do this by themselves, every hour.",
		Example: "stint worker gc --dry-run\nstint worker gc --older-than 3d\nstint worker gc --older-than 0 --keep-size 20GB",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.aged = cmd.Flags().Changed("older-than")
			return c.collect(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.dry, "dry-run", false, "only say what would be removed")
	flags.Var(length{&f.older}, "older-than", "unused for so long; 0 is no reason to remove\n(STINT_WORKSPACES_AGE, else 14d)")
	flags.StringVar(&f.size, "keep-size", "", "the `SIZE` all may take together, such as 20GB; the\noldest go first (STINT_WORKSPACES_SIZE)")
	flags.StringArrayVar(&f.roots, "root", nil, "only the workspaces in this `DIR`; repeat for more")
	flags.StringVar(&f.stateDir, "state-dir", "", "the worker's own `DIR`")
	return cmd
}

func (c *cli) collect(ctx context.Context, f gcFlags) error {
	what := "cannot clean up workspaces"
	limits, err := c.cleanUp()
	if err != nil {
		return err
	}
	if f.aged {
		limits.OlderThan = f.older
	}
	if f.size != "" {
		if limits.KeepSize, err = sizeOf(f.size); err != nil {
			return usage(what, "--keep-size "+err.Error(), "stint worker gc --keep-size 20GB")
		}
	}
	o := c.collectable(f.stateDir)
	rules := o.Rules
	rules.OlderThan, rules.KeepSize, rules.DryRun = limits.OlderThan, limits.KeepSize, f.dry
	if client, err := c.connect(what); err == nil { // if none answers, all may go on
		rules.Goes = worker.GoesOn(client, func(context.Context) (bool, error) { return false, nil })
	}
	roots := f.roots
	if len(roots) == 0 {
		roots = o.Roots
	}
	all := api.List[workspace.Report]{Items: []workspace.Report{}}
	var failed error
	for _, root := range roots {
		root, err := filepath.Abs(root)
		if err != nil {
			return usage(what, api.Plain(err), "stint worker gc --root DIR")
		}
		if _, err := os.Stat(root); err != nil && len(f.roots) == 0 {
			continue // no workspace was made there yet
		}
		r, err := workspace.Collect(ctx, root, rules)
		if err != nil {
			failed = explain(what, err, "stint worker gc --root DIR")
			c.hint("%s", c.errLook.sgr("33", "! "+plain(root+": "+api.Plain(err))))
		}
		all.Items = append(all.Items, r)
	}
	if err := c.showCollected(all, f.dry); err != nil {
		return err
	}
	return failed
}

// collectable is what the owner's files say about workspaces; what can't be read is named.
func (c *cli) collectable(stateDir string) worker.Collectable {
	var roots []string
	for _, dir := range []string{stateDir, filepath.Join(places.State(), "worker"), c.stateDir("")} {
		if dir != "" && (stateDir == "" || dir == stateDir) {
			roots = append(roots, worker.WorkspaceRoot(dir))
		}
	}
	all, bad := worker.CollectableBy(setup.Find(c.stateDir(stateDir)), os.Environ(), roots...)
	for _, err := range bad {
		c.hint("%s", c.errLook.sgr("33", "! "+plain(api.Plain(err))))
	}
	return all
}

func (c *cli) showCollected(all api.List[workspace.Report], dry bool) error {
	if c.flags.json {
		return c.document(all)
	}
	removed := "removed"
	if dry {
		removed = "would go"
	}
	t := table{head: []string{"", "WORKSPACE", "SIZE", "WHY"}, flex: 3}
	var freed int64
	for _, r := range all.Items {
		freed += r.Freed
		for _, i := range r.Removed {
			t.rows = append(t.rows, []string{removed, plain(i.Path), humanize.IBytes(uint64(i.Bytes)), plain(i.Why)})
			t.ids = append(t.ids, i.Path)
		}
		for _, i := range r.Retained {
			t.rows = append(t.rows, []string{"kept", plain(i.Path), humanize.IBytes(uint64(i.Bytes)), plain(i.Why)})
		}
	}
	if err := c.print(t, "Agents have left no workspaces here."); err != nil || c.flags.quiet {
		return err
	}
	c.hint("%s: %s", map[bool]string{false: "Freed", true: "Would free"}[dry], humanize.IBytes(uint64(freed)))
	return nil
}
