package db

import (
	"errors"
	"fmt"
)

// verdict is what became of one transaction.
type verdict int

const (
	over    verdict = iota // every request has its outcome
	again                  // SQLite rolled everything back; the unsettled must run again
	oneEach                // the COMMIT was refused; the unsettled must run alone
)

// run gives every request its outcome, in as few transactions as it can: one,
// unless SQLite throws a whole transaction away because of one closure.
func (w *writer) run(requests []*request) {
	for {
		switch w.transact(requests) {
		case again:
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
func (w *writer) transact(requests []*request) verdict {
	waiting := unsettled(requests)
	if len(waiting) == 0 {
		return over
	}
	if err := w.start(); err != nil {
		settleAll(waiting, classify(err))
		return over
	}
	var kept []*request
	for _, r := range waiting {
		if err := r.ctx.Err(); err != nil {
			r.settle(err)
			continue
		}
		// A closure alone in its transaction needs no savepoint: undoing the
		// transaction undoes it and nothing else.
		var lost error
		if len(waiting) == 1 {
			lost = w.alone(r)
		} else {
			lost = w.among(r)
		}
		if lost != nil {
			return w.lose(r, waiting, lost)
		}
		if !r.settled {
			kept = append(kept, r)
		}
	}
	return w.finish(kept)
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
	w.ids.loaded, w.events.loaded = false, false
	if err := w.begin.run(); err != nil {
		return err
	}
	w.guard.inTx = true
	version, err := w.version.number()
	if err != nil {
		return errors.Join(err, w.abort())
	}
	w.kept.asOf(version)
	return nil
}

// alone runs the only closure of a transaction. A returned error means that
// the transaction can no longer be used.
func (w *writer) alone(r *request) (lost error) {
	err := w.call(r)
	left := w.guard.closeRows()
	if !w.guard.inTx {
		return errors.Join(errNoTransaction, err)
	}
	if err == nil && left {
		err = errOpenRows
	}
	if err != nil {
		r.settle(classify(err))
	}
	return nil
}

// among runs one of several closures of a transaction, so that only it is
// undone if it fails. A returned error means that the transaction can no
// longer be used.
func (w *writer) among(r *request) (lost error) {
	if err := w.savepoint.run(); err != nil {
		return err
	}
	events := w.events
	w.guard.dirty = false
	if lost := w.alone(r); lost != nil {
		return lost
	}
	if r.settled {
		// Its event numbers go to the next one; its ids are lost.
		w.events = events
		if w.guard.dirty {
			w.kept.forgetAll()
		}
		if err := w.undo.run(); err != nil {
			return err
		}
	}
	return w.release.run()
}

// errOpenRows fails a closure that did not close what it queried.
var errOpenRows = errors.New("the closure left rows open")

// lose ends a transaction that broke while r ran. The closures before r have
// run in vain through no fault of theirs and run again.
func (w *writer) lose(r *request, waiting []*request, cause error) verdict {
	err := errors.Join(cause, w.abort())
	if primary(err) == codeFull {
		// The others would only meet the same full disk.
		settleAll(waiting, classify(err))
		return over
	}
	r.settle(classify(fmt.Errorf("write rolled back: %w", err)))
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
func (w *writer) finish(kept []*request) verdict {
	if len(kept) == 0 {
		if err := w.abort(); err != nil {
			w.log.Error("roll back", "error", err)
		}
		return over
	}
	if err := errors.Join(w.ids.store(w.queries), w.events.store(w.queries)); err != nil {
		settleAll(kept, classify(errors.Join(err, w.abort())))
		return over
	}
	if err := w.commit.run(); err != nil {
		return w.refused(kept, err)
	}
	w.guard.inTx = false
	for _, r := range kept {
		w.afterCommit(r)
	}
	settleAll(kept, nil)
	return over
}

// refused sorts out a COMMIT that failed.
func (w *writer) refused(kept []*request, err error) verdict {
	switch primary(err) {
	case codeConstraint:
		// A constraint that is checked at COMMIT: one closure is at fault, and
		// alone in its transaction it is known which.
		if err := w.abort(); err != nil {
			settleAll(kept, err)
			return over
		}
		if len(kept) > 1 {
			return oneEach
		}
		settleAll(kept, err)
		return over
	case codeFull, codeBusy:
		// Nothing of the transaction is in the log that recovery would accept.
		settleAll(kept, classify(errors.Join(err, w.abort())))
		return over
	default:
		settleAll(kept, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
		w.fail(err)
		return over
	}
}
