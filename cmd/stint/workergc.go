package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker"
	"stint/worker/places"
	"stint/worker/proc"
	"stint/worker/setup"
	"stint/worker/workspace"
)

// keepFor is how long a workspace that nobody uses is kept.
const keepFor = 14 * 24 * time.Hour

type gcFlags struct {
	dry      bool
	older    time.Duration
	size     string
	roots    []string
	stateDir string
}

func (c *cli) workerGCCommand() *cobra.Command {
	f := gcFlags{older: keepFor}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove workspaces that nobody needs",
		Long: "Removes worktrees and folders that were made for sessions and have not been\n" +
			"used for a while. It never removes one that is in use, whose session may go on,\n" +
			"or in which something would be lost: files that are not committed, commits that\n" +
			"are nowhere else, stashes, and of the files that git ignores those that nothing\n" +
			"brings back (.env, databases, keys) and those that your settings name; nor one\n" +
			"that a process works in (on Linux). It says of each one that it keeps why.",
		Example: "stint worker gc --dry-run\nstint worker gc --older-than 3d\nstint worker gc --older-than 0 --keep-size 20GB",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.collect(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.dry, "dry-run", false, "only say what would be removed")
	flags.Var(length{&f.older}, "older-than", "unused for so long; 0 is no reason to remove (14d)")
	flags.StringVar(&f.size, "keep-size", "", "the `SIZE` all may take together, such as 20GB; the\noldest go first")
	flags.StringArrayVar(&f.roots, "root", nil, "only the workspaces in this `DIR`; repeat for more")
	flags.StringVar(&f.stateDir, "state-dir", "", "the worker's own `DIR`")
	return cmd
}

func (c *cli) collect(ctx context.Context, f gcFlags) error {
	what := "cannot clean up workspaces"
	rules := workspace.Rules{OlderThan: f.older, DryRun: f.dry, Goes: c.goesOn(what)}
	if f.size != "" {
		bytes, err := humanize.ParseBytes(f.size)
		if err != nil || bytes == 0 || bytes > 1<<62 {
			return usage(what, fmt.Sprintf("--keep-size %s is no size", f.size), "stint worker gc --keep-size 20GB")
		}
		rules.KeepSize = int64(bytes)
	}
	env, err := proc.Env(os.Environ(), nil, nil)
	if err != nil {
		return explain(what, err, "")
	}
	rules.Env = env
	o := c.owned(f.stateDir)
	rules.Hooks, rules.KeepIgnored = o.hooks, o.keep
	roots := f.roots
	if len(roots) == 0 {
		roots = slices.Sorted(maps.Keys(o.roots))
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

// goesOn asks the coordinator whether a session may continue. If none answers, all may.
func (c *cli) goesOn(what string) func(context.Context, string) (bool, error) {
	client, err := c.connect(what)
	if err != nil {
		return nil
	}
	return func(ctx context.Context, id string) (bool, error) {
		var session api.SessionID
		if err := session.UnmarshalText([]byte(id)); err != nil {
			return false, err
		}
		s, err := client.Session(ctx, session)
		if code := api.CodeOf(err); code == api.CodeNotFound || code == api.CodeGone {
			return false, nil
		}
		return !s.Status.Terminal(), err
	}
}

// owned is what the owner's files say about workspaces.
type owned struct {
	roots map[string]bool
	keep  []string
	hooks func(agent string) workspace.Hooks
}

func (c *cli) owned(stateDir string) owned {
	o := owned{roots: map[string]bool{}}
	for _, dir := range []string{stateDir, filepath.Join(places.State(), "worker"), c.stateDir("")} {
		if dir != "" && (stateDir == "" || dir == stateDir) {
			o.roots[worker.WorkspaceRoot(dir)] = true
		}
	}
	files := setup.Find(c.stateDir(stateDir))
	slugs, err := files.Slugs()
	if err != nil {
		c.hint("%s", c.errLook.sgr("33", "! "+plain(api.Plain(err))))
	}
	hooks := map[string]workspace.Hooks{}
	for _, slug := range slugs {
		a, h, err := c.collectable(files, slug)
		if err != nil {
			c.hint("%s", c.errLook.sgr("33", "! "+plain(api.Plain(err))))
			continue
		}
		if a.Workspace.Root != "" {
			o.roots[a.Workspace.Root] = true
		}
		o.keep = append(o.keep, a.KeepIgnored...)
		hooks[slug] = h
	}
	o.hooks = func(agent string) workspace.Hooks { return hooks[agent] }
	return o
}

// collectable is an agent's settings with the accepted hook before removal.
func (c *cli) collectable(files setup.Files, slug string) (setup.Agent, workspace.Hooks, error) {
	own, _, err := files.Agent(slug)
	if err != nil || own.Workflow == "" {
		return own, workspace.Hooks{}, err
	}
	w, err := worker.LoadWorkflow(own.Workflow)
	if err != nil {
		return own, workspace.Hooks{}, err
	}
	accepted, err := files.Accepted(slug)
	if err != nil {
		return own, workspace.Hooks{}, err
	}
	w, _, err = accepted.Follow(w)
	if err != nil {
		return own, workspace.Hooks{}, err
	}
	set, err := own.Variables()
	if err != nil {
		return own, workspace.Hooks{}, err
	}
	env, err := proc.Env(os.Environ(), own.Env, set)
	return own.Under(w), workspace.Hooks{
		Scripts: map[string]string{workspace.BeforeRemove: w.Config.Hooks.BeforeRemove}, Timeout: w.Config.Hooks.Timeout, Env: env,
	}, err
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
