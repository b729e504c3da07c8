package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Git quotes lines of its own files; where one is a link, they are lines of somebody's secrets.
func TestError_QuotesNoFile(t *testing.T) {
	for _, name := range []string{"packed-refs", "shallow", "objects/info/alternates", "info/attributes", "info/grafts", "config"} {
		repo := repository(t)
		secret := filepath.Join(filepath.Dir(repo), "secret")
		// Each line is one that another of the files takes offence at.
		put(t, secret, "[core]\n\tbigFileThreshold = SECRET\n", 0o600)
		if name != "config" {
			put(t, secret, "{\"token\":\"SECRET\"}\n/SECRET\n!SECRET=SECRET -- SECRET\n-SECRET! text\n", 0o600)
		}
		r := open(t, repo)
		path := filepath.Join(repo, ".git", name)
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		must(t, os.Symlink(secret, path))
		failed := false
		for _, args := range [][]string{
			{"rev-parse", "main"},
			{"log", "-1"},
			{"status"},
			{"check-attr", "text", "file"},
			{"cat-file", "-p", strings.Repeat("1", 40)},
			{"fetch", "/nowhere"},
		} {
			_, err := r.run(t.Context(), args...)
			failed = failed || err != nil
			if err != nil && strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !failed {
			t.Errorf("%s: nothing failed", name)
		}
	}
	if got := unquoted("error: object directory /SECRET/objects does not exist; check /x/info/alternates\nfatal: could not open '/y': Permission denied\n"); got != "object directory … does not exist; check /x/info/alternates\nfatal: could not open '/y': Permission denied\n" {
		t.Errorf("%q", got)
	}
}
