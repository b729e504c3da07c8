package db

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"stint/db/dbtest"
)

// rebuilt replaces a table, as a migration does that changes a column.
const rebuilt = `-- +goose Up
CREATE TABLE notes_new (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, extra TEXT NOT NULL) STRICT;
INSERT INTO notes_new (id, text, extra) SELECT id, text, 'old' FROM notes;
DROP TABLE notes;
ALTER TABLE notes_new RENAME TO notes;
`

// TestPowerCut_LosesNothingAcknowledged cuts the power 2,000 times during the use of a file:
// while it is created, migrated, written to by several callers, read, checkpointed, copied and
// closed (contract 14).
func TestPowerCut_LosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	rec := live(t, "FULL", 150)
	losses := cut(t, rec, 2000, true)
	if len(losses) > 0 {
		t.Fatalf("%d of 2000 cuts lost something, such as: %v", len(losses), losses[0])
	}
}

// TestPowerCut_NoticesAMissingSync shows that the test above can fail.
func TestPowerCut_NoticesAMissingSync(t *testing.T) {
	t.Parallel()
	rec := live(t, "NORMAL", 50)
	if losses := cut(t, rec, 200, false); len(losses) < 20 {
		t.Fatalf("only %d of 200 cuts lost something at synchronous=NORMAL", len(losses))
	}
}

// live records the use of a file in which each of four callers writes n notes before a
// migration and n after it.
func live(t *testing.T, synchronous string, n int) *dbtest.Recording {
	t.Helper()
	disk := dbtest.NewDisk(t)
	o := Options{
		Path:       filepath.Join(t.TempDir(), "stint.db"),
		Migrations: withNotes(t),
		Unsafe:     Unsafe{VFS: disk.VFS(), Synchronous: synchronous, CheckpointPages: 40},
	}
	disk.Record(o.Path)
	generation(t, disk, o, n, insertNote)
	o.Migrations = with(t, map[string]string{"9000_notes.sql": notes, "9001_rebuilt.sql": rebuilt})
	generation(t, disk, o, n, `INSERT INTO notes (id, text, extra) VALUES (?1, ?2, 'new')`)
	return disk.Stop()
}

// generation opens the file, uses it from all sides and closes it.
func generation(t *testing.T, disk *dbtest.Disk, o Options, n int, insert string) {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			for i := range n {
				id, err := tellNote(t, s, insert, caller == 3 && i%5 == 0)
				if err != nil {
					t.Error(err)
				}
				if id != 0 {
					disk.Tell(id)
				}
			}
		})
	}
	var writing atomic.Bool
	writing.Store(true)
	observed := make(chan struct{})
	go func() {
		defer close(observed)
		for writing.Load() {
			disk.Tell(newest(t, s))
		}
	}()
	if err := s.Snapshot(t.Context(), o.Path+".copy"); err != nil {
		t.Error(err)
	}
	wg.Wait()
	writing.Store(false)
	<-observed
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

var errPlanned = errors.New("planned")

// tellNote writes a note and returns its id, or writes one, fails and returns 0.
func tellNote(t *testing.T, s *Store, insert string, fail bool) (int64, error) {
	var id int64
	err := s.Write(t.Context(), func(tx *Tx) error {
		id = tx.NextEvent()
		if err := tx.exec(insert, id, fmt.Sprint("note ", id)); err != nil {
			return err
		}
		if fail {
			return errPlanned
		}
		return tx.exec(countNote, "notes")
	})
	if fail && errors.Is(err, errPlanned) {
		return 0, nil
	}
	return id, err
}

// newest returns the highest note that a reader sees.
func newest(t *testing.T, s *Store) int64 {
	var id sql.NullInt64
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		rows, err := tx.Query(t.Context(), `SELECT max(id) FROM notes`)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			return rows.Err()
		}
		return rows.Scan(&id)
	})
	if err != nil {
		t.Error(err)
	}
	return id.Int64
}

// cut makes n power cuts and returns what they lost. Now and then, and as long as nothing had
// been acknowledged, the store also opens the file.
func cut(t *testing.T, rec *dbtest.Recording, n int, reopen bool) (losses []error) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d, %d operations", seed, rec.Len())
	rng := rand.New(rand.NewPCG(seed, 0))
	positions := make([]int, n)
	for i := range positions {
		positions[i] = rng.IntN(rec.Len() + 1)
	}
	cuts := make(chan dbtest.Cut)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		dir := t.TempDir()
		wg.Go(func() {
			for c := range cuts {
				if err := recovers(t, c, dir, reopen); err != nil {
					mu.Lock()
					losses = append(losses, fmt.Errorf("cut after operation %d: %w", c.At, err))
					mu.Unlock()
				}
			}
		})
	}
	err := rec.Cuts(rng, positions, func(c dbtest.Cut) error {
		cuts <- c
		return nil
	})
	close(cuts)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return losses
}

// recovers checks what a cut left.
func recovers(t *testing.T, c dbtest.Cut, dir string, reopen bool) error {
	path, err := c.WriteTo(dir)
	if err != nil {
		return err
	}
	if reopen && (c.At%40 == 0 || len(c.Acknowledged) == 0 && c.At%4 == 0) {
		if err := survivesOpen(t, path); err != nil {
			return err
		}
	}
	if len(c.Acknowledged) == 0 {
		return nil // the schema need not be there yet
	}
	return holds(path, c.Acknowledged, c.At%4 == 0)
}

func survivesOpen(t *testing.T, path string) error {
	migrations := with(t, map[string]string{"9000_notes.sql": notes, "9001_rebuilt.sql": rebuilt})
	s, err := Open(t.Context(), Options{Path: path, Migrations: migrations, Unsafe: Unsafe{Synchronous: "OFF"}})
	if err != nil {
		return err
	}
	return s.Close()
}

// holds checks a file after recovery: it is sound, whole transactions are there or not at all,
// and everything acknowledged is there. Checking every page takes most of the time, so for
// most cuts only the pages that were written are checked.
func holds(path string, told []int64, everyPage bool) (err error) {
	soundness := []string{`PRAGMA integrity_check(notes)`, `PRAGMA integrity_check(counters)`}
	if everyPage {
		soundness = []string{`PRAGMA integrity_check(1)`}
	}
	pool, err := sql.Open("sqlite", dsn(path, writing, "")+"&_synchronous=OFF")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	pool.SetMaxOpenConns(1)
	for _, check := range soundness {
		var sound string
		if err := pool.QueryRow(check).Scan(&sound); err != nil {
			return err
		}
		if sound != "ok" {
			return errors.New(sound)
		}
	}
	var count, highest, tally, events int64
	err = pool.QueryRow(`SELECT count(*), coalesce(max(id), 0), (SELECT n FROM tallies), (SELECT value FROM counters WHERE name = 'event') FROM notes`).
		Scan(&count, &highest, &tally, &events)
	if err != nil {
		return err
	}
	// Numbers are gapless and in commit order, so everything up to the highest is there.
	if count != highest || count != tally || count != events {
		return fmt.Errorf("%d notes up to %d, counted %d, %d events", count, highest, tally, events)
	}
	if last := slices.Max(told); last > highest {
		return fmt.Errorf("note %d was acknowledged and the last is %d", last, highest)
	}
	return nil
}
