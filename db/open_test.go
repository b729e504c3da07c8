package db

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOpen_EverySettingHolds asks connections of each role, independently of the code that
// sets and checks them.
func TestOpen_EverySettingHolds(t *testing.T) {
	s := open(t)
	all := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000", "trusted_schema": "0",
		"mmap_size": "0", "fullfsync": "1", "checkpoint_fullfsync": "1", "wal_autocheckpoint": "1000",
	}
	for r, own := range map[role]map[string]string{
		writing:   {"foreign_keys": "1", "query_only": "0"},
		reading:   {"foreign_keys": "1", "query_only": "1"},
		copying:   {"foreign_keys": "1", "query_only": "0"},
		migrating: {"foreign_keys": "0", "query_only": "0"},
	} {
		pool, err := openRole(s.path, r, s.options)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		g, err := guardOf(conn)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []map[string]string{all, own} {
			for name, value := range want {
				if got, err := one(t.Context(), g.sqliteConn, "PRAGMA "+name); got != value {
					t.Errorf("role %d: %s is %s, want %s (%v)", r, name, got, value, err)
				}
			}
		}
		if _, err := g.sqliteConn.ExecContext(t.Context(), `SELECT "texts are quoted once"`, nil); err == nil {
			t.Errorf("role %d takes double-quoted words as texts", r)
		}
		const damage = `UPDATE sqlite_schema SET sql = '' WHERE name = 'notes'`
		if _, err := g.sqliteConn.ExecContext(t.Context(), damage, nil); err == nil {
			t.Errorf("role %d can damage the schema", r)
		}
	}
}

// TestOpen_RefusesASettingThatDoesNotReadBack breaks one setting after another.
func TestOpen_RefusesASettingThatDoesNotReadBack(t *testing.T) {
	s := open(t)
	for r := writing; r <= copying; r++ {
		c, err := newConnector(s.path, r, s.options)
		if err != nil {
			t.Fatal(err)
		}
		good := slices.Clone(c.settings)
		for i, set := range good {
			c.settings = slices.Clone(good)
			c.settings[i].want = "broken"
			conn, err := c.Connect(t.Context())
			if err == nil {
				conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), set.name) {
				t.Errorf("role %d with a wrong %s: %v", r, set.name, err)
			}
		}
	}
	c, err := newConnector(s.path, writing, s.options)
	if err != nil {
		t.Fatal(err)
	}
	c.settings = append(c.settings, setting{"no_such_pragma", "1", "1"})
	if _, err := c.Connect(t.Context()); err == nil {
		t.Error("an unknown pragma is accepted")
	}
}

func TestOlderThan(t *testing.T) {
	for _, c := range []struct {
		got  string
		want bool
	}{
		{"3.51.3", false},
		{"3.51.10", false},
		{"3.54.1", false},
		{"4.0", false},
		{"3.51.2", true},
		{"3.9.9", true},
		{"3.51", true},
		{"", true},
		{"3.x.9", true},
	} {
		if got := olderThan(c.got, minVersion); got != c.want {
			t.Errorf("olderThan(%q) = %t", c.got, got)
		}
	}
}

func TestOpen_FilesAreTheOwnersAlone(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	s := open(t)
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	private := func() {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			info, err := os.Stat(s.path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != 0o600 {
				t.Errorf("%q has mode %o", suffix, got)
			}
		}
	}
	private()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(s.path+suffix, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open(t, func(o *Options) { o.Path = s.path })
	private()
}

func TestOpen_AnyFileName(t *testing.T) {
	for _, name := range []string{
		"a?b.db", "a#b.db", "a%20b.db", "a b.db", "a&mode=memory.db", "a;b=c.db", "ä'\"\\\n.db", ":memory:", "file:x.db", "?mode=ro",
	} {
		dir := filepath.Join(t.TempDir(), "dir of "+name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		lay(t, path)
		s, err := Open(t.Context(), Options{Path: path, Migrations: withNotes(t)})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if err := s.Write(t.Context(), note(1)); err != nil {
			t.Error(err)
		}
		wantNotes(t, s, 1)
		if err := errors.Join(s.Snapshot(t.Context(), path+".copy"), s.Close()); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if want := []string{name, name + ".copy", name + ".lock"}; !slices.Equal(names, want) {
			t.Errorf("%q: the directory holds %q", name, names)
		}
	}
}

func TestOpen_RelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, func(o *Options) { o.Path = "stint.db" })
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("stint.db"); err != nil {
		t.Error(err)
	}
}

func TestOpen_RefusesWhatIsNoDatabaseOfOurs(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "foreign")
	pool, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(`CREATE TABLE theirs (x)`); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		text:        "not a database",
		foreign:     "another program",
		t.TempDir(): "no regular file",
		filepath.Join(t.TempDir(), "missing", "stint.db"): "cannot be written to",
	} {
		before, _ := os.ReadFile(path)
		_, err := Open(t.Context(), Options{Path: path})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if after, _ := os.ReadFile(path); path == text && string(before) != string(after) {
			t.Error("the text file was changed")
		}
	}
	if _, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "x"), Unsafe: Unsafe{Synchronous: "loud"}}); err == nil {
		t.Error("synchronous=loud is accepted")
	}
}

func TestOpen_WaitsForAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stint.db")
	unlock, err := lockFile(t.Context(), path+".lock")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Options{Path: path}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("open while another process migrates: %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), Options{Path: path})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
