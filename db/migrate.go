package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

func embedded() fs.FS {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the name is a constant that fs.Sub accepts
	}
	return sub
}

// createPrivate creates the file for its owner alone, or takes other people's rights away from
// an existing one. SQLite gives its log the same mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return errors.Join(f.Close(), syncDir(filepath.Dir(path)))
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create the file: %w", err)
	}
	// An existing file is never opened here: closing it would drop the locks
	// of another store of this process.
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file (%s)", info.Mode().Type())
	}
	if linkedTwice(info) {
		return errors.New("it has a second name (a hard link): its log lies beside one of them alone, so two programs could use it without knowing; remove the other name or copy the file")
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+suffix, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take the file's rights away from others: %w", err)
		}
	}
	return nil
}

// migration is one run over one file, on a separate connection.
type migration struct {
	path    string
	options Options
	pool    *sql.DB
}

// dropParts removes the copies that earlier starts didn't finish: they were killed, since a
// copy that fails removes itself. The lock is held, so nothing else is making one.
func (m migration) dropParts() error {
	parts, err := filepath.Glob(escapeGlob(m.path) + ".before-v*" + partSuffix + "*") // SQLite's own beside it too
	if err != nil {
		return fmt.Errorf("find unfinished snapshots: %w", err)
	}
	for _, part := range parts {
		if err := os.Remove(part); err != nil {
			return fmt.Errorf("remove an unfinished snapshot: %w", err)
		}
		m.options.Log.Info("removed an unfinished snapshot", "file", part)
	}
	return nil
}

// escapeGlob makes a pattern that matches exactly one name.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

func (m migration) run(ctx context.Context) error {
	if err := errors.Join(m.settle(ctx), m.dropParts()); err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, m.pool, m.options.Migrations,
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(m.options.Log))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version
	have, err := m.version(ctx)
	switch {
	case err != nil:
		return err
	case have > newest:
		return fmt.Errorf("%w: the file has schema %d, this program knows %d; install the newer program again or restore a snapshot",
			ErrNewer, have, newest)
	case have == newest:
		return nil
	}
	if have > 0 {
		beside := fmt.Sprintf("%s.before-v%d", m.path, newest)
		if err := copyTo(ctx, m.pool, beside); err != nil {
			return fmt.Errorf("take a snapshot before the migration: %w", err)
		}
		m.options.Log.Info("snapshot before migration", "file", beside, "from", have, "to", newest)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from schema %d to %d: %w", have, newest, err)
	}
	return nil
}

// settle writes into the file what recovery found in the log. After a failed fsync the log can
// hold a transaction in the kernel's cache that the disk never got; it must not be shown to
// anybody before it is durable.
func (m migration) settle(ctx context.Context) error {
	if _, err := moveLog(ctx, m.pool, "PASSIVE"); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}

// version returns the newest migration in the file, 0 for an empty file.
func (m migration) version(ctx context.Context) (int64, error) {
	var tables, ours int
	err := m.pool.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE name = '`+goose.DefaultTablename+`') FROM sqlite_schema`).
		Scan(&tables, &ours)
	if err != nil {
		return 0, fmt.Errorf("read the schema: %w", err)
	}
	if tables == 0 {
		return 0, nil
	}
	if ours == 0 {
		return 0, errors.New("it is a database of another program")
	}
	var have sql.NullInt64
	err = m.pool.QueryRowContext(ctx, `SELECT max(version_id) FROM `+goose.DefaultTablename+` WHERE is_applied`).Scan(&have)
	if err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return have.Int64, nil
}
