package places_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/adrg/xdg"

	"stint/worker/places"
)

// What was noted is hidden beside the usual places, once, by its real name, for as long as it
// exists; what links in it lead to is hidden with it.
func TestBook_NotedPlacesAreHidden(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	if err := errors.Join(
		os.MkdirAll(at("data/work/mine"), 0o700), os.MkdirAll(at("gone"), 0o700), os.MkdirAll(at("disk"), 0o700),
		os.WriteFile(at("disk/real.db"), nil, 0o600), os.WriteFile(at("disk/token"), nil, 0o600),
		os.Symlink(at("disk/real.db"), at("data/stint.db")), os.Symlink(at("disk/token"), at("data/work/owner.token")),
		os.Symlink("/usr", at("data/work/mine/usr")), // an agent's
		os.Symlink(at("data"), at("link")),
	); err != nil {
		t.Fatal(err)
	}
	book := places.Books{places.Book(at("state/places"))}
	for _, dir := range []string{at("data"), at("link"), at("gone")} {
		if err := book.Note(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := book.Note(at("nowhere")); err == nil {
		t.Error("what isn't there was noted")
	}
	if err := os.Remove(at("gone")); err != nil {
		t.Fatal(err)
	}
	all, err := book.All()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		places.Data(): 1, places.State(): 1, places.Config(): 1, at("data"): 1, at("link"): 0, at("gone"): 0,
		at("disk/real.db"): 1, at("disk/real.db-wal"): 1, at("disk/real.db-shm"): 1, at("disk/token"): 1, "/usr": 0,
	} {
		got := 0
		for _, one := range all {
			if one == path {
				got++
			}
		}
		if got != want {
			t.Errorf("%s is there %d times, not %d: %q", path, got, want, all)
		}
	}
	if left, err := os.ReadDir(string(book[0])); err != nil || len(left) != 1 {
		t.Errorf("the book has %v, %v", left, err)
	}
	none, err := places.Books{places.Book(at("none"))}.All()
	if err != nil || !slices.Contains(none, places.Data()) {
		t.Errorf("without a book: %q, %v", none, err)
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (places.Books{places.Book(at("file"))}).All(); err == nil {
		t.Error("a book that can't be read hides nothing, and nobody is told")
	}
}

// A file with a secret is hidden where it lies, and where a link in its place leads now.
func TestBooks_NoteFiles(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	if err := errors.Join(os.WriteFile(at("first"), nil, 0o600), os.WriteFile(at("second"), nil, 0o600), os.Symlink(at("first"), at("secret"))); err != nil {
		t.Fatal(err)
	}
	books := places.Books{places.Book(at("book"))}
	if err := errors.Join(books.Note(at("secret")), books.Note(at("secret"))); err != nil {
		t.Fatal(err)
	}
	all, err := books.All()
	if err != nil || !slices.Contains(all, at("secret")) { // links are followed when it is hidden
		t.Errorf("hidden are %q, %v", all, err)
	}
	if err := errors.Join(os.Remove(at("secret")), os.Symlink(at("second"), at("secret"))); err != nil {
		t.Fatal(err)
	}
	if all, err := books.All(); err != nil || !slices.Contains(all, at("secret")) {
		t.Errorf("after it was exchanged hidden are %q, %v", all, err)
	}
}

// Processes of one user whose environments name different folders know of each other's
// directories. A home that can't be written or read keeps none of them from working.
func TestBooks_OtherFoldersByTheEnvironment(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	process := func(home, name string) places.Books {
		t.Setenv("HOME", home)
		for _, kind := range []string{"DATA", "STATE", "CONFIG"} {
			t.Setenv("XDG_"+kind+"_HOME", at(name+"/"+kind))
		}
		xdg.Reload()
		return places.Own()
	}
	t.Cleanup(xdg.Reload)
	t.Setenv("HOME", at("home"))
	serve := process(at("home"), "serve")
	dirs := []string{places.Data(), places.State(), places.Config()}
	if err := places.Make(); err != nil {
		t.Fatal(err)
	}
	if err := serve.NoteUsual(); err != nil {
		t.Fatal(err)
	}
	all, err := process(at("home"), "worker").All()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(dirs, places.Data(), at("home/.config/stint"), at("home/.local/state/stint")) {
		if runtime.GOOS != "darwin" && !slices.Contains(all, dir) {
			t.Errorf("%s isn't hidden: %q", dir, all)
		}
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lost := process(at("file"), "worker")
	if _, err := lost.All(); err != nil {
		t.Errorf("without a home: %v", err)
	}
	if err := lost.Note(root); err != nil {
		t.Errorf("without a home: %v", err)
	}
}
