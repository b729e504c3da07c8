package landing

import (
	"context"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/worker/git"
)

// Changes are what a tree holds that was not there when its work began.
type Changes struct {
	State     api.ChangesState
	Files     []api.ChangedFile // by their paths, at most api.MaxChangedFiles
	FileCount int64             // how many there are
	Added     int64             // lines, of all files
	Removed   int64
}

// Look says what a tree holds, committed or not. It changes nothing, neither the index nor the
// objects. Files that are ignored are not looked at.
func (t *Tree) Look(ctx context.Context) (Changes, error) {
	s, err := t.standing(ctx)
	c := Changes{State: s, Files: []api.ChangedFile{}}
	if err != nil {
		return c, err
	}
	return c, t.files(ctx, &c)
}

// State is Look without the files.
func (t *Tree) State(ctx context.Context) (api.ChangesState, error) {
	s, err := t.standing(ctx)
	if err != nil {
		return s, err
	}
	err = t.status(ctx, func(entry) error {
		s.Dirty = true
		return git.Enough()
	})
	return s, err
}

// standing is the state without whether it is dirty.
func (t *Tree) standing(ctx context.Context) (api.ChangesState, error) {
	s := api.ChangesState{Place: t.place.Kind, Commits: []api.Commit{}}
	p, err := t.point(ctx)
	if err != nil {
		return s, err
	}
	b, err := t.base(ctx, p)
	if err != nil {
		return s, err
	}
	s.Branch, s.Head, s.BaseBranch, s.Base = name(p.branch), p.head, name(b.branch), b.from
	if s.Remote, err = t.shownRemote(ctx, p.branch, b.branch); err != nil {
		return s, err
	}
	return s, t.history(ctx, &s)
}

// history fills in the commits since the base.
func (t *Tree) history(ctx context.Context, s *api.ChangesState) error {
	if s.Head == "" {
		return nil
	}
	since := []string{s.Head}
	if s.Base != "" {
		since = append(since, "^"+s.Base)
	}
	text, err := t.tree.Do(ctx, git.Call{Args: append([]string{
		"log", "-z", "--no-show-signature", "--no-mailmap", "--encoding=UTF-8", "--no-notes", "--no-color",
		"--format=%H %ct %s", "--max-count=" + strconv.Itoa(api.MaxCommits),
	}, since...)})
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(text, "\x00") {
		id, rest, ok := strings.Cut(line, " ")
		seconds, subject, _ := strings.Cut(rest, " ")
		at, err := strconv.ParseInt(seconds, 10, 64)
		if !ok || err != nil {
			continue
		}
		s.Commits = append(s.Commits, api.Commit{ID: id, Subject: api.CutAt(valid(subject), mostSubject), At: api.Time{Time: time.Unix(at, 0).UTC()}})
	}
	if s.CommitCount, err = t.count(ctx, since...); err != nil {
		return err
	}
	remotes, err := t.out(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "refs/remotes")
	if err != nil {
		return err
	}
	if remotes != "" {
		since = append(since, "--not", "--glob=refs/remotes/*")
	}
	s.Unpushed, err = t.count(ctx, since...)
	return err
}

// name is the name of a branch or a remote as it is shown.
func name(text string) string { return api.CutAt(Quoted(text), mostSubject) }

// mostSubject bounds the bytes of a commit's subject, and of a name.
const mostSubject = 500

func (t *Tree) count(ctx context.Context, args ...string) (int64, error) {
	text, err := t.out(ctx, append([]string{"rev-list", "--count"}, args...)...)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}
