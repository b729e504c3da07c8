package landing

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"stint/api"
)

func TestLook_ShowsCommittedAndUncommittedAndUnknownFiles(t *testing.T) {
	b := newBench(t)
	b.put("tree/file", "one\n2\nthree\n")
	first := b.commit(b.tree, "First “one”")
	b.put("tree/new", "x\ny\n")
	second := b.commit(b.tree, "Second")
	b.put("tree/unknown", "z\n")
	b.put("tree/new", "x\ny\nz\n")
	b.put("tree/a.log", "ignored\n")
	before, index := b.snapshot(), b.text("repo/.git/worktrees/tree/index")
	c := b.look()
	if b.snapshot() != before || b.text("repo/.git/worktrees/tree/index") != index {
		t.Error("looking changed something")
	}
	objects := b.git(b.repo, "count-objects")
	b.look()
	if now := b.git(b.repo, "count-objects"); now != objects {
		t.Errorf("looking left objects: %s, before %s", now, objects)
	}
	s := c.State
	if s.Branch != "stint/work" || s.BaseBranch != "main" || s.Base != b.place.Start || s.Head != second || !s.Dirty || s.Unpushed != 2 || s.CommitCount != 2 || s.Remote != "…/remote" {
		t.Errorf("state %+v", s)
	}
	if len(s.Commits) != 2 || s.Commits[0].ID != second || s.Commits[1].ID != first || s.Commits[1].Subject != "First “one”" || s.Commits[0].At.IsZero() {
		t.Errorf("commits %+v", s.Commits)
	}
	if c.FileCount != 3 || len(c.Files) != 3 || c.Added != 5 || c.Removed != 1 {
		t.Errorf("files %+v", c)
	}
	if f := file(b, c, "file"); f.Change != api.FileModified || f.Patch != "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n" || f.Added != 1 || f.Removed != 1 {
		t.Errorf("%+v", f)
	}
	if f := file(b, c, "new"); f.Change != api.FileAdded || f.Patch != "@@ -0,0 +1,3 @@\n+x\n+y\n+z\n" {
		t.Errorf("%+v", f)
	}
	if f := file(b, c, "unknown"); f.Change != api.FileAdded || f.Patch != "@@ -0,0 +1 @@\n+z\n" {
		t.Errorf("%+v", f)
	}
}

func TestLook_EveryKindOfChange(t *testing.T) {
	b := newBench(t)
	b.put("tree/moved here", strings.Repeat("line of it\n", 20))
	b.put("tree/gone", "gone\n")
	b.put("tree/run", "#!/bin/sh\n")
	b.put("tree/picture", "\x00\x01")
	b.put("tree/becomes", "text\n")
	b.put("tree/crlf", "one\r\ntwo\r\n")
	base := b.commit(b.tree, "base")
	b.git(b.repo, "merge", "-q", "--ff-only", base)
	b.must(os.Rename(b.tree+"/moved here", b.tree+"/moved \"there\""))
	b.must(os.Remove(b.tree + "/gone"))
	b.must(os.Chmod(b.tree+"/run", 0o755))
	b.put("tree/picture", "\x00\x02\x03")
	b.must(os.Remove(b.tree + "/becomes"))
	b.must(os.Symlink("file", b.tree+"/becomes"))
	b.put("tree/crlf", "one\r\n2\r\n")
	b.put("tree/new\nline", "x\n")
	b.put("tree/caf\xe9.txt", "caf\xe9\n")
	b.put("tree/naïve", "ï\n")
	b.put("tree/turn\u202Eed", "x\n")
	b.put("tree/left by a sandbox", "")
	b.must(os.Chmod(b.tree+"/left by a sandbox", 0o444))
	b.git(b.dir, "init", "-q", "-b", "main", "elsewhere")
	b.put("elsewhere/x", "x")
	module := b.commit(b.dir+"/elsewhere", "module")
	b.git(b.dir, "clone", "-q", "elsewhere", "tree/module")
	b.git(b.tree, "update-index", "--add", "--cacheinfo", "160000,"+module+",module")
	b.git(b.dir, "init", "-q", "tree/inside")
	c := b.look()
	for path, want := range map[string]api.ChangedFile{
		"moved \"there\"":      {OldPath: "moved here", Change: api.FileRenamed},
		"gone":                 {Change: api.FileDeleted, Removed: 1, Patch: "@@ -1 +0,0 @@\n-gone\n"},
		"run":                  {Change: api.FileMode},
		"picture":              {Change: api.FileModified, Binary: true},
		"becomes":              {Change: api.FileModified, Added: 1, Removed: 1, Patch: "@@ -1 +0,0 @@\n-text\n@@ -0,0 +1 @@\n+file\n\\ No newline at end of file\n"},
		"crlf":                 {Change: api.FileModified, Added: 1, Removed: 1, Patch: "@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n"},
		`"new\nline"`:          {Change: api.FileAdded, Added: 1, Patch: "@@ -0,0 +1 @@\n+x\n"},
		`"caf\351.txt"`:        {Change: api.FileAdded, Added: 1, Patch: "@@ -0,0 +1 @@\n+caf\uFFFD\n"},
		`"turn\342\200\256ed"`: {Change: api.FileAdded, Added: 1, Patch: "@@ -0,0 +1 @@\n+x\n"},
		"naïve":                {Change: api.FileAdded, Added: 1, Patch: "@@ -0,0 +1 @@\n+ï\n"},
		"module":               {Change: api.FileSubmodule, Added: 1, Patch: "@@ -0,0 +1 @@\n+Subproject commit " + module + "\n"},
		"inside":               {Change: api.FileSubmodule},
	} {
		want.Path = path
		if got := file(b, c, path); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if c.FileCount != 12 {
		t.Errorf("%d files", c.FileCount)
	}
}

func TestLook_IsBounded(t *testing.T) {
	b := newBench(t)
	var big strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&big, "line %d of a large file\n", i)
	}
	b.put("tree/big", big.String()) // 5 MB
	b.put("tree/one line", strings.Repeat("x", 200<<10)+"\n")
	b.must(os.WriteFile(b.tree+"/huge", nil, 0o644))
	b.must(os.Truncate(b.tree+"/huge", 1<<40))
	for i := range 60 {
		b.put(fmt.Sprintf("tree/z%02d", i), strings.Repeat("a line of sixty characters, or so, for a patch that is long\n", 1000))
	}
	c := b.look()
	total := 0
	for _, f := range c.Files {
		total += len(f.Patch)
		if len(f.Patch) > api.MaxPatch || f.Patch != "" && !strings.HasSuffix(f.Patch, "\n") || !utf8.ValidString(f.Patch) {
			t.Errorf("the patch of %s has %d bytes", f.Path, len(f.Patch))
		}
	}
	if total > api.MaxPatches || total < api.MaxPatches-api.MaxPatch {
		t.Errorf("all patches have %d bytes", total)
	}
	if f := file(b, c, "big"); !f.Cut || f.Added != 200_000 || !strings.HasPrefix(f.Patch, "@@ -0,0 +1,200000 @@\n+line 0 of") {
		t.Errorf("big: cut %t, %d added", f.Cut, f.Added)
	}
	if f := file(b, c, "one line"); !f.Cut || f.Patch != "@@ -0,0 +1 @@\n" {
		t.Errorf("one line: %d bytes", len(f.Patch))
	}
	if f := file(b, c, "huge"); !f.Cut || f.Patch != "" || f.Change != api.FileAdded {
		t.Errorf("huge: %+v", f)
	}
	if f := file(b, c, "z59"); !f.Cut || f.Patch != "" || f.Added != 1000 {
		t.Errorf("z59: %+v", f)
	}
}

func TestLook_CountsMoreFilesThanItLists(t *testing.T) {
	b := newBench(t)
	for i := range 2100 {
		b.put(fmt.Sprintf("tree/many/%04d", i), "x\n")
	}
	c := b.look()
	if len(c.Files) != api.MaxChangedFiles || c.FileCount != 2100 || c.Added != 2100 {
		t.Errorf("%d listed of %d, %d lines", len(c.Files), c.FileCount, c.Added)
	}
}

func TestLook_SeesAChangeOfTheSameInstantAndSize(t *testing.T) {
	b := newBench(t)
	// Git tells such a file only by reading it, and reads it only when it is as new as the index:
	// a copied index has to keep its time.
	b.git(b.repo, "config", "core.trustctime", "false")
	old := time.Now().Add(-time.Hour)
	b.must(os.Chtimes(b.tree+"/file", old, old))
	b.git(b.tree, "update-index", "--refresh")
	b.must(os.Chtimes(b.repo+"/.git/worktrees/tree/index", old, old))
	b.put("tree/file", "one\nTWO\nthree\n")
	b.must(os.Chtimes(b.tree+"/file", old, old))
	if f := file(b, b.look(), "file"); f.Added != 1 {
		t.Errorf("%+v", f)
	}
}

func TestLook_CountsFromWhereTheBaseBranchWasLeft(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	b.commit(b.tree, "mine")
	b.put("repo/other", "y\n")
	moved := b.commit(b.repo, "theirs")
	if c := b.look(); c.FileCount != 1 || c.State.Base != b.place.Start {
		t.Errorf("%+v", c)
	}
	b.git(b.tree, "merge", "-q", "main") // the agent brings its branch up to date
	if c := b.look(); c.FileCount != 1 || c.State.Base != moved {
		t.Errorf("%+v", c)
	}
}

func TestLook_AtAPlainFolderAndAClone(t *testing.T) {
	b := newBench(t)
	start := b.tip("main")
	b.put("repo/sub/new", "x\n")
	b.place = Place{Kind: api.PlaceFolder, Path: b.repo + "/sub", Start: start, Env: b.place.Env, Scratch: b.place.Scratch}
	if c := b.look(); c.FileCount != 1 || c.State.Branch != "main" || c.State.BaseBranch != "" || !c.State.Dirty || c.Files[0].Path != "sub/new" {
		t.Errorf("%+v", c)
	}
	b.must(os.Mkdir(b.dir+"/own", 0o755))
	b.git(b.dir+"/own", "clone", "-q", b.remote, "name")
	b.put("own/name/new", "x\n")
	b.commit(b.dir+"/own/name", "in the clone")
	b.place = Place{Kind: api.PlaceClone, Path: b.dir + "/own", Env: b.place.Env, Scratch: b.place.Scratch}
	if c := b.look(); c.FileCount != 1 || c.State.BaseBranch != "main" || c.State.Unpushed != 1 || c.State.Base != start {
		t.Errorf("%+v", c)
	}
}

func TestLook_EmptyRepositoryAndDetachedHead(t *testing.T) {
	b := newBench(t)
	b.must(os.Mkdir(b.dir+"/own", 0o755))
	b.git(b.dir+"/own", "init", "-q", "-b", "trunk")
	b.put("own/new", "x\n")
	place := b.place
	b.place = Place{Kind: api.PlaceClone, Path: b.dir + "/own", Env: b.place.Env, Scratch: b.place.Scratch}
	if c := b.look(); c.FileCount != 1 || c.State.Head != "" || c.State.Branch != "trunk" || c.State.CommitCount != 0 {
		t.Errorf("%+v", c)
	}
	b.place = place
	b.git(b.tree, "checkout", "-q", "--detach")
	if c := b.look(); c.FileCount != 0 || c.State.Branch != "" || c.State.Head != b.place.Start || c.State.Dirty {
		t.Errorf("%+v", c)
	}
}

func TestLook_Sha256(t *testing.T) {
	b := newBench(t, "--object-format=sha256")
	b.put("tree/new", "x\n")
	b.commit(b.tree, "new")
	b.put("tree/more", "x\n")
	if c := b.look(); c.FileCount != 2 || len(c.State.Head) != 64 {
		t.Errorf("%+v", c)
	}
	b.done(b.keep)
	b.done(b.push)
	b.put("repo/other", "y\n")
	b.commit(b.repo, "theirs")
	b.done(b.merge(api.MergeSquash))
	if b.text("repo/more") != "x\n" {
		t.Error("not merged")
	}
}

// What people are shown doesn't depend on what a repository's settings say of showing it.
func TestLook_IsTheSameWhateverTheSettings(t *testing.T) {
	b := newBench(t)
	b.put("tree/file", "one\n\n\n2\n")
	b.git(b.tree, "stash", "-q")
	b.git(b.tree, "stash", "apply", "-q")
	before := b.look()
	for _, s := range [][2]string{
		{"status.showStash", "true"},
		{"status.showUntrackedFiles", "no"},
		{"diff.default.binary", "true"},
		{"diff.suppressBlankEmpty", "true"},
		{"diff.context", "0"},
		{"diff.noprefix", "true"},
		{"diff.algorithm", "patience"},
		{"color.ui", "always"},
		{"core.quotePath", "false"},
	} {
		b.git(b.repo, "config", s[0], s[1])
	}
	if after := b.look(); !reflect.DeepEqual(after, before) {
		t.Errorf("%+v\nbefore %+v", after, before)
	}
}

// git prints no patch of a file that is unmerged: the next patch is another file's.
func TestLook_AnUnmergedFileTakesNoOtherFilesPatch(t *testing.T) {
	b := newBench(t)
	b.put("tree/a", "mine\n")
	b.put("tree/b", "b\n")
	b.commit(b.tree, "mine")
	b.git(b.tree, "checkout", "-q", "-b", "other", b.place.Start)
	b.put("tree/a", "theirs\n")
	b.commit(b.tree, "theirs")
	b.git(b.tree, "checkout", "-q", "stint/work")
	if _, err := b.tryGit(b.tree, "merge", "other"); err == nil {
		t.Fatal("no conflict")
	}
	b.must(os.Truncate(b.tree+"/a", mostFile+1)) // so that it isn't read
	c := b.look()
	if f := file(b, c, "a"); f.Patch != "" || !f.Cut {
		t.Errorf("%+v", f)
	}
	if f := file(b, c, "b"); f.Patch != "@@ -0,0 +1 @@\n+b\n" {
		t.Errorf("%+v", f)
	}
}

func TestLook_FilesThatCanNotBeRead(t *testing.T) {
	b := newBench(t)
	b.put("tree/closed", "x\n")
	b.must(os.Chmod(filepath.Join(b.tree, "closed"), 0))
	b.put("tree/open", "x\n")
	c := b.look()
	if f := file(b, c, "open"); f.Added != 1 {
		t.Errorf("%+v", f)
	}
	if file(b, c, "closed").Change != api.FileAdded { // root reads it, others only see its name
		t.Errorf("%+v", c.Files)
	}
}
