package landing

import (
	"os"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/git"
)

func TestPush_SendsTheBranchAndNotesIt(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	head := b.commit(b.tree, "mine")
	out := b.done(b.push)
	if out.Commit != head || b.git(b.remote, "rev-parse", "stint/work") != head || b.git(b.repo, "rev-parse", "refs/remotes/origin/stint/work") != head {
		t.Errorf("%+v", out)
	}
	if c := b.look(); c.State.Unpushed != 0 {
		t.Errorf("%+v", c.State)
	}
	b.refused(api.LandNothing, b.push)
	if _, err := b.open().Push(b.Context(), true); err != nil { // the same request, begun before
		t.Error(err)
	}
	b.put("tree/new", "y\n")
	head = b.commit(b.tree, "more")
	b.done(b.push)
	if b.git(b.remote, "rev-parse", "stint/work") != head {
		t.Error("not pushed again")
	}
}

func TestPush_OfAPlainFolderAndOfACloneCutShort(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	head := b.commit(b.tree, "mine")
	routes := b.place.Routes
	b.git(b.repo, "worktree", "remove", "--force", "../tree")
	b.git(b.repo, "checkout", "-q", "stint/work")
	b.place = Place{Kind: api.PlaceFolder, Path: b.repo, Routes: routes, Env: b.place.Env, Scratch: b.place.Scratch}
	b.done(b.push)
	if b.git(b.remote, "rev-parse", "stint/work") != head {
		t.Error("not pushed")
	}
	b.must(os.Mkdir(b.dir+"/own", 0o755))
	b.git(b.dir+"/own", "clone", "-q", "--depth=1", "-b", "stint/work", "file://"+b.remote, ".")
	b.git(b.dir+"/own", "checkout", "-q", "-b", "more")
	b.put("own/more", "x\n")
	head = b.commit(b.dir+"/own", "more")
	b.place = Place{Kind: api.PlaceClone, Path: b.dir + "/own", Env: b.place.Env, Scratch: b.place.Scratch}
	b.place.Routes = b.routes(b.place)
	b.done(b.push)
	if b.git(b.remote, "rev-parse", "more") != head {
		t.Error("not pushed from the shallow clone")
	}
}

// routes are those of a place now.
func (b *bench) routes(p Place) git.Routes {
	b.Helper()
	t, err := Open(b.Context(), p)
	b.must(err)
	routes, err := t.Routes(b.Context())
	b.must(err)
	return routes
}

func TestPush_Refusals(t *testing.T) {
	for name, c := range map[string]struct {
		code, says string
		make       func(*bench)
	}{
		"dirty":     {api.LandDirty, "not committed", func(b *bench) { b.put("tree/more", "x\n") }},
		"under way": {api.LandUnderway, "a merge", func(b *bench) { b.put("repo/.git/worktrees/tree/MERGE_HEAD", b.tip("main")+"\n") }},
		"detached":  {api.LandUnsupported, "No branch", func(b *bench) { b.git(b.tree, "checkout", "-q", "--detach") }},
		"protected": {api.LandProtected, "stint/work", func(b *bench) { b.place.Protected = []string{"stint/*"} }},
		"nothing":   {api.LandNothing, "no commit of its own", func(b *bench) { b.git(b.tree, "reset", "-q", "--hard", "main") }},
		"no remote": {api.LandNoRemote, "no remote", func(b *bench) { b.git(b.repo, "remote", "remove", "origin") }},
		"two remotes, none origin": {api.LandNoRemote, "several", func(b *bench) {
			b.git(b.repo, "remote", "rename", "origin", "one")
			b.git(b.repo, "remote", "add", "two", b.remote)
			b.place.Routes = b.routes(b.place)
		}},
		"a remote that is new": {api.LandNoRemote, "was not there", func(b *bench) {
			b.place.Routes.Remotes = map[string]string{}
		}},
		"a branch that goes elsewhere since": {api.LandNoRemote, "several", func(b *bench) {
			b.git(b.repo, "remote", "rename", "origin", "one")
			b.git(b.repo, "remote", "add", "two", b.remote)
			b.place.Routes = b.routes(b.place)
			b.place.Routes.Branches = nil
			b.git(b.repo, "config", "branch.main.remote", "two")
		}},
		"another address than before": {api.LandNoRemote, "another one than", func(b *bench) { b.git(b.repo, "remote", "set-url", "origin", b.dir+"/elsewhere") }},
		"pushed elsewhere since":      {api.LandNoRemote, "another one than", func(b *bench) { b.git(b.repo, "remote", "set-url", "--push", "origin", "https://example.org/x") }},
		"a remote nobody noted":       {api.LandNoRemote, "Nobody noted", func(b *bench) { b.place.Routes = git.Routes{} }},
		"a helper's address": {api.LandNoRemote, "none that Stint pushes to", func(b *bench) {
			b.git(b.repo, "remote", "set-url", "origin", "ext::sh -c 'touch "+b.dir+"/witness' %S")
			b.place.Routes = b.routes(b.place)
		}},
		"a relative address": {api.LandNoRemote, "none that Stint pushes to", func(b *bench) {
			b.git(b.repo, "remote", "set-url", "origin", "../remote.git")
			b.place.Routes = b.routes(b.place)
		}},
		"two addresses": {api.LandNoRemote, "2 addresses", func(b *bench) {
			b.git(b.repo, "remote", "set-url", "--add", "origin", b.remote)
			b.place.Routes = b.routes(b.place)
		}},
		"the remote's hook": {api.LandRemote, "stint/work: not on Mondays\nask <…>", func(b *bench) {
			b.put("remote.git/hooks/pre-receive", "#!/bin/sh\necho 'not on Mondays' >&2\nprintf 'ask <"+b.dir+"/home>\\033[0m\\n' >&2\nexit 1\n")
			b.must(os.Chmod(b.remote+"/hooks/pre-receive", 0o755))
		}},
		"no fast-forward": {api.LandRemote, "never pushes by force", func(b *bench) {
			b.git(b.remote, "config", "receive.denyNonFastForwards", "true")
			b.git(b.repo, "push", "-q", "origin", b.git(b.repo, "commit-tree", "-m", "theirs", "-p", "main", "main^{tree}")+":refs/heads/stint/work")
		}},
		"unknown history": {api.LandRemote, "never pushes by force", func(b *bench) {
			b.git(b.dir, "clone", "-q", b.remote, "other")
			b.put("other/x", "x")
			b.commit(b.dir+"/other", "theirs")
			b.git(b.dir+"/other", "push", "-q", "origin", "HEAD:stint/work")
		}},
		"remote is gone": {api.LandRemote, "did not take", func(b *bench) {
			b.must(os.Rename(b.remote, b.dir+"/away"))
		}},
		"host that does not answer": {api.LandRemote, "127.0.0.1/team/repo did not take", func(b *bench) {
			b.git(b.repo, "remote", "set-url", "origin", "http://user:hunter2@127.0.0.1:1/team/repo.git")
			b.place.Routes = b.routes(b.place)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("tree/new", "x\n")
			b.commit(b.tree, "mine")
			c.make(b)
			if name == "remote is gone" {
				_, err := b.push(b.open())
				if r, ok := err.(*Refusal); !ok || r.Code != c.code || strings.Contains(r.Text, b.dir) {
					t.Errorf("%v", err)
				}
				return
			}
			r := b.refused(c.code, b.push)
			if !strings.Contains(r.Text, c.says) || strings.Contains(r.Text, "hunter2") || strings.Contains(r.Text, "\x1b") {
				t.Errorf("says %q, want %q in it", r.Text, c.says)
			}
			if _, err := os.Stat(b.dir + "/witness"); err == nil {
				t.Error("the address was executed")
			}
		})
	}
}

func TestPush_UsesTheOwnersSettingsAndNotTheRepositorys(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	head := b.commit(b.tree, "mine")
	// The owner's rewriting of addresses is in force; the repository's is not.
	b.put("home/.gitconfig", "[url \""+b.dir+"/\"]\n\tinsteadOf = mine:\n")
	b.git(b.repo, "remote", "set-url", "origin", "mine:remote.git")
	b.git(b.repo, "config", "url.ext::sh -c exit.insteadOf", "mine:")
	b.place.Routes = b.routes(b.place)
	b.done(b.push)
	if b.git(b.remote, "rev-parse", "stint/work") != head {
		t.Error("not pushed")
	}
}

func TestPush_OwnersSshAsksNothing(t *testing.T) {
	b := newBench(t)
	b.put("tree/new", "x\n")
	b.commit(b.tree, "mine")
	b.put("home/bin/ssh", "#!/bin/sh\necho \"$@\" > "+b.dir+"/home/args\necho 'Permission denied (publickey).' >&2\nexit 255\n")
	b.must(os.Chmod(b.home+"/bin/ssh", 0o755))
	b.put("home/.gitconfig", "[core]\n\tsshCommand = "+b.home+"/bin/ssh -i key\n")
	b.git(b.repo, "config", "core.sshCommand", "touch "+b.dir+"/witness; false")
	b.git(b.repo, "remote", "set-url", "origin", "git@example.org:team/repo.git")
	b.place.Routes = b.routes(b.place)
	r, ok := func() (*Refusal, bool) { _, err := b.push(b.open()); r, ok := err.(*Refusal); return r, ok }()
	if !ok || r.Code != api.LandRemote || !strings.Contains(r.Text, "example.org/team/repo did not take the branch stint/work: ") || !strings.Contains(r.Text, "Permission denied") {
		t.Errorf("%+v", r)
	}
	if args := b.text("home/args"); !strings.Contains(args, "-i key -o BatchMode=yes") || !strings.Contains(args, "git@example.org") {
		t.Errorf("ssh %s", args)
	}
	if _, err := os.Stat(b.dir + "/witness"); err == nil {
		t.Error("the repository's ssh command was run")
	}
}

func TestParse_Addresses(t *testing.T) {
	for text, want := range map[string]address{
		"https://user:pw@github.com:8443/a/b.git": {host: "github.com", path: "a/b", web: "https://github.com:8443"},
		"ssh://git@gitlab.example.org:22/g/h/i":   {host: "gitlab.example.org", path: "g/h/i", web: "https://gitlab.example.org"},
		"git@github.com:a/b.git":                  {host: "github.com", path: "a/b", web: "https://github.com"},
		"host:b":                                  {host: "host", path: "b", web: "https://host"},
		"/srv/git/b.git":                          {local: true, path: "b"},
		"file:///srv/git/b":                       {local: true, path: "b"},
	} {
		want.text = text
		if got, refusal := parse(text); refusal != nil || got != want {
			t.Errorf("%s: got %+v (%v), want %+v", text, got, refusal, want)
		}
	}
	for _, text := range []string{"", "-x", "ext::sh -c x", "git://host/x", "ftp://host/x", "ext::https://x/y", "ext://x/y", "../x", "x/y", "ssh://-oProxyCommand=x/y", "-oProxyCommand=x:y", "https:///x", "file://host/x", "https://h/x\n", "fd::17"} {
		if a, refusal := parse(text); refusal == nil {
			t.Errorf("%q is taken: %+v", text, a)
		}
	}
}
