package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func pragma(t *testing.T, s *Store, name string) (n int64) {
	t.Helper()
	must(t, s.Read(t.Context(), func(tx *ReadTx) error {
		return tx.number(t.Context(), "PRAGMA "+name, &n)
	}))
	return n
}

// oldFile makes the file of a store one that can't give pages back, as those of earlier
// versions, and returns its path.
func oldFile(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/stint.db"
	lay(t, path)
	pool, err := sql.Open("sqlite", path)
	must(t, err)
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	for _, query := range []string{"PRAGMA auto_vacuum = 0", "VACUUM", "INSERT INTO notes VALUES (7, 'from before')", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		_, err := pool.ExecContext(t.Context(), query)
		must(t, err)
	}
	var mode int64
	must(t, pool.QueryRowContext(t.Context(), "PRAGMA auto_vacuum").Scan(&mode))
	if mode != 0 {
		t.Fatalf("the file has auto_vacuum %d", mode)
	}
	return path
}

func TestSpace_NewFilesCanShrink(t *testing.T) {
	s := open(t, func(o *Options) { o.Migrations = with(t, map[string]string{"9000_notes.sql": notes}) })
	if got := pragma(t, s, "auto_vacuum"); got != incremental {
		t.Errorf("auto_vacuum is %d", got)
	}
}

func TestSpace_AnOldFileIsWrittenAnewOnce(t *testing.T) {
	path := oldFile(t)
	s := open(t, func(o *Options) { o.Path = path })
	if got := pragma(t, s, "auto_vacuum"); got != incremental {
		t.Errorf("auto_vacuum is %d", got)
	}
	wantNotes(t, s, 7)
	must(t, s.Write(t.Context(), note(8)))
	must(t, s.Close())
	before, err := os.Stat(path)
	must(t, err)
	s = open(t, func(o *Options) { o.Path = path })
	wantNotes(t, s, 7, 8)
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file is another one: %v", err)
	}
}

// A start that is broken off in the middle leaves the file whole.
func TestSpace_ABrokenOffStartLeavesTheFile(t *testing.T) {
	path := oldFile(t)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		s, err := Open(ctx, Options{Path: path, Migrations: withNotes(t)})
		if err == nil {
			must(t, s.Close())
		} else if !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "interrupt") {
			t.Fatal(err)
		}
	}
	s := open(t, func(o *Options) { o.Path = path })
	wantNotes(t, s, 7)
}

func TestSpace_IsGivenBackAndWritesGoOn(t *testing.T) {
	s := open(t)
	text := strings.Repeat("x", 100<<10)
	const rows = 600 // 25 pages each
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		for i := range rows {
			if err := tx.exec("INSERT INTO notes VALUES (?, ?)", i, fmt.Sprint(i, text)); err != nil {
				return err
			}
		}
		return nil
	}))
	if given, err := s.GiveBack(t.Context()); err != nil || given != 0 {
		t.Errorf("nothing is free, and %d pages were given back, %v", given, err)
	}
	full := pragma(t, s, "page_count")
	must(t, s.Write(t.Context(), func(tx *Tx) error { return tx.exec("DELETE FROM notes WHERE id > 10") }))
	wrote := make(chan error)
	go func() {
		var errs []error
		for i := range 50 {
			errs = append(errs, s.Write(t.Context(), note(int64(10_000+i))))
		}
		wrote <- errors.Join(errs...)
	}()
	given, err := s.GiveBack(t.Context())
	must(t, err)
	must(t, <-wrote)
	left := pragma(t, s, "page_count")
	if free := pragma(t, s, "freelist_count"); given < 10_000 || left > full-given+500 || free > sparePages || free < sparePages-500 {
		t.Errorf("of %d pages %d were given back; %d are left, %d of them free", full, given, left, free)
	}
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		var n int64
		return errors.Join(tx.w.conn.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM notes").Scan(&n), map[bool]error{true: nil, false: fmt.Errorf("%d notes", n)}[n == 61])
	}))
	must(t, s.Close())
	size, err := os.Stat(s.path)
	must(t, err)
	if size.Size() > (left+500)*4096 {
		t.Errorf("the file has %d bytes for %d pages", size.Size(), left)
	}
}
