package landing

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"stint/api"
	"stint/worker/git"
	"stint/worker/proc"
)

// programLimit bounds one call of gh or glab.
const programLimit = time.Minute

// Message is what people read of a change: of a commit, or of a pull request.
type Message string

// split is the first line and what follows it.
func (m Message) split() (title, body string) {
	title, body, _ = strings.Cut(strings.TrimSpace(string(m)), "\n")
	return strings.TrimSpace(title), strings.TrimSpace(body)
}

// PullRequest pushes the branch and opens a pull request for it into the base branch: by gh or glab
// where one of them is installed and signed in to the remote's host, else it says where to open one.
func (t *Tree) PullRequest(ctx context.Context, text Message) (api.LandOutcome, error) {
	s, err := t.send(ctx, func(p point, b base) error {
		switch b.branch {
		case "":
			return refuse(api.LandNoBase, "Nobody can tell which branch the pull request is for.")
		case p.branch:
			return refuse(api.LandNothing, "The branch %s is the base branch itself.", Quoted(p.branch))
		}
		return nil
	})
	if err != nil {
		return api.LandOutcome{}, err
	}
	out := api.LandOutcome{Commit: s.head}
	to, err := t.rewritten(ctx, s.to)
	if err != nil {
		return out, err
	}
	site := siteOf(to)
	if site.program != nil {
		address, words := t.byProgram(ctx, site, s, to, text)
		if address != "" {
			out.URL, out.Detail = address, "The pull request is open."
			return out, nil
		}
		out.Detail = words
	}
	if out.URL = site.address(to, s); out.URL == "" {
		out.Detail = strings.TrimSpace(fmt.Sprintf("The branch %s is on %s. Open the pull request there: Stint doesn't know the pages of this host. %s", Quoted(s.branch), s.to.shown(), out.Detail))
		return out, nil
	}
	out.Detail = strings.TrimSpace("The branch " + Quoted(s.branch) + " is pushed. Open the pull request at the address. " + out.Detail)
	return out, nil
}

// rewritten is an address as the owner's own settings rewrite it.
func (t *Tree) rewritten(ctx context.Context, a address) (out address, err error) {
	scratch, err := t.tree.Scratch(ctx)
	if err != nil {
		return a, err
	}
	defer func() { err = also(err, scratch.Close()) }()
	text, err := scratch.Send(ctx, git.Call{Args: []string{"ls-remote", "--get-url", "--", a.text}})
	if err != nil {
		return a, err
	}
	if b, refusal := parse(strings.TrimSuffix(text, "\n")); refusal == nil {
		return b, nil
	}
	return a, nil
}

// site is a kind of host and how pull requests are opened on it.
type site struct {
	program *hostProgram
	compare func(repo string, s sent) string // the address of a form for one
}

// hostProgram is a program that opens pull requests.
type hostProgram struct {
	name   string
	status func(host string) []string
	create func(repo address, s sent, title, body string) (args []string, input string)
	exists *regexp.Regexp // what it prints when there is one already; the match is its address or number
}

var (
	github = site{&hostProgram{
		name:   "gh",
		status: func(host string) []string { return []string{"auth", "status", "--hostname", host} },
		create: func(repo address, s sent, title, body string) ([]string, string) {
			return []string{"pr", "create", "--repo=" + repo.host + "/" + repo.path, "--head=" + s.branch, "--base=" + s.base.branch, "--title=" + title, "--body-file=-"}, body
		},
		exists: regexp.MustCompile(`already exists:\s*(https?://\S+)`),
	}, func(repo string, s sent) string {
		return repo + "/compare/" + escaped(s.base.branch) + "..." + escaped(s.branch) + "?expand=1"
	}}
	gitlab = site{&hostProgram{
		name:   "glab",
		status: func(host string) []string { return []string{"auth", "status", "--hostname", host} },
		create: func(repo address, s sent, title, body string) ([]string, string) {
			return []string{"mr", "create", "--repo=" + repo.web + "/" + repo.path, "--source-branch=" + s.branch, "--target-branch=" + s.base.branch, "--title=" + title, "--description=" + body, "--yes"}, ""
		},
		exists: regexp.MustCompile(`already exists[^\n]*!([0-9]+)`),
	}, func(repo string, s sent) string {
		q := url.Values{"merge_request[source_branch]": {s.branch}, "merge_request[target_branch]": {s.base.branch}}
		return repo + "/-/merge_requests/new?" + q.Encode()
	}}
	bitbucket = site{nil, func(repo string, s sent) string {
		return repo + "/pull-requests/new?" + url.Values{"source": {s.branch}, "dest": {s.base.branch}}.Encode()
	}}
	gitea = site{nil, func(repo string, s sent) string {
		return repo + "/compare/" + escaped(s.base.branch) + "..." + escaped(s.branch)
	}}
)

// siteOf tells the kind of host by its name.
func siteOf(a address) site {
	host := strings.ToLower(a.host)
	for _, known := range []struct {
		part string
		is   site
	}{{"github", github}, {"gitlab", gitlab}, {"bitbucket.org", bitbucket}, {"gitea", gitea}, {"forgejo", gitea}, {"codeberg", gitea}} {
		if !a.local && strings.Contains(host, known.part) {
			return known.is
		}
	}
	return site{}
}

// address is where a pull request can be opened, "" = unknown.
func (k site) address(to address, s sent) string {
	if k.compare == nil || to.web == "" {
		return ""
	}
	return k.compare(to.web+"/"+escaped(to.path), s)
}

// escaped is a path or the name of a branch in an address: its slashes stay.
func escaped(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// byProgram opens it with the host's program; without one that is signed in, it returns nothing, and
// when that fails its words.
func (t *Tree) byProgram(ctx context.Context, k site, s sent, to address, text Message) (address, words string) {
	path, err := proc.LookPath(k.program.name, "/", t.place.Env)
	if err != nil {
		return "", ""
	}
	if _, err := t.program(ctx, path, k.program.status(to.host), ""); err != nil {
		return "", "" // not signed in there
	}
	title, body := text.split()
	args, input := k.program.create(to, s, title, body)
	out, err := t.program(ctx, path, args, input)
	if found := regexp.MustCompile(`https?://\S+`).FindAllString(out, -1); err == nil && len(found) > 0 {
		return found[len(found)-1], ""
	}
	if found := k.program.exists.FindStringSubmatch(out); err != nil && found != nil {
		if strings.HasPrefix(found[1], "http") {
			return found[1], ""
		}
		return to.web + "/" + escaped(to.path) + "/-/merge_requests/" + found[1], ""
	}
	return "", k.program.name + " could not open it: " + t.place.words(out)
}

// program runs gh or glab in an empty folder, so that no repository has a say, and returns what it
// printed.
func (t *Tree) program(ctx context.Context, path string, args []string, input string) (out string, err error) {
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	dir, err := os.MkdirTemp(t.place.Scratch, "empty-")
	if err != nil {
		return "", err
	}
	defer func() { err = also(err, os.RemoveAll(dir)) }()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	for _, assignment := range t.place.Env {
		if name, _, _ := strings.Cut(assignment, "="); !strings.HasPrefix(name, "STINT_") && !strings.HasPrefix(name, "GIT_") {
			cmd.Env = append(cmd.Env, assignment)
		}
	}
	// No git of its own finds a repository above the folder.
	cmd.Env = append(cmd.Env, "GIT_DIR=/dev/null", "GIT_TERMINAL_PROMPT=0", "GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "NO_PROMPT=1", "NO_COLOR=1", "LC_ALL=C")
	printed := &bounded{}
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	err = cmd.Run()
	return printed.String(), err
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

// Write accepts everything.
func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, 64<<10-b.Len()))])
	return len(p), nil
}
