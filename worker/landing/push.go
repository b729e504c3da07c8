package landing

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"stint/api"
	"stint/worker/git"
)

// reflog begins what is written of a change into the logs of branches.
const reflog = "stint land"

// afterDoubt bounds the question whether a push arrived whose answer was lost.
const afterDoubt = 30 * time.Second

// Again says that the same request was begun before and its result is unknown: what is done already
// counts as done by it.
type Again bool

// sent is a branch that a remote has.
type sent struct {
	to      address
	branch  string
	head    string
	base    base
	already bool // it had it before
}

// Push sends the branch to its remote. Never by force.
func (t *Tree) Push(ctx context.Context, again Again) (api.LandOutcome, error) {
	s, err := t.send(ctx, func(point, base) error { return nil })
	switch {
	case err != nil:
		return api.LandOutcome{}, err
	case s.already && !bool(again):
		return api.LandOutcome{}, refuse(api.LandNothing, "%s has this state of the branch %s already.", s.to.shown(), Quoted(s.branch))
	}
	return api.LandOutcome{Commit: s.head, Detail: "The branch " + Quoted(s.branch) + " is on " + s.to.shown() + "."}, nil
}

// ready refuses what can't be landed as it is, and says where the tree stands.
func (t *Tree) ready(ctx context.Context) (p point, b base, err error) {
	if under := t.tree.Under(); under != "" {
		return p, b, refuse(api.LandUnderway, "In the workspace %s is under way. End it first.", under)
	}
	if p, err = t.point(ctx); err != nil {
		return p, b, err
	}
	if p.branch == "" {
		return p, b, refuse(api.LandUnsupported, "No branch is checked out in the workspace.")
	}
	if p.head == "" {
		return p, b, refuse(api.LandNothing, "There is no commit yet.")
	}
	if b, err = t.base(ctx, p); err != nil {
		return p, b, err
	}
	var open []string
	err = t.status(ctx, func(e entry) error {
		open = append(open, Quoted(e.path))
		if len(open) >= mostNamed {
			return git.Enough()
		}
		return nil
	})
	if err == nil && len(open) > 0 {
		r := refuse(api.LandDirty, "Some files are not committed. Keep them first.")
		r.Paths = open
		err = r
	}
	return p, b, err
}

// mostNamed bounds how many files a refusal names.
const mostNamed = 50

// protected reports whether the owner protects a branch.
func (p Place) protected(branch string) bool {
	for _, pattern := range p.Protected {
		if ok, err := path.Match(pattern, branch); ok || err != nil { // what can't be read protects everything
			return true
		}
	}
	return false
}

// send sends the branch unless something speaks against it, or fits does.
func (t *Tree) send(ctx context.Context, fits func(point, base) error) (s sent, err error) {
	p, b, err := t.ready(ctx)
	if err == nil {
		err = fits(p, b)
	}
	if err != nil {
		return s, err
	}
	if t.place.protected(p.branch) {
		return s, refuse(api.LandProtected, "The worker's owner protects the branch %s: nothing is pushed to it from here.", Quoted(p.branch))
	}
	if t.place.Kind == api.PlaceWorktree && b.from == p.head {
		return s, refuse(api.LandNothing, "The branch %s has no commit of its own.", Quoted(p.branch))
	}
	r, err := t.remote(ctx, t.remoteOf(p.branch, b.branch))
	if err != nil {
		return s, err
	}
	if r.Name == "" {
		return s, refuse(api.LandNoRemote, "The repository has no remote to push to, or several of which none is called origin.")
	}
	to, refusal := t.goal(r)
	if refusal != nil {
		return s, refusal
	}
	s = sent{to: to, branch: p.branch, head: p.head, base: b}
	if s.already, err = t.deliver(ctx, s); err != nil {
		return s, err
	}
	// As git does after a push of its own. Only a hint: the next fetch finds out by itself.
	_, _ = t.out(ctx, "update-ref", "-m", reflog+": push", "refs/remotes/"+r.Name+"/"+p.branch, p.head)
	return s, nil
}

// deliver sends a commit to a branch of the remote, from a repository of our own.
func (t *Tree) deliver(ctx context.Context, s sent) (already bool, err error) {
	scratch, err := t.tree.Scratch(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = also(err, scratch.Close()) }()
	env, err := t.ssh(ctx)
	if err != nil {
		return false, err
	}
	out, err := scratch.Send(ctx, git.Call{Env: env, Args: []string{
		"push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--no-recurse-submodules", "--", s.to.text, s.head + ":refs/heads/" + s.branch,
	}})
	if err == nil {
		return strings.Contains("\n"+out, "\n=\t"), nil
	}
	reason := ""
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "!\t"); ok {
			_, reason, _ = strings.Cut(strings.TrimSpace(rest), "\t")
		}
	}
	if reason == "" && t.arrived(ctx, scratch, s, env) {
		return false, nil
	}
	return false, t.rejected(s, reason, err, scratch.Path())
}

// ssh makes the user's own ssh ask nothing.
func (t *Tree) ssh(ctx context.Context) ([]string, error) {
	command := lastValue(t.place.Env, "GIT_SSH_COMMAND")
	if command == "" {
		var err error
		if command, err = t.tree.Owner(ctx, "core.sshCommand"); err != nil {
			return nil, err
		}
	}
	if command == "" {
		if lastValue(t.place.Env, "GIT_SSH") != "" {
			return nil, nil
		}
		command = "ssh"
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(command), " "); path.Base(first) == "ssh" {
		command += " -o BatchMode=yes -o ConnectTimeout=30"
	}
	return []string{"GIT_SSH_COMMAND=" + command}, nil
}

// arrived asks the remote whether it has the commit, after a push whose end is not known.
func (t *Tree) arrived(ctx context.Context, scratch git.Scratch, s sent, env []string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterDoubt)
	defer cancel()
	out, err := scratch.Send(ctx, git.Call{Env: env, Args: []string{"ls-remote", "--", s.to.text, "refs/heads/" + s.branch}})
	id, _, _ := strings.Cut(out, "\t")
	return err == nil && id == s.head
}

// rejected says why the remote has not taken it, in its own words.
func (t *Tree) rejected(s sent, reason string, err error, scratch string) error {
	var said, own []string
	failed := (*git.Error)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	for line := range strings.Lines(failed.Stderr) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "remote:"); ok {
			if rest = strings.TrimSpace(rest); rest != "" {
				said = append(said, rest)
			}
		} else if strings.HasPrefix(line, "fatal:") || strings.HasPrefix(line, "error:") || strings.Contains(line, "Permission denied") {
			own = append(own, line)
		}
	}
	text := strings.Join(said, "\n")
	switch {
	case strings.Contains(reason, "fetch first"), strings.Contains(reason, "non-fast-forward"), strings.Contains(reason, "stale info"):
		return refuse(api.LandRemote, "The branch %s of %s has commits that are not here. Stint never pushes by force.", Quoted(s.branch), s.to.shown())
	case text == "" && reason != "":
		text = reason
	case text == "":
		text = strings.Join(own, "\n")
	}
	if text == "" {
		text = failed.Error()
	}
	return refuse(api.LandRemote, "%s did not take the branch %s: %s", s.to.shown(), Quoted(s.branch), t.place.words(text, scratch, s.to.text))
}
