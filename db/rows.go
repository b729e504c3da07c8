package db

import (
	"database/sql"
	"errors"
	"time"

	"stint/api"
)

// Micros is an instant as columns hold it: microseconds since 1970.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Span is a length of time as columns hold it, in microseconds.
func Span(d time.Duration) int64 { return d.Microseconds() }

// Seconds is Span of so many seconds.
func Seconds(n int64) int64 { return n * 1_000_000 }

// Flag is a yes or no as statements take it: 1 or 0.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// errGuard says that a guarded statement changed no row though the row had just
// been read in the same transaction: another process moved it in between.
var errGuard = errors.New("the row was changed meanwhile")

// One turns the row count of a guarded statement into a conflict.
func One(n int64, err error) error {
	if err != nil {
		return err
	}
	if n != 1 {
		return errGuard
	}
	return nil
}

// None reports whether a query found no row.
func None(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// NotFound is the answer that there is no such thing, or none that the caller may
// know of. Error: not_found.
func NotFound(what string) *api.Error {
	return api.Refuse(api.CodeNotFound, "There is no such "+what+" here.")
}

// Load reads one row; a missing one is answered by [NotFound] about what.
func Load[T any](row T, err error, what string) (T, error) {
	if None(err) {
		return row, NotFound(what)
	}
	return row, err
}
