package landing

import (
	"cmp"
	"context"
	"maps"
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
	if err != nil {
		return git.Remote{}, err
	}
	var now []string
	for _, r := range all {
		now = append(now, r.Name)
	}
	known := slices.Sorted(maps.Keys(t.place.Routes.Remotes))
	// Which of its remotes a branch goes to may have been changed just as where they are.
	upstream := t.place.Routes.Branches[baseBranch]
	if t.place.Routes.Remotes == nil && baseBranch != "" {
		if upstream, err = t.tree.Setting(ctx, "branch."+baseBranch+".remote"); err != nil {
			return git.Remote{}, err
		}
	}
	name := cmp.Or(choose(known, upstream), choose(now, upstream))
	if i := slices.Index(now, name); i >= 0 {
		return all[i], nil
	}
	return git.Remote{Name: name}, nil
}

// choose picks a remote.
func choose(names []string, upstream string) string {
	for _, name := range []string{upstream, "origin"} {
		if slices.Contains(names, name) {
			return name
		}
	}
	if len(names) != 1 {
		return ""
	}
	return names[0]
}

// shownRemote is where a push would go if the worker took it there, "" = nowhere.
func (t *Tree) shownRemote(ctx context.Context, branch, baseBranch string) (string, error) {
	r, err := t.remote(ctx, t.remoteOf(branch, baseBranch))
	if err != nil || r.Name == "" {
		return "", err
	}
	a, refusal := only(r)
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

// goal is the address that a remote is pushed to. It must have been the remote's before the work
// began: else whoever worked in the tree could send the owner's code elsewhere, or have the hooks run
// that lie in a folder.
func (t *Tree) goal(r git.Remote) (address, *Refusal) {
	known, ok := t.place.Routes.Remotes[r.Name]
	switch {
	case t.place.Routes.Remotes == nil:
		return address{}, refuse(api.LandNoRemote, "Nobody noted the address of the remote %s when this work began, so it may be anybody's. Push by hand once you have looked at it.", Quoted(r.Name))
	case !ok:
		return address{}, refuse(api.LandNoRemote, "The remote %s was not there when this work began. Push by hand once you have looked at its address.", Quoted(r.Name))
	case len(r.Addresses)+len(r.Pushed) == 0:
		return address{}, refuse(api.LandNoRemote, "There is no remote %s any more, where branches went when this work began. Push by hand.", Quoted(r.Name))
	case known != r.Mark():
		return address{}, refuse(api.LandNoRemote, "The address of the remote %s is another one than when this work began. Push by hand once you have looked at it.", Quoted(r.Name))
	}
	return only(r)
}

// only is the one address that a remote is pushed to.
func only(r git.Remote) (address, *Refusal) {
	to := r.Addresses
	if len(r.Pushed) > 0 {
		to = r.Pushed
	}
	if len(to) != 1 {
		return address{}, refuse(api.LandNoRemote, "The remote %s has %d addresses to push to. Stint pushes where there is one.", Quoted(r.Name), len(to))
	}
	return parse(to[0])
}
