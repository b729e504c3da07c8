package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Snapshot writes a copy of the database as it is now to path, readable by its owner alone,
// replacing what is there. Writers and readers continue meanwhile. The copy has its name only
// once it is whole, checked and on the disk.
func (s *Store) Snapshot(ctx context.Context, path string) (err error) {
	if s.startRead() == nil {
		return ErrClosed
	}
	defer s.reads.Done()
	pool, err := openRole(s.path, copying, s.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if err := copyTo(ctx, pool, path); err != nil {
		return fmt.Errorf("take a snapshot: %w", err)
	}
	return nil
}

// partSuffix ends the name of a copy that isn't whole yet.
const partSuffix = ".part"

// executor is a pool or one connection of it.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// copyTo copies the database behind pool to path.
func copyTo(ctx context.Context, pool executor, path string) error {
	dir := filepath.Dir(path)
	// VACUUM INTO accepts an empty file, so the copy is private from its first byte.
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*"+partSuffix)
	if err != nil {
		return err
	}
	part := f.Name()
	if err := errors.Join(f.Close(), fill(ctx, pool, part)); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return syncDir(dir)
}

// fill makes the empty file part a checked copy that survives a power cut.
func fill(ctx context.Context, pool executor, part string) error {
	if _, err := pool.ExecContext(ctx, "VACUUM INTO ?1", part); err != nil {
		return err
	}
	if err := checkCopy(ctx, part); err != nil {
		return err
	}
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkCopy reads the whole copy.
func checkCopy(ctx context.Context, path string) (err error) {
	pool, err := sql.Open("sqlite", dsn(path, reading, ""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var result string
	if err := pool.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&result); err != nil {
		return fmt.Errorf("check the copy: %w", err)
	}
	if result != "ok" {
		return fmt.Errorf("check the copy: %s", result)
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
