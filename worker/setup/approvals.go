package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"stint/api"
	"stint/worker/agent"
)

// Approval is a standing approval: what its worker's owner allowed an agent from now on, by
// the answer to a question. contract 15.3
type Approval struct {
	ID      string     `toml:"id"`
	Area    agent.Area `toml:"area"`
	Tool    string     `toml:"tool" comment:"what the agent's program calls it"`
	What    string     `toml:"what" comment:"the exact command, path or address; with any, * stands for one word that is no option"`
	Any     bool       `toml:"any,omitempty"`
	Beyond  bool       `toml:"beyond,omitempty" comment:"also out of the program's sandbox"`
	Session string     `toml:"session" comment:"whose question it answered"`
	By      string     `toml:"by,omitempty" comment:"who answered; it counts for workers that run for them"`
	ByName  string     `toml:"by_name,omitempty"`
	At      time.Time  `toml:"at"`
}

// Standing is what the adapters make of it.
func (a Approval) Standing() agent.Standing {
	return agent.Standing{ID: a.ID, Area: a.Area, Tool: a.Tool, What: a.What, Any: a.Any, Beyond: a.Beyond}
}

// Shown is the approval with its uses, as it is listed.
func (a Approval) Shown(u Use) api.Approval {
	out := api.Approval{
		ID: a.ID, Area: a.Area, Tool: a.Tool, What: a.What, Any: a.Any, Beyond: a.Beyond, ApprovedAt: api.Time{Time: a.At.UTC()},
		Uses: u.Times, LastUsedAt: api.Time{Time: u.At.UTC()},
	}
	if id, err := api.ParseSessionID(a.Session); err == nil {
		out.SessionID = id
	}
	if out.ApprovedBy.UnmarshalText([]byte(a.By)) != nil {
		out.ApprovedBy = 0
	}
	return out
}

type approvals struct {
	Approvals []Approval `toml:"approvals"`
}

// Approving lists the agents that have standing approvals, sorted.
func (f Files) Approving() ([]string, error) { return f.slugs("approvals") }

// Approvals reads an agent's standing approvals, none when there is no file.
func (f Files) Approvals(slug string) ([]Approval, error) {
	path, err := f.path("approvals", slug)
	if err != nil {
		return nil, err
	}
	var all approvals
	if _, err := decode(path, &all); err != nil {
		return nil, err
	}
	if n := len(all.Approvals); n > api.MaxApprovals {
		return nil, fmt.Errorf("%s: there are %d standing approvals, more than %d: what needs more is a rule", path, n, api.MaxApprovals)
	}
	return all.Approvals, nil
}

// Approve adds a standing approval and names it. One that says the same is returned instead.
func (f Files) Approve(slug string, a Approval) (Approval, error) {
	free, err := f.lock("approvals")
	if err != nil {
		return a, err
	}
	defer free()
	all, err := f.Approvals(slug)
	if err != nil {
		return a, err
	}
	for _, have := range all {
		if same := have.Standing(); have.By == a.By && same.Area == a.Area && same.Tool == a.Tool && same.What == a.What && same.Any == a.Any && same.Beyond == a.Beyond {
			return have, nil
		}
	}
	if len(all) >= api.MaxApprovals {
		return a, fmt.Errorf("there are %d standing approvals for %s: remove some", len(all), slug)
	}
	a.ID = "ok-" + strings.ToLower(rand.Text()[:6])
	return a, f.saveApprovals(slug, append(all, a))
}

// Revoke removes standing approvals by their names; "" removes all. It returns those removed.
func (f Files) Revoke(slug, id string) ([]Approval, error) {
	free, err := f.lock("approvals")
	if err != nil {
		return nil, err
	}
	defer free()
	all, err := f.Approvals(slug)
	if err != nil {
		return nil, err
	}
	var gone []Approval
	left := slices.DeleteFunc(slices.Clone(all), func(a Approval) bool {
		if id != "" && a.ID != id {
			return false
		}
		gone = append(gone, a)
		return true
	})
	if len(gone) == 0 {
		return nil, nil
	}
	if err := f.saveApprovals(slug, left); err != nil {
		return nil, err
	}
	for _, a := range gone {
		_ = f.forgetUses(slug, a.ID) // what stays there counts for nothing
	}
	return gone, nil
}

func (f Files) saveApprovals(slug string, all []Approval) error {
	path, err := f.path("approvals", slug)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return encode(path, "What you allowed the agent "+slug+" from now on. Look at it and take it back with stint worker rules "+slug+".", approvals{all})
}
