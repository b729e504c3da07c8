package landing

import (
	"os"
	"slices"
	"strings"
	"testing"

	"stint/api"
)

func (b *bench) loss() Loss {
	b.Helper()
	l, err := b.open().Loss(b.Context())
	b.must(err)
	return l
}

func TestLoss_SaysWhatIsLostAndChangesNothing(t *testing.T) {
	b := newBench(t)
	if l := b.loss(); l.Text != "Nothing is lost when the workspace and its branch stint/work are removed." || l.Tip != b.place.Start {
		t.Errorf("%+v", l)
	}
	b.put("tree/new", "x\n")
	b.commit(b.tree, "1")
	b.put("tree/new", "y\n")
	tip := b.commit(b.tree, "2")
	b.put("tree/un\nknown", "x\n")
	b.put("tree/a.log", "x\n")
	b.put("tree/stashed", "x\n")
	b.git(b.tree, "stash", "push", "-q", "-u", "stashed")
	before := b.snapshot()
	l := b.loss()
	if l.Text != "Lost with the workspace and its branch stint/work: 1 file that is not committed, 2 commits that nothing else has, 1 ignored file or folder, what was stashed." ||
		l.Tip != tip || !slices.Equal(l.Paths, []string{`"un\nknown"`}) || b.snapshot() != before {
		t.Errorf("%+v", l)
	}
	b.git(b.tree, "push", "-q", "origin", "stint/work")
	b.git(b.repo, "fetch", "-q", "origin")
	if l := b.loss(); strings.Contains(l.Text, "commits") {
		t.Errorf("%+v", l)
	}
}

func TestLoss_TokenStandsForExactlyThatLoss(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	b.commit(b.tree, "1")
	b.put("tree/unknown", "x\n")
	seen := map[string]string{}
	for _, change := range []struct {
		name string
		do   func()
	}{
		{"nothing", func() {}},
		{"a file's text", func() { b.put("tree/unknown", "y\n") }},
		{"another file", func() { b.put("tree/more", "y\n") }},
		{"a staged file", func() { b.git(b.tree, "add", "more") }},
		{"an ignored file", func() { b.put("tree/a.log", "y\n") }},
		{"a commit", func() { b.commit(b.tree, "2") }},
		{"another branch with the same commit", func() { b.git(b.tree, "branch", "saved") }},
		{"a commit of another branch", func() { b.git(b.repo, "branch", "-D", "saved") }},
	} {
		change.do()
		token := b.loss().Token
		if other, ok := seen[token]; ok && change.name != "a commit of another branch" {
			t.Errorf("%s and %s have the same token", change.name, other)
		}
		if token != b.loss().Token {
			t.Errorf("%s: the token isn't the same twice", change.name)
		}
		seen[token] = change.name
	}
}

func TestLoss_CountsWhatWasLandedAsKept(t *testing.T) {
	b, mine, _ := diverged(t)
	b.done(b.merge(api.MergeSquash))
	if l := b.loss(); !strings.Contains(l.Text, "2 commits that nothing else has") {
		t.Errorf("%+v", l)
	}
	b.place.Landed = mine
	if l := b.loss(); strings.Contains(l.Text, "commits") {
		t.Errorf("%+v", l)
	}
	b.put("tree/after", "x\n")
	b.commit(b.tree, "after")
	if l := b.loss(); !strings.Contains(l.Text, "1 commit that nothing else has") {
		t.Errorf("%+v", l)
	}
}

func TestLoss_OfAClone(t *testing.T) {
	b := newBench(t)
	b.must(os.Mkdir(b.dir+"/own", 0o755))
	b.git(b.dir+"/own", "clone", "-q", b.remote, "name")
	b.put("own/name/new", "x\n")
	b.commit(b.dir+"/own/name", "in the clone")
	b.place = Place{Kind: api.PlaceClone, Path: b.dir + "/own", Env: b.place.Env, Scratch: b.place.Scratch}
	if l := b.loss(); l.Text != "Lost with the workspace: 1 commit that nothing else has." || l.Tip != "" {
		t.Errorf("%+v", l)
	}
}

func TestLoss_Refusals(t *testing.T) {
	b := newBench(t)
	loss := func(t *Tree) (api.LandOutcome, error) { _, err := t.Loss(b.Context()); return api.LandOutcome{}, err }
	b.put("repo/.git/worktrees/tree/MERGE_HEAD", b.tip("main")+"\n")
	b.refused(api.LandUnderway, loss)
	b.place.Kind, b.place.Path = api.PlaceFolder, b.repo
	b.refused(api.LandUnsupported, loss)
}
