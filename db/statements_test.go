package db

import (
	"context"
	"testing"
)

// What a closure passes as a context never decides whether its statements run, those included
// that nobody has run before.
func TestWrite_StatementIsPreparedUnderAnEndedContext(t *testing.T) {
	s := open(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, s.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.ScheduledAgents(ended)
		return err
	}))
}
