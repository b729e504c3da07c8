package engine

import (
	"context"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// pulse is what this process knows of the coordinator's last sign of life. The
// store's counter `alive` holds the same for other processes and the next start.
type pulse struct {
	seen    int64 // the latest instant at which this process wrote
	written int64 // what the counter holds, as far as this process knows
}

const clockSlack = int64(1_000_000) // differences below a second are no clock step

// Alive writes down that the coordinator lives and settles an outage or a clock
// step since the last time.
func (e *Engine) Alive(ctx context.Context) error {
	return e.write(ctx, func(*db.Tx) error { return nil })
}

// settle compares the clock with the last sign of life. One rule covers a
// restart, a machine that slept and a clock that was set: if the coordinator was
// not there for a while, running work gets grace; if the clock went back, each
// lease keeps its own length (contract 4.6).
func (e *Engine) settle(tx *db.Tx) error {
	now := micros(tx.Now)
	next := e.pulse
	gap := now - next.seen
	if next.seen == 0 || gap > span(e.cfg.OutageAfter) || gap < -clockSlack {
		stored, err := tx.Counter(wctx(), "alive")
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
	if next.written == 0 || now-next.written >= span(e.cfg.AliveEvery) || now < next.written {
		if err := one(tx.SetCounter(wctx(), queries.SetCounterParams{Name: "alive", Value: now})); err != nil {
			return err
		}
		next.written = now
	}
	next.seen = now
	tx.AfterCommit(func() { e.pulse = next })
	return nil
}

func (e *Engine) recover(tx *db.Tx, last, now int64) error {
	switch {
	case last == 0:
		return nil
	case now >= last-clockSlack && now-last <= span(e.cfg.OutageAfter):
		return nil
	}
	e.replan.Store(true)
	tx.AfterCommit(e.cron.Wake)
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
	until := now + span(e.cfg.Grace)
	n, err := tx.GraceClaims(wctx(), queries.GraceClaimsParams{Until: until, Now: now, LastAlive: last})
	if err != nil {
		return err
	}
	// What was cancelled may still run too: its worker hears of it at its next beat.
	if _, err := tx.GraceDrains(wctx(), queries.GraceDrainsParams{Until: until, Now: now, LastAlive: last}); err != nil {
		return err
	}
	_, err = tx.GraceWorkers(wctx(), queries.GraceWorkersParams{
		Beat: until - span(e.cfg.OfflineAfter), Oldest: last - span(e.cfg.OfflineAfter),
	})
	if err != nil {
		return err
	}
	e.log.Warn("the coordinator was away", "seconds", (now-last)/1_000_000, "leases given grace", n)
	return e.logEvent(tx, event{actor: actorSystem, kind: evOutage, data: api.EventData{
		"from": api.At(last).String(), "to": api.At(now).String(), "graced": n,
	}})
}

// clockBack keeps every lease, drain and delay at its own length, counted from
// now, and takes back beats from the future.
func (e *Engine) clockBack(tx *db.Tx, last, now int64) error {
	n, err := tx.ClampClaims(wctx(), now)
	if err != nil {
		return err
	}
	if _, err := tx.ClampDrains(wctx(), now); err != nil {
		return err
	}
	if _, err := tx.ClampBeats(wctx(), now); err != nil {
		return err
	}
	if _, err := tx.ClampQueued(wctx(), now); err != nil {
		return err
	}
	e.log.Warn("the clock was set back", "seconds", (last-now)/1_000_000, "leases clamped", n)
	return e.logEvent(tx, event{actor: actorSystem, kind: evClockBack, data: api.EventData{
		"from": api.At(last).String(), "to": api.At(now).String(), "clamped": n,
	}})
}

// dropKeys forgets idempotency keys that are past their life.
func (e *Engine) dropKeys(ctx context.Context) (time.Time, error) {
	return time.Time{}, e.write(ctx, func(tx *db.Tx) error {
		_, err := tx.DropIdempotencyKeys(wctx(), micros(tx.Now.Add(-e.cfg.KeyLife)))
		return err
	})
}
