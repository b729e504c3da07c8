package db

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite"
)

// role says what a connection is for; it decides the settings it must have.
type role int

const (
	writing   role = iota // the one connection of the writer goroutine
	reading               // a connection of the read pool
	migrating             // sees the file before anybody else does
	copying               // reads the whole file for a copy; it never writes, so closing it leaves the log as it is
)

const (
	busyMillis     = 5000
	walPages       = 1000     // a checkpoint after this many pages, SQLite's default
	walKeepBytes   = 64 << 20 // a log grown by a slow reader is cut back to this
	writerCacheKiB = 16 << 10 // holds the upper levels of every index at a million sessions
	readerCacheKiB = 4 << 10
	minVersion     = "3.51.3" // the first without the WAL-reset corruption
)

// setting is a pragma that a connection must have, and how it reads back.
type setting struct {
	name string
	set  string // "" = only checked
	want string
}

func settings(r role, synchronous string, checkpoint int) []setting {
	all := []setting{
		{"busy_timeout", strconv.Itoa(busyMillis), strconv.Itoa(busyMillis)},
		{"trusted_schema", "0", "0"},
		{"mmap_size", "0", "0"},
		// What a savepoint would undo is kept in memory; in a large batch it would spill into
		// a file with each page.
		{"temp_store", "2", "2"},
		// Plain fsync on macOS does not reach the platter; elsewhere these do nothing.
		{"fullfsync", "1", "1"},
		{"checkpoint_fullfsync", "1", "1"},
		{"wal_autocheckpoint", strconv.Itoa(checkpoint), strconv.Itoa(checkpoint)},
		{"journal_size_limit", strconv.Itoa(walKeepBytes), strconv.Itoa(walKeepBytes)},
		{"synchronous", synchronous, synchronous},
	}
	foreignKeys, queryOnly, cache, journal := "1", "0", readerCacheKiB, "wal"
	switch r {
	case writing:
		cache = writerCacheKiB
	case reading:
		// A read-only connection cannot change the journal mode and need not.
		queryOnly, journal = "1", ""
	case copying:
		// VACUUM INTO writes to another file, which query_only would refuse too.
		journal = ""
	case migrating:
		// A table rebuilt while foreign keys are on deletes its children; the
		// keys are checked before each migration commits instead (checkedTx).
		foreignKeys = "0"
	}
	return append(all,
		setting{"cache_size", strconv.Itoa(-cache), strconv.Itoa(-cache)},
		setting{"foreign_keys", foreignKeys, foreignKeys},
		setting{"journal_mode", journal, "wal"},
		setting{"query_only", queryOnly, queryOnly},
	)
}

// connector opens connections to one file for one role. It applies every setting and refuses a
// connection on which one reads back differently: the driver silently accepts what it does not
// know.
type connector struct {
	inner     driver.Connector
	role      role
	settings  []setting
	openFiles *openFiles // what must be at the path; nil = anything
}

func newConnector(path string, r role, o Options) (*connector, error) {
	synchronous, err := synchronousLevel(o.Unsafe.Synchronous)
	if err != nil {
		return nil, err
	}
	c := &connector{role: r, openFiles: o.openFiles, settings: settings(r, synchronous, cmp.Or(o.Unsafe.CheckpointPages, walPages))}
	name := dsn(path, r, o.Unsafe.VFS)
	if o.still {
		name += "&immutable=1"
		// SQLite looks for no log then, and calls that by another name.
		c.settings = slices.DeleteFunc(c.settings, func(s setting) bool { return s.name == "journal_mode" })
	}
	if c.inner, err = sqlite.NewConnector(name); err != nil {
		return nil, fmt.Errorf("name database %s: %w", path, err)
	}
	return c, nil
}

// openRole returns a pool of connections of one role. It opens none yet.
func openRole(path string, r role, o Options) (*sql.DB, error) {
	c, err := newConnector(path, r, o)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// dsn writes path as a URI. SQLite would end the name at the first ? or #.
func dsn(path string, r role, vfs string) string {
	q := url.Values{"_defensive": {"1"}, "_dqs": {"0"}, "_error_rc": {"1"}, "mode": {"rw"}}
	if r == reading || r == copying {
		q.Set("mode", "ro")
	} else {
		// A transaction that reads first and writes later fails at once under
		// another writer, whatever busy_timeout says.
		q.Set("_txlock", "immediate")
	}
	if vfs != "" {
		q.Set("vfs", vfs)
	}
	escape := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")
	return "file:" + escape.Replace(path) + "?" + q.Encode()
}

func synchronousLevel(name string) (string, error) {
	switch strings.ToUpper(name) {
	case "", "FULL":
		return "2", nil
	case "NORMAL":
		return "1", nil
	case "OFF":
		return "0", nil
	default:
		return "", fmt.Errorf("synchronous %q is none of OFF, NORMAL, FULL", name)
	}
}

// Driver is part of [driver.Connector].
func (c *connector) Driver() driver.Driver { return c.inner.Driver() }

// Connect opens a connection, applies the settings and reads them back.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.inner.Connect(ctx)
	if c.openFiles != nil && !c.openFiles.here() {
		if err == nil {
			err = opened.Close()
		}
		return nil, errors.Join(ErrMoved, err)
	}
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQLite driver's %T lacks a needed method", opened), opened.Close())
	}
	if err := c.configure(ctx, inner); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	g, err := newGuard(inner, c.role)
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return g, nil
}

func (c *connector) configure(ctx context.Context, conn sqliteConn) error {
	for _, s := range c.settings {
		if s.set == "" {
			continue
		}
		if _, err := conn.ExecContext(ctx, "PRAGMA "+s.name+" = "+s.set, nil); err != nil {
			return fmt.Errorf("set %s to %s: %w", s.name, s.set, err)
		}
	}
	for _, s := range c.settings {
		got, err := one(ctx, conn, "PRAGMA "+s.name)
		if err != nil {
			return fmt.Errorf("read %s back: %w", s.name, err)
		}
		if got != s.want {
			return fmt.Errorf("SQLite's %s is %s and must be %s", s.name, got, s.want)
		}
	}
	return checkModes(ctx, conn)
}

// checkModes checks what no pragma reports: the library's version, that SQL
// cannot damage the file (defensive), and that a misspelt column is an error,
// not a text (dqs).
func checkModes(ctx context.Context, conn sqliteConn) error {
	version, err := one(ctx, conn, "SELECT sqlite_version()")
	if err != nil {
		return fmt.Errorf("ask for SQLite's version: %w", err)
	}
	if olderThan(version, minVersion) {
		return fmt.Errorf("SQLite is %s and must be %s or newer", version, minVersion)
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA writable_schema = 1", nil); err != nil {
		return fmt.Errorf("test defensive mode: %w", err)
	}
	if got, err := one(ctx, conn, "PRAGMA writable_schema"); err != nil || got != "0" {
		return fmt.Errorf("SQLite's defensive mode is off (writable_schema %s, %w)", got, err)
	}
	if _, err := one(ctx, conn, `SELECT "no such column"`); err == nil {
		return errors.New("SQLite takes double-quoted words as texts (dqs is on)")
	}
	return nil
}

// olderThan compares two versions of dotted numbers.
func olderThan(got, want string) bool {
	g, w := strings.Split(got, "."), strings.Split(want, ".")
	for i := range w {
		if i >= len(g) {
			return true
		}
		a, errA := strconv.Atoi(g[i])
		b, errB := strconv.Atoi(w[i])
		if errA != nil || errB != nil {
			return true // an unreadable version is not one we know to be good
		}
		if a != b {
			return a < b
		}
	}
	return false
}

// one returns the single value of a query as a text.
func one(ctx context.Context, conn sqliteConn, query string) (string, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return "", err
	}
	values := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(values); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s answered nothing", query)
		}
		return "", errors.Join(err, rows.Close())
	}
	return fmt.Sprint(values[0]), rows.Close()
}
