package db

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
)

// notes is the table that the tests write to. It is added to the product's own
// schema, because every generated query is prepared against that.
const notes = `-- +goose Up
CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE tallies (name TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
INSERT INTO tallies (name, n) VALUES ('notes', 0);
`

// with returns the product's migrations and more of them, by file name.
func with(t testing.TB, more map[string]string) fs.FS {
	t.Helper()
	all, err := overlay(more)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func overlay(more map[string]string) (fs.FS, error) {
	all := fstest.MapFS{}
	names, err := fs.Glob(embedded(), "*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(embedded(), name)
		if err != nil {
			return nil, err
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	for name, text := range more {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all, nil
}

func withNotes(t testing.TB) fs.FS { return with(t, map[string]string{"9000_notes.sql": notes}) }

// template is a database with the notes table, made once: a hundred migrations take a
// second under the race detector.
var template = sync.OnceValues(func() (image []byte, err error) {
	dir, err := os.MkdirTemp("", "stint-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	all, err := overlay(map[string]string{"9000_notes.sql": notes})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "stint.db")
	s, err := Open(context.Background(), Options{Path: path, Migrations: all})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// lay writes the template to a path where nothing exists yet.
func lay(t testing.TB, path string) {
	t.Helper()
	image, err := template()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
}

// open opens a store with the notes table and closes it with the test. A new one isn't
// migrated but copied.
func open(t testing.TB, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{
		Path: filepath.Join(t.TempDir(), "stint.db"),
		Log:  slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	if o.Migrations == nil {
		o.Migrations = withNotes(t)
		if _, err := os.Lstat(o.Path); errors.Is(err, fs.ErrNotExist) && o.Unsafe.VFS == "" {
			lay(t, o.Path)
		}
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

// exec runs a statement of a test on the writer's connection.
func (tx *Tx) exec(query string, args ...any) error {
	_, err := tx.w.conn.ExecContext(context.Background(), query, args...)
	return err
}

// prepare prepares a statement of a test on the writer's connection.
func prepare(t testing.TB, s *Store, query string) *sql.Stmt {
	t.Helper()
	var stmt *sql.Stmt
	err := s.Write(t.Context(), func(tx *Tx) (err error) {
		stmt, err = tx.w.conn.PrepareContext(context.Background(), query)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stmt.Close() })
	return stmt
}
