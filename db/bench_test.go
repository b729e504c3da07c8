package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	insertNote = `INSERT INTO notes (id, text) VALUES (?1, ?2)`
	countNote  = `UPDATE tallies SET n = n + 1 WHERE name = ?1`
)

// BenchmarkWrite compares group commit with one transaction for each request, both with two
// prepared statements at synchronous=FULL, alternating within one run so that a noisy disk
// affects both. x-vs-tx is the ratio of their rates.
func BenchmarkWrite(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			grouped, single := newGrouped(b), newSingle(b)
			const round = 100 * time.Millisecond
			var took [2]time.Duration
			var done [2]int
			b.ResetTimer()
			for b.Loop() {
				for i, write := range []func(int64) error{grouped, single} {
					n, d := hammer(b, callers, round, write)
					done[i] += n
					took[i] += d
				}
			}
			groupRate := float64(done[0]) / took[0].Seconds()
			singleRate := float64(done[1]) / took[1].Seconds()
			b.ReportMetric(groupRate, "writes/s")
			b.ReportMetric(singleRate, "tx-writes/s")
			b.ReportMetric(groupRate/singleRate, "x-vs-tx")
		})
	}
}

var nextNote atomic.Int64

// hammer calls write from many goroutines for at least d and returns how often
// it was called and how long that took.
func hammer(b *testing.B, callers int, d time.Duration, write func(int64) error) (int, time.Duration) {
	var calls atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for time.Since(start) < d {
				if err := write(nextNote.Add(1)); err != nil {
					b.Error(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	return int(calls.Load()), time.Since(start)
}

func newGrouped(b *testing.B) func(int64) error {
	s := open(b)
	insert, count := prepare(b, s, insertNote), prepare(b, s, countNote)
	return func(id int64) error {
		return s.Write(b.Context(), func(*Tx) error { return writeNote(insert, count, id) })
	}
}

func writeNote(insert, count *sql.Stmt, id int64) error {
	if _, err := insert.Exec(id, fmt.Sprint("note ", id)); err != nil {
		return err
	}
	_, err := count.Exec("notes")
	return err
}

// newSingle writes as well as one transaction for each request can: one connection, so that
// nothing waits in SQLite's busy loop, and everything prepared.
func newSingle(b *testing.B) func(int64) error {
	o := Options{Path: filepath.Join(b.TempDir(), "single.db"), Migrations: withNotes(b)}
	s, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	c, err := newConnector(o.Path, writing, o)
	if err != nil {
		b.Fatal(err)
	}
	pool := sql.OpenDB(c.inner) // without the store's guard
	b.Cleanup(func() { pool.Close() })
	pool.SetMaxOpenConns(1)
	for _, set := range c.settings {
		if _, err := pool.Exec("PRAGMA " + set.name + " = " + set.set); err != nil {
			b.Fatal(err)
		}
	}
	insert, err := pool.Prepare(insertNote)
	if err != nil {
		b.Fatal(err)
	}
	count, err := pool.Prepare(countNote)
	if err != nil {
		b.Fatal(err)
	}
	return func(id int64) error {
		ctx := context.Background()
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := writeNote(tx.StmtContext(ctx, insert), tx.StmtContext(ctx, count), id); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}
}

// BenchmarkRead measures a read of one row by its key, snapshot included.
func BenchmarkRead(b *testing.B) {
	s := open(b)
	for b.Loop() {
		err := s.Read(b.Context(), func(tx *ReadTx) error {
			_, err := tx.Counter(b.Context(), "event")
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
