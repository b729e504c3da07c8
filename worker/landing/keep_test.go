package landing

import (
	"os"
	"strings"
	"testing"

	"stint/api"
)

func TestKeep_CommitsEverythingAsTheOwner(t *testing.T) {
	b := newBench(t)
	b.put("tree/file", "one\n2\nthree\n")
	b.put("tree/new \"\n", "x\r\n")
	b.put("tree/caf\xe9", "x\n")
	b.put("tree/a.log", "ignored\n")
	b.must(os.Symlink("file", b.tree+"/link"))
	b.must(os.Remove(b.tree + "/.gitignore"))
	b.put("tree/.gitignore", "*.log\nx\n")
	b.put("tree/staged", "s\n")
	b.git(b.tree, "add", "staged")
	out := b.done(b.keep)
	if got := b.git(b.tree, "log", "-1", "--format=%H|%an <%ae>|%cn|%P|%B"); got != out.Commit+"|Olga Owner <olga@example.org>|Olga Owner|"+b.place.Start+"|Keep it\n\nall of it" {
		t.Errorf("%s", got)
	}
	if got := b.git(b.tree, "status", "--porcelain", "--ignored"); got != "!! a.log" {
		t.Errorf("left: %s", got)
	}
	if b.text("tree/new \"\n") != "x\r\n" || b.git(b.tree, "show", "HEAD:caf\xe9") != "x" {
		t.Error("files changed")
	}
	if log := b.git(b.repo, "reflog", "-1", "--format=%gs", "stint/work"); log != "stint land: keep: Keep it" {
		t.Errorf("reflog %q", log)
	}
	b.refused(api.LandNothing, b.keep)
}

func TestKeep_DeletedFilesAndAFileThatBecameAFolder(t *testing.T) {
	b := newBench(t)
	b.must(os.Remove(b.tree + "/file"))
	b.put("tree/file/inside", "x\n")
	b.must(os.Remove(b.tree + "/.gitignore"))
	b.done(b.keep)
	if got := b.git(b.tree, "ls-files"); got != "file/inside" {
		t.Errorf("%s", got)
	}
}

func TestKeep_FirstCommitOfAnEmptyRepository(t *testing.T) {
	b := newBench(t)
	b.must(os.Mkdir(b.dir+"/own", 0o755))
	b.git(b.dir+"/own", "init", "-q", "-b", "trunk")
	b.put("own/new", "x\n")
	b.put("home/.gitconfig", "") // no name of the owner's
	b.place = Place{Kind: api.PlaceClone, Path: b.dir + "/own", Env: b.place.Env, Scratch: b.place.Scratch}
	b.done(b.keep)
	if got := b.git(b.dir+"/own", "log", "--format=%an %ae %s", "trunk"); got != "Stint stint@localhost Keep it" {
		t.Errorf("%s", got)
	}
}

func TestKeep_KnowsWhoFromTheOwnersSettingsForThisFolder(t *testing.T) {
	b := newBench(t)
	b.put("home/work", "[user]\n\tname = Olga at Work\n")
	b.put("home/.gitconfig", "[user]\n\tname = Olga\n\temail = o@x\n[includeIf \"gitdir:"+b.repo+"/\"]\n\tpath = work\n")
	b.git(b.repo, "config", "user.name", "somebody else")
	b.put("tree/new", "x\n")
	b.done(b.keep)
	if got := b.git(b.tree, "log", "-1", "--format=%an"); got != "Olga at Work" {
		t.Errorf("%s", got)
	}
}

func TestKeep_Refusals(t *testing.T) {
	for name, c := range map[string]struct {
		code, path string
		make       func(*bench)
	}{
		"under way": {api.LandUnderway, "", func(b *bench) { b.put("repo/.git/worktrees/tree/MERGE_HEAD", b.tip("main")+"\n") }},
		"detached":  {api.LandUnsupported, "", func(b *bench) { b.git(b.tree, "checkout", "-q", "--detach") }},
		"conflict": {api.LandConflict, "file", func(b *bench) {
			b.put("tree/file", "mine\n")
			b.git(b.tree, "stash", "-q")
			b.put("tree/file", "other\n")
			b.commit(b.tree, "other")
			_, _ = b.tryGit(b.tree, "stash", "pop")
		}},
		"git-lfs": {api.LandFilter, "a.bin", func(b *bench) {
			b.put("tree/.gitattributes", "*.bin filter=lfs\n")
			b.put("tree/a.bin", "large\n")
		}},
		"filter of the repository": {api.LandFilter, "new", func(b *bench) {
			b.git(b.repo, "config", "filter.crypt.clean", "cat")
			b.put("tree/.gitattributes", "new filter=crypt\n")
		}},
		"submodule": {api.LandUnsupported, "module", func(b *bench) {
			b.git(b.dir, "init", "-q", "-b", "main", "elsewhere")
			b.put("elsewhere/x", "x")
			first := b.commit(b.dir+"/elsewhere", "1")
			b.git(b.dir, "clone", "-q", "elsewhere", "tree/module")
			b.git(b.tree, "update-index", "--add", "--cacheinfo", "160000,"+first+",module")
			b.git(b.tree, "commit", "-qm", "module")
			b.put("tree/module/y", "y")
			b.commit(b.dir+"/tree/module", "2")
		}},
		"repository inside": {api.LandUnsupported, "inside", func(b *bench) {
			b.git(b.dir, "init", "-q", "tree/inside")
			b.put("tree/inside/x", "x")
		}},
		"plain folder": {api.LandUnsupported, "", func(b *bench) { b.place.Kind, b.place.Path = api.PlaceFolder, b.repo; b.put("repo/x", "x") }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("tree/new", "x\n")
			c.make(b)
			if r := b.refused(c.code, b.keep); strings.Join(r.Paths, ",") != c.path {
				t.Errorf("names %q, want %q", r.Paths, c.path)
			}
		})
	}
}
