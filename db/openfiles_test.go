package db

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWrite_IntoFilesThatAreNoLongerTheOnesAtTheirPath takes the files of an open store away
// in every way that people have done it. No write is acknowledged meanwhile, reading still
// works, and once everything is put back writing works too, with nothing lost.
func TestWrite_IntoFilesThatAreNoLongerTheOnesAtTheirPath(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, dir, path string)
		mend func(t *testing.T, dir, path string) // nil = it can't be repaired while the store is open
		want error
	}{
		"moved away": {
			harm: func(t *testing.T, dir, path string) { rename(t, path, path+".old") },
			mend: func(t *testing.T, dir, path string) { rename(t, path+".old", path) },
			want: ErrMoved,
		},
		"directory renamed": {
			harm: func(t *testing.T, dir, path string) { rename(t, dir, dir+".old") },
			mend: func(t *testing.T, dir, path string) { rename(t, dir+".old", dir) },
			want: ErrMoved,
		},
		"replaced by another file": {
			harm: func(t *testing.T, dir, path string) { rename(t, path, path+".old"); copyFile(t, path+".old", path) },
			mend: func(t *testing.T, dir, path string) { rename(t, path+".old", path) },
			want: ErrMoved,
		},
		"replaced by a folder": {
			harm: func(t *testing.T, dir, path string) { rename(t, path, path+".old"); mkdir(t, path) },
			mend: func(t *testing.T, dir, path string) { remove(t, path); rename(t, path+".old", path) },
			want: ErrMoved,
		},
		"deleted":           {harm: func(t *testing.T, dir, path string) { remove(t, path) }, want: ErrMoved},
		"directory deleted": {harm: func(t *testing.T, dir, path string) { removeAll(t, dir) }, want: ErrMoved},
		"emptied":           {harm: func(t *testing.T, dir, path string) { truncate(t, path, 0) }, want: ErrForeign},
		"cut off":           {harm: func(t *testing.T, dir, path string) { truncate(t, path, 8192) }, want: ErrForeign},
		"log emptied":       {harm: func(t *testing.T, dir, path string) { truncate(t, path+"-wal", 0) }, want: ErrForeign},
		"log cut off":       {harm: func(t *testing.T, dir, path string) { truncate(t, path+"-wal", 4096) }, want: ErrForeign},
		"log replaced": {harm: func(t *testing.T, dir, path string) {
			copyFile(t, path+"-wal", path+".x")
			rename(t, path+".x", path+"-wal")
		}, want: ErrForeign},
		"an older copy over it": {harm: func(t *testing.T, dir, path string) { copyFile(t, path+".copy", path) }, want: ErrForeign},
		"log moved away": {
			harm: func(t *testing.T, dir, path string) { rename(t, path+"-wal", path+".log") },
			mend: func(t *testing.T, dir, path string) {}, // what is open is written into the database
			want: ErrMoved,
		},
		"log removed": {
			harm: func(t *testing.T, dir, path string) { remove(t, path+"-wal") },
			mend: func(t *testing.T, dir, path string) {},
			want: ErrMoved,
		},
		"index removed": {
			harm: func(t *testing.T, dir, path string) { remove(t, path+"-shm") },
			mend: func(t *testing.T, dir, path string) {},
			want: ErrMoved,
		},
		"log and index removed": {
			harm: func(t *testing.T, dir, path string) { remove(t, path+"-wal"); remove(t, path+"-shm") },
			mend: func(t *testing.T, dir, path string) {},
			want: ErrMoved,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			mkdir(t, dir)
			path := filepath.Join(dir, "stint.db")
			s := open(t, func(o *Options) { o.Path, o.Unsafe.Retry = path, 20*time.Millisecond })
			copyFile(t, path, path+".copy")
			grown(t, s)
			if err := s.Write(t.Context(), note(2)); err != nil {
				t.Fatal(err)
			}
			wantNotes(t, s, 1, 2) // so that there is a connection to read with
			c.harm(t, dir, path)
			err := s.Write(t.Context(), note(3))
			if !errors.Is(err, c.want) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("write: %v, want %v", err, c.want)
			}
			if c.mend == nil {
				if err := s.Writable(); !errors.Is(err, c.want) {
					t.Errorf("the store says %v", err)
				}
				if c.want == ErrMoved {
					wantNotes(t, s, 1, 2)
				}
				return
			}
			c.mend(t, dir, path)
			writesAgain(t, s)
			if err := s.Write(t.Context(), note(4)); err != nil {
				t.Errorf("write after it was put back: %v", err)
			}
			wantNotes(t, s, 1, 2, 4)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path + "-wal"); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
			wantNotes(t, open(t, func(o *Options) { o.Path = path }), 1, 2, 4)
		})
	}
}

// TestWrite_FileMovedDuringTheWrite: what is committed into a file that can't be found again
// is not acknowledged.
func TestWrite_FileMovedDuringTheWrite(t *testing.T) {
	s := open(t, func(o *Options) { o.Unsafe.Retry = 20 * time.Millisecond })
	err := s.Write(t.Context(), func(tx *Tx) error {
		rename(t, s.path, s.path+".old")
		return note(1)(tx)
	})
	if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrMoved) {
		t.Errorf("write into a file that was moved meanwhile: %v", err)
	}
	rename(t, s.path+".old", s.path)
	writesAgain(t, s)
	if err := s.Write(t.Context(), note(2)); err != nil {
		t.Error(err)
	}
	wantNotes(t, s, 1, 2)
}

// TestWrite_DeletedDatabaseIsSaved, whole, beside where it was.
func TestWrite_DeletedDatabaseIsSaved(t *testing.T) {
	s := open(t, func(o *Options) { o.Unsafe.Retry = time.Millisecond })
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	remove(t, s.path)
	if err := s.Write(t.Context(), note(2)); !errors.Is(err, ErrMoved) {
		t.Errorf("write to a deleted file: %v", err)
	}
	saved := s.path + ".saved"
	for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(saved); err == nil {
			break
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	rename(t, saved, s.path)
	wantNotes(t, open(t, func(o *Options) { o.Path = s.path }), 1)
}

// TestWrite_CheckpointsOfOthersAreNoHarm: two stores on one file, each of which writes the log
// back, and opens and closes.
func TestWrite_CheckpointsOfOthersAreNoHarm(t *testing.T) {
	s := open(t)
	for round := range int64(3) {
		other, err := Open(t.Context(), Options{Path: s.path, Migrations: withNotes(t)})
		if err != nil {
			t.Fatal(err)
		}
		for i, store := range []*Store{s, other, s} {
			if err := store.Write(t.Context(), note(10*round+int64(i))); err != nil {
				t.Fatal(err)
			}
			checkpointed(t, store)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantNotes(t, s, 0, 1, 2, 10, 11, 12, 20, 21, 22)
}

// grown writes note 1, so long that the database grows, and writes the log back.
func grown(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.Write(t.Context(), func(tx *Tx) error { return tx.exec(insertNote, 1, strings.Repeat("long ", 4000)) }))
	checkpointed(t, s)
	must(t, s.Write(t.Context(), func(tx *Tx) error { return tx.exec(countNote, "notes") })) // sees what the checkpoint made
}

// checkpointed writes the log back and empties it.
func checkpointed(t *testing.T, s *Store) {
	t.Helper()
	done := make(chan error, 1)
	err := s.Write(t.Context(), func(tx *Tx) error {
		tx.AfterCommit(func() {
			all, err := tx.w.checkpoint()
			if err == nil && !all {
				err = errors.New("the log is still needed")
			}
			done <- err
		})
		return nil
	})
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string)        { t.Helper(); must(t, os.Rename(from, to)) }
func remove(t *testing.T, path string)            { t.Helper(); must(t, os.Remove(path)) }
func removeAll(t *testing.T, path string)         { t.Helper(); must(t, os.RemoveAll(path)) }
func mkdir(t *testing.T, path string)             { t.Helper(); must(t, os.Mkdir(path, 0o700)) }
func truncate(t *testing.T, path string, n int64) { t.Helper(); must(t, os.Truncate(path, n)) }

// copyFile writes into the existing file, as cp does.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = io.Copy(out, in)
	must(t, errors.Join(err, out.Close()))
}
