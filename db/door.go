package db

import (
	"fmt"

	"stint/queries"
)

// Forgotten is the counter of the event log's past: no event up to its number is certain to be
// there still.
const Forgotten = "forgotten"

// ForgetEvents lets drop delete events numbered up to last, and answers how many went. It is the
// only way in which events go: the log refuses every other deletion, and no transaction commits
// that has opened the log and not closed it again (migration 0058). Who reads on from before
// last is told that there may be less than there was ([Forgotten]).
func (tx *Tx) ForgetEvents(last int64, drop func() (int64, error)) (int64, error) {
	if err := tx.OpenEventsDoor(tx.Context(), last+1); err != nil {
		return 0, fmt.Errorf("open the event log: %w", err)
	}
	gone, err := drop()
	if err != nil {
		return 0, fmt.Errorf("drop events: %w", err)
	}
	if err := One(tx.CloseEventsDoor(tx.Context())); err != nil {
		return 0, fmt.Errorf("close the event log: %w", err)
	}
	if gone == 0 {
		return 0, nil
	}
	if _, err := tx.RaiseCounter(tx.Context(), queries.RaiseCounterParams{Name: Forgotten, Value: last}); err != nil {
		return 0, fmt.Errorf("note up to where the event log is incomplete: %w", err)
	}
	return gone, nil
}
