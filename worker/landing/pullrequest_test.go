package landing

import (
	"os"
	"strings"
	"testing"

	"stint/api"
)

// hosted gives a bench a remote on a host, which the owner's settings lead to the folder.
func hosted(t *testing.T, address string) *bench {
	b := newBench(t)
	b.put("tree/new", "x\n")
	b.commit(b.tree, "mine")
	b.git(b.repo, "remote", "set-url", "origin", address)
	b.place.Routes = b.routes(b.place)
	// Pushes go to the folder; what is read of the address stays.
	b.put("home/.gitconfig", "[user]\n\tname = O\n\temail = o@x\n[url \""+b.remote+"\"]\n\tpushInsteadOf = "+address+"\n")
	b.place.Env = []string{"PATH=" + b.home + "/bin:" + os.Getenv("PATH"), "HOME=" + b.home, "GIT_DIR=/nowhere", "STINT_TOKEN=secret"}
	return b
}

// program puts a stand-in for gh or glab on the path. It notes its arguments, folder, variables
// and input.
func (b *bench) program(name, does string) {
	b.put("home/bin/"+name, `#!/bin/sh
{ pwd; ls -A; env; for a in "$@"; do echo "arg: $a"; done; echo "input: $(cat)"; } >> `+b.home+`/`+name+`.log
`+does+"\n")
	b.must(os.Chmod(b.home+"/bin/"+name, 0o755))
}

func (b *bench) pullRequest(t *Tree) (api.LandOutcome, error) {
	return t.PullRequest(b.Context(), "A title\n\nA body\nof two lines")
}

func TestPullRequest_ByGh(t *testing.T) {
	b := hosted(t, "git@github.com:team/repo.git")
	b.program("gh", `case $1 in pr) echo "Warning: x" >&2; echo https://github.com/team/repo/pull/7;; esac`)
	out := b.done(b.pullRequest)
	if out.URL != "https://github.com/team/repo/pull/7" || out.Commit != b.tip("stint/work") || b.git(b.remote, "rev-parse", "stint/work") != out.Commit {
		t.Errorf("%+v", out)
	}
	log := b.text("home/gh.log")
	for _, want := range []string{
		"arg: auth\narg: status\narg: --hostname\narg: github.com\n",
		"arg: pr\narg: create\narg: --repo=github.com/team/repo\narg: --head=stint/work\narg: --base=main\narg: --title=A title\narg: --body-file=-\ninput: A body\nof two lines\n",
		"GH_PROMPT_DISABLED=1",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if strings.Contains(log, "secret") || strings.Contains(log, "/nowhere") || !strings.HasPrefix(log, b.dir+"/scratch/empty-") {
		t.Errorf("gh got\n%s", log)
	}
}

func TestPullRequest_ThatExistsIsNoFailure(t *testing.T) {
	b := hosted(t, "https://github.com/team/repo.git")
	b.program("gh", `case $1 in pr) printf 'a pull request for branch "stint/work" into branch "main" already exists:\nhttps://github.com/team/repo/pull/3\n' >&2; exit 1;; esac`)
	if out := b.done(b.pullRequest); out.URL != "https://github.com/team/repo/pull/3" {
		t.Errorf("%+v", out)
	}
	if out := b.done(b.pullRequest); out.URL == "" { // what is pushed already is no reason not to
		t.Errorf("%+v", out)
	}
	b = hosted(t, "https://gitlab.example.org/g/team/repo.git")
	b.program("glab", `case $1 in mr) echo 'POST https://gitlab.example.org/api: 409 {message: [Another open merge request already exists for this source branch: !12]}' >&2; exit 1;; esac`)
	if out := b.done(b.pullRequest); out.URL != "https://gitlab.example.org/g/team/repo/-/merge_requests/12" {
		t.Errorf("%+v", out)
	}
}

func TestPullRequest_ByGlab(t *testing.T) {
	b := hosted(t, "git@gitlab.example.org:g/team/repo.git")
	b.program("glab", `case $1 in mr) printf '!4 A title\n https://gitlab.example.org/g/team/repo/-/merge_requests/4\n';; esac`)
	if out := b.done(b.pullRequest); out.URL != "https://gitlab.example.org/g/team/repo/-/merge_requests/4" {
		t.Errorf("%+v", out)
	}
	want := "arg: mr\narg: create\narg: --repo=https://gitlab.example.org/g/team/repo\narg: --source-branch=stint/work\narg: --target-branch=main\narg: --title=A title\narg: --description=A body\nof two lines\narg: --yes\n"
	if log := b.text("home/glab.log"); !strings.Contains(log, want) {
		t.Errorf("glab got\n%s", log)
	}
}

func TestPullRequest_SaysWhereToOpenOne(t *testing.T) {
	for address, want := range map[string]string{
		"https://github.com/team/repo.git":      "https://github.com/team/repo/compare/main...stint/work?expand=1",
		"git@gitlab.com:g/team/repo.git":        "https://gitlab.com/g/team/repo/-/merge_requests/new?merge_request%5Bsource_branch%5D=stint%2Fwork&merge_request%5Btarget_branch%5D=main",
		"git@bitbucket.org:team/repo.git":       "https://bitbucket.org/team/repo/pull-requests/new?dest=main&source=stint%2Fwork",
		"ssh://git@codeberg.org/team/repo.git":  "https://codeberg.org/team/repo/compare/main...stint/work",
		"http://git.gitea.lan:3000/team/a b":    "http://git.gitea.lan:3000/team/a%20b/compare/main...stint/work",
		"https://git.example.org/team/repo.git": "",
	} {
		b := hosted(t, address)
		out := b.done(b.pullRequest)
		if out.URL != want || want == "" && !strings.Contains(out.Detail, "git.example.org/team/repo") {
			t.Errorf("%s: %+v", address, out)
		}
	}
}

func TestPullRequest_WhenTheProgramIsNotSignedInOrFails(t *testing.T) {
	b := hosted(t, "https://github.com/team/repo.git")
	b.program("gh", "exit 1")
	if out := b.done(b.pullRequest); !strings.HasPrefix(out.URL, "https://github.com/team/repo/compare/") || strings.Contains(b.text("home/gh.log"), "arg: pr") {
		t.Errorf("%+v", out)
	}
	b = hosted(t, "https://github.com/team/repo.git")
	b.program("gh", `case $1 in pr) echo "GraphQL: no https://x:secret@github.com for you in `+b.dir+`/scratch" >&2; exit 1;; esac`)
	if out := b.done(b.pullRequest); !strings.HasPrefix(out.URL, "https://github.com/team/repo/compare/") || !strings.Contains(out.Detail, "gh could not open it: GraphQL: no https://github.com for you in …") {
		t.Errorf("%+v", out)
	}
}

func TestPullRequest_Refusals(t *testing.T) {
	b := hosted(t, "https://github.com/team/repo.git")
	b.put("tree/more", "x\n")
	b.refused(api.LandDirty, b.pullRequest)
	b.must(os.Remove(b.tree + "/more"))
	b.git(b.repo, "checkout", "-q", "--detach")
	b.place.Base = ""
	b.refused(api.LandNoBase, b.pullRequest)
}

func TestPullRequest_FromAPlainFolderIsForTheRemotesMainBranch(t *testing.T) {
	b := hosted(t, "https://github.com/team/repo.git")
	b.git(b.repo, "checkout", "-q", "-b", "topic")
	b.put("repo/new", "x\n")
	b.commit(b.repo, "mine")
	b.place.Kind, b.place.Path, b.place.Branch = api.PlaceFolder, b.repo, ""
	_, _ = b.tryGit(b.repo, "symbolic-ref", "-d", "refs/remotes/origin/HEAD") // which a fetch makes from git 2.48 on
	b.refused(api.LandNoBase, b.pullRequest)
	b.git(b.repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	if out := b.done(b.pullRequest); out.URL != "https://github.com/team/repo/compare/main...topic?expand=1" {
		t.Errorf("%+v", out)
	}
}
