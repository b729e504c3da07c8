package landing

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"stint/api"
)

func TestMerge_FastForwardsTheCheckedOutBaseWithItsFiles(t *testing.T) {
	for _, how := range []api.MergeMethod{api.MergeAuto, api.MergeFastForward} {
		b := newBench(t)
		b.put("tree/new", "x\n")
		head := b.commit(b.tree, "mine")
		b.put("repo/unknown", "the owner's\n") // what git doesn't know stays
		planned := ""
		out := b.done(func(t *Tree) (api.LandOutcome, error) {
			return t.Merge(b.Context(), Merge{Method: how, Plan: func(c string) error { planned = c; return nil }})
		})
		if out.Commit != head || planned != head || b.tip("main") != head || b.text("repo/new") != "x\n" || b.git(b.repo, "status", "--porcelain") != "?? unknown" {
			t.Errorf("%+v planned %s", out, planned)
		}
		if log := b.git(b.repo, "reflog", "-1", "--format=%gs %gn", "main"); !strings.HasPrefix(log, "stint land: merge stint/work") || !strings.HasSuffix(log, "Olga Owner") {
			t.Errorf("reflog %q", log)
		}
	}
}

func TestMerge_MovesABaseThatIsNotCheckedOut(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	head := b.commit(b.tree, "mine")
	b.git(b.repo, "checkout", "-q", "-b", "other")
	b.done(b.merge(api.MergeAuto))
	if b.tip("main") != head || b.git(b.repo, "status", "--porcelain") != "" {
		t.Errorf("main is at %s", b.tip("main"))
	}
	if log := b.git(b.repo, "reflog", "-1", "--format=%gs", "main"); log != "stint land: merge stint/work" {
		t.Errorf("reflog %q", log)
	}
}

// diverged gives both branches a commit.
func diverged(t *testing.T) (b *bench, mine, theirs string) {
	b = newBench(t)
	b.put("tree/new", "x\n")
	b.commit(b.tree, "mine 1")
	b.put("tree/newer", "x\n")
	mine = b.commit(b.tree, "mine 2")
	b.put("repo/other", "y\n")
	return b, mine, b.commit(b.repo, "theirs")
}

func TestMerge_MakesAMergeCommit(t *testing.T) {
	for _, how := range []api.MergeMethod{api.MergeAuto, api.MergeCommit} {
		b, mine, theirs := diverged(t)
		out := b.done(b.merge(how))
		if got := b.git(b.repo, "log", "-1", "--format=%H %P|%an|%ce|%B", "main"); !strings.HasPrefix(got, out.Commit+" "+theirs+" "+mine+"|Olga Owner|olga@example.org|") {
			t.Errorf("%s", got)
		}
		if b.text("repo/new")+b.text("repo/other") != "x\ny\n" || b.git(b.repo, "status", "--porcelain") != "" {
			t.Error("the files are not there")
		}
	}
}

func TestMerge_SquashesAndKnowsItAfterwards(t *testing.T) {
	b, mine, theirs := diverged(t)
	out := b.done(b.merge(api.MergeSquash))
	if got := b.git(b.repo, "log", "-1", "--format=%P %s", "main"); got != theirs+" Do the thing" {
		t.Errorf("%s", got)
	}
	if b.text("repo/newer") != "x\n" || out.Commit != b.tip("main") {
		t.Errorf("%+v", out)
	}
	b.refused(api.LandNothing, b.merge(api.MergeSquash)) // by what is in it
	b.place.Landed = mine
	b.refused(api.LandNothing, b.merge(api.MergeAuto)) // by the record
	// A squash is made even where a fast-forward would do.
	b = newBench(t)
	b.put("tree/new", "x\n")
	b.commit(b.tree, "mine 1")
	b.put("tree/new", "y\n")
	b.commit(b.tree, "mine 2")
	b.done(b.merge(api.MergeSquash))
	if got := b.git(b.repo, "rev-list", "--count", "main"); got != "2" {
		t.Errorf("%s commits", got)
	}
}

func TestMerge_Refusals(t *testing.T) {
	for name, c := range map[string]struct {
		code  string
		how   api.MergeMethod
		make  func(*bench)
		paths []string
	}{
		"conflict": {api.LandConflict, api.MergeAuto, func(b *bench) {
			b.put("tree/file", "one\nmine\nthree\n")
			b.commit(b.tree, "mine")
			b.put("repo/file", "one\ntheirs\nthree\n")
			b.commit(b.repo, "theirs")
		}, []string{"file"}},
		"no fast-forward": {api.LandConflict, api.MergeFastForward, func(b *bench) {
			b.put("repo/other", "x\n")
			b.commit(b.repo, "theirs")
		}, nil},
		"dirty":           {api.LandDirty, api.MergeAuto, func(b *bench) { b.put("tree/more", "x\n") }, []string{"more"}},
		"dirty base":      {api.LandDirty, api.MergeAuto, func(b *bench) { b.put("repo/file", "edited\n") }, []string{"file"}},
		"staged in base":  {api.LandDirty, api.MergeAuto, func(b *bench) { b.put("repo/x", "x\n"); b.git(b.repo, "add", "x") }, []string{"x"}},
		"file in the way": {api.LandDirty, api.MergeAuto, func(b *bench) { b.put("repo/new", "the owner's\n") }, []string{"new"}},
		"ignored file in the way": {api.LandDirty, api.MergeAuto, func(b *bench) {
			b.put("tree/x.log", "x\n")
			b.git(b.tree, "add", "-f", "x.log")
			b.git(b.tree, "commit", "-qm", "log")
			b.put("repo/x.log", "the owner's\n")
		}, []string{"x.log"}},
		"base under way":      {api.LandUnderway, api.MergeAuto, func(b *bench) { b.put("repo/.git/MERGE_HEAD", b.tip("main")+"\n") }, nil},
		"workspace under way": {api.LandUnderway, api.MergeAuto, func(b *bench) { b.put("repo/.git/worktrees/tree/MERGE_HEAD", b.tip("main")+"\n") }, nil},
		"protected":           {api.LandProtected, api.MergeAuto, func(b *bench) { b.place.Protected = []string{"release/*", "ma[ij]n"} }, nil},
		"unreadable pattern":  {api.LandProtected, api.MergeAuto, func(b *bench) { b.place.Protected = []string{"[x"} }, nil},
		"base deleted": {api.LandNoBase, api.MergeAuto, func(b *bench) {
			b.git(b.repo, "checkout", "-q", "-b", "other")
			b.git(b.repo, "branch", "-q", "-D", "main")
		}, nil},
		"detached": {api.LandUnsupported, api.MergeAuto, func(b *bench) { b.git(b.tree, "checkout", "-q", "--detach") }, nil},
		"nothing":  {api.LandNothing, api.MergeAuto, func(b *bench) { b.git(b.repo, "merge", "-q", "stint/work") }, nil},
		"unrelated": {api.LandUnsupported, api.MergeAuto, func(b *bench) {
			b.git(b.tree, "checkout", "-q", "--orphan", "alone")
			b.commit(b.tree, "alone")
		}, nil},
		"own way of merging": {api.LandConflict, api.MergeAuto, func(b *bench) {
			b.put("tree/list", "a\nb\nc\nd\ne\nf\ng\nh\n")
			b.put("tree/.gitattributes", "list merge=union\n")
			b.git(b.repo, "merge", "-q", b.commit(b.tree, "list"))
			b.put("tree/list", "A\nb\nc\nd\ne\nf\ng\nh\n")
			b.commit(b.tree, "mine")
			b.put("repo/list", "a\nb\nc\nd\ne\nf\ng\nH\n")
			b.commit(b.repo, "theirs")
		}, []string{"list"}},
		"filter": {api.LandFilter, api.MergeAuto, func(b *bench) {
			b.put("tree/.gitattributes", "*.bin filter=lfs\n")
			b.put("tree/a.bin", "pointer\n")
			b.commit(b.tree, "lfs")
		}, []string{"a.bin"}},
		"filter of the owner's": {api.LandFilter, api.MergeAuto, func(b *bench) {
			b.put("home/.gitconfig", "[filter \"crypt\"]\n\tclean = cat\n")
			b.put("tree/.gitattributes", "new filter=crypt\n")
			b.commit(b.tree, "attributes")
		}, []string{"new"}},
		"rebase of the base elsewhere": {api.LandUnderway, api.MergeAuto, func(b *bench) {
			b.put("repo/file", "theirs\n")
			b.commit(b.repo, "theirs")
			b.put("repo/file", "theirs 2\n")
			b.commit(b.repo, "theirs 2")
			_, _ = b.tryGit(b.repo, "-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-i", "HEAD~1")
		}, nil},
		"plain folder": {api.LandUnsupported, api.MergeAuto, func(b *bench) { b.place.Kind, b.place.Path = api.PlaceFolder, b.repo }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("tree/new", "x\n")
			b.commit(b.tree, "mine")
			c.make(b)
			r := b.refused(c.code, b.merge(c.how))
			if !slices.Equal(r.Paths, c.paths) {
				t.Errorf("names %q, want %q", r.Paths, c.paths)
			}
		})
	}
}

func TestMerge_RefusesWhenTheBaseMovesMeanwhile(t *testing.T) {
	for name, checkedOut := range map[string]bool{"checked out": true, "not checked out": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("tree/new", "x\n")
			b.commit(b.tree, "mine")
			if !checkedOut {
				b.git(b.repo, "checkout", "-q", "-b", "other")
			}
			theirs := ""
			_, err := b.open().Merge(b.Context(), Merge{Plan: func(string) error {
				theirs = b.git(b.repo, "commit-tree", "-m", "theirs, just now", "-p", "main", "main^{tree}")
				b.git(b.repo, "update-ref", "refs/heads/main", theirs)
				return nil
			}})
			r, ok := err.(*Refusal)
			if !ok || r.Code != api.LandBusy || b.tip("main") != theirs {
				t.Errorf("%v, main at %s, want %s", err, b.tip("main"), theirs)
			}
		})
	}
}

func TestMerge_RefusesWhenTheBaseIsDeletedMeanwhile(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	b.commit(b.tree, "mine")
	b.git(b.repo, "checkout", "-q", "-b", "other")
	_, err := b.open().Merge(b.Context(), Merge{Plan: func(string) error { b.git(b.repo, "branch", "-D", "main"); return nil }})
	if r, ok := err.(*Refusal); !ok || r.Code != api.LandNoBase {
		t.Errorf("%v", err)
	}
	if out, err := b.tryGit(b.repo, "rev-parse", "--verify", "--quiet", "refs/heads/main"); err == nil {
		t.Errorf("main is back: %s", out)
	}
}

func TestMerge_FindsTheBaseInTheMainTreeOfALinkedOne(t *testing.T) {
	b := newBench(t)
	b.git(b.repo, "worktree", "add", "-q", "-b", "owners", "../linked")
	b.must(os.RemoveAll(b.tree))
	b.git(b.repo, "worktree", "prune")
	b.git(b.repo, "branch", "-D", "stint/work")
	b.place = b.worktree("tree", "stint/work", "main")
	b.place.Repository = b.dir + "/linked" // the agent's work folder is a worktree of the owner's
	b.put("tree/new", "x\n")
	b.commit(b.tree, "mine")
	b.done(b.merge(api.MergeAuto))
	if b.text("repo/new") != "x\n" {
		t.Error("not merged into the main tree")
	}
}

func TestMerge_NeedsANewEnoughGitForMoreThanAFastForward(t *testing.T) {
	for version, want := range map[string]bool{"2.37.1": false, "2.38.0": true, "2.39.5 (Apple Git-154)": true, "3.0": true, "1.99.9": false, "": false, "2": false} {
		if joins(version) != want {
			t.Errorf("%q: %t", version, !want)
		}
	}
}

func TestMerge_ChangesSubmodulesAndModesAndLinks(t *testing.T) {
	b := newBench(t)
	b.git(b.dir, "init", "-q", "-b", "main", "elsewhere")
	b.put("elsewhere/x", "x")
	module := b.commit(b.dir+"/elsewhere", "module")
	b.must(os.Symlink("file", b.tree+"/link"))
	b.must(os.Chmod(b.tree+"/file", 0o755))
	b.put("tree/sp ace\"\n", "x\n")
	b.put("tree/caf\xe9", "x\r\n")
	b.put("tree/bin", "\x00\x01\x02")
	b.must(os.Mkdir(b.tree+"/module", 0o755))
	b.git(b.tree, "add", "-A")
	b.git(b.tree, "update-index", "--add", "--cacheinfo", "160000,"+module+",module")
	b.git(b.tree, "commit", "-qm", "all sorts")
	b.put("repo/other", "y\n")
	b.commit(b.repo, "theirs")
	b.done(b.merge(api.MergeSquash))
	if got := b.git(b.repo, "diff", "--raw", "--no-renames", "main", "stint/work"); !strings.HasSuffix(got, "D\tother") || strings.Contains(got, "\n") {
		t.Errorf("differs: %s", got)
	}
	if to, _ := os.Readlink(b.repo + "/link"); to != "file" || b.text("repo/caf\xe9") != "x\r\n" {
		t.Error("the files differ")
	}
}

func TestMerge_StopsWhenThePlanIsNotKept(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	b.commit(b.tree, "mine")
	before := b.tip("main")
	_, err := b.open().Merge(b.Context(), Merge{Plan: func(string) error { return context.Canceled }})
	if err == nil || b.tip("main") != before {
		t.Errorf("%v, main moved: %t", err, b.tip("main") != before)
	}
}
