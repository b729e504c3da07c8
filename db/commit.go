package db

import (
	"errors"
	"fmt"
	"time"
)

// verdict is how one transaction turned out.
type verdict int

const (
	over    verdict = iota // every request has its outcome
	again                  // SQLite rolled everything back; the unsettled must run again
	apart                  // one failed after it had written; the unsettled must run again, each in a savepoint
	oneEach                // the COMMIT was refused; the unsettled must run alone
)

// run gives every request its outcome, in as few transactions as it can: one, unless SQLite
// throws a whole transaction away because of one closure.
//
// Savepoints cost a fifth of a small closure, and hardly any closure fails after it has
// written: refusals come from what was read. So the first attempt does without them.
func (w *writer) run(requests []*request) {
	savepoints := false
	for {
		switch w.transact(requests, savepoints) {
		case again:
			continue
		case apart:
			savepoints = true
			continue
		case oneEach:
			for i := range requests {
				if !requests[i].settled {
					w.run(requests[i : i+1])
				}
			}
		}
		return
	}
}

// transact runs the unsettled requests in one transaction.
func (w *writer) transact(requests []*request, savepoints bool) verdict {
	waiting := unsettled(requests)
	if len(waiting) == 0 {
		return over
	}
	if err := w.openFiles.whole(); err != nil {
		settleAll(waiting, err)
		w.stop(err, err)
		return over
	}
	if err := w.start(); err != nil {
		settleAll(waiting, w.classed(err))
		return over
	}
	var stayed []*request
	refused := map[*request]error{} // what they read is true only if this attempt is the last
	for _, r := range waiting {
		if err := r.ctx.Err(); err != nil {
			r.settle(err)
			continue
		}
		// A closure that is alone in its transaction needs no savepoint: undoing the
		// transaction undoes only it.
		var failed, lost error
		if savepoints && len(waiting) > 1 {
			failed, lost = w.within(r)
		} else {
			failed, lost = w.attempt(r, false)
		}
		switch {
		case lost != nil:
			return w.lose(r, waiting, lost)
		case failed == nil:
			stayed = append(stayed, r)
		case w.guard.dirty && !savepoints && len(waiting) > 1:
			if err := w.abort(); err != nil {
				settleAll(waiting, w.classed(err))
				return over
			}
			return apart
		default:
			refused[r] = failed
		}
	}
	for r, err := range refused {
		r.settle(w.classed(err))
	}
	return w.finish(stayed)
}

func unsettled(requests []*request) []*request {
	var rest []*request
	for _, r := range requests {
		if !r.settled {
			rest = append(rest, r)
		}
	}
	return rest
}

// start begins a transaction and with it the write lock.
func (w *writer) start() error {
	w.ids.loaded, w.events.loaded, w.wrote = false, false, false
	if err := w.begin.run(); err != nil {
		return err
	}
	w.guard.inTx = true
	version, err := w.version.number()
	if err != nil {
		return errors.Join(err, w.abort())
	}
	w.rowCache.asOf(version)
	return nil
}

// attempt runs one closure. A failed one may have written: then dirty is set.
// Lost means that the transaction can no longer be used.
func (w *writer) attempt(r *request, savepoint bool) (failed, lost error) {
	events := w.events
	w.guard.dirty = false
	failed = w.call(r)
	if failed == nil && savepoint {
		failed = w.flush() // it is this closure's alone, and so is its failure
	}
	if w.held.failed != nil {
		// What earlier closures have held back may be lost with it.
		failed = errors.Join(failed, w.held.failed)
		w.guard.dirty = true
	}
	w.wrote = w.wrote || w.guard.dirty
	left := w.guard.closeRows()
	if !w.guard.inTx {
		return nil, errors.Join(errNoTransaction, failed)
	}
	if failed == nil && left {
		failed = errOpenRows
	}
	if failed != nil {
		// Its event numbers are used again; its ids are lost.
		w.events = events
	}
	return failed, nil
}

// within runs one closure so that only it is undone if it fails.
func (w *writer) within(r *request) (failed, lost error) {
	if err := w.savepoint.run(); err != nil {
		return nil, err
	}
	failed, lost = w.attempt(r, true)
	if lost != nil {
		return nil, lost
	}
	if failed != nil {
		if w.guard.dirty {
			w.rowCache.forgetAll()
			w.held.drop()
		}
		if err := w.undo.run(); err != nil {
			return nil, err
		}
	}
	return failed, w.release.run()
}

// errOpenRows fails a closure that did not close its query's rows.
var errOpenRows = errors.New("the closure left rows open")

// lose ends a transaction that broke while r ran. The closures before r have run in vain
// through no fault of theirs and run again.
func (w *writer) lose(r *request, waiting []*request, cause error) verdict {
	err := errors.Join(cause, w.abort())
	if primary(err) == codeFull {
		// The others would only fail on the same full disk.
		settleAll(waiting, w.classed(err))
		return over
	}
	r.settle(w.classed(fmt.Errorf("write rolled back: %w", err)))
	return again
}

// abort rolls back unless SQLite has done so.
func (w *writer) abort() error {
	if !w.guard.inTx {
		return nil
	}
	return w.rollback.run()
}

// finish makes the kept closures durable and gives them their outcome.
func (w *writer) finish(stayed []*request) verdict {
	if len(stayed) == 0 {
		if err := w.abort(); err != nil {
			w.log.Error("roll back", "error", err)
		}
		return over
	}
	if err := w.flush(); err != nil {
		return w.unflushed(stayed, err)
	}
	if err := errors.Join(w.ids.store(w.queries), w.events.store(w.queries)); err != nil {
		settleAll(stayed, w.classed(errors.Join(err, w.abort())))
		return over
	}
	began := time.Now() // what the disk takes, whatever the store's clock says
	if err := w.commit.run(); err != nil {
		return w.refused(stayed, err)
	}
	w.guard.inTx = false
	if w.wrote {
		if w.committed != nil {
			w.committed(time.Since(began), len(stayed))
		}
		if err := w.openFiles.whole(); err != nil {
			// It is in a file that no later start finds, unless somebody puts it back.
			settleAll(stayed, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
			w.stop(err, err)
			return over
		}
		w.book.tick()
		w.refusal.Store(nil)
	}
	for _, r := range stayed {
		w.afterCommit(r)
	}
	settleAll(stayed, nil)
	return over
}

// unflushed sorts out held back writes that were refused: one closure is at fault, unless the
// disk is full.
func (w *writer) unflushed(stayed []*request, err error) verdict {
	full := primary(err) == codeFull
	err = errors.Join(err, w.abort())
	if len(stayed) > 1 && !full {
		return oneEach
	}
	settleAll(stayed, w.classed(err))
	return over
}

// refused sorts out a COMMIT that failed.
func (w *writer) refused(stayed []*request, err error) verdict {
	switch primary(err) {
	case codeConstraint:
		// A constraint that is checked at COMMIT: one closure is at fault, and it is found by
		// running each alone.
		if err := w.abort(); err != nil {
			settleAll(stayed, err)
			return over
		}
		if len(stayed) > 1 {
			return oneEach
		}
		settleAll(stayed, err)
		return over
	case codeFull, codeBusy:
		// The log has nothing of the transaction that recovery would accept.
		settleAll(stayed, w.classed(errors.Join(err, w.abort())))
		return over
	default:
		settleAll(stayed, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
		w.stop(errors.Join(err, w.abort()), fmt.Errorf("%w: %w", ErrFailing, err))
		return over
	}
}

// classed is classify, and remembers that the disk refuses writes.
func (w *writer) classed(err error) error {
	err = classify(err)
	if lasts(err) {
		w.refusal.Store(&err)
	}
	return err
}
