package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrOlder says that an older program wrote the file, whose rows this one can read only once it
// has brought the file up to date.
var ErrOlder = errors.New("the database was written by an older version")

// Look opens a database for reading alone, to examine it: it brings nothing up to date, signs
// nothing, and leaves what lies in the directory as it is. Nothing else may have the file open,
// so the caller holds the lock of its directory. Writes to the store answer [ErrReadOnly].
// Errors: [fs.ErrNotExist] when there is no database; [ErrUnpaired]; [ErrNewer]; [ErrOlder];
// [ErrDamaged].
func Look(ctx context.Context, o Options) (*Store, error) {
	path, err := Resolve(o.Path)
	if err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	if err := checkPair(path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Migrations == nil {
		o.Migrations = embedded()
	}
	size, err := sizeOf(path + "-wal")
	if err != nil {
		return nil, err
	}
	o.still = size <= 0 // an ordinary reader would leave an empty log behind
	s := &Store{path: path, options: o, broken: make(chan error, 1), ending: make(chan struct{}), tended: make(chan struct{})}
	if err := s.fits(ctx); err != nil {
		return nil, classify(err)
	}
	if s.readers, err = openReaders(path, o); err != nil {
		return nil, err
	}
	w := &writer{now: o.Clock, log: o.Log, queue: newQueue(), done: make(chan struct{}), told: &told{}}
	w.queue.stop(ErrReadOnly)
	s.writer.Store(w)
	return s, nil
}

// fits compares the file's schema with this program's.
func (s *Store) fits(ctx context.Context) (err error) {
	pool, err := openRole(s.path, reading, s.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	m := migration{path: s.path, options: s.options, pool: pool}
	have, err := m.applied(ctx)
	if err != nil {
		return err
	}
	provider, newest, err := m.provider()
	if err != nil {
		return err
	}
	missing, err := have.lacks(provider)
	switch {
	case err != nil:
		return err
	case have.newest() < newest:
		return fmt.Errorf("%w: the file has schema %d, this program's is %d", ErrOlder, have.newest(), newest)
	case len(missing) > 0:
		return fmt.Errorf("%w: the file has schema %d without migration %d", ErrOlder, have.newest(), missing[0])
	}
	return nil
}

// CloseLook ends what [Look] opened.
func (s *Store) CloseLook() error {
	s.readsGate.Lock()
	s.noReads = true
	s.readsGate.Unlock()
	s.reads.Wait()
	return s.readers.close()
}

// Schema is the number of the newest migration that the file has.
func (s *Store) Schema(ctx context.Context) (have int64, err error) {
	err = s.ReadTimer(ctx, func(tx *ReadTx) error {
		return tx.number(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`, &have)
	})
	return have, err
}

// PagesChecked says how much of a file was checked for damage, and what was found.
type PagesChecked struct {
	Tables, Of int      // looked at, and how many there are
	Damage     []string // SQLite's own words, the first few
}

// MaxDamage bounds how much is told of a damaged file.
const MaxDamage = 5

// tableNames are a file's own tables, sorted.
const tableNames = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`

// quickCheck looks for damage in a table and its indexes.
func quickCheck(table string) string {
	return "PRAGMA quick_check('" + strings.ReplaceAll(table, "'", "''") + "')"
}

// damageIn are the lines of a check that tell of damage, the first few.
func damageIn(lines []string) []string {
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "ok" })
	return lines[:min(len(lines), MaxDamage)]
}

// CheckPages looks for damage in the file's tables and their indexes, one table after the other
// (quick_check), until limit is over: what isn't finished by then isn't counted. Each table is
// a read of its own, which holds no snapshot longer than any read.
func (s *Store) CheckPages(ctx context.Context, limit time.Duration) (out PagesChecked, err error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// late is whether an error says no more than that the time was over.
	late := func(err error) bool { return ctx.Err() == nil && (errors.Is(err, ErrSlow) || timed.Err() != nil) }
	var tables []string
	err = s.ReadTimer(timed, func(tx *ReadTx) error {
		tables, err = tx.texts(timed, tableNames)
		return err
	})
	if err != nil && late(err) {
		return out, nil
	}
	if err != nil {
		return out.orDamage(err)
	}
	out.Of = len(tables)
	for _, table := range tables {
		var found []string
		err := s.ReadTimer(timed, func(tx *ReadTx) (err error) {
			found, err = tx.texts(timed, quickCheck(table))
			return err
		})
		if err != nil && late(err) {
			return out, nil
		}
		if err != nil {
			return out.orDamage(err)
		}
		out.Tables++
		if out.Damage = append(out.Damage, damageIn(found)...); len(out.Damage) >= MaxDamage {
			out.Damage = out.Damage[:MaxDamage]
			return out, nil
		}
	}
	return out, nil
}

// CheckTables looks for damage in table after table that comes after one, "" for the first, until
// budget is used up, on a connection of its own: no request and no timer waits for it, however
// long a large table takes. at is the last table that it looked at, "" once that was the last of
// all.
func (s *Store) CheckTables(ctx context.Context, after string, budget time.Duration) (at string, damage []string, err error) {
	pool, err := openRole(s.path, reading, s.options)
	if err != nil {
		return after, nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	tables, err := listTexts(ctx, pool, tableNames)
	began := time.Now()
	for at = after; err == nil; {
		next, _ := slices.BinarySearch(tables, at+"\x00")
		if next == len(tables) {
			return "", damage, nil
		}
		if at != after && time.Since(began) >= budget {
			return at, damage, nil
		}
		var found []string
		at = tables[next]
		if found, err = listTexts(ctx, pool, quickCheck(at)); err == nil {
			damage = append(damage, damageIn(found)...)
		}
	}
	if err = classify(err); errors.Is(err, ErrDamaged) {
		return at, append(damage, ErrDamaged.Error()), nil
	}
	return after, damage, err
}

// listTexts runs a statement of one column.
func listTexts(ctx context.Context, pool *sql.DB, query string) (out []string, err error) {
	rows, err := pool.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}

// orDamage takes a file that SQLite refuses to read as what was found.
func (c PagesChecked) orDamage(err error) (PagesChecked, error) {
	if !errors.Is(err, ErrDamaged) {
		return c, err
	}
	c.Damage = append(c.Damage, ErrDamaged.Error())
	return c, nil
}

// CheckWhole reads the whole file, the pages that no table has included, however long it takes.
// It is for what [Look] opened.
func (s *Store) CheckWhole(ctx context.Context) (out PagesChecked, err error) {
	pool, err := openRole(s.path, reading, s.options)
	if err != nil {
		return out.orDamage(classify(err))
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	lines, err := listTexts(ctx, pool, fmt.Sprintf("PRAGMA integrity_check(%d)", MaxDamage))
	out.Damage = damageIn(lines)
	return out.orDamage(classify(err))
}

// SnapshotFile is a copy that a migration left beside the database.
type SnapshotFile struct {
	Name  string // without the directory
	Bytes int64
	At    time.Time // when it was made
}

// Snapshots lists the copies that migrations left beside the database at path.
func Snapshots(path string) ([]SnapshotFile, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(escapeGlob(path) + ".before-v*")
	if err != nil {
		return nil, err
	}
	var out []SnapshotFile
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		out = append(out, SnapshotFile{filepath.Base(name), info.Size(), info.ModTime()})
	}
	return out, nil
}

// texts reads a column of texts.
func (tx *ReadTx) texts(ctx context.Context, query string) (out []string, err error) {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}
