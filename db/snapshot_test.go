package db

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestSnapshot_HoldsWhatWasAnswered(t *testing.T) {
	s := open(t)
	var last atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				id, err := tellNote(t, s, insertNote, false)
				if err != nil {
					t.Error(err)
					return
				}
				for {
					if old := last.Load(); id <= old || last.CompareAndSwap(old, id) {
						break
					}
				}
			}
		})
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	for range 3 { // each replaces the one before
		for told := last.Load(); last.Load() < told+50; {
			if err := s.Write(t.Context(), func(*Tx) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		told := []int64{last.Load()}
		if err := s.Snapshot(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := holds(path, told, true); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the snapshot has mode %o", got)
	}
}

func TestSnapshot_LeavesNothingBehindWhenItFails(t *testing.T) {
	s := open(t)
	if err := s.Snapshot(t.Context(), filepath.Join(t.TempDir(), "missing", "copy.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("snapshot into a missing directory: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "copy.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Snapshot(t.Context(), filepath.Join(dir, "copy.db")); err == nil {
		t.Error("a snapshot replaced a directory")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("a failed snapshot left %v (%v)", entries, err)
	}
}
