package enginetest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"stint/api"
	"stint/db"
)

// lay writes a database file.
func lay(path string, image func() ([]byte, error)) error {
	content, err := image()
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// Lay writes an empty, migrated database to a path where nothing exists yet. Migrating one
// takes a second under the race detector, and nearly every test needs one.
func Lay(t TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		return
	}
	if err := lay(path, empty); err != nil {
		t.Fatalf("lay an empty database: %v", err)
	}
}

// empty is a migrated, empty database, made once per test binary.
var empty = sync.OnceValues(func() ([]byte, error) { return migrated(func(string) error { return nil }) })

// template is one that forbids what must never happen.
var template = sync.OnceValues(func() ([]byte, error) { return migrated(forbid) })

func migrated(change func(path string) error) (image []byte, err error) {
	dir, err := os.MkdirTemp("", "stint-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "stint.db")
	store, err := db.Open(context.Background(), db.Options{Path: path, Clock: func() time.Time { return Start }})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	if err := change(path); err != nil {
		return nil, fmt.Errorf("change the template: %w", err)
	}
	return os.ReadFile(path)
}

// forbid adds triggers that abort a statement which breaks contract 2.3 or
// rewrites history, so that the statement itself fails and not a later check.
func forbid(path string) error {
	raw, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	defer raw.Close()
	columns, err := columnsOf(raw, "sessions")
	if err != nil {
		return err
	}
	var changed []string
	for _, c := range columns {
		if !slices.Contains([]string{"archived_at", "kept_at", "output_removed_at", "events_removed_at"}, c) {
			changed = append(changed, "OLD."+c+" IS NOT NEW."+c)
		}
	}
	triggers := []string{
		`CREATE TRIGGER move_by_the_table BEFORE UPDATE OF status ON sessions
WHEN OLD.status <> NEW.status AND OLD.status || '>' || NEW.status NOT IN (` + moves() + `)
BEGIN SELECT RAISE(ABORT, 'a status change that contract 2.3 does not have'); END`,
		`CREATE TRIGGER ended_rows_stay BEFORE UPDATE ON sessions
WHEN OLD.status IN ('complete', 'error', 'cancelled') AND (` + strings.Join(changed, " OR ") + `)
BEGIN SELECT RAISE(ABORT, 'an ended session was changed'); END`,
		`CREATE TRIGGER sessions_stay BEFORE DELETE ON sessions WHEN OLD.ended_at = 0 OR OLD.kept_at > 0 BEGIN SELECT RAISE(ABORT, 'a session was deleted'); END`,
		`CREATE TRIGGER closed_claims_stay BEFORE UPDATE ON claims
WHEN OLD.closed_at <> 0 AND (NEW.closed_at <> OLD.closed_at OR NEW.closed_by <> OLD.closed_by OR NEW.expires_at <> OLD.expires_at OR NEW.finish_hash <> OLD.finish_hash)
BEGIN SELECT RAISE(ABORT, 'a closed claim was changed'); END`,
		`CREATE TRIGGER claims_are_fixed BEFORE UPDATE ON claims
WHEN NEW.id <> OLD.id OR NEW.secret <> OLD.secret OR NEW.session_id <> OLD.session_id OR NEW.fence <> OLD.fence OR NEW.worker_id <> OLD.worker_id
BEGIN SELECT RAISE(ABORT, 'a claim was made another'); END`,
		`CREATE TRIGGER drains_are_final BEFORE UPDATE ON claims WHEN OLD.drained = 1 AND NEW.drained = 0
BEGIN SELECT RAISE(ABORT, 'a drained claim was undone'); END`,
		`CREATE TRIGGER fired_slots_stay BEFORE DELETE ON ledger WHEN OLD.verdict = 'fired'
BEGIN SELECT RAISE(ABORT, 'a fired slot was deleted'); END`,
	}
	for _, t := range triggers {
		if _, err := raw.Exec(t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

func columnsOf(raw *sql.DB, table string) (names []string, err error) {
	rows, err := raw.Query("SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// moves are the status changes of contract 2.3, written down once more.
func moves() string {
	table := map[api.Status]string{
		"pending":        "queued cancelled",
		"queued":         "active error cancelled",
		"stale":          "active queued error cancelled",
		"active":         "awaiting_input queued pending complete error stale cancelled",
		"awaiting_input": "active queued pending complete error stale cancelled",
	}
	var all []string
	for from, list := range table {
		for to := range strings.FieldsSeq(list) {
			all = append(all, fmt.Sprintf("'%s>%s'", from, to))
		}
	}
	return strings.Join(all, ", ")
}
