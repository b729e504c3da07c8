// Package queries is the SQL of the store and the Go that sqlc generates from it.
package queries

import "stint/db/direct"

// This file stands for the one that sqlc generates, which would run the statements by
// database/sql. sqlc is told to write that into a folder that the compiler passes over.

// Queries are the statements on one connection.
type Queries struct {
	db *direct.DB
}

// New returns the statements on a connection. They run under what [direct.DB.Until] says, not
// under the contexts that they are given.
func New(db *direct.DB) *Queries { return &Queries{db: db} }
