package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Voided says what a restore ended.
type Voided struct {
	Sessions int // that ran when the backup was made
	Tasks    int // leases on them that lived by their clock
	Workers  int // that must register anew
}

// Restored makes a database that was restored from the backup of an instant fit to be used, in
// one transaction (contract 13.1): every claim and every lease on a task is void, as after a
// lapse, and with a claim its run's token; every worker's process is superseded, so that what
// it still writes is refused. Nothing that waited then is claimed before each worker of before
// must have ended what it runs: since the backup it may have begun it, and under fences that the
// backup doesn't know, so fences go on above all of those. Slots need no step of their own: the ledger tells those before the backup, the time since is an outage like any
// other.
func (e *Engine) Restored(ctx context.Context, at time.Time) (out Voided, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		out = Voided{}
		now := db.Micros(tx.Now)
		_, err := tx.HoldAfterRestore(tx.Context(), now+db.Span(e.cfg.OfflineAfter))
		if err != nil {
			return fmt.Errorf("hold what waits: %w", err)
		}
		err = tx.PutCounter(tx.Context(), queries.PutCounterParams{Name: fenceCounter, Value: tx.NewID()})
		if err != nil {
			return fmt.Errorf("note where fences go on: %w", err)
		}
		tx.AfterCommit(func() { e.fencesFrom.Store(nil) })
		if out.Sessions, err = e.voidClaims(tx); err != nil {
			return err
		}
		if out.Tasks, err = e.voidTasks(tx); err != nil {
			return err
		}
		if out.Workers, err = e.supersedeAll(tx); err != nil {
			return err
		}
		e.log.Warn("the database was restored from a backup", "of", api.At(db.Micros(at)).String(), "sessions", out.Sessions, "tasks", out.Tasks, "workers", out.Workers)
		return logHouse(tx, api.EventRestored, api.EventData{
			"backupOf": api.At(db.Micros(at)).String(), "sessions": out.Sessions, "tasks": out.Tasks, "workers": out.Workers,
		})
	})
	return out, err
}

// everything is how many rows a restore asks for at once: all.
const everything = math.MaxInt32

func (e *Engine) voidClaims(tx *db.Tx) (int, error) {
	rows, err := tx.DueLapses(tx.Context(), queries.DueLapsesParams{Now: math.MaxInt64, N: everything})
	if err != nil {
		return 0, fmt.Errorf("list the claims: %w", err)
	}
	for i := range rows {
		if err := e.lapseRow(tx, &rows[i], closedByRestore); err != nil {
			return 0, fmt.Errorf("end claim %s: %w", rows[i].ID, err)
		}
	}
	return len(rows), nil
}

// voidTasks ends the leases that live by their clock; the others live and end with a session.
func (e *Engine) voidTasks(tx *db.Tx) (int, error) {
	ids, err := tx.DueTaskLapses(tx.Context(), queries.DueTaskLapsesParams{Now: math.MaxInt64, N: everything})
	if err != nil {
		return 0, fmt.Errorf("list the leases on tasks: %w", err)
	}
	for _, id := range ids {
		t, err := tx.Task(tx.Context(), id)
		if err != nil {
			return 0, fmt.Errorf("read task %s: %w", id, err)
		}
		was := t
		if err := e.endTask(tx, &t); err != nil {
			return 0, err
		}
		if err := saveTask(tx, &was, &t); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

func (e *Engine) supersedeAll(tx *db.Tx) (int, error) {
	here, err := tx.OfflineDue(tx.Context(), queries.OfflineDueParams{Before: math.MaxInt64, N: everything})
	if err != nil {
		return 0, fmt.Errorf("list the workers: %w", err)
	}
	n, err := tx.SupersedeWorkers(tx.Context(), fmt.Sprintf("restored-%d", tx.NewID()))
	if err != nil {
		return 0, fmt.Errorf("supersede the workers: %w", err)
	}
	for i := range here {
		here[i].State = api.Offline
		if err := e.logWorker(tx, &here[i], api.ActorSystem, api.EventWorkerOffline, api.EventData{"reason": closedByRestore}); err != nil {
			return 0, err
		}
	}
	return int(n), nil
}

// fenceCounter holds an id of the last restore, above those of all that was there; there is no
// such counter before the first restore.
const fenceCounter = "fence"

// nextFence is the fence of a session's next claim. That of a session which is older than the
// last restore is above the Unix second of that: what was claimed between the backup and the
// restore had a smaller one, unless a session was claimed once a second for years.
func (e *Engine) nextFence(tx *db.Tx, s *sessionRow) (int64, error) {
	from := e.fencesFrom.Load()
	if from == nil {
		value, err := tx.Counter(tx.Context(), fenceCounter)
		if err != nil && !db.None(err) {
			return 0, fmt.Errorf("read where fences go on: %w", err)
		}
		from = &value
		tx.AfterCommit(func() { e.fencesFrom.Store(from) })
	}
	if int64(s.ID) < *from {
		return max(s.Fence, db.MadeAt(*from).Unix()) + 1, nil
	}
	return s.Fence + 1, nil
}
