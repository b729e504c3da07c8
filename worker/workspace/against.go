package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stint/api"
	"stint/worker/git"
	"stint/worker/proc"
	"stint/worker/workflow"
)

// against is what speaks against a removal, "" when nothing does.
func (c collector) against(ctx context.Context, i *Item, rec record) string {
	id, err := c.root.folder(i.Name)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !gone:
		return api.Plain(err)
	case !gone && id != rec.Folder && (rec.Ready || rec.Folder != identity{}):
		return "another folder lies there than the one that was made"
	}
	if !rec.Done {
		if c.rules.Goes == nil {
			return "its session may go on"
		}
		if goes, err := c.rules.Goes(ctx, rec.Session); err != nil || goes {
			return "its session may go on"
		}
	}
	if gone {
		return ""
	}
	work, why := c.work(ctx, i, rec)
	if why != "" {
		return why
	}
	switch {
	case work.Under != "":
		return work.Under + " is under way"
	case work.Unsaved != "":
		return "a file is not committed: " + work.Unsaved
	case work.Unshared != "" && !landed(work, rec):
		return "a commit is on no other branch and not pushed: " + work.Unshared
	case work.Stash != "":
		return "something is stashed: " + work.Stash
	case work.Modules != "":
		return "it has a submodule with files in it, which this does not look into: " + work.Modules
	}
	for _, name := range work.Ignored {
		if git.Placeholder(filepath.Join(i.Path, name)) {
			continue
		}
		if as := c.wanted(name); as != "" {
			return toKeep(name, as)
		}
	}
	if why := c.inside(ctx, i.Name, work.Ignored); why != "" {
		return why
	}
	if who, found := proc.Standing(i.Path); found {
		return "a process works in it: " + who
	}
	return ""
}

// landed reports whether all commits of a workspace are in the base branch, if not as themselves:
// squashed.
func landed(work git.Work, rec record) bool {
	return rec.Mode == workflow.ModeWorktree && rec.Landed != "" && work.Head == rec.Landed && work.Branch == rec.Branch
}

// work is what git says about a workspace, or why it can't be asked.
func (c collector) work(ctx context.Context, i *Item, rec record) (work git.Work, why string) {
	if rec.Mode == workflow.ModeEmpty {
		return c.filled(ctx, i)
	}
	repo, err := git.Open(ctx, rec.Repository, c.root.caller(c.rules.Env))
	if err != nil {
		return work, "its repository can't be looked at: " + api.Plain(err)
	}
	tree, err := repo.Tree(i.Path)
	if errors.Is(err, git.ErrUnregistered) {
		return work, "git does not know it any more, so nobody can tell what is in it"
	}
	if err == nil {
		work, err = tree.Work(ctx, rec.Branch)
	}
	if err != nil {
		return work, "git can't say what is in it: " + api.Plain(err)
	}
	return work, ""
}

// filled looks at a folder that a hook or an agent filled.
func (c collector) filled(ctx context.Context, i *Item) (work git.Work, why string) {
	if git.Placeholder(i.Path) { // nothing at all is in it, or nothing but these
		return work, ""
	}
	repo, err := git.Open(ctx, i.Path, c.root.caller(c.rules.Env))
	switch {
	case err != nil, repo.Top != i.Path:
		return work, "its files are in no repository"
	case repo.Linked():
		work, err = repo.Here().Work(ctx, "")
	default:
		work, err = repo.Whole(ctx)
	}
	if err != nil {
		return work, "git can't say what is in it: " + api.Plain(err)
	}
	return work, ""
}

// inside looks for repositories within a workspace, which git itself skips where they are
// ignored, and for wanted files in ignored folders.
func (c collector) inside(ctx context.Context, name string, ignored []string) (why string) {
	_ = fs.WalkDir(c.root.dir.FS(), name, func(at string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(at, name), "/")
		switch {
		case ctx.Err() != nil:
			why = "nobody waited until all of it was looked at"
		case err != nil:
			why = "a folder in it can't be read: " + rel
		case rel == ".git" && d.IsDir():
			return fs.SkipDir
		case path.Base(rel) == ".git" && rel != ".git" && git.Placeholder(filepath.Join(c.root.path, at)):
		case rel != ".git" && path.Base(rel) == ".git":
			why = "another repository is in it: " + path.Dir(rel)
		case slices.ContainsFunc(ignored, func(dir string) bool { return strings.HasSuffix(dir, "/") && strings.HasPrefix(rel, dir) }):
			of := rel
			if d.IsDir() {
				of += "/"
			}
			if as := c.wanted(of); as != "" && !git.Placeholder(filepath.Join(c.root.path, at)) {
				why = toKeep(rel, as)
			}
		}
		if why != "" {
			return fs.SkipAll
		}
		return nil
	})
	return why
}

func toKeep(name, as string) string {
	return "an ignored file is to be kept: " + name + " (" + as + ")"
}
