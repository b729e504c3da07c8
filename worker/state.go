package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"stint/api"
)

// stateSteps create the file's tables, one step for each version of it.
var stateSteps = []string{`
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
CREATE TABLE workers (
    agent_id  TEXT PRIMARY KEY,
    worker_id TEXT NOT NULL,  -- empty: the record was deleted
    instance  TEXT NOT NULL,  -- the last one that the coordinator accepted
    pending   TEXT NOT NULL   -- the one that was sent last, accepted or not
) STRICT;
CREATE TABLE held (
    id       INTEGER PRIMARY KEY,
    claim    TEXT NOT NULL,   -- without prompt and context
    agent_id TEXT NOT NULL,
    life     TEXT NOT NULL,   -- of the command that was or is about to be started
    ended    INTEGER NOT NULL -- 1: the processes are gone and what became of it is in the outbox
) STRICT;
CREATE TABLE outbox (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    held_id INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX outbox_held ON outbox (held_id, seq);
CREATE TABLE drained (
    claim_id  TEXT PRIMARY KEY,
    worker_id TEXT NOT NULL
) STRICT;
CREATE TABLE crashes (
    session_id TEXT PRIMARY KEY,
    times      INTEGER NOT NULL
) STRICT;
`, `
ALTER TABLE held ADD COLUMN said TEXT; -- the agent's last words, once a turn has ended and while no other runs
`, `
CREATE TABLE places ( -- where sessions left something that can be landed
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL UNIQUE,
    place      TEXT NOT NULL
) STRICT;
CREATE TABLE landings ( -- requests to land that were begun and whose answer isn't accepted yet
    landing_id TEXT PRIMARY KEY,
    head       TEXT NOT NULL, -- the commit checked out when it was begun
    planned    TEXT NOT NULL, -- the commit that the base branch was about to get
    report     TEXT NOT NULL  -- what came of it; empty: unknown
) STRICT;
`}

// state is the worker's own file. Whatever this process will need to know after a crash is
// written here before it happens. contract 10.1
type state struct{ db *sql.DB }

// openState opens or creates the file in dir, which the caller has locked.
func openState(dir string) (*state, error) {
	file := filepath.Join(dir, "worker.db")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600) // the driver would make it world-readable
	if err != nil {
		return nil, fmt.Errorf("open the worker's state: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open the worker's state: %w", err)
	}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: strings.Join([]string{
		"_txlock=immediate", "_busy_timeout=5000", "_journal_mode=WAL", "_synchronous=FULL", "_dqs=0", "_defensive=1",
		"_pragma=trusted_schema(0)", "_pragma=mmap_size(0)", "_pragma=fullfsync(1)", "_pragma=checkpoint_fullfsync(1)",
	}, "&")}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open the worker's state: %w", err)
	}
	db.SetMaxOpenConns(1)
	s := &state{db: db}
	if err := s.prepare(); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open the worker's state %s: %w", file, err)
	}
	return s, nil
}

// prepare checks that the connection is as safe as it was asked to be, and creates the tables.
func (s *state) prepare() error {
	var mode string
	var synchronous, version int
	err := errors.Join(
		s.db.QueryRowContext(durable(), "PRAGMA journal_mode").Scan(&mode),
		s.db.QueryRowContext(durable(), "PRAGMA synchronous").Scan(&synchronous),
		s.db.QueryRowContext(durable(), "PRAGMA user_version").Scan(&version),
	)
	switch {
	case err != nil:
		return err
	case mode != "wal" || synchronous != 2:
		return fmt.Errorf("it is in journal mode %s with synchronous %d, not wal with 2", mode, synchronous)
	case version > len(stateSteps):
		return fmt.Errorf("it was written by a newer version (%d) of this program", version)
	case version == len(stateSteps):
		return nil
	}
	return s.tx("make the tables", func(tx *sql.Tx) error {
		for _, step := range stateSteps[version:] {
			if _, err := tx.ExecContext(durable(), step); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(durable(), fmt.Sprintf("PRAGMA user_version = %d", len(stateSteps)))
		return err
	})
}

// durable is the context of every statement: a cancelled one would roll back the driver's
// whole transaction and continue outside it.
func durable() context.Context { return context.Background() }

func (s *state) close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close the worker's state: %w", err)
	}
	return nil
}

// tx runs do in one transaction, durable when it returns nil.
func (s *state) tx(doing string, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(durable(), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := do(tx); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", doing, err), ignoreDone(tx.Rollback()))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

func (s *state) exec(doing, query string, args ...any) error {
	if _, err := s.db.ExecContext(durable(), query, args...); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// fact returns a named value, "" when there is none.
func (s *state) fact(name string) (string, error) {
	var value string
	err := s.db.QueryRowContext(durable(), "SELECT value FROM facts WHERE name = ?1", name).Scan(&value)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return value, nil
}

func (s *state) setFact(name, value string) error {
	return s.exec("keep "+name, "INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
}

// known is what is kept about a worker record.
type known struct {
	agent    api.AgentID
	worker   api.WorkerID // zero: the record was deleted
	instance string
	pending  string
	deleted  bool // the record was deleted: it isn't registered again unless asked
}

func (s *state) saveWorker(k known) error {
	return s.exec("keep the worker id", `INSERT INTO workers (agent_id, worker_id, instance, pending) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (agent_id) DO UPDATE SET worker_id = excluded.worker_id, instance = excluded.instance, pending = excluded.pending`,
		k.agent.String(), k.worker.String(), k.instance, k.pending)
}

// sending is k with the instance that is about to be sent.
func (k known) sending(agent api.AgentID, instance string) known {
	k.agent, k.pending = agent, instance
	return k
}

// worker returns what is kept about an agent's record; the zero value when nothing is.
func (s *state) worker(agent api.AgentID) (known, error) {
	k := known{agent: agent}
	err := s.db.QueryRowContext(durable(), "SELECT worker_id, instance, pending FROM workers WHERE agent_id = ?1", agent.String()).
		Scan(text{&k.worker}, &k.instance, &k.pending)
	k.deleted = err == nil && k.pending == ""
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return known{}, fmt.Errorf("read the worker id: %w", err)
	}
	return k, nil
}

// forgetWorker notes that a record was deleted, and that its drained claims no longer matter
// to anybody.
func (s *state) forgetWorker(agent api.AgentID, worker api.WorkerID) error {
	return s.tx("forget the worker id", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(durable(), "UPDATE workers SET worker_id = '', instance = '', pending = '' WHERE agent_id = ?1", agent.String()); err != nil {
			return err
		}
		_, err := tx.ExecContext(durable(), "DELETE FROM drained WHERE worker_id = ?1", worker.String())
		return err
	})
}

// forgetAll empties the file of what belongs to another account.
func (s *state) forgetAll() error {
	return s.tx("forget the other account", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(durable(), "DELETE FROM workers; DELETE FROM held; DELETE FROM outbox; DELETE FROM drained; DELETE FROM crashes; DELETE FROM places; DELETE FROM landings")
		return err
	})
}

// text scans an id from its text.
type text struct {
	to interface{ UnmarshalText([]byte) error }
}

// Scan reads a column.
func (t text) Scan(src any) error {
	s, ok := src.(string)
	if !ok {
		return fmt.Errorf("an id is text, not %T", src)
	}
	return t.to.UnmarshalText([]byte(s))
}
