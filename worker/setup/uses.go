package setup

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Use is how often a standing approval allowed something, and when last.
type Use struct {
	ID    string    `toml:"id"`
	Times int64     `toml:"times"`
	At    time.Time `toml:"at"`
}

// uses is a file of its own: the owner's file changes only when the owner says so.
type uses struct {
	Uses []Use `toml:"uses"`
}

// Uses are those of an agent's standing approvals, by their names.
func (f Files) Uses(slug string) (map[string]Use, error) {
	all, err := f.uses(slug)
	if err != nil {
		return nil, err
	}
	out := map[string]Use{}
	for _, u := range all {
		out[u.ID] = u
	}
	return out, nil
}

func (f Files) uses(slug string) ([]Use, error) {
	path, err := f.path("uses", slug)
	if err != nil {
		return nil, err
	}
	var all uses
	_, err = decode(path, &all)
	return all.Uses, err
}

// Used counts one use of a standing approval.
func (f Files) Used(slug, id string, now time.Time) error {
	return f.changeUses(slug, func(all []Use) []Use {
		i := slices.IndexFunc(all, func(u Use) bool { return u.ID == id })
		if i < 0 {
			all, i = append(all, Use{ID: id}), len(all)
		}
		all[i].Times++
		all[i].At = now.UTC().Truncate(time.Second)
		return all
	})
}

func (f Files) forgetUses(slug, id string) error {
	return f.changeUses(slug, func(all []Use) []Use {
		return slices.DeleteFunc(all, func(u Use) bool { return u.ID == id })
	})
}

func (f Files) changeUses(slug string, change func([]Use) []Use) error {
	free, err := f.lock("uses")
	if err != nil {
		return err
	}
	defer free()
	all, err := f.uses(slug)
	if err != nil {
		return err
	}
	path, err := f.path("uses", slug)
	if err != nil {
		return err
	}
	if all = change(all); len(all) == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return encode(path, "How often what you allowed the agent "+slug+" from now on was used: stint worker rules "+slug+" shows it.", uses{all})
}
