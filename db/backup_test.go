package db

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"stint/queries"
)

// openPlain opens a store with the product's schema alone, which is what a restore knows.
func openPlain(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// plainImage is a closed database with the product's schema and the marker 1.
var plainImage = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "stint-plain-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "stint.db")
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mark(s, 1), s.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// mark writes a number into the database by which it is known again.
func mark(s *Store, n int64) error {
	return s.Write(context.Background(), func(tx *Tx) error {
		return One(tx.SetCounter(tx.Context(), queries.SetCounterParams{Name: "alive", Value: n}))
	})
}

// marked opens the database at path and reads the number; it checks the file too.
func marked(t *testing.T, path string) (n int64) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path})
	must(t, err)
	must(t, s.Read(t.Context(), func(tx *ReadTx) (err error) {
		n, err = tx.Counter(t.Context(), "alive")
		return err
	}))
	must(t, s.Close())
	must(t, checkCopy(t.Context(), path))
	return n
}

// plainBackup makes a backup of a database with the marker n.
func plainBackup(t *testing.T, n int64) (file string, made Backup) {
	t.Helper()
	image, err := plainImage()
	must(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "stint.db")
	must(t, os.WriteFile(path, image, 0o600))
	s := openPlain(t, path)
	must(t, mark(s, n))
	file = filepath.Join(dir, "backup.zip")
	made, err = s.Backup(t.Context(), toFile(file))
	must(t, err)
	return file, made
}

func toFile(file string) BackupOptions {
	return BackupOptions{File: file, Version: "1.2.3", Clock: time.Now}
}

func TestBackup_IsWholePrivateAndTellsWhatItIs(t *testing.T) {
	file, made := plainBackup(t, 7)
	info, err := os.Stat(file)
	must(t, err)
	if got := info.Mode().Perm(); got != 0o600 || info.Size() != made.Bytes {
		t.Errorf("it has mode %o and %d bytes; %d were told", got, info.Size(), made.Bytes)
	}
	found, err := VerifyBackup(t.Context(), file)
	must(t, err)
	if fmt.Sprint(found) != fmt.Sprint(made) || found.Stint != "1.2.3" || found.Schema == 0 || len(found.Entries) != 1 {
		t.Errorf("it is verified as %+v, and was made as %+v", found, made)
	}
	if out, err := exec.CommandContext(t.Context(), "sha256sum", file).Output(); err != nil || !strings.HasPrefix(string(out), made.SHA256+" ") {
		t.Errorf("sha256sum says %s (%v), the backup %s", out, err, made.SHA256)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), workPrefix+"*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

func TestBackup_ReplacesNoFileAndStreamsTheSame(t *testing.T) {
	file, _ := plainBackup(t, 7)
	before, err := os.ReadFile(file)
	must(t, err)
	path := filepath.Join(filepath.Dir(file), "stint.db")
	if _, err := BackupFile(t.Context(), path, toFile(file)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a backup onto another: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file that was there changed (%v)", err)
	}
	var out bytes.Buffer
	o := toFile("")
	o.Out = &out
	made, err := BackupFile(t.Context(), path, o)
	must(t, err)
	streamed := filepath.Join(t.TempDir(), "streamed.zip")
	must(t, os.WriteFile(streamed, out.Bytes(), 0o600))
	found, err := VerifyBackup(t.Context(), streamed)
	if err != nil || found.SHA256 != made.SHA256 {
		t.Errorf("what was streamed is %v (%v), not %v", found.SHA256, err, made.SHA256)
	}
}

// TestVerify_NoByteCanBeAltered flips bytes all over a backup, and cuts it off: each is
// refused, and what belongs to an entry by its name.
func TestVerify_NoByteCanBeAltered(t *testing.T) {
	t.Parallel()
	file, _ := plainBackup(t, 7)
	image, err := os.ReadFile(file)
	must(t, err)
	z, err := zip.NewReader(bytes.NewReader(image), int64(len(image)))
	must(t, err)
	within := func(n int) string {
		for _, f := range z.File {
			from, err := f.DataOffset()
			must(t, err)
			if int64(n) >= from && int64(n) < from+int64(f.CompressedSize64) {
				return f.Name
			}
		}
		return ""
	}
	bad := filepath.Join(t.TempDir(), "bad.zip")
	tried := map[string]int{}
	for n := 0; n < len(image); n++ {
		if n > 150 && n < len(image)-150 && n%113 != 0 {
			continue
		}
		altered := slices.Clone(image)
		altered[n] ^= 1 << (n % 8)
		must(t, os.WriteFile(bad, altered, 0o600))
		_, err := VerifyBackup(t.Context(), bad)
		if name := within(n); !errors.Is(err, ErrBackup) && !errors.Is(err, ErrNewer) || name != "" && !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "reads as it should") {
			t.Errorf("byte %d of %d (of %q) was altered: %v", n, len(image), name, err)
		}
		tried[within(n)]++
	}
	if len(tried) != 3 {
		t.Errorf("only %v were tried", tried)
	}
	for n := 0; n < len(image); n += 397 {
		must(t, os.WriteFile(bad, image[:n], 0o600))
		if _, err := VerifyBackup(t.Context(), bad); !errors.Is(err, ErrBackup) {
			t.Errorf("cut off after %d of %d bytes: %v", n, len(image), err)
		}
	}
	must(t, os.WriteFile(bad, append(slices.Clone(image), 'x'), 0o600))
	if _, err := VerifyBackup(t.Context(), bad); !errors.Is(err, ErrBackup) {
		t.Errorf("with a byte more: %v", err)
	}
	t.Logf("altered: %v", tried)
}

// TestVerify_RefusesWhatItDoesNotKnow makes backups whose digests are right and whose content
// is not.
func TestVerify_RefusesWhatItDoesNotKnow(t *testing.T) {
	image, err := plainImage()
	must(t, err)
	edit := func(query string) func(string) {
		return func(path string) {
			raw, err := sql.Open("sqlite", path)
			must(t, err)
			_, err = raw.ExecContext(t.Context(), query)
			must(t, errors.Join(err, raw.Close()))
		}
	}
	for _, row := range []struct {
		what   string
		change func(database string)
		told   func(*Manifest)
		want   error
		says   string
	}{
		{"a newer schema", edit("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"), nil, ErrNewer, "schema 9999"},
		{"a newer format", nil, func(m *Manifest) { m.Format++ }, ErrNewer, "format 2"},
		{"another schema than it says", nil, func(m *Manifest) { m.Schema-- }, ErrBackup, "schema"},
		{"orphans", edit("INSERT INTO members (workspace_id, user_id, role, created_at) VALUES (999, 999, 'viewer', 1)"), nil, ErrBackup, "foreign_key_check"},
		{"another program's database", edit("DROP TABLE goose_db_version"), nil, ErrBackup, "another program"},
		{"no database", func(path string) { must(t, os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600)) }, nil, ErrBackup, "stint.db"},
		{"a damaged page", func(path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), 8*4096)
			must(t, errors.Join(err, f.Close()))
		}, nil, ErrBackup, "stint.db is damaged"},
		{"other entries", nil, func(m *Manifest) { m.Entries[0].Name = "other" }, ErrBackup, "manifest.json"},
	} {
		dir := t.TempDir()
		path, file := filepath.Join(dir, "stint.db"), filepath.Join(dir, "backup.zip")
		must(t, os.WriteFile(path, image, 0o600))
		var b Backup
		if row.change != nil {
			row.change(path)
		}
		if err := describe(t.Context(), &b.Manifest, path, "1"); err != nil {
			b.Format = BackupFormat // of what is no database of ours nothing else can be told
			b.Entries = []Entry{entryOf(t, path)}
		}
		if row.told != nil {
			row.told(&b.Manifest)
		}
		must(t, sealFile(&b, path, file))
		if _, err := VerifyBackup(t.Context(), file); !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", row.what, err)
		}
	}
}

// TestBackup_UnderLoadHoldsWhatWasAnswered backs up while 64 write, from this process and from
// another.
func TestBackup_UnderLoadHoldsWhatWasAnswered(t *testing.T) {
	s := open(t)
	var last atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 64 {
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
	dir := t.TempDir()
	for n := range 4 {
		for told := last.Load(); last.Load() < told+50; {
			must(t, s.Write(t.Context(), func(*Tx) error { return nil }))
		}
		told := last.Load()
		file := filepath.Join(dir, strconv.Itoa(n)+".zip")
		var err error
		if n%2 == 0 {
			_, err = s.Backup(t.Context(), toFile(file))
		} else {
			_, err = BackupFile(t.Context(), s.path, toFile(file))
		}
		must(t, err)
		copied := file + ".db"
		if _, err := extract(t.Context(), file, copied); !errors.Is(err, ErrNewer) { // the tests' own table
			t.Fatal(err)
		}
		if err := holds(copied, []int64{told}, true); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

func entryOf(t *testing.T, path string) Entry {
	t.Helper()
	var m Manifest
	_ = describe(t.Context(), &m, path, "1")
	if len(m.Entries) == 1 {
		return m.Entries[0]
	}
	text, err := os.ReadFile(path)
	must(t, err)
	return Entry{Name: databaseEntry, Bytes: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256(text))}
}

// backUpUntilKilled makes one backup after another and says when each is there.
func backUpUntilKilled() error {
	path := os.Getenv(pathVariable)
	for n := 0; ; n++ {
		file := fmt.Sprintf("%s.%d.zip", path, n)
		if _, err := BackupFile(context.Background(), path, toFile(file)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		fmt.Println(file)
	}
}

// TestKill_DuringABackup kills a process that backs up: under a backup's name there is only
// ever a whole one, and the next backup removes what was left half-made.
func TestKill_DuringABackup(t *testing.T) {
	t.Parallel()
	image, err := plainImage()
	must(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "stint.db")
	must(t, os.WriteFile(path, image, 0o600))
	halfMade := 0
	for range 12 {
		cmd := child(t, "back up", path)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if _, err := out.Read(make([]byte, 1)); err != nil { // it works
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) // where it is then doesn't matter
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		left, err := filepath.Glob(filepath.Join(dir, workPrefix+"*"))
		must(t, err)
		halfMade += len(left)
		made, err := filepath.Glob(path + ".*.zip")
		must(t, err)
		for _, file := range made {
			if _, err := VerifyBackup(t.Context(), file); err != nil {
				t.Errorf("%s after a kill: %v", filepath.Base(file), err)
			}
			must(t, os.Remove(file))
		}
	}
	if halfMade == 0 {
		t.Error("no kill came in the middle of a backup")
	}
	_, err = BackupFile(t.Context(), path, toFile(path+".last.zip"))
	must(t, err)
	if left, _ := filepath.Glob(filepath.Join(dir, workPrefix+"*")); len(left) > 0 {
		t.Errorf("the next backup left %v", left)
	}
	if n := marked(t, path); n != 1 {
		t.Errorf("the database has the marker %d", n)
	}
}

// restoreUntilKilled restores, and dies before the step whose number the variable says.
func restoreUntilKilled() error {
	path, file, _ := strings.Cut(os.Getenv(pathVariable), "|")
	file, step, _ := strings.Cut(file, "|")
	die, err := strconv.Atoi(step)
	if err != nil {
		return err
	}
	at := steps(func(string) {
		if die--; die < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	at.next("begin")
	r, err := BeginRestore(context.Background(), path, file)
	if err != nil {
		return err
	}
	at.next("open")
	s, err := Open(context.Background(), Options{Path: r.Database()})
	if err != nil {
		return err
	}
	at.next("write")
	if err := mark(s, 3); err != nil {
		return err
	}
	at.next("close")
	if err := s.Close(); err != nil {
		return err
	}
	r.at = at
	_, err = r.Finish(context.Background(), time.Unix(1_800_000_000, 0))
	return err
}

// TestKill_AtEachStepOfARestore kills a restore before each of its steps, over databases that
// ended in each way: afterwards the old database is there or the new one, whole, and the old
// one is kept where the new one is.
func TestKill_AtEachStepOfARestore(t *testing.T) {
	t.Parallel()
	file, _ := plainBackup(t, 2)
	for _, old := range []string{"none", "closed", "killed"} {
		sawOld, sawNew := 0, 0
		for step := 0; ; step++ {
			path := filepath.Join(t.TempDir(), "stint.db")
			layOld(t, path, old)
			cmd := child(t, "restore", path+"|"+file+"|"+strconv.Itoa(step))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
				t.Fatalf("%s, step %d: %v\n%s", old, step, err, out)
			}
			there, failed := SettleRestore(t.Context(), path)
			must(t, failed)
			switch {
			case !there && old == "none":
				sawOld++
			case !there:
				t.Errorf("%s, step %d: there is no database", old, step)
			default:
				switch n := marked(t, path); n {
				case 1:
					sawOld++
				case 3:
					sawNew++
					if old != "none" {
						if n := marked(t, filepath.Join(path+".before-restore-20270115T080000Z", "stint.db")); n != 1 {
							t.Errorf("%s, step %d: the old database is kept with the marker %d", old, step, n)
						}
					}
				default:
					t.Errorf("%s, step %d: the database has the marker %d", old, step, n)
				}
			}
			if left, _ := filepath.Glob(path + ".resto*"); len(left) > 0 {
				t.Errorf("%s, step %d: it left %v", old, step, left)
			}
			if err == nil {
				break // it had no such step
			}
		}
		if sawOld < 4 || sawNew < 3 {
			t.Errorf("%s: the old database was found %d times, the new one %d times", old, sawOld, sawNew)
		}
	}
}

// layOld makes a database with the marker 1, which was closed, or killed with its log.
func layOld(t *testing.T, path, old string) {
	t.Helper()
	if old == "none" {
		return
	}
	image, err := plainImage()
	must(t, err)
	must(t, os.WriteFile(path, image, 0o600))
	if old == "closed" {
		return
	}
	s, err := Open(t.Context(), Options{Path: path})
	must(t, err)
	must(t, mark(s, 1))
	aside := t.TempDir()
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		copyFile(t, path+suffix, filepath.Join(aside, "copy"+suffix))
	}
	must(t, s.Close())
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		copyFile(t, filepath.Join(aside, "copy"+suffix), path+suffix)
	}
}

// olderThanNow are the product's migrations but the last.
func olderThanNow() (fs.FS, error) {
	all, err := overlay(nil)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(all, "*.sql")
	if err != nil {
		return nil, err
	}
	delete(all.(fstest.MapFS), slices.Max(names))
	return all, nil
}

// TestRestore_OfAnOlderSchemaIsMigrated also shows that a failed restore changes nothing.
func TestRestore_OfAnOlderSchemaIsMigrated(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "old.db")
	older, err := olderThanNow()
	must(t, err)
	pool, err := openRole(path, migrating, Options{})
	must(t, err)
	must(t, createPrivate(path))
	must(t, migration{path: path, pool: pool, options: Options{Migrations: older, Log: slog.New(slog.DiscardHandler)}}.run(t.Context()))
	must(t, pool.Close())
	file := filepath.Join(dir, "old.zip")
	made, err := BackupFile(t.Context(), path, toFile(file))
	must(t, err)
	r, err := BeginRestore(t.Context(), filepath.Join(dir, "stint.db"), file)
	must(t, err)
	s, err := Open(t.Context(), Options{Path: r.Database()})
	must(t, err)
	must(t, errors.Join(mark(s, 5), s.Close()))
	aside, err := r.Finish(t.Context(), time.Now())
	if err != nil || aside != "" {
		t.Fatalf("the end of the restore: %v, the old files are in %q", err, aside)
	}
	if n := marked(t, filepath.Join(dir, "stint.db")); n != 5 {
		t.Errorf("the marker is %d", n)
	}
	var now Manifest
	must(t, describe(t.Context(), &now, filepath.Join(dir, "stint.db"), ""))
	if now.Schema <= made.Schema {
		t.Errorf("schema %d became %d", made.Schema, now.Schema)
	}
	must(t, os.WriteFile(file, []byte("no backup"), 0o600))
	if _, err := BeginRestore(t.Context(), filepath.Join(dir, "stint.db"), file); !errors.Is(err, ErrBackup) {
		t.Errorf("a restore of no backup: %v", err)
	}
	if n := marked(t, filepath.Join(dir, "stint.db")); n != 5 {
		t.Errorf("a refused restore left the marker %d", n)
	}
}
