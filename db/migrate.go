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
	"slices"
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
	provider, newest, err := m.provider()
	if err != nil {
		return err
	}
	have, err := m.applied(ctx)
	if err != nil {
		return err
	}
	missing, err := have.lacks(provider)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := m.snapshot(ctx, have, missing[len(missing)-1]); err != nil {
		return fmt.Errorf("take a snapshot before the migration: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from schema %d to %d: %w", have.newest(), newest, err)
	}
	return nil
}

// schema is the migrations that a file has, in their order. One may be missing between others:
// it was made beside them, and came later into the program.
type schema []int64

// newest is the number of the last one, 0 for an empty file.
func (s schema) newest() int64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1]
}

// lacks returns the migrations of this program that a file doesn't have, in their order. Errors:
// [ErrNewer] for a file that has one which this program doesn't know.
func (s schema) lacks(p *goose.Provider) (missing []int64, err error) {
	known := schema{}
	for _, source := range p.ListSources() {
		known = append(known, source.Version)
		if !slices.Contains(s, source.Version) {
			missing = append(missing, source.Version)
		}
	}
	if s.newest() > known.newest() {
		return nil, fmt.Errorf("%w: the file has schema %d, this program knows %d", ErrNewer, s.newest(), known.newest())
	}
	for _, version := range s {
		if !slices.Contains(known, version) {
			return nil, fmt.Errorf("%w: the file has schema %d with a migration %d that this program doesn't know", ErrNewer, s.newest(), version)
		}
	}
	return missing, nil
}

// snapshot copies the file beside it, unless it is new. What is there already and has fewer
// migrations was made by a start that was ended in the middle of this very one: it stays, as no
// program of any version could use a copy of what that start left. to is the last migration
// that comes.
func (m migration) snapshot(ctx context.Context, have schema, to int64) error {
	if len(have) == 0 {
		return nil
	}
	beside := fmt.Sprintf("%s.before-v%d", m.path, to)
	if old, err := schemaOf(ctx, beside); err == nil && len(old) > 0 && len(old) < len(have) {
		m.options.Log.Info("going on with a migration that was interrupted; its snapshot stays", "file", beside, "from", old.newest(), "at", have.newest(), "to", to)
		return nil
	}
	if err := copyTo(ctx, m.pool, beside); err != nil {
		return err
	}
	m.options.Log.Info("snapshot before migration", "file", beside, "from", have.newest(), "to", to)
	return nil
}

// schemaOf is the migrations of a copy, which nothing has open.
func schemaOf(ctx context.Context, path string) (have schema, err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", dsn(path, reading, ""))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	return migration{path: path, pool: pool}.applied(ctx)
}

// provider reads the migrations; newest is the number of the last.
func (m migration) provider() (p *goose.Provider, newest int64, err error) {
	p, err = goose.NewProvider(goose.DialectSQLite3, m.pool, m.options.Migrations,
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(m.options.Log), goose.WithAllowOutofOrder(true))
	if err != nil {
		return nil, 0, fmt.Errorf("read the migrations: %w", err)
	}
	sources := p.ListSources()
	return p, sources[len(sources)-1].Version, nil
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
	have, err := m.applied(ctx)
	return have.newest(), err
}

// applied returns the migrations in the file, none for an empty file.
func (m migration) applied(ctx context.Context) (have schema, err error) {
	var tables, ours int
	err = m.pool.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE name = '`+goose.DefaultTablename+`') FROM sqlite_schema`).
		Scan(&tables, &ours)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	if tables == 0 {
		return nil, nil
	}
	if ours == 0 {
		return nil, errors.New("it is a database of another program")
	}
	rows, err := m.pool.QueryContext(ctx, `SELECT DISTINCT version_id FROM `+goose.DefaultTablename+` WHERE is_applied AND version_id > 0 ORDER BY version_id`)
	if err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return nil, fmt.Errorf("read the schema's version: %w", err)
		}
		have = append(have, version)
	}
	return have, rows.Err()
}
