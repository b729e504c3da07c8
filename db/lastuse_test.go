package db

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpen_FilesThatDontBelongTogether: a start after a kill or a clean end finds what people
// left of its files. It refuses what would silently lose or garble writes, and accepts what is
// whole.
func TestOpen_FilesThatDontBelongTogether(t *testing.T) {
	for name, c := range map[string]struct {
		clean bool // the last use ended cleanly
		harm  func(t *testing.T, path, copied string)
		want  string // of the refusal; "" = it opens
	}{
		"killed":                            {harm: func(t *testing.T, path, copied string) {}},
		"killed, database gone":             {harm: func(t *testing.T, path, copied string) { remove(t, path) }, want: "a log without it"},
		"killed, database emptied":          {harm: func(t *testing.T, path, copied string) { truncate(t, path, 0) }, want: "a log without it"},
		"killed, log gone":                  {harm: func(t *testing.T, path, copied string) { remove(t, path+"-wal") }, want: "the log that it left is gone"},
		"killed, log and index gone":        {harm: func(t *testing.T, path, copied string) { remove(t, path+"-wal"); remove(t, path+"-shm") }, want: "the log that it left is gone"},
		"killed, all gone":                  {harm: func(t *testing.T, path, copied string) { remove(t, path); remove(t, path+"-wal") }, want: "it is gone"},
		"killed, a copy beside its log":     {harm: func(t *testing.T, path, copied string) { copyFile(t, copied, path) }, want: "belongs to another database"},
		"killed, a copy and no log":         {harm: func(t *testing.T, path, copied string) { copyFile(t, copied, path); remove(t, path+"-wal") }},
		"killed, opened by another program": {harm: func(t *testing.T, path, copied string) { visit(t, path) }},
		"killed, an older version's folder": {harm: func(t *testing.T, path, copied string) { truncate(t, path+".lock", 0) }},
		"killed, taken as it is":            {harm: func(t *testing.T, path, copied string) { remove(t, path+"-wal"); remove(t, path+".lock") }},
		"killed, a note that says nothing": {harm: func(t *testing.T, path, copied string) {
			must(t, os.WriteFile(path+".lock", []byte("open zzz\n"), 0o600))
		}},
		"ended":                              {clean: true, harm: func(t *testing.T, path, copied string) {}},
		"ended, database gone":               {clean: true, harm: func(t *testing.T, path, copied string) { remove(t, path) }, want: "it is gone"},
		"ended, a copy in its place":         {clean: true, harm: func(t *testing.T, path, copied string) { copyFile(t, copied, path) }},
		"ended, everything gone":             {clean: true, harm: func(t *testing.T, path, copied string) { remove(t, path); remove(t, path+".lock") }},
		"ended, opened by an older version":  {clean: true, harm: func(t *testing.T, path, copied string) { visit(t, path) }},
		"ended, moved into another folder":   {clean: true, harm: func(t *testing.T, path, copied string) { rename(t, path, path+".x"); rename(t, path+".x", path) }},
		"ended, its end cut off":             {clean: true, harm: func(t *testing.T, path, copied string) { shorten(t, path, 100) }, want: "its end was cut off"},
		"ended, a page cut off":              {clean: true, harm: func(t *testing.T, path, copied string) { shorten(t, path, 4096) }, want: "its end was cut off"},
		"ended, no note and its end cut off": {clean: true, harm: func(t *testing.T, path, copied string) { shorten(t, path, 100); truncate(t, path+".lock", 0) }, want: "its end was cut off"},
		"ended, the note removed":            {clean: true, harm: func(t *testing.T, path, copied string) { remove(t, path+".lock") }},
		"ended, a foreign log put beside it": {clean: true, harm: func(t *testing.T, path, copied string) { copyFile(t, copied, path); copyFile(t, copied, path+"-wal") }, want: "belongs to another database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, copied := filepath.Join(dir, "stint.db"), filepath.Join(dir, "copy.db")
			o := Options{Path: path, Migrations: withNotes(t)}
			s, err := Open(t.Context(), o)
			must(t, err)
			must(t, errors.Join(s.Close()))
			copyFile(t, path, copied)
			if c.clean {
				s, err := Open(t.Context(), o)
				must(t, err)
				must(t, errors.Join(s.Write(t.Context(), note(1)), s.Close()))
			} else {
				killAfter(t, path, 3)
			}
			c.harm(t, path, copied)
			before, err := filepath.Glob(path + "*")
			must(t, err)
			s, err = Open(t.Context(), o)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("open: %v", err)
			case c.want == "":
				must(t, errors.Join(s.Write(t.Context(), note(1000)), s.Close()))
			case err == nil || !errors.Is(err, ErrUnpaired) || !strings.Contains(err.Error(), c.want):
				t.Errorf("open: %v, want %q", err, c.want)
			}
			if after, err := filepath.Glob(path + "*"); c.want != "" && (err != nil || len(after) != len(before)) {
				t.Errorf("a start that was refused made of %q %q (%v)", before, after, err)
			}
		})
	}
}

// TestOpen_WrittenOverWhileInUse: the log that the store leaves must not be written into the
// copy that somebody put over it.
func TestOpen_WrittenOverWhileInUse(t *testing.T) {
	s := open(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	copyFile(t, s.path, copied)
	grown(t, s)
	must(t, s.Write(t.Context(), note(3)))
	copyFile(t, copied, s.path)
	if err := s.Write(t.Context(), note(4)); !errors.Is(err, ErrForeign) {
		t.Fatalf("write: %v", err)
	}
	must(t, s.Close())
	// As another process: the leaving store keeps its connection until this one ends.
	start := func() (string, error) {
		cmd := child(t, "open", s.path)
		cmd.Stdin = strings.NewReader("go\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := start(); err == nil || !strings.Contains(out, "wrote it over") {
		t.Errorf("open: %q (%v)", out, err)
	}
	for _, suffix := range []string{"-wal", "-shm", ".lock"} {
		remove(t, s.path+suffix)
	}
	if out, err := start(); err != nil {
		t.Errorf("open what was restored: %q (%v)", out, err)
	}
}

// visit opens the file as another program does, and closes it.
func visit(t *testing.T, path string) {
	t.Helper()
	pool, err := sql.Open("sqlite", dsn(path, copying, ""))
	must(t, err)
	var notes int
	must(t, errors.Join(pool.QueryRowContext(context.Background(), `SELECT count(*) FROM notes`).Scan(&notes), pool.Close()))
}

// TestOpen_OneFileByManyNames: the lock and the log lie beside the file itself.
func TestOpen_OneFileByManyNames(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "real", "deep"), 0o700))
	must(t, os.Symlink("real", filepath.Join(dir, "dir")))
	must(t, os.Symlink(filepath.Join("real", "deep", "stint.db"), filepath.Join(dir, "link.db")))
	must(t, os.Symlink("link.db", filepath.Join(dir, "again.db")))
	real := filepath.Join(dir, "real", "deep", "stint.db")
	for _, name := range []string{"again.db", "link.db", "dir/deep/stint.db", "real/deep/../deep/stint.db"} {
		got, err := Resolve(filepath.Join(dir, name))
		if err != nil || got != real {
			t.Errorf("%s is %s (%v), want %s", name, got, err, real)
		}
		s := open(t, func(o *Options) { o.Path = filepath.Join(dir, name) })
		for _, suffix := range []string{".lock", "-wal"} {
			if _, err := os.Stat(real + suffix); err != nil {
				t.Errorf("opened as %s: %v", name, err)
			}
		}
		must(t, s.Close())
	}
	must(t, os.Link(real, filepath.Join(dir, "hard.db")))
	if _, err := Open(t.Context(), Options{Path: real, Migrations: withNotes(t)}); err == nil || !strings.Contains(err.Error(), "second name") {
		t.Errorf("open a file with two names: %v", err)
	}
}

func shorten(t *testing.T, path string, less int64) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	truncate(t, path, info.Size()-less)
}
