package db

import (
	"context"
	"errors"

	"stint/api"
)

// Search is [Store.Read] for what looks at thousands of rows to find a few, on connections of
// its own: searches wait for each other, and nobody else for them. narrow says how whoever asks
// can have it look at less: "by agent or time".
func (s *Store) Search(ctx context.Context, narrow string, fn func(tx *ReadTx) error) error {
	err := s.read(ctx, forSearches, fn)
	if errors.Is(err, ErrSlow) && api.CodeOf(err) == "" {
		err = errors.Join(&api.Error{Code: api.CodeTooSlow, Detail: "This takes too long to find. Narrow it: " + narrow + ".", RetryIn: retryIn}, err)
	}
	return refused(err)
}

// retryIn is how long, in seconds, a caller waits before asking a store again
// that couldn't answer.
const retryIn = 5

// storeStates say what each state of the store is for a caller (contract 13, 14).
// The first that fits counts.
var storeStates = []struct {
	state error
	code  api.Code
	text  string
}{
	{ErrOutcomeUnknown, api.CodeOutcomeUnknown, "The disk failed while this was being written: it may or may not be kept. Ask again, and look before you repeat it."},
	{ErrForeign, api.CodeDatabaseMoved, "Another program wrote over the database, or cut it or its log off, while the coordinator ran. Nothing was changed. Stop the coordinator, restore a copy of stint.db, remove stint.db-wal, stint.db-shm and stint.db.lock beside it, and start again."},
	{ErrMoved, api.CodeDatabaseMoved, "The database file is not at its place any more: it was moved, deleted or replaced while the coordinator ran. Nothing was changed. Put stint.db back and the coordinator goes on by itself. If it was deleted, what it held is in stint.db.saved beside it: stop the coordinator, rename that to stint.db and start again."},
	{ErrDamaged, api.CodeDatabaseDamaged, "The database is damaged. Nothing was changed. Stop the coordinator, keep a copy of its data directory, and restore a sound copy of stint.db."},
	{ErrFull, api.CodeUnavailable, "The coordinator's disk is full; nothing was changed. It goes on by itself as soon as there is space."},
	{ErrReadOnly, api.CodeUnavailable, "The coordinator's disk is read-only now; nothing was changed. It goes on by itself as soon as it can write."},
	{ErrFailing, api.CodeUnavailable, "The coordinator's disk fails; nothing was changed. It tries again by itself."},
	{ErrBusy, api.CodeUnavailable, "Another program keeps the coordinator's database locked; nothing was changed. Ask again."},
	{ErrClosed, api.CodeUnavailable, "The coordinator is shutting down; nothing was changed."},
	{ErrSlow, api.CodeTooSlow, "The coordinator took too long to read this; nothing was changed. Ask again."},
}

// refused puts into the product's words the states of the store that a caller
// can act on; the store's own error stays in the chain.
func refused(err error) error {
	for _, s := range storeStates {
		if errors.Is(err, s.state) && api.CodeOf(err) == "" {
			return errors.Join(&api.Error{Code: s.code, Detail: s.text, RetryIn: retryIn}, err)
		}
	}
	return err
}
