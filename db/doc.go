// Package db owns the database file: who may open it, with which settings, and the only two
// ways to use it.
//
// [Store.Write] is the one way to change anything. Closures never overlap: a single goroutine
// runs as many as are waiting in one transaction, each inside its own savepoint, commits once
// with synchronous=FULL and only then answers; a caller that comes while nothing is being
// written does the same with its own closure. Many callers share one fsync, a failing closure
// undoes only itself, and an answer without error means that the change survives a power cut.
// [Store.Read] gives one consistent snapshot on a pool of read-only connections that never
// waits for writers.
//
// The package must not know the rules of sessions and claims: it sees statements, the event
// log, counters and time. It calls nothing of the product above the generated queries, and nothing above it may
// open the file, begin a transaction or read the clock in any other way.
package db
