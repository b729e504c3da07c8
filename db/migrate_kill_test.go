package db

import (
	"archive/tar"
	"compress/bzip2"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"modernc.org/sqlite"
)

const stepVariable = "STINT_DB_TEST_STEP"

// migrateUntilKilled opens the file with migrations one of which ends this process after its
// last statement and before its commit.
func migrateUntilKilled() error {
	die := func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return nil, errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("it lives on"))
	}
	if err := sqlite.RegisterFunction("die", &sqlite.FunctionImpl{NArgs: 0, Scalar: die}); err != nil {
		return err
	}
	all := fstest.MapFS{}
	names, err := fs.Glob(embedded(), "*.sql")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(embedded(), name)
		if err != nil {
			return err
		}
		if name == os.Getenv(stepVariable) {
			up, down, _ := strings.Cut(string(text), "-- +goose Down")
			text = []byte(up + "\nSELECT die();\n-- +goose Down" + down)
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	s, err := Open(context.Background(), Options{Path: os.Getenv(pathVariable), Migrations: all})
	if err != nil {
		return err
	}
	return s.Close()
}

// oldest unpacks the database that the oldest version left when it was killed.
func oldest(t *testing.T) (path string) {
	t.Helper()
	f, err := os.Open("../cmd/stint/testdata/upgrade/schema-1.tar.bz2")
	must(t, err)
	defer f.Close()
	dir := t.TempDir()
	for files := tar.NewReader(bzip2.NewReader(f)); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "stint.db")
		}
		must(t, err)
		if name, ok := strings.CutPrefix(h.Name, "data/"); ok && h.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(files)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
	}
}

// A start that is killed in each migration, one after the other, leaves a file with which the
// next one goes on, and the copy from before the first of them.
func TestMigrate_KilledInEachStep(t *testing.T) {
	t.Parallel()
	path := oldest(t)
	names, err := fs.Glob(embedded(), "*.sql")
	must(t, err)
	beside := ""
	for _, name := range names[1:] {
		cmd := child(t, "migrate", path)
		cmd.Env = append(cmd.Env, stepVariable+"="+name)
		said, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the child was to die by SIGKILL in %s: %v\n%s", name, err, said)
		}
		if beside == "" {
			found, err := filepath.Glob(path + ".before-v*")
			if err != nil || len(found) != 1 {
				t.Fatalf("after the first kill there are the copies %v, %v", found, err)
			}
			beside = found[0]
		}
	}
	if have, err := schemaOf(t.Context(), beside); err != nil || have.newest() != 1 {
		t.Errorf("the copy from before has schema %d, %v; want 1", have, err)
	}
	s, err := Open(t.Context(), Options{Path: path})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	migratedOnce(t, s)
	var sessions int
	if err := queryRow(t, s, &sessions, `SELECT count(*) FROM sessions`); err != nil || sessions != 10 {
		t.Errorf("%d sessions, %v; want 10", sessions, err)
	}
	must(t, checkCopy(t.Context(), path))
}
