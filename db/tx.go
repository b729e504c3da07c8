package db

import (
	"context"
	"time"

	"stint/queries"
)

// Tx is one closure's part of a write transaction. It is valid until the
// closure returns and only on the goroutine that runs it.
//
// The generated queries are given Context: statements always run under the
// transaction's own, which never ends early.
type Tx struct {
	*queries.Queries

	// Now is when this closure started, in UTC and whole microseconds.
	Now time.Time

	// From and Via say where the change comes from, for the log that the closure writes. The
	// store itself doesn't read them.
	From, Via string

	w *writer
	r *request
}

// Context is what the statements of a closure are given. It never ends: the store
// runs closures to their end whatever happens to the caller, because a cancelled
// INSERT would take the whole transaction with it.
func (tx *Tx) Context() context.Context { return context.Background() }

// AfterCommit calls f after the COMMIT and before [Store.Write] returns, in the order of the
// calls and only if this closure succeeded. Like closures, such calls never overlap and each
// sees what those before it did. f must be quick and must not call the store: every writer
// waits for it.
func (tx *Tx) AfterCommit(f func()) {
	tx.r.after = append(tx.r.after, f)
}

// NewID returns an id that no other call has returned or will return, in this process or
// another on the same file: at most 50 bits, strictly increasing, seconds since 2024 in the
// upper 32. A closure that fails loses its ids. When the counter cannot be read, it returns 0
// and the closure fails.
func (tx *Tx) NewID() int64 {
	id := &tx.w.ids
	if !tx.load(id) {
		return 0
	}
	// A batch that was lost has handed out ids without storing them.
	id.value = max(id.value+1, tx.w.lastID+1, idFloor(tx.Now))
	tx.w.lastID = id.value
	return id.value
}

// NextEvent returns the next event sequence number: gapless and in commit
// order. A closure that fails gives its numbers back. When the counter cannot
// be read, it returns 0 and the closure fails.
func (tx *Tx) NextEvent() int64 {
	seq := &tx.w.events
	if !tx.load(seq) {
		return 0
	}
	seq.value++
	return seq.value
}

// load reads the counter once per transaction. Under the write lock nothing else can change
// it, so the rest of the batch counts in memory.
func (tx *Tx) load(c *counter) bool {
	if c.loaded {
		return true
	}
	if err := c.load(tx.Queries); err != nil {
		tx.w.counterErr = err
		return false
	}
	return true
}
