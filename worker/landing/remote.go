package landing

import (
	"context"
	"net/url"
	"path"
	"slices"
	"strings"

	"stint/api"
	"stint/worker/git"
)

// address is where a push goes.
type address struct {
	text  string // as it is given to git
	local bool   // a folder of this machine
	host  string
	path  string // on the host, without slashes around it and .git at the end; of a folder its name
	web   string // the address of the host's pages; "" = unknown
}

// parse reads an address of a remote. Only a few ways of sending are allowed: others run programs
// that the address names.
func parse(text string) (address, *Refusal) {
	a := address{text: text}
	bad := refuse(api.LandNoRemote, "The address of the remote is none that Stint pushes to: use https, ssh, file or an absolute path.")
	scheme, _, isURL := strings.Cut(text, "://")
	colon, slash := strings.IndexByte(text, ':'), strings.IndexByte(text, '/')
	switch {
	case text == "", text[0] == '-', strings.ContainsAny(text, "\x00\n\r"), strings.Contains(text, "::") && !isURL:
		return a, bad
	case isURL:
		u, err := url.Parse(text)
		if err != nil || strings.Contains(scheme, "::") || !slices.Contains(strings.Split(git.Protocols, ":"), scheme) {
			return a, bad
		}
		if a.local = scheme == "file"; a.local {
			if u.Host != "" && u.Host != "localhost" {
				return a, bad
			}
			a.path = strings.TrimSuffix(path.Base(u.Path), ".git")
			return a, nil
		}
		if a.host = u.Hostname(); a.host == "" || a.host[0] == '-' {
			return a, bad
		}
		a.path, a.web = u.Path, "https://"+a.host
		if scheme != "ssh" {
			a.web = scheme + "://" + u.Host
		}
	case text[0] == '/':
		a.local, a.path = true, strings.TrimSuffix(path.Base(text), ".git")
		return a, nil
	case colon > 0 && (slash < 0 || colon < slash):
		_, a.host, _ = strings.Cut("@"+text[:colon], "@")
		if i := strings.LastIndexByte(text[:colon], '@'); i >= 0 {
			a.host = text[i+1 : colon]
		}
		if a.host == "" || a.host[0] == '-' {
			return a, bad
		}
		a.path, a.web = text[colon+1:], "https://"+a.host
	default:
		return a, bad
	}
	a.path = strings.TrimSuffix(strings.Trim(a.path, "/"), ".git")
	return a, nil
}

// shown is the address as people read it.
func (a address) shown() string {
	if a.local {
		return "…/" + name(a.path)
	}
	return name(a.host + "/" + a.path)
}

// remoteName is the name of the remote that the base branch comes from, else origin, else the only
// one; "" = there is none.
func (t *Tree) remoteName(ctx context.Context, baseBranch string) (string, error) {
	r, err := t.remote(ctx, baseBranch)
	return r.Name, err
}

func (t *Tree) remote(ctx context.Context, baseBranch string) (git.Remote, error) {
	all, err := t.tree.Remotes(ctx)
	if err != nil || len(all) == 0 {
		return git.Remote{}, err
	}
	wanted := []string{"origin"}
	if baseBranch != "" {
		name, err := t.tree.Setting(ctx, "branch."+baseBranch+".remote")
		if err != nil {
			return git.Remote{}, err
		}
		wanted = []string{name, "origin"}
	}
	for _, name := range wanted {
		if i := slices.IndexFunc(all, func(r git.Remote) bool { return r.Name == name }); i >= 0 {
			return all[i], nil
		}
	}
	if len(all) > 1 {
		return git.Remote{}, nil
	}
	return all[0], nil
}

// shownRemote is where a push would go, "" = nowhere.
func (t *Tree) shownRemote(ctx context.Context, branch, baseBranch string) (string, error) {
	r, err := t.remote(ctx, t.remoteOf(branch, baseBranch))
	if err != nil || r.Name == "" {
		return "", err
	}
	a, refusal := t.goal(r)
	if refusal != nil {
		return "", nil //nolint:nilerr // a push will say why
	}
	return a.shown(), nil
}

// remoteOf is the branch whose remote counts.
func (t *Tree) remoteOf(branch, baseBranch string) string {
	if t.place.Kind == api.PlaceFolder {
		return branch
	}
	return baseBranch
}

// goal is the address that a remote is pushed to. Where it is known what the remote's addresses were
// when the work began, they must be the same: else whoever worked in the tree could send the owner's
// code elsewhere. A folder as a remote runs the hooks that lie in it, as the owner; so it has to be
// known.
func (t *Tree) goal(r git.Remote) (address, *Refusal) {
	to := r.Addresses
	if len(r.Pushed) > 0 {
		to = r.Pushed
	}
	if len(to) != 1 {
		return address{}, refuse(api.LandNoRemote, "The remote %s has %d addresses to push to. Stint pushes where there is one.", Quoted(r.Name), len(to))
	}
	a, refusal := parse(to[0])
	if refusal != nil {
		return a, refusal
	}
	known, ok := t.place.Remotes[r.Name]
	switch {
	case t.place.Remotes != nil && (!ok || known != r.Mark()):
		return a, refuse(api.LandNoRemote, "The address of the remote %s is another one than when this work began. Push by hand once you have looked at it.", Quoted(r.Name))
	case t.place.Remotes == nil && a.local:
		return a, refuse(api.LandNoRemote, "The remote %s is a folder of the worker's machine, and nobody noted it when this work began. Push by hand.", Quoted(r.Name))
	}
	return a, nil
}
