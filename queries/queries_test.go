package queries_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"stint/db"
)

// TestEveryStatementRuns executes each generated statement once on a migrated database. The
// generator can be silently wrong on SQLite (parameters dropped, misnumbered or of another
// type); a statement that the database refuses for any reason other than its data is such a
// case.
func TestEveryStatementRuns(t *testing.T) {
	ctx := context.Background()
	store, err := db.Open(ctx, db.Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ran := 0
	undo := errors.New("undo")
	err = store.Write(ctx, func(tx *db.Tx) error {
		q := reflect.ValueOf(tx.Queries)
		for i := range q.NumMethod() {
			m := q.Type().Method(i)
			if m.Name == "WithTx" {
				continue
			}
			args := []reflect.Value{reflect.ValueOf(ctx)}
			for j := 2; j < m.Type.NumIn(); j++ {
				args = append(args, sample(m.Type.In(j)))
			}
			out := q.Method(i).Call(args)
			err, _ := out[len(out)-1].Interface().(error)
			if err != nil && !errors.Is(err, sql.ErrNoRows) && !strings.Contains(err.Error(), "constraint failed") {
				t.Errorf("%s: %v", m.Name, err)
			}
			ran++
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	if ran < 100 {
		t.Fatalf("only %d statements were run", ran)
	}
}

// sample makes an argument that isn't a zero value, so that a dropped parameter of another
// type shows.
func sample(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if v.Field(i).CanSet() {
				v.Field(i).Set(sample(t.Field(i).Type))
			}
		}
	case reflect.Int64:
		v.SetInt(7)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("x"))
		} else {
			v.Set(reflect.MakeSlice(t, 1, 1))
		}
	}
	return v
}

// TestQueryFiles_HouseRules keeps out what the generator gets silently wrong.
func TestQueryFiles_HouseRules(t *testing.T) {
	files, err := filepath.Glob("*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, r := range line {
				if r > 126 {
					t.Errorf("%s:%d holds %q: one such character cuts bytes off the statement", name, n+1, r)
				}
			}
			if strings.Contains(line, "?") {
				t.Errorf("%s:%d holds a bare ?: name every argument", name, n+1)
			}
			for _, bad := range []string{"sqlc.slice", "strftime", "datetime(", "json_", "rowid", "INSERT OR", "OFFSET"} {
				if strings.Contains(line, bad) {
					t.Errorf("%s:%d uses %s, which the two databases don't share or the generator gets wrong", name, n+1, bad)
				}
			}
		}
	}
}
