package direct

import (
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The fields of the driver's connection are those that we take them for: SQLite below it is on
// the file that the driver opened, and in the state that the driver brought it into.
func TestLibrary_IsTheOneBelowTheDriversConnection(t *testing.T) {
	conn, path := driverConn(t)
	lib, err := libraryOf(conn)
	must(t, err)
	if got := libc.GoString(sqlite3.Xsqlite3_db_filename(lib.tls, lib.db, 0)); got != path {
		t.Errorf("the handle is open on %q, not on %q", got, path)
	}
	if sqlite3.Xsqlite3_get_autocommit(lib.tls, lib.db) == 0 {
		t.Error("a transaction is open before the driver began one")
	}
	exec(t, conn, "BEGIN")
	if sqlite3.Xsqlite3_get_autocommit(lib.tls, lib.db) != 0 {
		t.Error("the transaction that the driver began isn't open")
	}
	exec(t, conn, "ROLLBACK")
}

func TestLibrary_RefusesWhatIsNoConnectionOfTheDriver(t *testing.T) {
	for _, conn := range []any{nil, 7, struct{ db uintptr }{1}, &struct{ db uintptr }{}, &struct{ db uintptr }{1}, &struct {
		db  uintptr
		tls *int
	}{1, new(int)}, &struct{}{}} {
		if _, err := libraryOf(conn); err == nil {
			t.Errorf("%#v passed for a connection", conn)
		}
	}
}

func TestPrepare_TakesOneStatement(t *testing.T) {
	conn, _ := driverConn(t)
	lib, err := libraryOf(conn)
	must(t, err)
	for _, query := range []string{"", "-- nothing", "SELECT 1; SELECT 2", "SELEC 1", "SELECT \x00"} {
		if s, err := lib.prepare(query); err == nil {
			lib.finalize(s)
			t.Errorf("%q was prepared", query)
		}
	}
	s, err := lib.prepare("-- name: One :one\nSELECT 1;\n")
	must(t, err)
	lib.finalize(s)
}

// The lock is gone while the statements are ours, and back before the driver closes.
func TestLibrary_LocksAgainAfterClose(t *testing.T) {
	conn, _ := driverConn(t)
	lib, err := libraryOf(conn)
	must(t, err)
	own := sqlite3.Xsqlite3_db_mutex(lib.tls, lib.db)
	d, err := New(conn, plain)
	must(t, err)
	if own == 0 || sqlite3.Xsqlite3_db_mutex(lib.tls, lib.db) != 0 {
		t.Errorf("lock %d before, %d now", own, sqlite3.Xsqlite3_db_mutex(lib.tls, lib.db))
	}
	must(t, d.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int64)))
	if _, err := New(conn, Options{}); err == nil {
		t.Error("a connection was taken twice")
	}
	d.Close()
	if got := sqlite3.Xsqlite3_db_mutex(lib.tls, lib.db); got != own {
		t.Errorf("lock %d after, not %d", got, own)
	}
}
