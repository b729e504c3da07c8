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

// migrate creates the file or brings it up to date, while other processes that
// start at the same time wait.
func migrate(ctx context.Context, path string, o Options) (err error) {
	unlock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := createPrivate(path); err != nil {
		return err
	}
	pool, err := openRole(path, migrating, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	pool.SetMaxOpenConns(1)
	m := migration{path: path, options: o, pool: pool}
	return m.run(ctx)
}

// createPrivate creates the file for its owner alone, or takes the rights of
// others away from an existing one. SQLite gives its log the same mode.
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

// migration is one run over one file, on a connection of its own.
type migration struct {
	path    string
	options Options
	pool    *sql.DB
}

func (m migration) run(ctx context.Context) error {
	if err := m.settle(ctx); err != nil {
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

// settle writes into the file what recovery found in the log. After a failed
// fsync the log can hold a transaction in the kernel's cache that the disk
// never got; it must not be shown to anybody before it is durable.
func (m migration) settle(ctx context.Context) error {
	var busy, frames, moved int
	row := m.pool.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	if err := row.Scan(&busy, &frames, &moved); err != nil {
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
