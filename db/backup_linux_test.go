package db

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// mounted is a file system of a few pages, or skips the test.
func mounted(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("a file system can't be mounted here: ", err) //nolint:forbidigo // it takes root, which not everybody is
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// TestBackup_OnAFullDiskLeavesNothing lets a backup fail in the copy, in the zip file and in a
// restore, and shows that nothing is left and that the database goes on.
func TestBackup_OnAFullDiskLeavesNothing(t *testing.T) {
	file, _ := plainBackup(t, 7)
	path := filepath.Join(filepath.Dir(file), "stint.db")
	for _, size := range []string{"64k", "300k", "620k", "640k"} {
		dir := mounted(t, size)
		if _, err := BackupFile(t.Context(), path, toFile(filepath.Join(dir, "new.zip"))); size != "640k" && !errors.Is(err, ErrFull) {
			t.Errorf("on a disk of %s: %v", size, err)
		} else if err == nil {
			continue
		}
		wantEmpty(t, dir)
		if _, err := BeginRestore(t.Context(), filepath.Join(dir, "stint.db"), file); size != "640k" && size != "620k" && !errors.Is(err, ErrFull) {
			t.Errorf("a restore to a disk of %s: %v", size, err)
		} else if err != nil {
			wantEmpty(t, dir)
		}
	}
	if n := marked(t, path); n != 7 {
		t.Errorf("the database has the marker %d", n)
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("it left %v (%v)", entries, err)
	}
}

// TestBackup_OfADirectoryThatCannotBeWrittenTo backs up a database that was closed, and one
// that was killed with writes that only its log holds.
func TestBackup_OfADirectoryThatCannotBeWrittenTo(t *testing.T) {
	for _, ended := range []string{"closed", "killed"} {
		for _, index := range []bool{true, false} {
			dir := mounted(t, "16m")
			path := filepath.Join(dir, "stint.db")
			layOld(t, path, ended)
			if !index {
				must(t, errors.Join(os.RemoveAll(path+"-shm")))
			}
			must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			before := namesIn(t, dir)
			file := filepath.Join(t.TempDir(), "new.zip")
			_, err := BackupFile(t.Context(), path, toFile(file))
			if err != nil {
				t.Errorf("%s, with an index: %v: %v", ended, index, err)
				continue
			}
			if after := namesIn(t, dir); after != before {
				t.Errorf("%s became %s", before, after)
			}
			out := filepath.Join(t.TempDir(), "stint.db")
			r, err := BeginRestore(t.Context(), out, file)
			must(t, err)
			_, err = r.Finish(t.Context(), r.At)
			must(t, err)
			if n := marked(t, out); n != 1 {
				t.Errorf("%s, with an index: %v: the marker is %d", ended, index, n)
			}
		}
	}
}

func namesIn(t *testing.T, dir string) (out string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		out += e.Name() + " "
	}
	return out
}

// A backup that nobody waits for any more leaves nothing either.
func TestBackup_ThatIsCancelledLeavesNothing(t *testing.T) {
	file, _ := plainBackup(t, 7)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := BackupFile(ctx, filepath.Join(filepath.Dir(file), "stint.db"), toFile(filepath.Join(dir, "new.zip"))); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled backup: %v", err)
	}
	wantEmpty(t, dir)
}
