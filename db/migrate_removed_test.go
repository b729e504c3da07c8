package db

import (
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMigrate_WhatWasRemovedBecomesSpans: rows of one owner and day become one, unless a session
// is left between them.
func TestMigrate_WhatWasRemovedBecomesSpans(t *testing.T) {
	const spans = "0102_removed_spans.sql"
	path, before := filepath.Join(t.TempDir(), "stint.db"), fstest.MapFS{}
	names, err := fs.Glob(embedded(), "*.sql")
	must(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(embedded(), name)
		must(t, err)
		if name < spans {
			before[name] = &fstest.MapFile{Data: text}
		}
	}
	raw, err := sql.Open("sqlite", path)
	must(t, err)
	defer raw.Close()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		up, _, _ := strings.Cut(string(before[name].Data), "-- +goose Down")
		if _, err := raw.ExecContext(t.Context(), up); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	text, err := fs.ReadFile(embedded(), spans)
	must(t, err)
	for _, stmt := range []string{
		"PRAGMA foreign_keys = OFF",
		session(t, raw, 15),
		// Owner, id and day: 1 to 4 went on one day, 5 on the next, 14 and 16 have one between them.
		"INSERT INTO removed_sessions (workspace_id, owner_user_id, id, day) VALUES (1,0,1,7), (1,0,2,7), (1,0,4,7), (1,0,5,8), (1,0,14,8), (1,0,16,8), (1,0,17,8)",
		"INSERT INTO removed_sessions (workspace_id, owner_user_id, id, day) VALUES (1,9,3,7), (1,9,6,7), (2,0,7,7), (2,0,15000,7)",
		string(text),
	} {
		if _, err := raw.ExecContext(t.Context(), stmt); err != nil {
			t.Fatalf("%.60s: %v", stmt, err)
		}
	}
	rows, err := raw.QueryContext(t.Context(), "SELECT workspace_id, owner_user_id, first_id, last_id, day FROM removed_spans ORDER BY 1, 2, 3")
	must(t, err)
	defer rows.Close()
	var got []string
	for rows.Next() {
		var of [5]int
		must(t, rows.Scan(&of[0], &of[1], &of[2], &of[3], &of[4]))
		got = append(got, fmt.Sprint(of))
	}
	must(t, rows.Err())
	want := []string{"[1 0 1 4 7]", "[1 0 5 14 8]", "[1 0 16 17 8]", "[1 9 3 6 7]", "[2 0 7 15000 7]"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// session is a statement that inserts a session with an id, whatever columns the table has.
func session(t *testing.T, raw *sql.DB, id int) string {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), "SELECT name, type FROM pragma_table_info('sessions')")
	must(t, err)
	defer rows.Close()
	var columns, values []string
	for rows.Next() {
		var name, kind string
		must(t, rows.Scan(&name, &kind))
		value := "0"
		switch {
		case name == "id" || name == "triggered_at":
			value = strconv.Itoa(id)
		case name == "workspace_id":
			value = "1"
		case name == "status":
			value = "'complete'"
		case name == "triggered_by":
			value = "'user'"
		case kind == "TEXT":
			value = "''"
		}
		columns, values = append(columns, name), append(values, value)
	}
	must(t, rows.Err())
	return fmt.Sprintf("INSERT INTO sessions (%s) VALUES (%s)", strings.Join(columns, ","), strings.Join(values, ","))
}
