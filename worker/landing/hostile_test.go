package landing

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"stint/api"
)

// hostile makes everything that git can be made to execute by a repository leave a witness.
func (b *bench) hostile() {
	b.must(os.MkdirAll(b.dir+"/witnesses", 0o755))
	script := func(name string) string {
		b.put("evil-"+name, fmt.Sprintf("#!/bin/sh\ntouch %s/witnesses/%s\ncase %s in ext*) exit 1;; esac\ncat\n", b.dir, name, name))
		path := b.dir + "/evil-" + name
		b.must(os.Chmod(path, 0o755))
		return path
	}
	for _, hook := range []string{
		"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-rewrite", "pre-auto-gc", "pre-commit",
		"pre-merge-commit", "pre-push", "prepare-commit-msg", "pre-rebase", "push-to-checkout", "reference-transaction", "update", "pre-receive", "post-receive", "post-update", "proc-receive", "sendemail-validate",
	} {
		b.put("repo/.git/hooks/"+hook, fmt.Sprintf("#!/bin/sh\ntouch %s/witnesses/hook-%s\n", b.dir, hook))
		b.must(os.Chmod(b.repo+"/.git/hooks/"+hook, 0o755))
	}
	for _, s := range [][2]string{
		{"core.fsmonitor", script("fsmonitor")},
		{"core.sshCommand", script("ssh")},
		{"core.gitProxy", script("proxy")},
		{"core.askPass", script("askpass")},
		{"core.pager", script("pager")},
		{"core.editor", script("editor")},
		{"core.alternateRefsCommand", script("alternates")},
		{"core.splitIndex", "true"},
		{"credential.helper", "!" + script("credential")},
		{"diff.external", script("diff-external")},
		{"diff.odd.command", script("diff-command")},
		{"diff.odd.textconv", script("textconv")},
		{"diff.odd.cachetextconv", "true"},
		{"merge.odd.driver", script("merge-driver") + " %A"},
		{"merge.default", "odd"},
		{"merge.tool", "odd"},
		{"merge.verifySignatures", "true"},
		{"mergetool.odd.cmd", script("mergetool")},
		{"branch.main.mergeOptions", "--squash --verify-signatures --no-such-option"},
		{"branch.main.remote", "origin"},
		{"branch.main.pushRemote", "evil"},
		{"remote.pushDefault", "evil"},
		{"remote.evil.vcs", "evil"},
		{"remote.origin.receivepack", script("receive-pack")},
		{"remote.origin.uploadpack", script("upload-pack")},
		{"remote.origin.proxy", "http://127.0.0.1:1"},
		{"url.ext::" + script("ext") + " %S.insteadOf", b.remote},
		{"url.ext::" + script("ext-push") + " %S.pushInsteadOf", b.remote},
		{"protocol.ext.allow", "always"},
		{"gpg.program", script("gpg")},
		{"gpg.ssh.program", script("gpg-ssh")},
		{"gpg.ssh.defaultKeyCommand", script("gpg-key")},
		{"commit.gpgSign", "true"},
		{"push.gpgSign", "true"},
		{"log.showSignature", "true"},
		{"trailer.odd.cmd", script("trailer")},
		{"status.submoduleSummary", "true"},
		{"diff.submodule", "log"},
		{"submodule.recurse", "true"},
		{"push.recurseSubmodules", "on-demand"},
		{"uploadpack.packObjectsHook", script("pack")},
		{"alias.status", "!" + script("alias")},
		{"alias.merge", "!" + script("alias")},
		{"alias.push", "!" + script("alias")},
		{"gc.auto", "1"},
		{"maintenance.auto", "true"},
		{"user.name", "Mallory"},
		{"i18n.commitEncoding", "UTF-16"},
		{"core.excludesFile", "/dev/null"},
	} {
		b.git(b.repo, "config", s[0], s[1])
	}
	b.put("repo/.git/info/attributes", "* diff=odd\n") // no filter and no driver: those are refused
}

func (b *bench) witnesses() []string {
	var names []string
	entries, err := os.ReadDir(b.dir + "/witnesses")
	b.must(err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A git of a person's runs what is planted: else the tests below prove nothing.
func TestHostile_PlantsWork(t *testing.T) {
	b := newBench(t)
	b.hostile()
	b.put("tree/new", "x\n")
	_, _ = b.tryGit(b.tree, "-c", "commit.gpgSign=false", "commit", "-qam", "x", "--allow-empty")
	_, _ = b.tryGit(b.tree, "-c", "protocol.ext.allow=always", "push", "origin", "HEAD")
	if got := strings.Join(b.witnesses(), " "); !strings.Contains(got, "hook-pre-commit") || !strings.Contains(got, "fsmonitor") || !strings.Contains(got, "ext") {
		t.Errorf("only ran %s", got)
	}
}

func TestHostile_NothingOfTheRepositorysIsExecuted(t *testing.T) {
	b := newBench(t)
	b.put("tree/a", strings.Repeat("line\n", 30))
	b.put("tree/bin", "\x00\x01")
	base := b.commit(b.tree, "base")
	b.git(b.repo, "merge", "-q", base)
	b.hostile()
	b.put("tree/a", strings.Repeat("line\n", 29)+"mine\n")
	b.put("tree/bin", "\x00\x02")
	b.put("tree/new", "x\n")
	b.look()
	b.done(b.keep)
	b.place.Base = "main"
	b.done(b.push)
	b.put("repo/a", "theirs\n"+strings.Repeat("line\n", 29))
	b.git(b.repo, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "-c", "i18n.commitEncoding=UTF-8", "commit", "-qam", "theirs")
	b.must(os.RemoveAll(b.dir + "/witnesses"))
	b.must(os.Mkdir(b.dir+"/witnesses", 0o755))
	b.look()
	b.done(b.merge(api.MergeCommit))
	if b.git(b.repo, "-c", "core.fsmonitor=false", "show", "--no-textconv", "--no-ext-diff", "-s", "--format=%an", "--encoding=UTF-8", "--no-show-signature", "main") != "Olga Owner" {
		t.Error("the merge is somebody else's")
	}
	if !strings.HasPrefix(b.text("repo/a"), "theirs\n") || !strings.HasSuffix(b.text("repo/a"), "mine\n") {
		t.Errorf("merged as %q", b.text("repo/a"))
	}
	b.put("tree/unkept", "x\n")
	b.loss()
	if got := b.witnesses(); len(got) > 0 {
		t.Errorf("executed: %v", got)
	}
}

func TestHostile_FirstHalf(t *testing.T) {
	b := newBench(t)
	b.hostile()
	b.put("tree/new", "x\n")
	b.look()
	if _, err := b.open().State(b.Context()); err != nil {
		t.Error(err)
	}
	b.done(b.keep)
	b.done(b.push)
	b.put("tree/more", "x\n")
	b.done(b.keep)
	b.done(b.merge(api.MergeAuto)) // a fast-forward of what is checked out
	if b.text("repo/more") != "x\n" {
		t.Error("not merged")
	}
	if got := b.witnesses(); len(got) > 0 {
		t.Errorf("executed: %v", got)
	}
}

func TestHostile_FiltersAndDriversAreRefusedAndNotRun(t *testing.T) {
	b := newBench(t)
	b.hostile()
	b.git(b.repo, "config", "filter.odd.clean", b.dir+"/evil-clean")
	b.git(b.repo, "config", "filter.odd.smudge", b.dir+"/evil-clean")
	b.put("evil-clean", "#!/bin/sh\ntouch "+b.dir+"/witnesses/filter\ncat\n")
	b.must(os.Chmod(b.dir+"/evil-clean", 0o755))
	b.put("repo/.git/info/attributes", "new filter=odd\nfile merge=odd\n")
	b.put("tree/new", "x\n")
	b.look()
	b.refused(api.LandFilter, b.keep)
	b.git(b.tree, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "filter.odd.clean=", "add", "new")
	b.git(b.tree, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "filter.odd.clean=", "-c", "commit.gpgSign=false", "commit", "-qm", "new")
	b.must(os.RemoveAll(b.dir + "/witnesses"))
	b.must(os.Mkdir(b.dir+"/witnesses", 0o755))
	b.refused(api.LandFilter, b.merge(api.MergeAuto))
	b.look()
	b.loss()
	if got := b.witnesses(); len(got) > 0 {
		t.Errorf("executed: %v", got)
	}
}

// A submodule's own settings would be obeyed by a git that looks into it.
func TestHostile_SubmodulesAreNotLookedInto(t *testing.T) {
	b := newBench(t)
	b.must(os.Mkdir(b.dir+"/witnesses", 0o755))
	b.git(b.dir, "init", "-q", "-b", "main", "elsewhere")
	b.put("elsewhere/x", "x")
	module := b.commit(b.dir+"/elsewhere", "1")
	b.git(b.dir, "clone", "-q", "elsewhere", "tree/module")
	b.git(b.tree, "update-index", "--add", "--cacheinfo", "160000,"+module+",module")
	b.git(b.tree, "commit", "-qm", "module")
	b.put("evil", "#!/bin/sh\ntouch "+b.dir+"/witnesses/module\n")
	b.must(os.Chmod(b.dir+"/evil", 0o755))
	b.git(b.tree+"/module", "config", "core.fsmonitor", b.dir+"/evil")
	b.put("tree/module/x", "dirty")
	b.put("tree/new", "x\n")
	b.look()
	b.done(b.keep)
	b.done(b.push)
	b.done(b.merge(api.MergeSquash))
	b.loss()
	if got := b.witnesses(); len(got) > 0 {
		t.Errorf("executed: %v", got)
	}
	if _, _ = b.tryGit(b.tree, "status"); len(b.witnesses()) == 0 {
		t.Error("the plant doesn't work")
	}
}
