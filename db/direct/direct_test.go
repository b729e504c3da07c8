package direct

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"
)

type (
	name   string
	number int64
	list   []string
	yes    bool
)

// Value is part of [driver.Valuer].
func (l list) Value() (driver.Value, error) { return strings.Join(l, ","), nil }

// Scan is part of [sql.Scanner].
func (l *list) Scan(src any) error {
	*l = strings.Split(src.(string), ",")
	return nil
}

// driverConn opens a connection of the driver on a new file.
func driverConn(t testing.TB) (conn driver.Conn, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "direct.db")
	c, err := sqlite.NewConnector("file:" + path + "?_error_rc=1")
	must(t, err)
	conn, err = c.Connect(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close()) })
	return conn, path
}

func exec(t testing.TB, conn driver.Conn, query string) {
	t.Helper()
	_, err := conn.(driver.ExecerContext).ExecContext(t.Context(), query, nil)
	must(t, err)
}

// plain asks nobody.
var plain = Options{Preparing: func(string) func() Class { return func() Class { return Class{} } }, Admit: func(Class) error { return nil }}

// open returns statements on a new file with a table.
func open(t testing.TB) *DB {
	t.Helper()
	conn, _ := driverConn(t)
	exec(t, conn, `CREATE TABLE things (id INTEGER PRIMARY KEY, text TEXT UNIQUE, n INTEGER CHECK (n < 1000), real REAL, blob BLOB) STRICT`)
	d, err := New(conn, plain)
	must(t, err)
	t.Cleanup(d.Close)
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *DB) mustExec(t testing.TB, query string, args ...any) int64 {
	t.Helper()
	r, err := d.ExecContext(t.Context(), query, args...)
	must(t, err)
	n, err := r.RowsAffected()
	must(t, err)
	return n
}

// What is bound comes back as it was, whatever type carries it.
func TestBind_EveryTypeComesBack(t *testing.T) {
	d := open(t)
	long := strings.Repeat("long ", 10_000)
	for _, c := range []struct{ in, want any }{
		{int64(-1 << 62), int64(-1 << 62)},
		{int64(0), int64(0)},
		{7, int64(7)},
		{number(8), int64(8)},
		{true, int64(1)},
		{yes(false), int64(0)},
		{"", ""},
		{"za\x00żółć", "za\x00żółć"},
		{long, long},
		{name("n"), "n"},
		{list{"a", "b"}, "a,b"},
		{1.5, 1.5},
		{nil, nil},
		{[]byte(nil), nil},
		{[]byte{}, []byte{}},
		{[]byte{0, 1}, []byte{0, 1}},
	} {
		var got any
		must(t, d.QueryRowContext(t.Context(), "SELECT ?1", c.in).Scan(&got))
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%#v came back as %#v", c.in, got)
		}
	}
	if err := d.QueryRowContext(t.Context(), "SELECT ?1", struct{}{}).Scan(new(any)); err == nil {
		t.Error("a struct was bound")
	}
	if err := d.QueryRowContext(t.Context(), "SELECT ?1", int64(1), int64(2)).Scan(new(any)); err == nil {
		t.Error("an argument too many was bound")
	}
}

// A statement that had long texts binds short ones afterwards, and one text isn't another's place.
func TestBind_TextsOfManyLengthsInTurn(t *testing.T) {
	d := open(t)
	for _, n := range []int{1, 5000, 10, 100_000, 0, 300, 40_000, 1} {
		a, b, c := strings.Repeat("a", n), strings.Repeat("b", n/2), strings.Repeat("c", 3)
		var x, y, z string
		must(t, d.QueryRowContext(t.Context(), "SELECT ?1, ?2, ?3", a, b, c).Scan(&x, &y, &z))
		if x != a || y != b || z != c {
			t.Fatalf("texts of %d bytes came back as %d, %d, %q", n, len(x), len(y), z)
		}
	}
}

func TestScan_IntoEveryType(t *testing.T) {
	d := open(t)
	var (
		n    number
		i    int64
		i32  int32
		s    string
		text name
		l    list
		b    []byte
		bt   []byte
		f    float64
		y    yes
		none sql.NullInt64
		some sql.NullString
	)
	must(t, d.QueryRowContext(t.Context(), "SELECT 1, 2, 3, 'four', 'five', 'si,x', x'07', '8', 9.5, 1, NULL, 'y'").
		Scan(&n, &i, &i32, &s, &text, &l, &b, &bt, &f, &y, &none, &some))
	got := []any{n, i, i32, s, text, l, b, bt, f, y, none, some}
	want := []any{
		number(1), int64(2), int32(3), "four", name("five"),
		list{"si", "x"},
		[]byte{7},
		[]byte("8"), 9.5, yes(true),
		sql.NullInt64{},
		sql.NullString{String: "y", Valid: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("scanned %#v, not %#v", got, want)
	}
	for _, c := range []struct {
		query string
		dest  any
	}{
		{"SELECT NULL", new(int64)},
		{"SELECT NULL", new(string)},
		{"SELECT 'x'", new(int64)},
		{"SELECT 'x'", new(number)},
		{"SELECT 1", new(string)},
		{"SELECT 300", new(int8)},
		{"SELECT 1", 7},
		{"SELECT 1", (*number)(nil)},
	} {
		if err := d.QueryRowContext(t.Context(), c.query).Scan(c.dest); err == nil {
			t.Errorf("%s was scanned into a %T", c.query, c.dest)
		}
	}
	if err := d.QueryRowContext(t.Context(), "SELECT 1, 2").Scan(&i); err == nil {
		t.Error("two columns were scanned into one")
	}
	if len(d.open) != 0 {
		t.Errorf("%d statements are left open", len(d.open))
	}
}

func TestQuery_RowsInTurnAndTwiceAtOnce(t *testing.T) {
	d := open(t)
	for i := range 3 {
		d.mustExec(t, "INSERT INTO things (id) VALUES (?1)", int64(i))
	}
	const all = "SELECT id FROM things ORDER BY id"
	var pairs [][2]int64
	outer, err := d.QueryContext(t.Context(), all)
	must(t, err)
	for outer.Next() {
		var a, b int64
		must(t, outer.Scan(&a))
		inner, err := d.QueryContext(t.Context(), all)
		must(t, err)
		for inner.Next() {
			must(t, inner.Scan(&b))
			pairs = append(pairs, [2]int64{a, b})
		}
		must(t, inner.Err())
		must(t, inner.Close())
	}
	must(t, outer.Err())
	if outer.Next() {
		t.Error("there is a row after the last")
	}
	must(t, outer.Close())
	if want := [][2]int64{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}}; !reflect.DeepEqual(pairs, want) {
		t.Errorf("two cursors of one text gave %v", pairs)
	}
}

// Rows that were closed don't end those that the same statement returns later.
func TestRows_ClosedOnesTouchNoLaterOnes(t *testing.T) {
	d := open(t)
	const two = "SELECT 1 UNION ALL SELECT 2"
	first, err := d.QueryContext(t.Context(), two)
	must(t, err)
	must(t, first.Close())
	second, err := d.QueryContext(t.Context(), two)
	must(t, err)
	must(t, first.Close())
	if first.Next() || first.Scan(new(int64)) == nil {
		t.Error("closed rows have rows")
	}
	n := 0
	for second.Next() {
		n++
	}
	if n != 2 {
		t.Errorf("%d rows, not 2", n)
	}
	if !d.CloseRows() || d.CloseRows() {
		t.Error("CloseRows counts wrongly")
	}
	if err := second.Scan(new(int64)); err == nil {
		t.Error("rows that CloseRows closed can be scanned")
	}
}

// A statement that failed does its work the next time, and tells SQLite's code.
func TestExec_AfterAFailure(t *testing.T) {
	d := open(t)
	const insert = "INSERT INTO things (id, text, n) VALUES (?1, ?2, ?3) RETURNING id"
	run := func(id int64, text string, n int64) error {
		return d.QueryRowContext(t.Context(), insert, id, text, n).Scan(&id)
	}
	must(t, run(1, "x", 1))
	for _, c := range []struct {
		err  error
		code int
	}{
		{run(1, "y", 1), 1555},
		{run(2, "x", 1), 2067},
		{run(3, "z", 1000), 275},
	} {
		var e *Error
		if !errors.As(c.err, &e) || e.Code() != c.code || !strings.Contains(e.Error(), "constraint failed: ") {
			t.Errorf("%v instead of code %d", c.err, c.code)
		}
	}
	must(t, run(3, "z", 2))
	if n := d.mustExec(t, "UPDATE things SET n = n + 1"); n != 2 {
		t.Errorf("%d rows changed, not 2", n)
	}
	if n := d.mustExec(t, "INSERT INTO things (id) VALUES (1) ON CONFLICT DO NOTHING"); n != 0 {
		t.Errorf("%d rows inserted, not 0", n)
	}
	err := d.QueryRowContext(t.Context(), "SELECT id FROM things WHERE id = ?1", int64(9)).Scan(new(int64))
	if !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("no row is told as %v", err)
	}
	if len(d.open) != 0 {
		t.Errorf("%d statements are left open", len(d.open))
	}
}

func TestAdmit_RefusesAndIsToldTheClass(t *testing.T) {
	d := open(t)
	refuse := errors.New("refused")
	var told Class
	d.o.Preparing = func(string) func() Class {
		return func() Class { return Class{Writes: "things", Flush: true} }
	}
	d.o.Admit = func(c Class) error { told = c; return refuse }
	want := Class{Writes: "things", Flush: true}
	if _, err := d.ExecContext(t.Context(), "DELETE FROM things"); !errors.Is(err, refuse) || told != want {
		t.Errorf("%v, of %+v", err, told)
	}
}

// endless has no end that a test would see.
const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"

func TestUntil_EndsARunningStatementAndRefusesLaterOnes(t *testing.T) {
	d := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	over := d.Until(ctx)
	if err := d.QueryRowContext(t.Context(), endless).Scan(new(int64)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an interrupted statement: %v", err)
	}
	if err := d.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int64)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a later statement: %v", err)
	}
	over()
	for range 100 {
		must(t, d.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int64)))
	}
}

// The end of the context is seen between two rows, which are steps of their own.
func TestUntil_EndsRowsBetweenSteps(t *testing.T) {
	d := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer d.Until(ctx)()
	rows, err := d.QueryContext(t.Context(), "SELECT 1 UNION ALL SELECT 2")
	must(t, err)
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	cancel()
	if rows.Next() || !errors.Is(rows.Err(), context.Canceled) {
		t.Errorf("after the end: %v", rows.Err())
	}
	must(t, rows.Close())
}

// The point of it all: a statement with numbers and short texts allocates nothing.
func TestExec_AllocatesNothing(t *testing.T) {
	d := open(t)
	d.mustExec(t, "INSERT INTO things (id, text, n) VALUES (7, 'x', 1)")
	ctx := t.Context()
	id, text := int64(7_000_000), name(strings.Repeat("text", 4))
	got := testing.AllocsPerRun(100, func() {
		if _, err := d.ExecContext(ctx, "UPDATE things SET text = ?2 WHERE id = ?1", id, text); err != nil {
			t.Error(err)
		}
		var n number
		if err := d.QueryRowContext(ctx, "SELECT n FROM things WHERE n < ?1", id).Scan(&n); err != nil || n != 1 {
			t.Error(n, err)
		}
	})
	if got > 0 {
		t.Errorf("%g allocations", got)
	}
}
