package queries_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stint/db"
)

// grown are the tables that grow with every session, so nothing may scan all of one while
// somebody waits.
var grown = []string{
	"sessions", "items", "events", "activities", "claims", "prompts", "messages", "deliveries", "ledger", "threads", "idempotency_keys", "late_results",
}

// scanning are the statements that scan a whole table nevertheless.
var scanning = map[string]string{}

// TestEveryStatementHasAnIndex asks SQLite for the plan of every statement. One
// that scans a table that grows takes seconds at a million rows.
func TestEveryStatementHasAnIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stint.db")
	store, err := db.Open(t.Context(), db.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	partial := partialIndexes(t, pool)
	statements := generated(t)
	if len(statements) < 200 {
		t.Fatalf("only %d statements were found", len(statements))
	}
	for name, text := range statements {
		steps, err := plan(t, pool, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, step := range steps {
			if _, known := scanning[name]; !known && scans(step, text, partial) {
				t.Errorf("%s looks through a whole table: %s", name, strings.Join(steps, "; "))
			}
		}
	}
	for name, index := range map[string]string{
		"ReachOfSessions": "sessions_newest", "ListSessions": "sessions_newest", "ViewCounts": "sessions_newest", "ViewNewer": "sessions_newest",
		"ReachOfAgentsSessions": "sessions_agent", "ListSessionsOfAgent": "sessions_agent",
		"ReachOfOpenSessions": "sessions_open", "ListOpenSessions": "sessions_open",
		"ReachOfEndedSessions": "sessions_ended", "ListEndedSessions": "sessions_ended",
	} {
		steps, err := plan(t, pool, statements[name])
		if !strings.Contains(strings.Join(steps, "; "), index+" ") {
			t.Errorf("%s doesn't go by %s: %s (%v)", name, index, strings.Join(steps, "; "), err)
		}
	}
	for name := range scanning {
		if _, ok := statements[name]; !ok {
			t.Errorf("%s is no statement any more", name)
		}
	}
}

// partialIndexes are the names of the indexes that hold some of their table's rows.
func partialIndexes(t *testing.T, pool *sql.DB) map[string]bool {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), `SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names[name] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// generated returns the statements in the generated files by their names.
func generated(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.sql.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)const \\w+ = `-- name: (\\w+) :\\w+\n(.*?)`").FindAllStringSubmatch(string(code), -1) {
			all[m[1]] = m[2]
		}
	}
	return all
}

func plan(t *testing.T, pool *sql.DB, text string) (steps []string, err error) {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	rows, err := pool.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args[:highest(text)]...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, rows.Err()
}

// highest is the number of a statement's last argument.
func highest(text string) (n int) {
	for n = 0; strings.Contains(text, "?"+strconv.Itoa(n+1)); n++ {
	}
	return n
}

var scan = regexp.MustCompile(`^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?`)

// scans reports whether a step of a plan scans a table that grows, by its name or by the alias
// that the statement gives it. A scan of a partial index doesn't count: the index holds only
// the rows that it is about.
func scans(step, text string, partial map[string]bool) bool {
	m := scan.FindStringSubmatch(step)
	if m == nil || partial[m[2]] {
		return false
	}
	if slices.Contains(grown, m[1]) {
		return true
	}
	for _, table := range grown {
		if regexp.MustCompile(`\b` + table + ` ` + m[1] + `\b`).MatchString(text) {
			return true
		}
	}
	return false
}
