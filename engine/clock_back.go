package engine

import (
	"stint/api"
	"stint/db"
)

// clockBack keeps every lease, drain and delay at its own length, counted from
// now, and takes back beats from the future.
func (e *Engine) clockBack(tx *db.Tx, last, now int64) error {
	n, err := tx.ClampClaims(tx.Context(), now)
	if err != nil {
		return err
	}
	if _, err := tx.ClampDrains(tx.Context(), now); err != nil {
		return err
	}
	if _, err := tx.ClampTasks(tx.Context(), now); err != nil {
		return err
	}
	if _, err := tx.ClampBeats(tx.Context(), now); err != nil {
		return err
	}
	if _, err := tx.ClampQueued(tx.Context(), now); err != nil {
		return err
	}
	e.log.Warn("the clock was set back", "seconds", (last-now)/1_000_000, "leases clamped", n)
	return tx.Log(db.Event{Actor: api.ActorSystem, Type: api.EventClockBack, Data: api.EventData{
		"from": api.At(last).String(), "to": api.At(now).String(), "clamped": n,
	}})
}
