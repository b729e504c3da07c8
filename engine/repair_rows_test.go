package engine_test

import (
	"database/sql"
	"strconv"
	"testing"

	"stint/engine/enginetest"
)

// damage runs statements on the file, bypassing the engine and the triggers that would stop
// them.
func damage(t testing.TB, w *enginetest.Fixture, statements ...string) {
	t.Helper()
	raw, err := sql.Open("sqlite", "file:"+w.Path+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	rows, err := raw.Query("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	var drops []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		drops = append(drops, "DROP TRIGGER "+name)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range append(drops, statements...) {
		if _, err := raw.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func number[T ~int64](id T) string { return strconv.FormatInt(int64(id), 10) }

// ask reads one row of the fixture's file that no verb shows.
func ask(t testing.TB, w *enginetest.Fixture, query string, to ...any) {
	t.Helper()
	raw, err := sql.Open("sqlite", "file:"+w.Path+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := raw.QueryRow(query).Scan(to...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
