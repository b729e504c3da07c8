package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"stint/db"
)

// tables are everything that a refused write must leave alone. The counters are left out: the
// coordinator records there that it is alive, and hands out ids.
var tables = []string{
	"workspaces", "users", "members", "tokens", "agents", "agent_versions", "workers", "sessions", "claims", "prompts",
	"activities", "items", "events", "ledger", "idempotency_keys", "late_results",
	"tasks", "task_blockers", "task_comments",
}

// Hash is a fingerprint of every row of the tables above.
func (w *Fixture) Hash() string {
	w.Helper()
	sum := sha256.New()
	err := w.Store.Read(context.Background(), func(tx *db.ReadTx) error {
		for _, t := range tables {
			if err := hashTable(tx, sum, t); err != nil {
				return fmt.Errorf("table %s: %w", t, err)
			}
		}
		return nil
	})
	if err != nil {
		w.Fatalf("hash the tables: %v", err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func hashTable(tx *db.ReadTx, sum hash.Hash, table string) error {
	rows, err := tx.Query(context.Background(), "SELECT *, 0 FROM "+table+" ORDER BY 1, 2, 3")
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]any, len(names))
	for i := range values {
		values[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			return err
		}
		for _, v := range values {
			fmt.Fprintf(sum, "%v|", *v.(*any))
		}
		fmt.Fprintln(sum, table)
	}
	return rows.Err()
}

// Tell is for messages: the tables' rows of a session, in short.
func (w *Fixture) Tell(query string, args ...any) (out []string) {
	w.Helper()
	err := w.Store.Read(context.Background(), func(tx *db.ReadTx) error {
		out = nil
		rows, err := tx.Query(context.Background(), query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				return err
			}
			out = append(out, line)
		}
		return rows.Err()
	})
	if err != nil {
		w.Fatalf("%s: %v", query, err)
	}
	return out
}
