package db

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrOutcomeUnknown says that the disk failed while the change was being made durable, or
	// that the file turned out not to be the one at its path any more: the change may or may
	// not be there. That fsync is never repeated, because a second one can succeed without the
	// data (contract 14); the store reopens the file before it writes again.
	ErrOutcomeUnknown = errors.New("the outcome of this write is unknown")

	// ErrFailing says that the disk fails and that nothing was written. The store retries by
	// itself until it can write (contract 14).
	ErrFailing = errors.New("the disk fails")

	// ErrBusy says that another process kept the database locked for too long
	// and that nothing was written.
	ErrBusy = errors.New("the database is locked by another process")

	// ErrDamaged says that the file is not what SQLite wrote. Nothing was
	// written.
	ErrDamaged = errors.New("the database is damaged")

	// ErrMoved says that the file that is open is not the one at its path any
	// more, and that nothing was written. Writes succeed again once it is back.
	ErrMoved = errors.New("the database file is not at its path any more")

	// ErrForeign says that another program wrote over the open database or its log, and that
	// nothing was written. Only people can repair that.
	ErrForeign = errors.New("another program wrote over the open database")

	// ErrUnpaired says that a start found a log without its database, a database
	// without the log that its last use left, or two that don't belong together.
	ErrUnpaired = errors.New("the database can't be opened safely")

	// ErrSlow says that a read took longer than the store keeps a snapshot.
	ErrSlow = errors.New("the read took too long")

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

// errNoTransaction is what a statement gets when SQLite has ended the transaction it belongs
// to. Without it the statement would be committed by itself.
var errNoTransaction = errors.New("the transaction is over")

// PanicError is what [Store.Write] returns when its closure panicked. Nothing of that closure
// was written; the others of its transaction were. When a closure of [Store.Read] panics, its
// caller's goroutine panics again with it.
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
	codeLocked     = 6
	codeReadOnly   = 8
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeProtocol   = 15
	codeConstraint = 19
	codeNoDatabase = 26
	codeUnique     = 2067
	codePrimaryKey = 1555
)

// codeOf returns the extended result code of the SQLite error in err's chain, the driver's or
// a [direct.Error], or 0.
func codeOf(err error) int {
	var e interface {
		error
		Code() int
	}
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code()
}

// primary returns the primary result code of the SQLite error in err's chain,
// or 0.
func primary(err error) int { return codeOf(err) & 0xff }

// classify puts the package's own error in front of those SQLite errors that callers act on.
// The error must mean that nothing was written.
func classify(err error) error {
	if own, ok := classes[primary(err)]; ok && !errors.Is(err, own) {
		return fmt.Errorf("%w: %w", own, err)
	}
	return err
}

// ofDisk is classify for an error that the system may have made instead of SQLite.
func ofDisk(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return classify(err)
}

// classes are the package's own errors by SQLite's primary code.
var classes = map[int]error{
	codeFull:       ErrFull,
	codeReadOnly:   ErrReadOnly,
	codeIO:         ErrFailing,
	codeCantOpen:   ErrFailing,
	codeBusy:       ErrBusy,
	codeLocked:     ErrBusy,
	codeProtocol:   ErrBusy, // the log's index kept changing hands
	codeCorrupt:    ErrDamaged,
	codeNoDatabase: ErrDamaged,
}

// lasts reports whether err is a state of the store, not of one write: what [Store.Writable]
// returns until a write succeeds.
func lasts(err error) bool {
	for _, state := range []error{ErrFull, ErrReadOnly, ErrFailing, ErrDamaged} {
		if errors.Is(err, state) {
			return true
		}
	}
	return false
}

// errLogGone says that the database is in its place, but the log or its index is not. What
// they hold is still open and can be saved.
var errLogGone = fmt.Errorf("%w: its log was removed", ErrMoved)
