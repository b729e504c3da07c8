package db

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/db/dbtest"
)

func TestWrite_FullDiskIsACleanRefusal(t *testing.T) {
	disk := dbtest.NewDisk(t)
	s := open(t, func(o *Options) { o.Unsafe.VFS = disk.VFS() })
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	full := func() { disk.SetFull(true) }
	many := make([]call, 5)
	for i := range many {
		many[i] = call{t.Context(), note(int64(10 + i))}
	}
	for _, calls := range [][]call{many, many[:1]} {
		for i, err := range togetherWith(t, s, full, calls...) {
			if !errors.Is(err, ErrFull) {
				t.Errorf("write %d of %d to a full disk: %v", i, len(calls), err)
			}
		}
		wantNotes(t, s, 1) // reading goes on
		disk.SetFull(false)
	}
	if err := s.Write(t.Context(), func(*Tx) error { return nil }); err != nil || !errors.Is(s.Writable(), ErrFull) {
		t.Errorf("after a write of nothing (%v) the store says %v", err, s.Writable())
	}
	if err := s.Write(t.Context(), note(2)); err != nil || s.Writable() != nil {
		t.Errorf("write after there is space again: %v; the store says %v", err, s.Writable())
	}
	wantNotes(t, s, 1, 2)
	select {
	case <-s.Fatal():
		t.Error("a full disk stopped the store for good")
	default:
	}
}

// TestWrite_FullDiskBeforeCommit fills the disk while pages spill from the
// cache, so that a statement fails and not the COMMIT.
func TestWrite_FullDiskBeforeCommit(t *testing.T) {
	disk := dbtest.NewDisk(t)
	s := open(t, func(o *Options) { o.Unsafe.VFS = disk.VFS() })
	big := func(tx *Tx) error {
		return tx.exec(`INSERT INTO notes (id, text)
			WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 130) SELECT i, i || printf('%1000000d', 0) FROM n`)
	}
	errs := togetherWith(t, s, func() { disk.SetFull(true) },
		call{t.Context(), note(1)}, call{t.Context(), big}, call{t.Context(), note(2)})
	for i, err := range errs {
		if !errors.Is(err, ErrFull) {
			t.Errorf("write %d to a full disk: %v", i, err)
		}
	}
	disk.SetFull(false)
	if err := s.Write(t.Context(), note(3)); err != nil {
		t.Errorf("write after there is space again: %v", err)
	}
	wantNotes(t, s, 3)
}

func TestWrite_FailedSyncIsAnUnknownOutcomeAndTheEnd(t *testing.T) {
	disk := dbtest.NewDisk(t)
	s := open(t, func(o *Options) { o.Unsafe.VFS = disk.VFS() })
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	told := 0
	fail := func() { disk.FailSyncs(true) }
	after := func(tx *Tx) error { tx.AfterCommit(func() { told++ }); return note(3)(tx) }
	errs := togetherWith(t, s, fail, call{t.Context(), note(2)}, call{t.Context(), after})
	for i, err := range errs {
		if !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("write %d whose sync failed: %v", i, err)
		}
	}
	select {
	case <-s.Fatal():
	case <-time.After(5 * time.Second):
		t.Fatal("Fatal is not closed")
	}
	if told != 0 {
		t.Error("somebody was told of a write that may not be there")
	}
	if err := s.Writable(); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the store says %v", err)
	}
	disk.FailSyncs(false)
	syncs := disk.Syncs()
	if err := s.Write(t.Context(), note(4)); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("write after a failed sync: %v", err)
	}
	wantNotes(t, s, 1) // reading goes on, without what may not be there
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := disk.Syncs(); got != syncs {
		t.Errorf("the failed sync was tried again %d times", got-syncs)
	}
}

// TestOpen_RecoveredLogMustReachTheDisk: what recovery finds in the log may be
// only in the kernel's cache, so it is shown to nobody before it is synced.
func TestOpen_RecoveredLogMustReachTheDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stint.db")
	told := killAfter(t, path, 20)
	disk := dbtest.NewDisk(t)
	o := Options{Path: path, Migrations: withNotes(t), Unsafe: Unsafe{VFS: disk.VFS()}}
	disk.FailSyncs(true)
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "recover") {
		t.Errorf("open on a disk that does not sync: %v", err)
	}
	disk.FailSyncs(false)
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := holds(path, told, true); err != nil {
		t.Error(err)
	}
}
