package db

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWrite_RealFileSystemThatIsFull: a real disk does what the simulated one of the other
// tests does. Linux makes no file system read-only while a file on it is open for writing, so
// the other sign of a dying disk can only be simulated.
func TestWrite_RealFileSystemThatIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("a file system can't be mounted here: ", err) //nolint:forbidigo // it takes root, which not everybody is
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	s := open(t, func(o *Options) { o.Path, o.Unsafe.Retry = filepath.Join(dir, "stint.db"), 20*time.Millisecond })
	must(t, s.Write(t.Context(), note(1)))
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	must(t, err)
	for _, size := range []int{64 << 10, 4 << 10, 1} {
		for block := make([]byte, size); err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the file system fills up with %v", err)
		}
		err = nil
	}
	must(t, f.Close())
	var refused error
	stayed := []int64{1}
	for id := int64(2); refused == nil && id < 1000; id++ { // the log has some room of its own
		if refused = s.Write(t.Context(), note(id)); refused == nil {
			stayed = append(stayed, id)
		}
	}
	if !errors.Is(refused, ErrFull) || !errors.Is(s.Writable(), ErrFull) {
		t.Errorf("a write is refused with %v, the store says %v", refused, s.Writable())
	}
	wantNotes(t, s, stayed...)
	must(t, os.Remove(filler))
	must(t, s.Write(t.Context(), note(2000)))
	if err := s.Writable(); err != nil {
		t.Errorf("after there is space again the store says %v", err)
	}
	wantNotes(t, s, append(stayed, 2000)...)
}
