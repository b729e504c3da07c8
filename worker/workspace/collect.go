package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"stint/api"
	"stint/worker/git"
	"stint/worker/proc"
	"stint/worker/workflow"
)

// Rules say what Collect may remove. The zero value removes nothing.
type Rules struct {
	OlderThan time.Duration // unused for this long; 0 = age doesn't matter
	KeepSize  int64         // bytes that all may have together, the oldest go first; 0 = size doesn't matter
	// KeepIgnored are patterns, as of [path.Match], of ignored files that somebody wants
	// besides treasures: a workspace with one of them stays. They match a file's name or its
	// whole path. What matches one that begins with !, or lies below, is not a treasure.
	KeepIgnored []string
	DryRun      bool // only say what would be removed
	// Goes reports whether a session may still continue. It is called for sessions that a
	// worker left without saying; nil, or an error, counts as yes.
	Goes func(ctx context.Context, session string) (bool, error)
	// Hooks are those of an agent, for before_remove.
	Hooks func(agent string) Hooks
	// Env supplies PATH and HOME for git.
	Env []string
}

// Report is what happened to the workspaces of a folder.
type Report struct {
	Root     string `json:"root"`
	Removed  []Item `json:"removed"` // in a dry run, what would be
	Retained []Item `json:"kept"`
	Freed    int64  `json:"freedBytes"`
}

// Item is one workspace.
type Item struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Agent   string   `json:"agent,omitzero"`
	Session string   `json:"session,omitzero"`
	Branch  string   `json:"branch,omitzero"`
	Bytes   int64    `json:"bytes"`
	UsedAt  api.Time `json:"usedAt"`
	Why     string   `json:"why"` // why it is kept, or why it was removed
}

// Collect removes workspaces that are old, or the oldest where they take too much room. It
// never removes one that is in use, that its session may continue in, or that holds what would
// be lost: files that differ, commits that nothing else has, stashes, operations in progress,
// wanted ignored files; nor, where the system says, one that a process uses. A missing folder
// is nothing to collect.
func Collect(ctx context.Context, rootPath string, rules Rules) (Report, error) {
	report := Report{Root: rootPath, Removed: []Item{}, Retained: []Item{}}
	r, err := openRoot(rootPath, false)
	if errors.Is(err, fs.ErrNotExist) {
		return report, nil
	}
	if err != nil {
		return report, err
	}
	defer r.close()
	report.Root = r.path
	c := collector{root: r, rules: rules, now: time.Now()}
	if !rules.DryRun {
		if err := r.sweep(); err != nil {
			return report, fmt.Errorf("remove what an earlier clean-up left: %w", err)
		}
	}
	items, err := c.list()
	if err != nil {
		return report, err
	}
	var total int64
	for _, i := range items {
		total += i.Bytes
	}
	for _, i := range items { // the oldest first
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		if i.Why != "" {
			report.Retained = append(report.Retained, i)
			continue
		}
		reason := c.reason(i, total)
		if reason == "" {
			i.Why = "it was used " + c.now.Sub(i.UsedAt.Time).Round(time.Second).String() + " ago"
			report.Retained = append(report.Retained, i)
			continue
		}
		if removed := c.consider(ctx, &i, reason); removed {
			total -= i.Bytes
			report.Freed += i.Bytes
			report.Removed = append(report.Removed, i)
			continue
		}
		report.Retained = append(report.Retained, i)
	}
	return report, nil
}

type collector struct {
	root  *root
	rules Rules
	now   time.Time
}

// list finds all workspaces, those without a record last.
func (c collector) list() ([]Item, error) {
	found := map[string]bool{}
	for _, dir := range []string{".", hidden} {
		entries, err := fs.ReadDir(c.root.dir.FS(), dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list the workspaces: %w", err)
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".json"); dir == hidden && ok {
				found[name] = true
			} else if dir == "." && e.Name() != hidden {
				found[e.Name()] = true
			}
		}
	}
	var all []Item
	for name := range found {
		i := Item{Name: name, Path: filepath.Join(c.root.path, name), UsedAt: api.Time{Time: c.now}}
		rec, ok, err := c.root.read(name)
		switch {
		case err != nil:
			i.Why = api.Plain(err)
		case !ok:
			i.Why = "nothing is known of it: it was not made here"
		default:
			i.Agent, i.Session, i.Branch, i.UsedAt = rec.Agent, rec.Session, rec.Branch, api.Time{Time: rec.UsedAt}
		}
		i.Bytes = c.size(name)
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Item) int {
		if d := a.UsedAt.Compare(b.UsedAt.Time); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}

// size is what a folder takes on disk, counting what can be read.
func (c collector) size(name string) (bytes int64) {
	_ = fs.WalkDir(c.root.dir.FS(), name, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a folder that can't be read counts as nothing
		}
		if info, err := d.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += s.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}

// reason is why a workspace should go, "" when there is none.
func (c collector) reason(i Item, total int64) string {
	switch unused := c.now.Sub(i.UsedAt.Time); {
	case c.rules.OlderThan > 0 && unused >= c.rules.OlderThan:
		return "unused for " + unused.Round(time.Second).String()
	case c.rules.KeepSize > 0 && total > c.rules.KeepSize:
		return fmt.Sprintf("all together take %d bytes", total)
	}
	return ""
}

// consider removes a workspace unless something speaks against it.
func (c collector) consider(ctx context.Context, i *Item, reason string) (removed bool) {
	lock, err := c.root.lock(i.Name)
	if err != nil {
		i.Why = "it is in use"
		if !errors.Is(err, ErrBusy) {
			i.Why = api.Plain(err)
		}
		return false
	}
	defer func() { _ = lock.Close() }()
	rec, found, err := c.root.read(i.Name) // its state under the lock
	if err != nil || !found {
		i.Why = "it changed just now"
		return false
	}
	if i.Why = c.against(ctx, i, rec); i.Why != "" {
		return false
	}
	i.Why = reason
	if c.rules.DryRun {
		return true
	}
	if err := c.remove(ctx, i, rec); err != nil {
		i.Why = api.Plain(err)
		return false
	}
	return true
}

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
	case work.Unshared != "":
		return "a commit is on no other branch and not pushed: " + work.Unshared
	case work.Stash != "":
		return "something is stashed: " + work.Stash
	case work.Modules != "":
		return "it has a submodule with files in it, which this does not look into: " + work.Modules
	}
	for _, name := range work.Ignored {
		if as := c.wanted(name); as != "" {
			return toKeep(name, as)
		}
	}
	if why := c.inside(i.Name, work.Ignored); why != "" {
		return why
	}
	if who, found := proc.Standing(i.Path); found {
		return "a process works in it: " + who
	}
	return ""
}

// work is what git says about a workspace, or why it can't be asked.
func (c collector) work(ctx context.Context, i *Item, rec record) (work git.Work, why string) {
	if rec.Mode == workflow.ModeEmpty {
		return c.filled(ctx, i)
	}
	repo, err := git.Open(ctx, rec.Repository, c.rules.Env)
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
	entries, err := fs.ReadDir(c.root.dir.FS(), i.Name)
	if err == nil && len(entries) == 0 {
		return work, ""
	}
	repo, err := git.Open(ctx, i.Path, c.rules.Env)
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
func (c collector) inside(name string, ignored []string) (why string) {
	_ = fs.WalkDir(c.root.dir.FS(), name, func(at string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(at, name), "/")
		switch {
		case err != nil:
			why = "a folder in it can't be read: " + rel
		case rel == ".git" && d.IsDir():
			return fs.SkipDir
		case rel != ".git" && path.Base(rel) == ".git":
			why = "another repository is in it: " + path.Dir(rel)
		case slices.ContainsFunc(ignored, func(dir string) bool { return strings.HasSuffix(dir, "/") && strings.HasPrefix(rel, dir) }):
			of := rel
			if d.IsDir() {
				of += "/"
			}
			if as := c.wanted(of); as != "" {
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

// remove runs the hook and removes the folder, its registration, its branch and its record, in
// this order: what is left after a crash is found again.
func (c collector) remove(ctx context.Context, i *Item, rec record) error {
	if _, err := c.root.folder(i.Name); err == nil && c.rules.Hooks != nil {
		hooks := c.rules.Hooks(rec.Agent)
		// A failing hook doesn't stop it; what it printed went to Output.
		_ = hooks.run(ctx, BeforeRemove, i.Path, rec.Session, map[string]string{"STINT_BRANCH": rec.Branch, "STINT_BASE": rec.Base, "STINT_AGENT": rec.Agent, "STINT_SESSION_ID": rec.Session})
		if why := c.against(ctx, i, rec); why != "" {
			return errors.New(why)
		}
	}
	var linked git.Repo
	if rec.Mode == workflow.ModeWorktree {
		var err error
		if linked, err = git.Open(ctx, rec.Repository, c.rules.Env); err != nil {
			if _, gone := c.root.folder(i.Name); !errors.Is(gone, fs.ErrNotExist) {
				return fmt.Errorf("look at the repository: %w", err)
			}
			return c.root.forget(i.Name) // neither of them is left
		}
	}
	if err := c.root.discard(i.Name, rec.Folder); err != nil {
		return err
	}
	if rec.Mode == workflow.ModeWorktree {
		if _, err := linked.Tree(i.Path); err == nil {
			if err := linked.Forget(ctx, i.Path); err != nil {
				return err
			}
		}
		if err := c.prune(ctx, linked, rec.Branch); err != nil {
			return err
		}
	}
	return c.root.forget(i.Name)
}

// prune deletes the branch if it has nothing that others don't have.
func (c collector) prune(ctx context.Context, repo git.Repo, branch string) error {
	tip, err := repo.Branch(ctx, branch)
	if err != nil || tip == "" {
		return err
	}
	if lone, err := repo.Lone(ctx, branch); err != nil || lone {
		return err
	}
	return repo.DeleteBranch(ctx, branch, tip)
}
