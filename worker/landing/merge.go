package landing

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stint/api"
	"stint/worker/git"
)

// Merge asks to merge the branch into its base branch.
type Merge struct {
	Method  api.MergeMethod
	Message Message // of the commit, where one is made
	// Plan is told which commit the base branch is about to get, before it gets it; nil = nobody
	// has to know.
	Plan func(commit string) error
}

// fork is a branch and its base branch, neither of which has all of the other.
type fork struct {
	point
	base
}

// Merge puts the branch's commits into the base branch, wherever that is checked out. It returns the
// commit that the base branch has afterwards.
func (t *Tree) Merge(ctx context.Context, m Merge) (api.LandOutcome, error) {
	f, err := t.mergeable(ctx)
	if err != nil {
		return api.LandOutcome{}, err
	}
	fast, err := t.within(ctx, f.tip, f.head)
	if err != nil {
		return api.LandOutcome{}, err
	}
	commit, how := f.head, "by fast-forward"
	switch {
	case !fast && m.Method == api.MergeFastForward:
		return api.LandOutcome{}, refuse(api.LandConflict, "The branch %s has commits that the session's branch lacks, so it can't be fast-forwarded. Squash, or make a merge commit.", Quoted(f.base.branch))
	case m.Method == api.MergeSquash, m.Method == api.MergeCommit, !fast:
		if commit, err = t.join(ctx, f, m); err != nil {
			return api.LandOutcome{}, err
		}
		how = "by a merge commit"
		if m.Method == api.MergeSquash {
			how = "as one commit"
		}
	}
	if err := t.advance(ctx, f, commit, m.Plan); err != nil {
		return api.LandOutcome{}, err
	}
	return api.LandOutcome{Commit: commit, Detail: fmt.Sprintf("The changes are in the branch %s, %s.", Quoted(f.base.branch), how)}, nil
}

// mergeable refuses what can't be merged whatever the method.
func (t *Tree) mergeable(ctx context.Context) (f fork, err error) {
	if t.place.Kind == api.PlaceFolder {
		return f, refuse(api.LandUnsupported, "This agent works in the folder itself: what it commits is on the checked-out branch already.")
	}
	if f.point, f.base, err = t.ready(ctx); err != nil {
		return f, err
	}
	switch {
	case f.base.branch == "":
		return f, refuse(api.LandNoBase, "Nobody can tell which branch the changes are for.")
	case t.place.protected(f.base.branch):
		return f, refuse(api.LandProtected, "The worker's owner protects the branch %s: nothing is merged into it from here.", Quoted(f.base.branch))
	case f.base.branch == f.point.branch:
		return f, refuse(api.LandNothing, "The branch %s is the base branch itself.", Quoted(f.base.branch))
	case f.tip == "":
		return f, refuse(api.LandNoBase, "The branch %s, which the changes are for, is not there, or only another name of something else.", Quoted(f.base.branch))
	case f.head == t.place.Landed:
		return f, refuse(api.LandNothing, "These changes are in the branch %s already.", Quoted(f.base.branch))
	}
	ours, err := t.maybe(ctx, "merge-base", f.tip, f.head)
	if err == nil && ours == f.head {
		err = refuse(api.LandNothing, "The branch %s has all of these commits already.", Quoted(f.base.branch))
	} else if err == nil && ours == "" {
		err = refuse(api.LandUnsupported, "The two branches have no commit in common.")
	}
	return f, err
}

// within reports whether a commit has all of another.
func (t *Tree) within(ctx context.Context, commit, of string) (bool, error) {
	_, err := t.out(ctx, "merge-base", "--is-ancestor", commit, of)
	if git.Exit(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// join makes the commit that has both, in a repository of our own: the settings of the real one can
// name programs that merge files.
func (t *Tree) join(ctx context.Context, f fork, m Merge) (commit string, err error) {
	if err := t.canJoin(ctx); err != nil {
		return "", err
	}
	if err := t.plainlyMerged(ctx, f); err != nil {
		return "", err
	}
	scratch, err := t.tree.Scratch(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = also(err, scratch.Close()) }()
	out, err := scratch.Do(ctx, git.Call{Args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", f.tip, f.head}})
	fields := strings.Split(strings.TrimRight(out, "\x00"), "\x00")
	if git.Exit(err) == 1 {
		r := refuse(api.LandConflict, "The changes and the branch %s both changed the same places. Have the agent bring its branch up to date, or merge by hand.", Quoted(f.base.branch))
		for _, path := range slices.Compact(slices.Sorted(slices.Values(fields[1:]))) {
			if len(r.Paths) < mostNamed {
				r.Paths = append(r.Paths, Quoted(path))
			}
		}
		return "", r
	}
	if err != nil {
		return "", err
	}
	if old, err := t.out(ctx, "rev-parse", f.tip+"^{tree}"); err != nil || old == fields[0] {
		if err == nil {
			err = refuse(api.LandNothing, "The branch %s holds all of these changes already.", Quoted(f.base.branch))
		}
		return "", err
	}
	who, err := t.owner(ctx)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-F", "-", "-p", f.tip}
	if m.Method != api.MergeSquash {
		args = append(args, "-p", f.head)
	}
	message := m.Message
	if m.Method != api.MergeSquash {
		message = "Merge branch '" + Message(f.point.branch) + "'\n\n" + message
	}
	made, err := scratch.Do(ctx, git.Call{Args: append(args, fields[0]), Env: who, Input: text(message), Set: keeping})
	return strings.TrimSpace(made), err
}

// The first git that merges without a work tree.
const (
	joinMajor = 2
	joinMinor = 38
)

func (t *Tree) canJoin(ctx context.Context) error {
	version, err := git.Version(ctx, t.place.Env)
	if err != nil {
		return err
	}
	if !joins(version) {
		return refuse(api.LandUnsupported, "The worker's git %s is too old to merge this way: it takes %d.%d or later. A fast-forward works.", version, joinMajor, joinMinor)
	}
	return nil
}

func joins(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, bad := strconv.Atoi(parts[0])
	minor, worse := strconv.Atoi(parts[1])
	return bad == nil && worse == nil && (major > joinMajor || major == joinMajor && minor >= joinMinor)
}

// plainlyMerged refuses when both sides changed a file whose attributes ask for another way of
// merging than line by line: no program for that is run here.
func (t *Tree) plainlyMerged(ctx context.Context, f fork) error {
	ours, err := t.changed(ctx, f.from, f.tip)
	if err != nil {
		return err
	}
	theirs, err := t.changed(ctx, f.from, f.head)
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, path := range ours {
		has[path] = true
	}
	theirs = slices.DeleteFunc(theirs, func(path string) bool { return !has[path] })
	var odd *Refusal
	err = attributes(ctx, t.tree, "merge", theirs, func(path, value string) {
		if value == "set" || value == "text" {
			return
		}
		if odd == nil {
			odd = refuse(api.LandConflict, "Both sides changed files that are to be merged in a way of their own (%s), which Stint doesn't do. Merge by hand.", Quoted(value))
		}
		odd.Paths = append(odd.Paths, Quoted(path))
	})
	if err == nil && odd != nil {
		err = odd
	}
	return err
}

// changed are the files in which two commits differ.
func (t *Tree) changed(ctx context.Context, from, to string) ([]string, error) {
	out, err := t.tree.Do(ctx, git.Call{Args: []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=dirty", "--end-of-options", from, to}})
	if err != nil || out == "" {
		return nil, err
	}
	if len(out) >= mostListed {
		return nil, refuse(api.LandUnsupported, "More files changed than Stint looks at. Merge by hand.")
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}

// mostListed is where package git cuts a list.
const mostListed = 8 << 20

// Head is the commit checked out, "" = none yet.
func (t *Tree) Head(ctx context.Context) (string, error) { return t.commit(ctx, "HEAD") }

// InBase reports whether the base branch has a commit.
func (t *Tree) InBase(ctx context.Context, commit string) (bool, error) {
	p, err := t.point(ctx)
	if err != nil {
		return false, err
	}
	b, err := t.base(ctx, p)
	if err != nil || b.tip == "" {
		return false, err
	}
	if known, err := t.commit(ctx, commit); err != nil || known == "" {
		return false, err // it was never made
	}
	return t.within(ctx, commit, b.tip)
}
