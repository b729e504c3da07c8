package db

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// migratedOnce checks that each migration was applied once.
func migratedOnce(t *testing.T, s *Store) {
	t.Helper()
	var applied, different int
	if err := queryRow(t, s, &applied, `SELECT count(*) FROM goose_db_version`); err != nil {
		t.Fatal(err)
	}
	if err := queryRow(t, s, &different, `SELECT count(DISTINCT version_id) FROM goose_db_version`); err != nil {
		t.Fatal(err)
	}
	if applied != different || applied < 3 {
		t.Errorf("%d migrations applied, %d different", applied, different)
	}
}

func TestMigrate_StoresThatOpenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stint.db")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(t.Context(), Options{Path: path, Migrations: withNotes(t)})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	migratedOnce(t, open(t, func(o *Options) { o.Path = path }))
	if _, err := os.Stat(path + ".before-v9000"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a new file was copied before its first migration (%v)", err)
	}
}

// closedWith makes a file with three notes and closes it.
func closedWith(t *testing.T, files map[string]string) string {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db"), Migrations: with(t, files)})
	if err != nil {
		t.Fatal(err)
	}
	for id := range int64(3) {
		if err := s.Write(t.Context(), note(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.path
}

func TestMigrate_SnapshotFirst(t *testing.T) {
	path := closedWith(t, map[string]string{"9000_notes.sql": notes})
	drop := map[string]string{"9000_notes.sql": notes, "9001_drop.sql": "-- +goose Up\nDELETE FROM notes WHERE id > 0;"}
	wantNotes(t, open(t, func(o *Options) { o.Path, o.Migrations = path, with(t, drop) }), 0)
	beside := path + ".before-v9001"
	info, err := os.Stat(beside)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the snapshot has mode %o", got)
	}
	wantNotes(t, open(t, func(o *Options) { o.Path = beside }), 0, 1, 2)
}

func TestMigrate_RefusesANewerFile(t *testing.T) {
	path := closedWith(t, map[string]string{"9000_notes.sql": notes, "9001_newer.sql": "-- +goose Up\nCREATE TABLE newer (x INTEGER) STRICT;"})
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Path: path, Migrations: withNotes(t)})
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "9001") || !strings.Contains(err.Error(), "9000") {
		t.Errorf("opening a newer file: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the newer file was changed (%v)", err)
	}
}

func TestMigrate_BadFileChangesNothing(t *testing.T) {
	path := closedWith(t, map[string]string{"9000_notes.sql": notes})
	bad := map[string]string{"9000_notes.sql": notes, "9001_bad.sql": "-- +goose Up\nDELETE FROM notes;\nINSERT INTO nowhere VALUES (1);"}
	if _, err := Open(t.Context(), Options{Path: path, Migrations: with(t, bad)}); err == nil {
		t.Fatal("a broken migration succeeded")
	}
	wantNotes(t, open(t, func(o *Options) { o.Path = path }), 0, 1, 2)
}

const replies = `-- +goose Up
CREATE TABLE replies (id INTEGER PRIMARY KEY, note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE) STRICT;
INSERT INTO notes (id, text) VALUES (10, 'answered');
INSERT INTO replies (id, note) VALUES (1, 10);
`

// TestMigrate_RebuildKeepsChildren: dropping a table while foreign keys are on silently
// deletes the rows that refer to it.
func TestMigrate_RebuildKeepsChildren(t *testing.T) {
	files := map[string]string{"9000_notes.sql": notes, "9001_replies.sql": replies, "9002_rebuilt.sql": rebuilt}
	s := open(t, func(o *Options) { o.Migrations = with(t, files) })
	var stayed int
	if err := queryRow(t, s, &stayed, `SELECT count(*) FROM replies JOIN notes ON notes.id = replies.note`); err != nil || stayed != 1 {
		t.Errorf("%d replies kept, want 1 (%v)", stayed, err)
	}
}

func TestMigrate_RefusesBrokenForeignKeys(t *testing.T) {
	path := closedWith(t, map[string]string{"9000_notes.sql": notes, "9001_replies.sql": replies})
	files := map[string]string{"9000_notes.sql": notes, "9001_replies.sql": replies, "9002_orphan.sql": "-- +goose Up\nDELETE FROM notes WHERE id = 10;"}
	_, err := Open(t.Context(), Options{Path: path, Migrations: with(t, files)})
	if err == nil || !strings.Contains(err.Error(), "replies") {
		t.Fatalf("a migration that orphans a row: %v", err)
	}
	delete(files, "9002_orphan.sql")
	wantNotes(t, open(t, func(o *Options) { o.Path, o.Migrations = path, with(t, files) }), 0, 1, 2, 10)
}

// TestMigrate_Embedded checks the product's own schema and its statements: the
// store prepares all of them on opening.
func TestMigrate_Embedded(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var id, event int64
	for range 2 {
		if err := s.Write(t.Context(), func(tx *Tx) error { id, event = tx.NewID(), tx.NextEvent(); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if id == 0 || event != 2 {
		t.Errorf("id %d, event %d", id, event)
	}
	err = s.Read(t.Context(), func(tx *ReadTx) error {
		value, err := tx.Counter(t.Context(), "event")
		if value != 2 {
			t.Errorf("a reader sees event %d", value)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	var notThere sql.NullString
	if err := queryRow(t, s, &notThere, `SELECT name FROM sqlite_schema WHERE name = 'notes'`); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("the product's schema has a table of the tests (%v)", err)
	}
}

// TestOpen_RemovesWhatAKilledStartLeft: copies that were never completed, and nothing else.
func TestOpen_RemovesWhatAKilledStartLeft(t *testing.T) {
	path := closedWith(t, map[string]string{"9000_notes.sql": notes})
	left := []string{path + ".before-v9001.123.part", path + ".before-v9001.123.part-journal", path + ".before-v8.9.part"}
	stayed := []string{path + ".before-v9000", path + ".copy.77.part", filepath.Join(filepath.Dir(path), "other.before-v1.2.part")}
	for _, name := range append(left, stayed...) {
		must(t, os.WriteFile(name, []byte("half"), 0o600))
	}
	s, err := Open(t.Context(), Options{Path: path, Migrations: withNotes(t)})
	must(t, err)
	must(t, s.Close())
	for _, name := range left {
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", filepath.Base(name), err)
		}
	}
	for _, name := range stayed {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

// TestMigrate_OneThatWasMadeBesideOthersComesLater opens a file with a migration that has a
// smaller number than the file's newest, as when two are made side by side: it is applied, after
// a snapshot, which a start that is repeated keeps. A program that doesn't know it refuses.
func TestMigrate_OneThatWasMadeBesideOthersComesLater(t *testing.T) {
	later := map[string]string{"9000_notes.sql": notes, "9003_later.sql": "-- +goose Up\nCREATE TABLE later (id INTEGER) STRICT;"}
	path := closedWith(t, later)
	all := map[string]string{"9001_beside.sql": "-- +goose Up\nCREATE TABLE beside (id INTEGER) STRICT;", "9002_wrong.sql": "-- +goose Up\nSYNTAX;"}
	for name, text := range later {
		all[name] = text
	}
	if _, err := Look(t.Context(), Options{Path: path, Migrations: with(t, all)}); !errors.Is(err, ErrOlder) {
		t.Errorf("a look at it: %v", err)
	}
	if s, err := Open(t.Context(), Options{Path: path, Migrations: with(t, all)}); err == nil {
		t.Fatal("it opened although a migration failed", s.Close())
	}
	all["9002_wrong.sql"] = "-- +goose Up\nINSERT INTO beside VALUES (1);"
	s, err := Open(t.Context(), Options{Path: path, Migrations: with(t, all)})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := queryRow(t, s, &n, `SELECT count(*) FROM beside`); err != nil || n != 1 {
		t.Errorf("%d rows (%v)", n, err)
	}
	migratedOnce(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kept, err := schemaOf(t.Context(), path+".before-v9002")
	if err != nil || kept.newest() != 9003 || slices.Contains(kept, 9001) {
		t.Errorf("the snapshot has %v (%v)", kept, err)
	}
	if _, err := Open(t.Context(), Options{Path: path, Migrations: with(t, later)}); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "9001") {
		t.Errorf("a program without it opens the file: %v", err)
	}
	if _, err := Look(t.Context(), Options{Path: path, Migrations: with(t, later)}); !errors.Is(err, ErrNewer) {
		t.Errorf("a program without it looks at the file: %v", err)
	}
}
