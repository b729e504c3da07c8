package landing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"

	"stint/api"
	"stint/worker/git"
)

// forger is a bench whose tree has a commit that somebody wants to hide, and one on top of it.
func forger(t *testing.T) (b *bench, base, hidden, shown string) {
	b = newBench(t)
	b.put("repo/more", "x\n")
	base = b.commit(b.repo, "more")
	b.git(b.tree, "merge", "-q", "main")
	b.place.Start = base
	b.put("tree/hidden", "x\n")
	hidden = b.commit(b.tree, "hidden")
	b.put("tree/shown", "x\n")
	return b, base, hidden, b.commit(b.tree, "shown")
}

// hides fails if what is shown of the tree is not all of what a merge would bring.
func (b *bench) showsAll() {
	b.Helper()
	c := b.look()
	if c.FileCount != 2 || c.State.CommitCount != 2 {
		b.Errorf("shows %d files of %d commits: %+v", c.FileCount, c.State.CommitCount, c.Files)
	}
	b.done(b.merge(api.MergeFastForward))
}

// A graft would tell that the base branch has the hidden commit already.
func TestForged_GraftsHideNothing(t *testing.T) {
	b, base, hidden, _ := forger(t)
	b.put("repo/.git/info/grafts", base+" "+hidden+"\n"+hidden+"\n")
	if got := b.git(b.repo, "-c", "advice.graftFileDeprecated=false", "merge-base", "main", "stint/work"); got != hidden {
		t.Fatalf("the plant doesn't work: %s", got)
	}
	b.showsAll()
}

// The file of the commits' graph can tell the same.
func TestForged_CommitGraphHidesNothing(t *testing.T) {
	b, base, hidden, shown := forger(t)
	before := b.git(b.repo, "rev-parse", "main^") // git reads this one from the file, the tips it doesn't
	b.git(b.repo, "-c", "commitGraph.generationVersion=1", "commit-graph", "write", "--reachable")
	path := b.repo + "/.git/objects/info/commit-graph"
	graph := []byte(b.text("repo/.git/objects/info/commit-graph"))
	at := int(binary.BigEndian.Uint64(graph[bytes.Index(graph, []byte("CDAT"))+4:]))
	ids := slices.Sorted(slices.Values([]string{before, base, hidden, shown})) // as the file has them
	const none, row = 0x70000000, 36
	parent := func(of string, is uint32, generation uint32) {
		commit := graph[at+row*slices.Index(ids, of):]
		binary.BigEndian.PutUint32(commit[20:], is)
		binary.BigEndian.PutUint32(commit[28:], generation<<2)
	}
	parent(hidden, none, 1)
	parent(before, uint32(slices.Index(ids, hidden)), 2)
	b.must(os.Chmod(path, 0o644))
	b.must(os.WriteFile(path, graph, 0o644))
	if got, _ := b.tryGit(b.repo, "merge-base", "main", "stint/work"); got != hidden {
		t.Fatalf("the plant doesn't work: %s", got)
	}
	b.showsAll()
}

// A branch that stands for another one would have that deleted with the workspace.
func TestForged_ADiscardDeletesNoBranchOfOthers(t *testing.T) {
	b := newBench(t)
	b.git(b.tree, "checkout", "-q", "--detach")
	b.git(b.repo, "branch", "-q", "precious")
	b.git(b.tree, "symbolic-ref", "refs/heads/stint/work", "refs/heads/precious")
	l := b.loss()
	if l.Tip != "" {
		t.Errorf("would delete the branch at %s", l.Tip)
	}
	_ = b.open().repo.DeleteBranch(b.Context(), "stint/work", b.tip("precious"))
	if _, err := b.tryGit(b.repo, "rev-parse", "--verify", "refs/heads/precious"); err != nil {
		t.Error("the owner's branch is gone")
	}
}

func TestForged_NothingIsKeptOrMergedThroughAnothersBranch(t *testing.T) {
	b := newBench(t)
	b.git(b.repo, "branch", "-q", "release")
	b.place.Protected = []string{"release"}
	b.put("tree/new", "x\n")
	for branch, code := range map[string]string{"main": api.LandUnsupported, "release": api.LandProtected} {
		b.git(b.tree, "symbolic-ref", "HEAD", "refs/heads/"+branch)
		b.refused(code, b.keep)
	}
	b.git(b.tree, "symbolic-ref", "HEAD", "refs/heads/stint/work")
	b.done(b.keep)
	b.git(b.repo, "checkout", "-q", "--detach")
	b.git(b.repo, "symbolic-ref", "refs/heads/main", "refs/heads/release")
	b.refused(api.LandNoBase, b.merge(api.MergeAuto))
}

// Whoever can write in a workspace could have the worker commit in any of its owner's repositories.
func TestForged_AWorkspacesCloneIsItsOwn(t *testing.T) {
	b := newBench(t)
	b.must(os.MkdirAll(b.dir+"/ws/x", 0o755))
	b.place = Place{Kind: api.PlaceClone, Path: b.dir + "/ws", Env: b.place.Env, Scratch: b.place.Scratch}
	for how, plant := range map[string]func(){
		"a file": func() { b.put("ws/x/.git", "gitdir: "+b.repo+"/.git\n") },
		"a link": func() { b.must(os.Symlink(b.repo+"/.git", b.dir+"/ws/x/.git")) },
		"a common": func() {
			b.put("ws/x/.git/commondir", b.repo+"/.git\n")
			b.put("ws/x/.git/HEAD", "ref: refs/heads/main\n")
		},
	} {
		b.must(os.RemoveAll(b.dir + "/ws/x/.git"))
		plant()
		if _, err := Open(b.Context(), b.place); !errors.Is(err, git.ErrNoRepository) {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// Whoever can put a link in the workspace's place could have anything shown that the worker can read.
func TestForged_AWorkspaceThatBecameALinkIsNotLookedInto(t *testing.T) {
	b := newBench(t)
	b.put("private/secret", "SECRET\n")
	clone := b.place
	clone.Kind = api.PlaceClone
	b.must(os.Rename(b.tree, b.dir+"/away"))
	b.must(os.Symlink(b.dir+"/private", b.tree))
	for _, place := range []Place{b.place, clone} {
		tree, err := Open(b.Context(), place)
		if err == nil {
			c, err := tree.Look(b.Context())
			t.Errorf("%s: shows %+v, %v", place.Kind, c.Files, err)
			continue
		}
		if _, out := place.Outcome(api.LandOutcome{}, err); out.Code != api.LandGone {
			t.Errorf("%s: %v", place.Kind, err)
		}
	}
}
