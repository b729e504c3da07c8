package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Idempotency makes a creation repeatable: the same key, route and body for the same agent, or in
// the same workspace, return the first session or task again for 24 hours (contract 2.8). Each of
// a user's runs has separate keys. The zero value is none.
type Idempotency struct {
	Key   string
	Route string
	Body  []byte
}

// keepKey stores an Idempotency-Key, if there is one, with the session that it made.
func (e *Engine) keepKey(tx *db.Tx, c Caller, idem Idempotency, s *sessionRow) error {
	return putKey(tx, c, idem, s.ID, 0)
}

func putKey(tx *db.Tx, c Caller, idem Idempotency, session api.SessionID, task api.TaskID) error {
	if idem.Key == "" {
		return nil
	}
	hash := sha256.Sum256(idem.Body)
	err := tx.PutIdempotencyKey(tx.Context(), queries.PutIdempotencyKeyParams{
		UserID: c.UserID, Route: idem.Route, Key: idem.Key, BodyHash: hash[:], SessionID: session, TaskID: task, CreatedAt: db.Micros(tx.Now),
	})
	if err != nil {
		return fmt.Errorf("keep the idempotency key: %w", err)
	}
	return nil
}

// replay returns the session that the key made before, 0 when it is new or too old.
func (e *Engine) replay(tx *db.Tx, c Caller, idem Idempotency) (api.SessionID, error) {
	k, err := e.keptKey(tx, c, idem)
	return k.SessionID, err
}

// keptKey is what is known of a key, nothing when it is new or too old. Errors:
// idempotency_key_reused.
func (e *Engine) keptKey(tx *db.Tx, c Caller, idem Idempotency) (k queries.IdempotencyKey, err error) {
	if idem.Key == "" {
		return k, nil
	}
	k, err = tx.IdempotencyKey(tx.Context(), queries.IdempotencyKeyParams{UserID: c.UserID, Route: idem.Route, Key: idem.Key})
	if db.None(err) || (err == nil && k.CreatedAt <= db.Micros(tx.Now.Add(-e.cfg.KeyLife))) {
		return queries.IdempotencyKey{}, nil
	}
	if err != nil {
		return k, fmt.Errorf("read the idempotency key: %w", err)
	}
	if hash := sha256.Sum256(idem.Body); string(hash[:]) != string(k.BodyHash) {
		return k, &api.Error{
			Code: api.CodeIdempotencyReuse, Detail: "This Idempotency-Key was used with another body within the last 24 hours.",
			Fields: []api.FieldError{{Field: "Idempotency-Key", Detail: "use a new key for a new request"}},
		}
	}
	return k, nil
}

// dropKeys deletes idempotency keys that have expired.
func (e *Engine) dropKeys(ctx context.Context, _ time.Time) (time.Time, error) {
	return time.Time{}, e.write(ctx, func(tx *db.Tx) error {
		_, err := tx.DropIdempotencyKeys(tx.Context(), db.Micros(tx.Now.Add(-e.cfg.KeyLife)))
		return err
	})
}
