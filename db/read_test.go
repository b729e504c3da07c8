package db

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRead_OneSnapshot(t *testing.T) {
	s := open(t)
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	count := func(tx *ReadTx) (n int) {
		rows, err := tx.Query(t.Context(), `SELECT count(*) FROM notes`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		before := count(tx)
		if err := s.Write(t.Context(), note(2)); err != nil {
			t.Error(err)
		}
		if after := count(tx); before != 1 || after != 1 {
			t.Errorf("one read saw %d notes and then %d", before, after)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	wantNotes(t, s, 1, 2)
}

func TestRead_SeesWhatWasAnswered(t *testing.T) {
	s := open(t, func(o *Options) { o.Unsafe.Synchronous = "OFF" })
	var wg sync.WaitGroup
	for caller := range int64(4) {
		wg.Go(func() {
			for i := range int64(50) {
				id := caller*50 + i
				if err := s.Write(t.Context(), note(id)); err != nil {
					t.Error(err)
				}
				var found int
				if err := queryRow(t, s, &found, `SELECT count(*) FROM notes WHERE id = ?1`, id); err != nil || found != 1 {
					t.Errorf("note %d is not there after the answer (%v)", id, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestRead_WaitsForNoWriter(t *testing.T) {
	s := open(t)
	err := s.Write(t.Context(), func(tx *Tx) error {
		if err := note(1)(tx); err != nil {
			return err
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			wantNotes(t, s) // in the middle of a write
		}()
		<-read
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRead_CannotWrite(t *testing.T) {
	s := open(t)
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		_, err := tx.SetCounter(t.Context(), setEvent(9))
		return err
	})
	if primary(err) != codeReadOnly {
		t.Errorf("writing in a read: %v", err)
	}
}

// endless never stops by itself: the first form while it looks for its first row, the second
// while it is read.
var endless = []string{
	`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0`,
	`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`,
}

// TestRead_EndsWithItsContext: the statements are given another context than the read, as
// happens when a closure passes on an outer one.
func TestRead_EndsWithItsContext(t *testing.T) {
	s := open(t)
	for _, query := range endless {
		for range readerCount() + 1 { // each connection is usable afterwards
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			err := s.Read(ctx, func(tx *ReadTx) error {
				rows, err := tx.Query(t.Context(), query)
				if err != nil {
					return err
				}
				defer rows.Close()
				for rows.Next() {
				}
				return rows.Err()
			})
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an endless read: %v", err)
			}
		}
		wantNotes(t, s)
	}
}

// TestRead_WaitsFiveSecondsForAConnection runs in virtual time on a real file.
func TestRead_WaitsFiveSecondsForAConnection(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: dir + "/stint.db"})
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		var wg sync.WaitGroup
		for range readerCount() {
			wg.Go(func() {
				if err := s.Read(t.Context(), func(*ReadTx) error { <-release; return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		err = s.Read(t.Context(), func(*ReadTx) error { return nil })
		if waited := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || waited != 5*time.Second {
			t.Errorf("waited %v for a connection: %v", waited, err)
		}
		close(release)
		wg.Wait()
		if err := s.Read(t.Context(), func(*ReadTx) error { return nil }); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// However many readers wait, timers and the look-ups that begin a request have their own
// connections.
func TestRead_TimersAndRightsHaveConnectionsThatNoReaderTakes(t *testing.T) {
	s := open(t)
	release := make(chan struct{})
	held := make(chan struct{}, readerCount())
	var readers sync.WaitGroup
	for range readerCount() {
		readers.Go(func() {
			if err := s.Read(t.Context(), func(*ReadTx) error { held <- struct{}{}; <-release; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	defer readers.Wait()
	defer close(release)
	for range readerCount() {
		<-held
	}
	for name, read := range map[string]func(context.Context, func(*ReadTx) error) error{"timer": s.ReadTimer, "rights": s.ReadRights} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := read(ctx, func(*ReadTx) error { return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func TestRead_PanicFreesTheConnection(t *testing.T) {
	s := open(t)
	for range readerCount() + 1 {
		func() {
			defer func() {
				caught, ok := recover().(*PanicError)
				if !ok || caught.Value != "mine" || !strings.Contains(string(caught.Stack), "TestRead_PanicFreesTheConnection") {
					t.Errorf("recovered %v", caught)
				}
			}()
			err := s.Read(t.Context(), func(*ReadTx) error { panic("mine") })
			t.Errorf("a read that panics returned %v", err)
		}()
	}
	wantNotes(t, s)
}

// A closure that ends its goroutine, as FailNow of a test does, ends the caller's, and the
// connection stays usable.
func TestRead_ClosureThatEndsTheGoroutine(t *testing.T) {
	s := open(t)
	for range readerCount() + 1 {
		returned, ended := false, make(chan struct{})
		go func() {
			defer close(ended)
			_ = s.Read(t.Context(), func(*ReadTx) error { runtime.Goexit(); return nil })
			returned = true
		}()
		<-ended
		if returned {
			t.Error("the caller's goroutine went on")
		}
	}
	wantNotes(t, s)
}

// TestRead_OpenRowsAreFoundAndClosed: a single forgotten cursor keeps the log from ever being
// emptied.
func TestRead_OpenRowsAreFoundAndClosed(t *testing.T) {
	s := open(t)
	if err := errors.Join(s.Write(t.Context(), note(1)), s.Write(t.Context(), note(2))); err != nil {
		t.Fatal(err)
	}
	for range readerCount() + 1 {
		err := s.Read(t.Context(), func(tx *ReadTx) error {
			rows, err := tx.Query(t.Context(), `SELECT id FROM notes`)
			if err == nil {
				rows.Next()
			}
			return err
		})
		if !errors.Is(err, errOpenRows) {
			t.Errorf("answer to open rows: %v", err)
		}
	}
	done := make(chan error, 1)
	err := s.Write(t.Context(), func(tx *Tx) error {
		tx.AfterCommit(func() {
			_, err := tx.w.checkpoint()
			done <- err
		})
		return note(3)(tx)
	})
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.path + "-wal"); err != nil || info.Size() != 0 {
		t.Errorf("the log has %d bytes after it was to be emptied (%v)", info.Size(), err)
	}
}

// However many search, other readers don't wait for them, and the searches that wait get their
// turn.
func TestSearch_StopsNoOtherReader(t *testing.T) {
	s := open(t)
	searches := connections[forSearches]()
	release := make(chan struct{})
	held := make(chan struct{}, searches)
	var all sync.WaitGroup
	for range searches {
		all.Go(func() {
			if err := s.Search(t.Context(), "", func(*ReadTx) error { held <- struct{}{}; <-release; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	for range searches {
		<-held
	}
	for range readerCount() + 1 {
		wantNotes(t, s)
	}
	waited := make(chan error, 1)
	all.Go(func() { waited <- s.Search(t.Context(), "", func(*ReadTx) error { return nil }) })
	select {
	case err := <-waited:
		t.Errorf("a search had a connection that others search on (%v)", err)
	default:
	}
	close(release)
	all.Wait()
	if err := <-waited; err != nil {
		t.Error(err)
	}
}
