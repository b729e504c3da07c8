package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Work is what a tree holds that removing it would lose or that somebody may miss.
type Work struct {
	Head     string // the commit checked out; "" = none yet
	Branch   string // the branch checked out; "" = none
	Unsaved  string // a file that differs from the commit or that git doesn't know
	Ignored  []string
	Under    string // an operation in progress, such as a rebase
	Unshared string // a commit that only this tree and its branches have
	Stash    string // a stash that was made here
	Modules  string // a submodule with files in it
}

// ongoing are files of a git directory that show an operation in progress.
var ongoing = map[string]string{
	"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisect",
	"rebase-merge": "a rebase", "rebase-apply": "a rebase", "sequencer": "a sequence of commits", "index.lock": "another git command",
}

// Work looks at a tree. own is the branch that was made for it: commits that only this
// branch has count as unshared.
func (t Tree) Work(ctx context.Context, own string) (Work, error) {
	w := Work{Under: t.Under()}
	if err := t.files(ctx, &w); err != nil {
		return w, err
	}
	if err := t.commits(ctx, &w, own); err != nil {
		return w, err
	}
	return w, t.stashes(ctx, &w, own)
}

func (t Tree) run(ctx context.Context, args ...string) (string, error) {
	return t.repo.program.run(ctx, t.at, Call{Args: args})
}

// stashes finds one that was made here. All trees of a repository share them.
func (t Tree) stashes(ctx context.Context, w *Work, own string) error {
	any, err := t.run(ctx, "for-each-ref", "--count=1", "refs/stash")
	if err != nil || any == "" {
		return err
	}
	list, err := t.run(ctx, "log", "--walk-reflogs", "--format=%gs", "--max-count=1000", "refs/stash", "--")
	if err != nil {
		return err
	}
	for subject := range strings.Lines(list) {
		for _, branch := range []string{own, w.Branch} {
			if branch != "" && (strings.HasPrefix(subject, "WIP on "+branch+":") || strings.HasPrefix(subject, "On "+branch+":")) {
				w.Stash = strings.TrimSpace(subject)
			}
		}
		if strings.HasPrefix(subject, "WIP on (no branch)") && w.Branch == "" {
			w.Stash = strings.TrimSpace(subject)
		}
	}
	return nil
}

// files finds what differs from the commit.
func (t Tree) files(ctx context.Context, w *Work) error {
	status, err := t.run(ctx, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignored=matching", "--ignore-submodules=all", "--no-renames")
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(status, "\x00") {
		switch {
		case len(entry) < 4:
		case strings.HasPrefix(entry, "!! "):
			w.Ignored = append(w.Ignored, entry[3:])
		case unlooked(t.at.top, entry):
		case w.Unsaved == "":
			w.Unsaved = entry[3:]
		}
	}
	if len(status) == mostOutput && w.Unsaved == "" {
		w.Unsaved = "more files than can be looked at"
	}
	// Files can be marked so that status ignores them, and submodules are separate
	// repositories, which status doesn't look into.
	list, err := t.run(ctx, "ls-files", "-v", "--stage", "-z")
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(list, "\x00") {
		facts, name, ok := strings.Cut(entry, "\t")
		if !ok || len(facts) < 8 {
			continue
		}
		if tag := facts[0]; tag == 'S' || tag >= 'a' && tag <= 'z' {
			if w.Unsaved == "" {
				w.Unsaved = name + ", which git was told not to look at"
			}
		}
		if strings.HasPrefix(facts[2:], "160000") {
			if inside, err := os.ReadDir(filepath.Join(t.at.top, name)); err == nil && len(inside) > 0 {
				w.Modules = name
			}
		}
	}
	if len(list) == mostOutput && w.Unsaved == "" {
		w.Unsaved = "more files than can be looked at"
	}
	return nil
}

// commits finds those that would be lost with the tree and its branch.
func (t Tree) commits(ctx context.Context, w *Work, own string) error {
	if out, err := t.run(ctx, "rev-parse", "--quiet", "--verify", "--end-of-options", "HEAD^{commit}"); err == nil {
		w.Head = strings.TrimSpace(out)
	}
	if out, err := t.run(ctx, "symbolic-ref", "--quiet", "HEAD"); err == nil {
		w.Branch = strings.TrimPrefix(strings.TrimSpace(out), "refs/heads/")
	}
	var tips []string
	if w.Head != "" {
		tips = append(tips, w.Head)
	}
	if own != "" {
		tip, err := t.repo.Branch(ctx, own)
		if err != nil {
			return err
		}
		if tip != "" {
			tips = append(tips, tip)
		}
	}
	if len(tips) == 0 {
		return nil
	}
	lone, err := t.repo.lone(ctx, own, tips...)
	w.Unshared = lone
	return err
}

// lone is a commit that can be reached from the tips and from no branch, remote branch or tag
// except the named one; "" when there is none.
func (r Repo) lone(ctx context.Context, but string, tips ...string) (string, error) {
	args := append([]string{"rev-list", "--max-count=1"}, tips...)
	args = append(args, "--not")
	if but != "" {
		args = append(args, "--exclude=refs/heads/"+but)
	}
	out, err := r.run(ctx, append(args, "--glob=refs/heads/*", "--glob=refs/remotes/*", "--glob=refs/tags/*")...)
	if err != nil {
		return "", fmt.Errorf("look for commits that nothing else has: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// Lone reports whether a branch has a commit that nothing else has.
func (r Repo) Lone(ctx context.Context, branch string) (bool, error) {
	tip, err := r.Branch(ctx, branch)
	if err != nil || tip == "" {
		return false, err
	}
	commit, err := r.lone(ctx, branch, tip)
	return commit != "", err
}

// Whole looks at the repository of this tree as something that is removed with it: a clone
// that was made in a workspace. Whatever no remote has counts as unshared.
func (r Repo) Whole(ctx context.Context) (Work, error) {
	t := Tree{Path: r.Top, repo: r, at: r.at}
	w, err := t.Work(ctx, "")
	if err != nil {
		return w, err
	}
	if stash, err := r.run(ctx, "for-each-ref", "--count=1", "refs/stash"); err != nil || stash != "" {
		w.Stash = "a stash"
		return w, err
	}
	args := []string{"rev-list", "--max-count=1", "--glob=refs/heads/*", "--glob=refs/tags/*"}
	if w.Head != "" {
		args = append(args, w.Head)
	}
	out, err := r.run(ctx, append(args, "--not", "--glob=refs/remotes/*")...)
	w.Unshared = strings.TrimSpace(out)
	return w, err
}

// Linked reports whether the tree belongs to a repository that lies elsewhere.
func (r Repo) Linked() bool { return r.at.dir != r.Common }

// Here is the linked tree through which the repository was opened.
func (r Repo) Here() Tree { return Tree{Path: r.Top, repo: r, at: r.at} }
