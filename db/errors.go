package db

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

var (
	// ErrOutcomeUnknown says that the disk failed while the change was being
	// made durable: it may or may not be there. The store writes nothing any
	// more after it (see [Store.Fatal]); fsync is never tried again, because a
	// second fsync can succeed without the data (contract 14).
	ErrOutcomeUnknown = errors.New("the outcome of this write is unknown")

	// ErrFull says that the disk is full and that nothing was written. Later
	// writes succeed as soon as there is space.
	ErrFull = errors.New("the disk is full")

	// ErrReadOnly says that the file or its disk cannot be written to now and
	// that nothing was written. Later writes succeed as soon as they can.
	ErrReadOnly = errors.New("the database is read-only")

	// ErrClosed says that the store was closed before the call.
	ErrClosed = errors.New("the store is closed")

	// ErrNewer says that a newer program wrote the file; this one must not
	// touch it.
	ErrNewer = errors.New("the database was written by a newer version")
)

// errNoTransaction is what a statement gets when SQLite has ended the
// transaction it belongs to. Without it the statement would commit by itself.
var errNoTransaction = errors.New("the transaction is over")

// PanicError is what [Store.Write] returns when its closure panicked. Nothing
// of that closure was written; the others of its transaction were. A closure of
// [Store.Read] that panicked panics again with it on its caller's goroutine.
type PanicError struct {
	Value any    // what the closure panicked with
	Stack []byte // where, as runtime/debug.Stack prints it
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in a closure: %v\n%s", e.Value, e.Stack)
}

// Unwrap returns the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// IsUnique reports whether err says that a row breaks a unique index or a
// primary key.
func IsUnique(err error) bool {
	code := codeOf(err)
	return code == codeUnique || code == codePrimaryKey
}

// SQLite's result codes that this package acts on. The low byte is the primary
// code, the rest the detail.
const (
	codeBusy       = 5
	codeReadOnly   = 8
	codeFull       = 13
	codeConstraint = 19
	codeUnique     = 2067
	codePrimaryKey = 1555
)

// codeOf returns the extended result code of the SQLite error in err's chain,
// or 0.
func codeOf(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code()
}

// primary returns the primary result code of the SQLite error in err's chain,
// or 0.
func primary(err error) int { return codeOf(err) & 0xff }

// classify puts the package's own error in front of those SQLite errors that
// callers act on. The error must mean that nothing was written.
func classify(err error) error {
	switch primary(err) {
	case codeFull:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case codeReadOnly:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	default:
		return err
	}
}
