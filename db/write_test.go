package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"stint/db/dbtest"
)

// together runs the closures in one batch, in order, and returns their errors.
func together(t *testing.T, s *Store, fns ...func(*Tx) error) []error {
	t.Helper()
	calls := make([]call, len(fns))
	for i, fn := range fns {
		calls[i] = call{t.Context(), fn}
	}
	return togetherWith(t, s, nil, calls...)
}

type call struct {
	ctx context.Context
	fn  func(*Tx) error
}

// togetherWith calls before when all calls wait for the writer.
func togetherWith(t *testing.T, s *Store, before func(), calls ...call) []error {
	t.Helper()
	started, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.Write(t.Context(), func(*Tx) error {
			close(started)
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-started
	errs := make([]error, len(calls))
	for i, c := range calls {
		wg.Go(func() { errs[i] = s.Write(c.ctx, c.fn) })
		for queued(s) != i+1 {
			runtime.Gosched()
		}
	}
	if before != nil {
		before()
	}
	close(release)
	wg.Wait()
	return errs
}

func queued(s *Store) int {
	s.writer.Load().queue.mu.Lock()
	defer s.writer.Load().queue.mu.Unlock()
	n := 0
	for _, b := range s.writer.Load().queue.batches {
		n += len(b.requests)
	}
	return n
}

// note returns a closure that writes one note.
func note(id int64) func(*Tx) error {
	return func(tx *Tx) error { return tx.exec(insertNote, id, fmt.Sprint("note ", id)) }
}

// notesIn returns the ids of all notes.
func notesIn(t *testing.T, s *Store) (ids []int64) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		ids = nil
		rows, err := tx.Query(t.Context(), `SELECT id FROM notes ORDER BY id`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func wantNotes(t *testing.T, s *Store, want ...int64) {
	t.Helper()
	if got := notesIn(t, s); !slices.Equal(got, want) {
		t.Errorf("notes are %v, want %v", got, want)
	}
}

func TestWrite_OneSyncForAll(t *testing.T) {
	disk := dbtest.NewDisk(t)
	s := open(t, func(o *Options) { o.Unsafe.VFS = disk.VFS() })
	if err := s.Write(t.Context(), note(1000)); err != nil { // the log has its header now
		t.Fatal(err)
	}
	var before int
	calls := make([]call, 100)
	for i := range calls {
		calls[i] = call{t.Context(), note(int64(i))}
	}
	errs := togetherWith(t, s, func() { before = disk.Syncs() }, calls...)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := disk.Syncs() - before; got != 1 {
		t.Errorf("100 writes took %d syncs, want 1", got)
	}
	if got := len(notesIn(t, s)); got != 101 {
		t.Errorf("%d notes, want 101", got)
	}
}

func TestWrite_FailureUndoesOnlyItself(t *testing.T) {
	s := open(t)
	wrong := errors.New("wrong")
	errs := together(t, s,
		note(1),
		func(tx *Tx) error { return errors.Join(note(2)(tx), wrong) },
		note(3),
		note(1), // the primary key is taken
		note(4),
	)
	if !errors.Is(errs[1], wrong) || !IsUnique(errs[3]) {
		t.Errorf("failing closures were answered %v and %v", errs[1], errs[3])
	}
	if err := errors.Join(errs[0], errs[2], errs[4]); err != nil {
		t.Error(err)
	}
	wantNotes(t, s, 1, 3, 4)
	if err := s.Write(t.Context(), func(tx *Tx) error { return errors.Join(note(5)(tx), wrong) }); !errors.Is(err, wrong) {
		t.Errorf("alone: %v", err)
	}
	wantNotes(t, s, 1, 3, 4)
}

func TestWrite_PanicUndoesOnlyItself(t *testing.T) {
	s := open(t)
	boom := func(tx *Tx) error {
		if err := note(2)(tx); err != nil {
			return err
		}
		panic(errPlanned)
	}
	errs := together(t, s, note(1), boom, note(3))
	alone := s.Write(t.Context(), boom)
	for _, err := range []error{errs[1], alone} {
		var p *PanicError
		if !errors.As(err, &p) || !errors.Is(err, errPlanned) {
			t.Fatalf("answer to a panic: %v", err)
		}
		if !strings.Contains(string(p.Stack), "TestWrite_PanicUndoesOnlyItself") {
			t.Errorf("the stack does not show the closure:\n%s", p.Stack)
		}
	}
	if err := errors.Join(errs[0], errs[2]); err != nil {
		t.Error(err)
	}
	wantNotes(t, s, 1, 3)
}

func TestWrite_CallerWhoLeftIsNotRun(t *testing.T) {
	s := open(t)
	ctx, leave := context.WithCancel(t.Context())
	errs := togetherWith(t, s, leave, call{t.Context(), note(1)}, call{ctx, note(2)}, call{t.Context(), note(3)})
	if !errors.Is(errs[1], context.Canceled) {
		t.Errorf("answer to who left: %v", errs[1])
	}
	if err := errors.Join(errs[0], errs[2]); err != nil {
		t.Error(err)
	}
	wantNotes(t, s, 1, 3)
	if err := s.Write(ctx, note(4)); !errors.Is(err, context.Canceled) {
		t.Errorf("answer to who had left: %v", err)
	}
}

// TestWrite_CallerWhoLeavesHurtsNobody is about the driver: a context that ends during an
// INSERT rolls the whole transaction back and lets what follows be committed by itself.
func TestWrite_CallerWhoLeavesHurtsNobody(t *testing.T) {
	s := open(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	errs := together(t, s,
		note(1),
		func(tx *Tx) error {
			stop := context.AfterFunc(t.Context(), leave)
			defer stop()
			go leave()
			// Long enough for the cancellation to come during it, and used as the engine uses
			// its queries: with the caller's context.
			_, err := tx.w.conn.ExecContext(ctx, `INSERT INTO notes (id, text)
				WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT i, 'note ' || i FROM n`)
			if err != nil {
				return err
			}
			<-ctx.Done()
			_, err = tx.SetCounter(ctx, setEvent(7))
			return err
		},
		note(2),
	)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got, want := len(notesIn(t, s)), 59903; got != want {
		t.Errorf("%d notes, want %d", got, want)
	}
}

// TestWrite_LostTransactionRunsTheOthersAgain has SQLite throw the whole
// transaction away in the middle of a batch.
func TestWrite_LostTransactionRunsTheOthersAgain(t *testing.T) {
	for _, swallow := range []bool{false, true} {
		t.Run(fmt.Sprintf("swallow=%t", swallow), func(t *testing.T) {
			s := open(t)
			runs := 0
			killer := func(tx *Tx) error {
				err := tx.exec(`INSERT OR ROLLBACK INTO notes (id, text) VALUES (1, 'again')`)
				if err == nil {
					return errors.New("the insert succeeded")
				}
				// Without the guard this would be committed by itself.
				if err := note(66)(tx); !errors.Is(err, errNoTransaction) {
					t.Errorf("a statement after the end of the transaction: %v", err)
				}
				if swallow {
					return nil
				}
				return err
			}
			errs := together(t, s,
				func(tx *Tx) error { runs++; return note(1)(tx) },
				killer,
				note(3),
			)
			if errs[1] == nil {
				t.Error("the closure that lost the transaction was told it succeeded")
			}
			if err := errors.Join(errs[0], errs[2]); err != nil {
				t.Error(err)
			}
			if runs != 2 {
				t.Errorf("the first closure ran %d times, want 2", runs)
			}
			wantNotes(t, s, 1, 3)
			if err := s.Write(t.Context(), killer); err == nil != false {
				t.Error("alone, the closure that lost the transaction was told it succeeded")
			}
			wantNotes(t, s, 1, 3)
		})
	}
}

// TestWrite_ConstraintAtCommitFailsOnlyItsOwner uses a foreign key that SQLite checks only at
// COMMIT.
func TestWrite_ConstraintAtCommitFailsOnlyItsOwner(t *testing.T) {
	s := open(t, func(o *Options) {
		o.Migrations = with(t, map[string]string{
			"9000_notes.sql": notes,
			"9001_replies.sql": `-- +goose Up
CREATE TABLE replies (id INTEGER PRIMARY KEY, note INTEGER NOT NULL REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED) STRICT;`,
		})
	})
	errs := together(t, s,
		note(1),
		func(tx *Tx) error { return tx.exec(`INSERT INTO replies (id, note) VALUES (1, 77)`) },
		note(2),
	)
	if primary(errs[1]) != codeConstraint {
		t.Errorf("answer to a broken foreign key: %v", errs[1])
	}
	if err := errors.Join(errs[0], errs[2]); err != nil {
		t.Error(err)
	}
	wantNotes(t, s, 1, 2)
}

func TestWrite_AfterCommitComesAfterCommit(t *testing.T) {
	s := open(t)
	var calls []string
	say := func(tx *Tx, text string) {
		tx.AfterCommit(func() { calls = append(calls, text) })
	}
	errs := together(t, s,
		func(tx *Tx) error {
			tx.AfterCommit(func() { calls = append(calls, fmt.Sprint("sees ", len(notesIn(t, s)))) })
			say(tx, "first")
			return note(1)(tx)
		},
		func(tx *Tx) error { say(tx, "never"); return errPlanned },
		func(tx *Tx) error { tx.AfterCommit(func() { panic("ignored") }); return nil },
		func(tx *Tx) error { say(tx, "last"); return note(2)(tx) },
	)
	if err := errors.Join(errs[0], errs[2], errs[3]); err != nil {
		t.Error(err)
	}
	if want := []string{"sees 2", "first", "last"}; !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q", calls, want)
	}
}

func TestWrite_ClosureThatEndsTheGoroutineHangsNobody(t *testing.T) {
	s := open(t)
	errs := together(t, s,
		note(1),
		func(*Tx) error { runtime.Goexit(); return nil },
		note(2),
	)
	errs = append(errs, s.Write(t.Context(), note(3)))
	for i, err := range errs {
		if !errors.Is(err, errGoexit) {
			t.Errorf("write %d got %v", i, err)
		}
	}
	wantNotes(t, s)
}

func TestWrite_ClosureThatEndsItsCallersGoroutine(t *testing.T) {
	s := open(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := s.Write(t.Context(), func(tx *Tx) error {
			if err := note(1)(tx); err != nil {
				return err
			}
			runtime.Goexit()
			return nil
		})
		t.Errorf("Write returned %v", err)
	}()
	<-done
	if err := s.Write(t.Context(), note(2)); err != nil {
		t.Error(err)
	}
	wantNotes(t, s, 2)
}

func TestWrite_OpenRowsFailTheirClosure(t *testing.T) {
	s := open(t)
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	leak := func(tx *Tx) error {
		rows, err := tx.w.conn.QueryContext(t.Context(), `SELECT id FROM notes`)
		if err == nil {
			rows.Next()
		}
		return errors.Join(err, note(2)(tx))
	}
	if err := s.Write(t.Context(), leak); !errors.Is(err, errOpenRows) {
		t.Errorf("answer to open rows: %v", err)
	}
	wantNotes(t, s, 1)
}

// TestWrite_AnotherProcessHoldsTheLock waits for SQLite's busy_timeout.
func TestWrite_AnotherProcessHoldsTheLock(t *testing.T) {
	t.Parallel()
	s := open(t)
	pool, err := sql.Open("sqlite", dsn(s.path, writing, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	other, err := pool.BeginTx(t.Context(), nil) // immediate
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), note(1)); primary(err) != codeBusy {
		t.Errorf("answer while another process writes: %v", err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), note(2)); err != nil {
		t.Errorf("answer after another process wrote: %v", err)
	}
	wantNotes(t, s, 2)
}
