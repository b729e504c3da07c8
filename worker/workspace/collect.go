package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"stint/api"
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
	// Brief measures only what is removed, unless KeepSize asks for all: it takes a look at
	// every file. Other items have 0 bytes.
	Brief bool
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
	Why     string   `json:"why"`             // why it is kept, or why it was removed
	Failed  bool     `json:"failed,omitzero"` // it was to be removed, and that failed
}

// Collect removes workspaces that are old, or the oldest where they take too much room. It
// never removes one that is in use, that its session may continue in, or that holds what would
// be lost: files that differ, commits that nothing else has, stashes, operations in progress,
// wanted ignored files; nor, where the system says, one that a process uses. A missing folder
// is nothing to collect. When ctx ends it stops between two files; the next call removes the
// rest of what it was removing.
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
		if err := r.sweep(ctx); err != nil {
			return report, fmt.Errorf("remove what an earlier clean-up left: %w", err)
		}
	}
	items, err := c.list(ctx)
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
func (c collector) list(ctx context.Context) ([]Item, error) {
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
		if !c.rules.Brief || c.rules.KeepSize > 0 {
			i.Bytes = c.size(ctx, name)
		}
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
func (c collector) size(ctx context.Context, name string) (bytes int64) {
	_ = fs.WalkDir(c.root.dir.FS(), name, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return fs.SkipAll
		}
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
	bin, removed := c.decide(ctx, i, reason)
	if bin == "" {
		return removed
	}
	// Under no lock: emptying a large one takes a while, in which a session may want the name.
	if err := c.root.empty(ctx, bin); err != nil {
		i.Why, i.Failed = api.Plain(err), ctx.Err() == nil
	}
	return removed
}

// decide takes a workspace away unless something speaks against it. bin is what is left to be
// emptied, "" for nothing.
func (c collector) decide(ctx context.Context, i *Item, reason string) (bin string, removed bool) {
	lock, err := c.root.lock(i.Name)
	if err != nil {
		i.Why = "it is in use"
		if !errors.Is(err, ErrBusy) {
			i.Why = api.Plain(err)
		}
		return "", false
	}
	defer func() { _ = lock.Close() }()
	rec, found, err := c.root.read(i.Name) // its state under the lock
	if err != nil || !found {
		i.Why = "it changed just now"
		return "", false
	}
	if i.Why = c.against(ctx, i, rec); i.Why != "" {
		return "", false
	}
	i.Why = reason
	if c.rules.DryRun {
		return "", true
	}
	if c.rules.Brief && c.rules.KeepSize == 0 {
		i.Bytes = c.size(ctx, i.Name)
	}
	if bin, err = c.remove(ctx, i, rec); err != nil {
		i.Why, i.Failed = api.Plain(err), ctx.Err() == nil && !errors.As(err, new(spared))
		return bin, false
	}
	return bin, true
}
