package engine

import (
	"context"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// liveness is what this process knows of the coordinator's last sign of life. The
// store's counter `alive` holds the same for other processes and the next start.
type liveness struct {
	seen    int64 // the latest instant at which this process wrote
	written int64 // what the counter holds, as far as this process knows
}

const clockSlack = int64(1_000_000) // differences below a second are no clock step

// Alive records that the coordinator is alive and settles an outage or a clock step since the
// last time.
func (e *Engine) Alive(ctx context.Context) error {
	return e.write(ctx, func(*db.Tx) error { return nil })
}

// settle compares the clock with the last sign of life. One rule covers a restart, a machine
// that slept and a clock that was set: if the coordinator was away for a while, running work
// gets grace; if the clock went back, each lease keeps its own length (contract 4.6).
func (e *Engine) settle(tx *db.Tx) error {
	now := db.Micros(tx.Now)
	next := e.liveness
	gap := now - next.seen
	if next.seen == 0 || gap > db.Span(e.cfg.OutageAfter) || gap < -clockSlack {
		stored, err := tx.Counter(tx.Context(), "alive")
		if err != nil {
			return err
		}
		// Another process on the same file may have been alive all the while.
		last := stored
		if next.seen != 0 && gap < 0 {
			last = max(stored, next.seen)
		}
		if err := e.recover(tx, last, now); err != nil {
			return err
		}
		next.written = stored
	}
	if next.written == 0 || now-next.written >= db.Span(e.cfg.AliveEvery) || now < next.written {
		if err := db.One(tx.SetCounter(tx.Context(), queries.SetCounterParams{Name: "alive", Value: now})); err != nil {
			return err
		}
		next.written = now
	}
	next.seen = now
	tx.AfterCommit(func() { e.liveness = next })
	return nil
}

func (e *Engine) recover(tx *db.Tx, last, now int64) error {
	switch {
	case last == 0:
		return nil
	case now >= last-clockSlack && now-last <= db.Span(e.cfg.OutageAfter):
		return nil
	}
	e.replan.Store(true)
	tx.AfterCommit(e.cron.Wake)
	tx.AfterCommit(func() { e.upSince.Store(now) })
	switch {
	case now < last-clockSlack:
		return e.clockBack(tx, last, now)
	default:
		return e.outage(tx, last, now)
	}
}

// outage gives leases and beats that were alive at the last sign of life the
// grace period, once per renewal. It never shortens anything.
func (e *Engine) outage(tx *db.Tx, last, now int64) error {
	until := now + db.Span(e.cfg.Grace)
	n, err := tx.GraceClaims(tx.Context(), queries.GraceClaimsParams{Until: until, Now: now, LastAlive: last})
	if err != nil {
		return err
	}
	// What was cancelled may still run too: its worker learns of it at its next beat.
	if _, err := tx.GraceDrains(tx.Context(), queries.GraceDrainsParams{Until: until, Now: now, LastAlive: last}); err != nil {
		return err
	}
	if _, err := tx.GraceTasks(tx.Context(), queries.GraceTasksParams{Until: until, Now: now, LastAlive: last}); err != nil {
		return err
	}
	_, err = tx.GraceWorkers(tx.Context(), queries.GraceWorkersParams{
		Beat: until - db.Span(e.cfg.OfflineAfter), Oldest: last - db.Span(e.cfg.OfflineAfter),
	})
	if err != nil {
		return err
	}
	e.log.Warn("the coordinator was away", "seconds", (now-last)/1_000_000, "leases given grace", n)
	return tx.Log(db.Event{Actor: api.ActorSystem, Type: api.EventOutage, Data: api.EventData{
		"from": api.At(last).String(), "to": api.At(now).String(), "graced": n,
	}})
}
