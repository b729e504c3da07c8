package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Remote is another repository that the settings of one name.
type Remote struct {
	Name      string
	Addresses []string // where it is fetched from
	Pushed    []string // where it is pushed to; none = there too
}

// Mark stands for the addresses of a remote: it tells whether they are the same as before, and not
// what they are.
func (r Remote) Mark() string {
	sum := sha256.Sum256([]byte(strings.Join(r.Addresses, "\x00") + "\x00\x00" + strings.Join(r.Pushed, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Remotes are those that the settings of a tree name, sorted by name.
func (t Tree) Remotes(ctx context.Context) ([]Remote, error) {
	list, err := t.repo.program.settings(ctx, t.at)
	if err != nil {
		return nil, err
	}
	var all []Remote
	for _, s := range list {
		name, isRemote := strings.CutPrefix(s.key, "remote.")
		dot := strings.LastIndexByte(name, '.')
		if !isRemote || dot < 0 || name[dot:] != ".url" && name[dot:] != ".pushurl" {
			continue
		}
		address, pushed := s.value, name[dot:] == ".pushurl"
		name = name[:dot]
		i := slices.IndexFunc(all, func(r Remote) bool { return r.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, Remote{Name: name})
		}
		if pushed {
			all[i].Pushed = append(all[i].Pushed, address)
		} else {
			all[i].Addresses = append(all[i].Addresses, address)
		}
	}
	slices.SortFunc(all, func(a, b Remote) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Routes are where a repository's own settings say that its branches go.
type Routes struct {
	// Remotes are the marks of remotes, by their names.
	Remotes map[string]string `json:"remotes"`
	// Branches are the names of the remotes that branches belong to, of those that don't belong to
	// origin.
	Branches map[string]string `json:"branches,omitzero"`
}

// Routes says where branches go now.
func (t Tree) Routes(ctx context.Context) (Routes, error) {
	r := Routes{Remotes: map[string]string{}, Branches: map[string]string{}}
	remotes, err := t.Remotes(ctx)
	if err != nil {
		return r, err
	}
	for _, one := range remotes {
		r.Remotes[one.Name] = one.Mark()
	}
	all, err := t.repo.program.settings(ctx, t.at)
	for _, s := range all {
		branch, isBranch := strings.CutPrefix(s.key, "branch.")
		branch, isRemote := strings.CutSuffix(branch, ".remote")
		if isBranch && isRemote && s.value != "origin" {
			r.Branches[branch] = s.value
		} else if isBranch && isRemote {
			delete(r.Branches, branch)
		}
	}
	return r, err
}
