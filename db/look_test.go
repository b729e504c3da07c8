package db

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLook_ReadsAndWritesNothing looks at a store that was closed, and at one that was killed.
func TestLook_ReadsAndWritesNothing(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "stint.db"), Migrations: withNotes(t)}
	if _, err := Look(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no database it says %v", err)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "stint.db")
	for _, suffix := range []string{"", "-wal", lockSuffix} {
		text, err := os.ReadFile(o.Path + suffix)
		if err == nil {
			err = os.WriteFile(killed+suffix, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{o.Path, killed} {
		before := namesBeside(t, path)
		s, err := Look(t.Context(), Options{Path: path, Migrations: o.Migrations})
		if err != nil {
			t.Fatal(err)
		}
		wantNotes(t, s, 1)
		if err := s.Write(t.Context(), note(2)); !errors.Is(err, ErrReadOnly) {
			t.Errorf("a write answers %v", err)
		}
		if whole, err := s.CheckWhole(t.Context()); err != nil || len(whole.Damage) > 0 {
			t.Errorf("the whole is %+v (%v)", whole, err)
		}
		if err := s.CloseLook(); err != nil {
			t.Error(err)
		}
		if after := namesBeside(t, path); strings.ReplaceAll(after, "stint.db-shm ", "") != before {
			t.Errorf("%s became %s", before, after)
		}
		again, err := Open(t.Context(), Options{Path: path, Migrations: o.Migrations})
		if err != nil {
			t.Fatal(err)
		}
		wantNotes(t, again, 1)
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	older := Options{Path: o.Path} // these have more migrations, or others
	if _, err := Look(t.Context(), older); !errors.Is(err, ErrNewer) && !errors.Is(err, ErrOlder) {
		t.Errorf("of another schema it says %v", err)
	}
}

func namesBeside(t *testing.T, path string) (out string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out += e.Name() + " "
	}
	return out
}

// TestCheckPages_FindsADamagedTable damages one table of a store whose other tables can still
// be read.
func TestCheckPages_FindsADamagedTable(t *testing.T) {
	s := open(t)
	if err := s.Write(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	good, err := s.CheckPages(t.Context(), time.Minute)
	if err != nil || len(good.Damage) > 0 || good.Tables != good.Of || good.Of < 2 {
		t.Errorf("a good file is %+v (%v)", good, err)
	}
	if none, err := s.CheckPages(t.Context(), 1); err != nil || none.Tables > 0 {
		t.Errorf("without time it checked %+v (%v)", none, err)
	}
	var root int64
	err = s.Read(t.Context(), func(tx *ReadTx) error {
		return tx.number(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = 'notes'", &root)
	})
	if err != nil {
		t.Fatal(err)
	}
	path, migrations := s.path, s.options.Migrations
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), (root-1)*4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, func(o *Options) { o.Path, o.Migrations = path, migrations })
	bad, err := s.CheckPages(t.Context(), time.Minute)
	if err != nil || len(bad.Damage) == 0 {
		t.Errorf("a damaged file is %+v (%v)", bad, err)
	}
	at, slices := "", 0
	var damage []string
	for {
		var some []string
		if at, some, err = s.CheckTables(t.Context(), at, 1); err != nil {
			t.Fatal(err)
		}
		damage = append(damage, some...)
		if slices++; at == "" || slices > bad.Of {
			break
		}
	}
	if len(damage) == 0 || slices != bad.Of {
		t.Errorf("in %d slices of a file with %d tables it found %q", slices, bad.Of, damage)
	}
}
