package direct

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file alone knows what the driver doesn't promise: the fields of its connection, the
// translated C functions below it, and memory that Go doesn't manage. Its test fails when one
// of them changes.

// library is SQLite below one connection of the driver.
type library struct {
	tls *libc.TLS // the connection's own; like the connection, for one goroutine at a time
	db  uintptr   // sqlite3*
}

// libraryOf finds SQLite below a connection of the driver, whose fields have no other door.
func libraryOf(conn any) (library, error) {
	v := reflect.ValueOf(conn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return library{}, fmt.Errorf("the SQLite driver's connection is a %T, not a pointer to a struct", conn)
	}
	db, tls := v.Elem().FieldByName("db"), v.Elem().FieldByName("tls")
	if db.Kind() != reflect.Uintptr || db.Uint() == 0 {
		return library{}, fmt.Errorf("the SQLite driver's %T has no handle of SQLite's in db", conn)
	}
	if !tls.IsValid() || tls.Type() != reflect.TypeFor[*libc.TLS]() || tls.IsNil() {
		return library{}, fmt.Errorf("the SQLite driver's %T has no *libc.TLS in tls", conn)
	}
	return library{tls: (*libc.TLS)(tls.UnsafePointer()), db: uintptr(db.Uint())}, nil
}

// unlock makes SQLite take no lock of the connection's, as if it had been opened with
// SQLITE_OPEN_NOMUTEX, which the driver has no setting for. A lock and its release around each
// bind and each column cost a tenth of a statement. lock gives it back.
func (l library) unlock() (lock func(), err error) {
	c := (*sqlite3.Tsqlite3)(at(l.db))
	own := sqlite3.Xsqlite3_db_mutex(l.tls, l.db)
	if own == 0 || c.Fmutex != own {
		return nil, errors.New("SQLite's connection doesn't have its lock where the translation has it")
	}
	c.Fmutex = 0
	if sqlite3.Xsqlite3_db_mutex(l.tls, l.db) != 0 {
		c.Fmutex = own
		return nil, errors.New("SQLite's connection keeps its lock")
	}
	return func() { c.Fmutex = own }, nil
}

// at is where C's p points. It isn't Go's memory, so nothing moves it.
func at(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// What sqlite3_step and the others answer when nothing went wrong.
const (
	ok   = sqlite3.SQLITE_OK
	row  = sqlite3.SQLITE_ROW
	done = sqlite3.SQLITE_DONE

	interrupted = sqlite3.SQLITE_INTERRUPT
	noMemory    = sqlite3.SQLITE_NOMEM
)

// prepare compiles one statement. It is SQLite's to plan it again when the schema changes.
func (l library) prepare(query string) (stmt uintptr, err error) {
	text, err := libc.CString(query)
	if err != nil {
		return 0, err
	}
	defer libc.Xfree(l.tls, text)
	const pointer = unsafe.Sizeof(uintptr(0))
	out := libc.Xcalloc(l.tls, 2, types.Size_t(pointer))
	if out == 0 {
		return 0, l.failure(noMemory)
	}
	defer libc.Xfree(l.tls, out)
	if rc := sqlite3.Xsqlite3_prepare_v3(l.tls, l.db, text, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, out, out+pointer); rc != ok {
		return 0, l.failure(rc)
	}
	found := unsafe.Slice((*uintptr)(unsafe.Pointer(unsafe.SliceData(libc.GoBytes(out, int(2*pointer))))), 2)
	stmt, rest := found[0], libc.GoString(found[1])
	if stmt == 0 {
		return 0, errors.New("the text holds no statement")
	}
	if strings.TrimSpace(rest) != "" {
		sqlite3.Xsqlite3_finalize(l.tls, stmt)
		return 0, fmt.Errorf("the text holds more than one statement: %q", rest)
	}
	return stmt, nil
}

func (l library) finalize(stmt uintptr) { sqlite3.Xsqlite3_finalize(l.tls, stmt) }
func (l library) parameters(stmt uintptr) int {
	return int(sqlite3.Xsqlite3_bind_parameter_count(l.tls, stmt))
}

func (l library) columns(stmt uintptr) int { return int(sqlite3.Xsqlite3_column_count(l.tls, stmt)) }

func (l library) columnName(stmt uintptr, i int) string {
	return libc.GoString(sqlite3.Xsqlite3_column_name(l.tls, stmt, int32(i)))
}
func (l library) step(stmt uintptr) int32  { return sqlite3.Xsqlite3_step(l.tls, stmt) }
func (l library) reset(stmt uintptr) int32 { return sqlite3.Xsqlite3_reset(l.tls, stmt) }
func (l library) unbind(stmt uintptr)      { sqlite3.Xsqlite3_clear_bindings(l.tls, stmt) }
func (l library) changes() int64           { return sqlite3.Xsqlite3_changes64(l.tls, l.db) }
func (l library) bindNull(s uintptr, i int) int32 {
	return sqlite3.Xsqlite3_bind_null(l.tls, s, int32(i))
}

func (l library) bindInteger(s uintptr, i int, v int64) int32 {
	return sqlite3.Xsqlite3_bind_int64(l.tls, s, int32(i), v)
}

func (l library) bindFloat(s uintptr, i int, v float64) int32 {
	return sqlite3.Xsqlite3_bind_double(l.tls, s, int32(i), v)
}

// bindText and bindBlob don't copy: p must hold until the parameter is bound again.
func (l library) bindText(s uintptr, i int, p uintptr, n int) int32 {
	return sqlite3.Xsqlite3_bind_text(l.tls, s, int32(i), p, int32(n), 0)
}

func (l library) bindBlob(s uintptr, i int, p uintptr, n int) int32 {
	return sqlite3.Xsqlite3_bind_blob(l.tls, s, int32(i), p, int32(n), 0)
}

// column is a value of the row that a statement stands on, good until it moves.
type column struct {
	l library
	p uintptr // sqlite3_value*
}

func (l library) column(stmt uintptr, i int) column {
	return column{l, sqlite3.Xsqlite3_column_value(l.tls, stmt, int32(i))}
}

// class is a value's storage class.
type class int32

const (
	integer = class(sqlite3.SQLITE_INTEGER)
	float   = class(sqlite3.SQLITE_FLOAT)
	text    = class(sqlite3.SQLITE_TEXT)
	blob    = class(sqlite3.SQLITE_BLOB)
	null    = class(sqlite3.SQLITE_NULL)
)

func (c column) class() class   { return class(sqlite3.Xsqlite3_value_type(c.l.tls, c.p)) }
func (c column) integer() int64 { return sqlite3.Xsqlite3_value_int64(c.l.tls, c.p) }
func (c column) float() float64 { return sqlite3.Xsqlite3_value_double(c.l.tls, c.p) }

func (c column) text() string {
	p := sqlite3.Xsqlite3_value_text(c.l.tls, c.p)
	return string(libc.GoBytes(p, int(sqlite3.Xsqlite3_value_bytes(c.l.tls, c.p))))
}

func (c column) blob() []byte {
	p := sqlite3.Xsqlite3_value_blob(c.l.tls, c.p)
	return append([]byte{}, libc.GoBytes(p, int(sqlite3.Xsqlite3_value_bytes(c.l.tls, c.p)))...)
}

// allocate returns n bytes that the garbage collector neither moves nor frees; 0 = there are none.
func (l library) allocate(n int) uintptr { return libc.Xmalloc(l.tls, types.Size_t(n)) }
func (l library) free(p uintptr)         { libc.Xfree(l.tls, p) }

// memory is what allocate returned, as bytes.
func memory(p uintptr, n int) []byte { return libc.GoBytes(p, n) }

// interrupt makes the running statements of the connection fail, if there are any. It alone may
// be called from any goroutine, so it doesn't use the connection's TLS.
func (l library) interrupt() {
	tls := libc.NewTLS()
	sqlite3.Xsqlite3_interrupt(tls, l.db)
	tls.Close()
}

// failure is the error for a result code, in the driver's words. What the handle knows is about
// its last failure; it is told only if that is this one.
func (l library) failure(rc int32) error {
	message := libc.GoString(sqlite3.Xsqlite3_errstr(l.tls, rc))
	if known := sqlite3.Xsqlite3_extended_errcode(l.tls, l.db); known == rc || known&0xff == rc&0xff {
		if more := libc.GoString(sqlite3.Xsqlite3_errmsg(l.tls, l.db)); more != message {
			message += ": " + more
		}
	}
	message = fmt.Sprintf("%s (%d)", message, rc)
	if rc == sqlite3.SQLITE_BUSY {
		message += " (SQLITE_BUSY)"
	}
	return &Error{message: message, code: int(rc)}
}

// unseen hides from the compiler that what it returns is what it was given. Arguments and
// destinations then stay on the caller's stack though some of their methods are called, which
// the compiler can't look into: binding and scanning keep none of them.
//
// While the address is a number nothing corrects it when the stack moves, so nothing may be called
// in between: neither to grow the stack (nosplit) nor, in builds that check pointers and races,
// to look at it (nocheckptr, norace). Preemption alone doesn't move a stack.
//
//go:nosplit
//go:nocheckptr
//go:norace
func unseen(values []any) []any {
	p := uintptr(unsafe.Pointer(unsafe.SliceData(values)))
	return unsafe.Slice(*(**any)(unsafe.Pointer(&p)), len(values))
}
