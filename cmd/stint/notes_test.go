package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A coordinator notes for all workers of its user, whatever folders their environments name,
// where its files are, including the one with the provider's client secret.
func TestServe_NotesWhatWorkersHide(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir, err := filepath.EvalSymlinks(h.dir)
	h.must(err)
	secret := filepath.Join(dir, "client-secret")
	h.must(os.WriteFile(secret, []byte("hush"), 0o600))
	h.must(os.MkdirAll(filepath.Join(dir, "config", "stint"), 0o700))
	h.env = append(h.env, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "STINT_OIDC_ISSUER=https://login.example.test",
		"STINT_OIDC_CLIENT_ID=x", "STINT_OIDC_CLIENT_SECRET_FILE="+secret)
	h.serve(asIs, "serve")
	for _, state := range []string{"state", filepath.Join(".local", "state")} {
		book := filepath.Join(dir, state, "stint", "places")
		entries, err := os.ReadDir(book)
		h.must(err)
		var noted []string
		for _, e := range entries {
			path, err := os.Readlink(filepath.Join(book, e.Name()))
			h.must(err)
			noted = append(noted, path)
		}
		for _, want := range []string{secret, filepath.Join(dir, "data"), filepath.Join(dir, "state", "stint"), filepath.Join(dir, "config", "stint")} {
			if !slices.Contains(noted, want) {
				t.Errorf("%s isn't in %s: %q", want, book, noted)
			}
		}
	}
}
