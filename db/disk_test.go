package db

import (
	"errors"
	"path/filepath"
	"runtime"
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
		wantNotes(t, s, 1) // reading still works
		disk.SetFull(false)
	}
	if err := s.Write(t.Context(), func(*Tx) error { return nil }); err != nil || !errors.Is(s.Writable(), ErrFull) {
		t.Errorf("after a write of nothing (%v) the store says %v", err, s.Writable())
	}
	if err := s.Write(t.Context(), note(2)); err != nil || s.Writable() != nil {
		t.Errorf("write after there is space again: %v; the store says %v", err, s.Writable())
	}
	wantNotes(t, s, 1, 2)
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

// Closing on a full disk is a clean end: the log stays, with everything that was acknowledged.
func TestClose_OnAFullDiskLosesNothingAndIsNoError(t *testing.T) {
	disk := dbtest.NewDisk(t)
	path := filepath.Join(t.TempDir(), "stint.db")
	o := Options{Path: path, Migrations: withNotes(t), Unsafe: Unsafe{VFS: disk.VFS()}}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	disk.SetFull(true)
	if err := s.Close(); err != nil {
		t.Errorf("the end on a full disk: %v", err)
	}
	disk.SetFull(false)
	if s, err = Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	wantNotes(t, s, 1)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// failSyncs writes note 1, and notes 2 and 3 to a disk that fails to sync them.
func failSyncs(t *testing.T, s *Store, disk *dbtest.Disk) {
	t.Helper()
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
	if told != 0 {
		t.Error("somebody was told of a write that may not be there")
	}
}

func TestWrite_FailedSyncIsAnUnknownOutcomeAndIsNotRepeated(t *testing.T) {
	disk := dbtest.NewDisk(t)
	s := open(t, func(o *Options) { o.Unsafe.VFS, o.Unsafe.Retry = disk.VFS(), time.Hour })
	failSyncs(t, s, disk)
	disk.FailSyncs(false)
	syncs := disk.Syncs()
	if err := s.Write(t.Context(), note(4)); !errors.Is(err, ErrFailing) || errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("write after a failed sync: %v", err)
	}
	if err := s.Writable(); !errors.Is(err, ErrFailing) {
		t.Errorf("the store says %v", err)
	}
	wantNotes(t, s, 1) // reading still works, without what may not be there
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := disk.Syncs(); got != syncs {
		t.Errorf("the failed sync was tried again %d times", got-syncs)
	}
}

// TestWrite_FailingDiskIsTriedAgain until it takes writes, in the same process.
func TestWrite_FailingDiskIsTriedAgain(t *testing.T) {
	disk := dbtest.NewDisk(t)
	s := open(t, func(o *Options) { o.Unsafe.VFS, o.Unsafe.Retry = disk.VFS(), time.Millisecond })
	failSyncs(t, s, disk)
	for syncs := disk.Syncs(); disk.Syncs() < syncs+3; runtime.Gosched() { // three tries fail
		wantNotes(t, s, 1)
		if err := s.Write(t.Context(), note(4)); !errors.Is(err, ErrFailing) || errors.Is(err, ErrOutcomeUnknown) {
			t.Fatalf("write to a disk that still fails: %v", err)
		}
	}
	disk.FailSyncs(false)
	writesAgain(t, s)
	if err := s.Write(t.Context(), note(5)); err != nil {
		t.Errorf("write to a disk that works again: %v", err)
	}
	wantNotes(t, s, 1, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantNotes(t, open(t, func(o *Options) { o.Path = s.path }), 1, 5)
}

// writesAgain waits until the store can write.
func writesAgain(t *testing.T, s *Store) {
	t.Helper()
	for start := time.Now(); s.Writable() != nil; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("the store doesn't recover: %v", s.Writable())
		}
	}
}

// TestOpen_RecoveredLogMustReachTheDisk: what recovery finds in the log may be only in the
// kernel's cache, so it is shown to nobody before it is synced.
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
