package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

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
	At      time.Time  `toml:"at"`
}

// Standing is what the adapters make of it.
func (a Approval) Standing() agent.Standing {
	return agent.Standing{ID: a.ID, Area: a.Area, Tool: a.Tool, What: a.What, Any: a.Any, Beyond: a.Beyond}
}

// Words explain an approval.
func (a Approval) Words() string {
	words := "exactly this"
	if a.Any {
		words = "with any one word that is no option in the place of *"
	}
	if a.Beyond {
		words += ", also out of its sandbox"
	}
	return words
}

type approvals struct {
	Approvals []Approval `toml:"approvals"`
}

// maxApprovals bounds a file: what needs more is a rule.
const maxApprovals = 200

// approving keeps the changes of this process apart; another process changes the file only when
// a person says so.
var approving sync.Mutex

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
	return all.Approvals, nil
}

// Approve adds a standing approval and names it. One that says the same is returned instead.
func (f Files) Approve(slug string, a Approval) (Approval, error) {
	approving.Lock()
	defer approving.Unlock()
	all, err := f.Approvals(slug)
	if err != nil {
		return a, err
	}
	for _, have := range all {
		if s := have.Standing(); s.Area == a.Area && s.Tool == a.Tool && s.What == a.What && s.Any == a.Any && s.Beyond == a.Beyond {
			return have, nil
		}
	}
	if len(all) >= maxApprovals {
		return a, fmt.Errorf("there are %d standing approvals for %s: remove some", len(all), slug)
	}
	a.ID = "ok-" + strings.ToLower(rand.Text()[:6])
	return a, f.saveApprovals(slug, append(all, a))
}

// Revoke removes standing approvals by their names; "" removes all. It returns those removed.
func (f Files) Revoke(slug, id string) ([]Approval, error) {
	approving.Lock()
	defer approving.Unlock()
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
	return gone, f.saveApprovals(slug, left)
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
