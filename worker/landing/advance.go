package landing

import (
	"context"
	"errors"
	"strings"

	"stint/api"
	"stint/worker/git"
)

// advance sets the base branch to a commit that has all of it: where it is checked out, with its
// files; elsewhere the branch alone. It must still be where it was.
func (t *Tree) advance(ctx context.Context, f fork, commit string, plan func(string) error) error {
	at, checkedOut, err := t.baseTree(ctx, f.base.branch)
	if err != nil {
		return err
	}
	if checkedOut {
		if err := t.writable(ctx, f, at, commit); err != nil {
			return err
		}
	}
	who, err := t.owner(ctx)
	if err != nil {
		return err
	}
	if plan != nil {
		if err := plan(commit); err != nil {
			return err
		}
	}
	if !checkedOut {
		err = t.move(ctx, t.tree, "refs/heads/"+f.base.branch, commit, f.tip, ": merge "+f.point.branch, who)
		return t.moved(ctx, f, err)
	}
	_, err = at.Do(ctx, git.Call{
		Args: []string{
			"merge", "--ff-only", "--no-overwrite-ignore", "--no-verify-signatures", "--no-autostash", "--no-squash", "--no-stat", "--no-log",
			"--no-progress", "--quiet", "--", commit,
		},
		Set: append([][2]string{{"branch." + f.base.branch + ".mergeOptions", ""}, {"merge.verifySignatures", "false"}, {"merge.autoStash", "false"}}, keeping...),
		Env: append([]string{"GIT_REFLOG_ACTION=" + reflog + ": merge " + f.point.branch}, who...),
	})
	if err == nil {
		return nil
	}
	if now, gone := t.repo.Branch(ctx, f.base.branch); gone == nil && now == commit {
		return nil // only what git does after it failed
	}
	return inTheWay(t.moved(ctx, f, err), f)
}

// moved says so when the base branch is no longer where it was.
func (t *Tree) moved(ctx context.Context, f fork, err error) error {
	if err == nil {
		return nil
	}
	now, gone := t.repo.Branch(ctx, f.base.branch)
	switch {
	case gone != nil || now == f.tip:
		return err
	case now == "":
		return refuse(api.LandNoBase, "The branch %s was deleted just now.", Quoted(f.base.branch))
	}
	return refuse(api.LandBusy, "The branch %s got another commit just now. Ask again.", Quoted(f.base.branch))
}

// inTheWay is git's refusal to overwrite files, in our words.
func inTheWay(err error, f fork) error {
	failed := (*git.Error)(nil)
	if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, "would be overwritten") {
		return err
	}
	r := refuse(api.LandDirty, "The branch %s is checked out in a folder where files lie in the way that git doesn't know.", Quoted(f.base.branch))
	for line := range strings.Lines(failed.Stderr) {
		if path, ok := strings.CutPrefix(line, "\t"); ok && len(r.Paths) < mostNamed {
			r.Paths = append(r.Paths, Quoted(strings.TrimSuffix(path, "\n")))
		}
	}
	return r
}

// baseTree finds the tree in which a branch is checked out.
func (t *Tree) baseTree(ctx context.Context, branch string) (at git.Tree, found bool, err error) {
	all, err := t.repo.Worktrees(ctx)
	if err != nil {
		return at, false, err
	}
	for _, w := range all {
		tree, err := t.repo.At(ctx, w.Path)
		if errors.Is(err, git.ErrUnregistered) {
			if w.Branch == branch {
				return at, false, refuse(api.LandBusy, "The branch %s is checked out in a folder that can't be found.", Quoted(branch))
			}
			continue
		}
		if err != nil {
			return at, false, err
		}
		if tree.Rewrites() == branch {
			return at, false, refuse(api.LandUnderway, "The branch %s is being rewritten in another folder.", Quoted(branch))
		}
		if w.Branch == branch {
			at, found = tree, true
		}
	}
	return at, found, nil
}

// writable refuses to touch a tree of the owner's that is being worked in, or whose new files need
// a filter. Files there that git doesn't know are left alone by git itself.
func (t *Tree) writable(ctx context.Context, f fork, at git.Tree, commit string) error {
	if under := at.Under(); under != "" {
		return refuse(api.LandUnderway, "Where the branch %s is checked out, %s is under way. End it first.", Quoted(f.base.branch), under)
	}
	there := &Tree{place: t.place, tree: at, repo: t.repo}
	r := refuse(api.LandDirty, "The branch %s is checked out in a folder with changes that are not committed.", Quoted(f.base.branch))
	err := there.status(ctx, func(e entry) error {
		if e.unknown {
			return nil
		}
		if r.Paths = append(r.Paths, Quoted(e.path)); len(r.Paths) >= mostNamed {
			return git.Enough()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(r.Paths) > 0 {
		return r
	}
	paths, err := t.changed(ctx, f.tip, commit)
	if err != nil {
		return err
	}
	if err := unfiltered(ctx, at, paths); err != nil {
		return err
	}
	return unfiltered(ctx, t.tree, paths)
}
