package landing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/worker/git"
)

// Keep commits everything that is not committed and not ignored onto the branch that is checked
// out, as the owner.
func (t *Tree) Keep(ctx context.Context, message Message) (api.LandOutcome, error) {
	if t.place.Kind == api.PlaceFolder {
		return api.LandOutcome{}, refuse(api.LandUnsupported, "This agent works in the folder itself, where the owner's own edits lie too: nobody can tell them apart. Commit there by hand.")
	}
	if under := t.tree.Under(); under != "" {
		return api.LandOutcome{}, refuse(api.LandUnderway, "In the workspace %s is under way. End it first.", under)
	}
	p, err := t.point(ctx)
	if err != nil {
		return api.LandOutcome{}, err
	}
	if p.branch == "" {
		return api.LandOutcome{}, refuse(api.LandUnsupported, "No branch is checked out in the workspace.")
	}
	if err := t.own(ctx, p.branch); err != nil {
		return api.LandOutcome{}, err
	}
	paths, staged, err := t.keepable(ctx)
	if err != nil {
		return api.LandOutcome{}, err
	}
	if len(paths)+staged == 0 {
		return api.LandOutcome{}, refuse(api.LandNothing, "Everything is committed.")
	}
	if err := unfiltered(ctx, t.tree, paths); err != nil {
		return api.LandOutcome{}, err
	}
	who, err := t.owner(ctx)
	if err != nil {
		return api.LandOutcome{}, err
	}
	return t.keep(ctx, p, paths, message, who)
}

// own refuses a branch that is another's as well: the files where it is checked out would be left
// behind.
func (t *Tree) own(ctx context.Context, branch string) error {
	if t.place.Kind != api.PlaceWorktree || branch == t.place.Branch {
		return nil
	}
	if t.place.protected(branch) {
		return refuse(api.LandProtected, "The worker's owner protects the branch %s: nothing is committed to it from here.", Quoted(branch))
	}
	all, err := t.repo.Worktrees(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(w git.Worktree) bool { return w.Branch == branch && w.Path != t.top() }) {
		return refuse(api.LandUnsupported, "The branch %s is checked out in another folder too, whose files would be left behind. Commit by hand.", Quoted(branch))
	}
	return nil
}

// keep stages the files as git add does, and commits what is staged.
func (t *Tree) keep(ctx context.Context, p point, paths []string, message Message, who []string) (api.LandOutcome, error) {
	if len(paths) > 0 {
		if _, err := t.tree.Do(ctx, git.Call{
			Args: []string{"update-index", "--add", "--remove", "--replace", "-z", "--stdin"}, Set: keeping, Input: strings.Join(paths, "\x00") + "\x00",
		}); err != nil {
			return api.LandOutcome{}, err
		}
	}
	tree, err := t.tree.Do(ctx, git.Call{Args: []string{"write-tree"}, Set: keeping})
	if err != nil {
		return api.LandOutcome{}, err
	}
	args := []string{"commit-tree", "-F", "-", strings.TrimSpace(tree)}
	if p.head != "" {
		args = append(args, "-p", p.head)
		if before, err := t.out(ctx, "rev-parse", p.head+"^{tree}"); err != nil || before == strings.TrimSpace(tree) {
			return api.LandOutcome{}, orNothing(err)
		}
	}
	made, err := t.tree.Do(ctx, git.Call{Args: args, Set: keeping, Env: who, Input: text(message)})
	if err != nil {
		return api.LandOutcome{}, err
	}
	commit := strings.TrimSpace(made)
	title, _ := message.split()
	if err := t.move(ctx, t.tree, "refs/heads/"+p.branch, commit, p.head, ": keep: "+title, who); err != nil {
		return api.LandOutcome{}, err
	}
	return api.LandOutcome{Commit: commit, Detail: fmt.Sprintf("Everything is committed on the branch %s.", Quoted(p.branch))}, nil
}

func orNothing(err error) error {
	if err != nil {
		return err
	}
	return refuse(api.LandNothing, "What is there is the same as what is committed.")
}

// keeping are settings for what is added for good.
var keeping = [][2]string{{"core.splitIndex", "false"}, {"core.safecrlf", "false"}, {"i18n.commitEncoding", "UTF-8"}}

// text is a message as it is committed: with an end of line.
func text(m Message) string { return strings.TrimSpace(valid(string(m))) + "\n" }

// move sets a branch to a commit if it is still at another; "" = if it doesn't exist yet.
func (t *Tree) move(ctx context.Context, at git.Tree, ref, to, from, why string, who []string) error {
	if from == "" {
		from = strings.Repeat("0", len(to))
	}
	_, err := at.Do(ctx, git.Call{Args: []string{"update-ref", "--create-reflog", "-m", api.CutAt(reflog+why, 200), ref, to, from}, Env: who})
	return err
}

// keepable finds what is to be committed: the files to stage, and how many are staged already.
func (t *Tree) keepable(ctx context.Context) (paths []string, staged int, err error) {
	var odd *Refusal
	err = t.status(ctx, func(e entry) error {
		switch {
		case e.conflict:
			odd = refuse(api.LandConflict, "Some files hold conflicts that were not resolved.")
		case e.module:
			odd = refuse(api.LandUnsupported, "The submodule %s stands at another commit. Stint doesn't commit that: it can't tell whether anybody else has that commit.", Quoted(e.path))
		case e.inside:
			odd = refuse(api.LandUnsupported, "Another repository lies in the workspace, in %s. Its files can't be committed here.", Quoted(e.path))
		case e.file:
			paths = append(paths, e.path)
			return nil
		default:
			staged++
			return nil
		}
		odd.Paths = []string{Quoted(e.path)}
		return git.Enough()
	})
	if err == nil && odd != nil {
		err = odd
	}
	return paths, staged, err
}

// unfiltered refuses files that a filter would change on their way, such as those of git-lfs: no
// filter is run here, so something else would be stored or written. at is the tree whose
// attributes count.
func unfiltered(ctx context.Context, at git.Tree, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	defined, err := at.Filters(ctx)
	if err != nil {
		return err
	}
	var found *Refusal
	err = attributes(ctx, at, "filter", paths, func(path, value string) {
		if value != "lfs" && !defined[value] {
			return
		}
		if found == nil {
			found = refuse(api.LandFilter, "Some files go through the filter %s, which Stint doesn't run. Use git by hand for them.", Quoted(value))
		}
		if len(found.Paths) < mostNamed {
			found.Paths = append(found.Paths, Quoted(path))
		}
	})
	if err == nil && found != nil {
		err = found
	}
	return err
}

// attributes tells the value that each path has of an attribute, where it has one.
func attributes(ctx context.Context, at git.Tree, name string, paths []string, each func(path, value string)) error {
	for part := range slices.Chunk(paths, 1000) {
		out, err := at.Do(ctx, git.Call{Args: []string{"check-attr", "-z", "--stdin", name}, Input: strings.Join(part, "\x00") + "\x00"})
		if err != nil {
			return err
		}
		fields := strings.Split(out, "\x00")
		for i := 0; i+2 < len(fields); i += 3 {
			if value := fields[i+2]; value != "unspecified" {
				each(fields[i], value)
			}
		}
	}
	return nil
}

// owner is who commits: the worker's owner, as their own settings name them.
func (t *Tree) owner(ctx context.Context) (env []string, err error) {
	name, err := t.tree.Owner(ctx, "user.name")
	if err != nil {
		return nil, err
	}
	email, err := t.tree.Owner(ctx, "user.email")
	if err != nil {
		return nil, err
	}
	if name == "" || email == "" {
		name, email = "Stint", "stint@localhost"
	}
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+role+"_NAME="+name, "GIT_"+role+"_EMAIL="+email)
	}
	return env, nil
}
