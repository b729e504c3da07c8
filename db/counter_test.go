package db

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stint/queries"
)

func setEvent(value int64) queries.SetCounterParams {
	return queries.SetCounterParams{Name: "event", Value: value}
}

// TestNextEvent_GaplessOverFailures lets many callers fail, panic and succeed.
func TestNextEvent_GaplessOverFailures(t *testing.T) {
	s := open(t)
	var wg sync.WaitGroup
	var stayed atomic.Int64
	for caller := range 16 {
		wg.Go(func() {
			for i := range 60 {
				err := s.Write(t.Context(), func(tx *Tx) error {
					for range 1 + i%3 {
						id := tx.NextEvent()
						if err := tx.exec(insertNote, id, fmt.Sprint(id)); err != nil {
							t.Errorf("event %d: %v", id, err)
						}
					}
					switch (caller + i) % 4 {
					case 0:
						return errPlanned
					case 1:
						panic(errPlanned)
					}
					return nil
				})
				if err == nil {
					stayed.Add(int64(1 + i%3))
				} else if !errors.Is(err, errPlanned) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := notesIn(t, s)
	if int64(len(got)) != stayed.Load() || len(got) == 0 {
		t.Fatalf("%d events, want %d", len(got), stayed.Load())
	}
	for i, id := range got {
		if id != int64(i+1) {
			t.Fatalf("event %d is numbered %d", i+1, id)
		}
	}
}

// TestNewID_UniqueAcrossStoresOnOneFile has two stores take turns, as two
// processes would.
func TestNewID_UniqueAcrossStoresOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stint.db")
	at := func(o *Options) { o.Path = path }
	stores := []*Store{open(t, at), open(t, at)}
	var mu sync.Mutex
	var ids []int64
	var wg sync.WaitGroup
	for _, s := range stores {
		for range 4 {
			wg.Go(func() {
				for range 100 {
					var id, event int64
					err := s.Write(t.Context(), func(tx *Tx) error {
						id, event = tx.NewID(), tx.NextEvent()
						return tx.exec(insertNote, event, fmt.Sprint(id))
					})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					ids = append(ids, id)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	slices.Sort(ids)
	if n := len(ids); n != 800 || len(slices.Compact(ids)) != n {
		t.Fatalf("%d ids, %d different, want 800", n, len(slices.Compact(ids)))
	}
	// Ids grow in commit order, which the event numbers show.
	var falls int
	query := `SELECT count(*) FROM notes a JOIN notes b ON b.id = a.id + 1 WHERE CAST(b.text AS INTEGER) <= CAST(a.text AS INTEGER)`
	if err := queryRow(t, stores[0], &falls, query); err != nil || falls != 0 {
		t.Errorf("ids fell %d times in commit order (%v)", falls, err)
	}
	if got := notesIn(t, stores[1]); got[len(got)-1] != 800 {
		t.Errorf("the last of 800 events is %d", got[len(got)-1])
	}
}

func queryRow(t *testing.T, s *Store, dest any, query string, args ...any) error {
	t.Helper()
	return s.Read(t.Context(), func(tx *ReadTx) error {
		rows, err := tx.Query(t.Context(), query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			return errors.Join(rows.Err(), sql.ErrNoRows)
		}
		return rows.Scan(dest)
	})
}

func TestNewID_NeverGoesBack(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	clock := func(o *Options) { o.Clock = func() time.Time { return now } }
	s := open(t, clock)
	id := func(s *Store) (id int64) {
		t.Helper()
		if err := s.Write(t.Context(), func(tx *Tx) error { id = tx.NewID(); return nil }); err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := id(s)
	if want := (now.Unix() - 1704067200) << 18; first != want {
		t.Errorf("first id is %d, want %d", first, want)
	}
	last := first
	grow := func(what string, got int64) {
		t.Helper()
		if got <= last {
			t.Errorf("after %s the id is %d, not above %d", what, got, last)
		}
		last = got
	}
	now = now.Add(-48 * time.Hour)
	grow("a step back", id(s))
	now = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	grow("a clock before the epoch", id(s))
	now = time.Date(2222, 1, 1, 0, 0, 0, 0, time.UTC)
	grow("a clock beyond the ids", id(s))
	if last-first > 10 {
		t.Errorf("an impossible clock moved the ids by %d", last-first)
	}
	now = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	grow("a step forward", id(s))
	if last < (now.Unix()-1704067200)<<18 || last >= 1<<48 {
		t.Errorf("the id of %v is %d", now, last)
	}
	failed := int64(0)
	err := s.Write(t.Context(), func(tx *Tx) error { failed = tx.NewID(); return errPlanned })
	if !errors.Is(err, errPlanned) {
		t.Fatal(err)
	}
	grow("a failure", failed)
	grow("the next", id(s))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	now = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	grow("a restart", id(open(t, clock, func(o *Options) { o.Path = s.path })))
}

func TestNow_IsReadOncePerClosureInMicroseconds(t *testing.T) {
	reads := 0
	zone := time.FixedZone("Kathmandu", 20700)
	s := open(t, func(o *Options) {
		o.Clock = func() time.Time {
			reads++
			return time.Date(2026, 1, 1, 0, 0, reads, 1999, zone)
		}
	})
	for i := range 3 {
		err := s.Write(t.Context(), func(tx *Tx) error {
			if want := time.Date(2026, 1, 1, 0, 0, i+1, 1000, zone); !tx.Now.Equal(want) || tx.Now.Location() != time.UTC {
				t.Errorf("Now is %v, want %v in UTC", tx.Now, want)
			}
			tx.NewID()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if reads != 3 {
		t.Errorf("the clock was read %d times for 3 closures", reads)
	}
}

// TestCounters_MissingRowFailsTheClosure: an id of 0 must never be stored.
func TestCounters_MissingRowFailsTheClosure(t *testing.T) {
	s := open(t)
	if err := s.Write(t.Context(), func(tx *Tx) error { return tx.exec(`DELETE FROM counters`) }); err != nil {
		t.Fatal(err)
	}
	for name, next := range map[string]func(*Tx) int64{"NewID": (*Tx).NewID, "NextEvent": (*Tx).NextEvent} {
		errs := together(t, s,
			func(tx *Tx) error {
				if got := next(tx); got != 0 {
					t.Errorf("%s returned %d", name, got)
				}
				return note(1)(tx)
			},
			func(tx *Tx) error { return tx.exec(countNote, "notes") },
		)
		if !errors.Is(errs[0], sql.ErrNoRows) || errs[1] != nil {
			t.Errorf("%s without its counter: %v, and beside it %v", name, errs[0], errs[1])
		}
	}
	wantNotes(t, s)
}
