package worker

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Files with the variables of agents are hidden from every agent of this user, whichever agent
// gets them, and so is what other processes of this user have noted.
func TestHidden_FilesWithSecrets(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	file := filepath.Join(w.dir, "variables.env")
	w.owns(o, "other", "env_files = ['"+file+"']\n")
	o, err := o.complete()
	w.must(err)
	secret := filepath.Join(w.dir, "client-secret")
	w.must(os.WriteFile(secret, nil, 0o600))
	w.must(o.Places.Note(secret))
	p, err := open(o)
	w.must(err)
	defer p.close()
	hidden, err := p.hidden()
	w.must(err)
	for _, path := range []string{file, secret, o.StateDir} {
		if !slices.Contains(hidden, path) {
			t.Errorf("%s isn't hidden: %q", path, hidden)
		}
	}
}
