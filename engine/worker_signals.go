package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// How a signal stopped being pending.
const (
	signalAcknowledged = "acknowledged"
	signalReplaced     = "replaced"   // a newer one came
	signalRegistered   = "registered" // the worker started again, which is what stop and restart wait for
	signalDeleted      = "deleted"    // the worker's record was
)

// signals reports whether the caller may signal a worker: its owner or an admin (contract
// 5.3).
func signals(c Caller, w *workerRow) bool {
	return w.WorkspaceID == c.WorkspaceID && (owns(c, w) == nil || c.Can(account.RunCloudWorkers))
}

// owns refuses a caller who may not change or delete a worker's record: a local one is its
// owner's alone, since it says what is executed as whom, a cloud one the admins' (contract
// 5.1).
func owns(c Caller, w *workerRow) error {
	if w.Mode == api.Cloud {
		return c.May(account.RunCloudWorkers)
	}
	if w.OwnerUserID != c.UserID {
		return api.Refuse(api.CodeForbidden, "A local worker is its owner's alone to change or delete; an admin may signal it.")
	}
	return c.May(account.RunLocalWorkers)
}

// seenWorker reads a worker that the caller may see; any other is 404.
func seenWorker(ctx context.Context, q queries.Querier, c Caller, id api.WorkerID) (*workerRow, error) {
	w, err := q.Worker(ctx, id)
	if db.None(err) || (err == nil && !seesWorker(c, &w)) {
		return nil, db.NotFound("worker")
	}
	if err != nil {
		return nil, fmt.Errorf("read worker %s: %w", id, err)
	}
	return &w, nil
}

// ownWorker reads a worker whose record the caller may change.
func ownWorker(ctx context.Context, q queries.Querier, c Caller, id api.WorkerID) (*workerRow, error) {
	w, err := seenWorker(ctx, q, c, id)
	if err != nil {
		return nil, err
	}
	return w, owns(c, w)
}

// desiredAfter is what a signal changes a worker's desired state to. A restart of a stopped
// worker starts it; for any other it changes nothing.
func desiredAfter(kind api.SignalKind, now api.Desired) api.Desired {
	switch {
	case kind == api.SignalPause:
		return api.DesiredPaused
	case kind == api.SignalStop:
		return api.DesiredStopped
	case kind == api.SignalResume, now == api.DesiredStopped:
		return api.DesiredRunning
	}
	return now
}

// SignalWorker asks a worker to stop, pause, resume or restart. The signal is pending until
// the worker acknowledges it; a newer one replaces it, and repeating one changes nothing. For
// claims it applies at once (contract 5.3). Rights: an admin or the worker's owner. Errors:
// invalid, forbidden, not_found.
func (e *Engine) SignalWorker(ctx context.Context, c Caller, id api.WorkerID, kind api.SignalKind) (out api.SignalAnswer, err error) {
	if !slices.Contains(api.SignalKinds, kind) {
		var v api.Invalid
		v.Add("signal", fmt.Sprintf("%q is no signal: use one of %s", kind, api.Listed(api.SignalKinds)))
		return out, v.Err()
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := seenWorker(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		if !signals(c, w) {
			return c.Need(api.Admin, "signal this worker")
		}
		out.Changed, err = e.signalTx(tx, c, w, kind)
		if err != nil {
			return err
		}
		out.Worker, err = e.showWorker(tx.Context(), tx, w)
		return err
	})
	return out, err
}

func (e *Engine) signalTx(tx *db.Tx, c Caller, w *workerRow, kind api.SignalKind) (changed bool, err error) {
	pending, err := pendingSignal(tx.Context(), tx, w.ID)
	if err != nil {
		return false, err
	}
	if pending != nil && pending.Signal == kind {
		return false, nil
	}
	id := api.SignalID(tx.NewID())
	data := api.EventData{"signal": string(kind), "id": id.String()}
	if pending != nil {
		if err := e.closeSignal(tx, pending.ID, signalReplaced); err != nil {
			return false, err
		}
		data["replaced"] = pending.ID.String()
	}
	err = tx.InsertSignal(tx.Context(), queries.InsertSignalParams{ID: id, WorkerID: w.ID, Kind: kind, SentBy: c.UserID, SentAt: db.Micros(tx.Now)})
	if err != nil {
		return false, fmt.Errorf("insert a signal to worker %s: %w", w.ID, err)
	}
	if err := e.setDesired(tx, w, desiredAfter(kind, w.Desired)); err != nil {
		return false, err
	}
	return true, e.logWorker(tx, w, c.Actor(), api.EventSignalSent, data)
}

func (e *Engine) setDesired(tx *db.Tx, w *workerRow, desired api.Desired) error {
	if w.Desired == desired {
		return nil
	}
	if err := db.One(tx.SetDesired(tx.Context(), queries.SetDesiredParams{Desired: desired, ID: w.ID})); err != nil {
		return fmt.Errorf("set worker %s to be %s: %w", w.ID, desired, err)
	}
	w.Desired = desired
	e.wakeWorker(tx, w.ID)
	return nil
}

func (e *Engine) closeSignal(tx *db.Tx, id api.SignalID, how string) error {
	if err := db.One(tx.CloseSignal(tx.Context(), queries.CloseSignalParams{ClosedAt: db.Micros(tx.Now), Resolution: how, ID: id})); err != nil {
		return fmt.Errorf("close signal %s: %w", id, err)
	}
	return nil
}

// dropSignal closes what is pending for a worker, if anything is.
func (e *Engine) dropSignal(tx *db.Tx, w api.WorkerID, how string) error {
	pending, err := pendingSignal(tx.Context(), tx, w)
	if err != nil || pending == nil {
		return err
	}
	return e.closeSignal(tx, pending.ID, how)
}

// started settles what a registration settles: stopped is over, and with it a stop or restart
// that was still pending (contract 5.1). When the same live process registers again, as when
// its folder changed, nothing is settled.
func (e *Engine) started(tx *db.Tx, w *workerRow, instance string) error {
	if w.InstanceID == instance && w.State != api.Offline {
		return nil
	}
	if w.Desired == api.DesiredStopped {
		w.Desired = api.DesiredRunning // written with the rest of the registration
	}
	pending, err := pendingSignal(tx.Context(), tx, w.ID)
	if err != nil || pending == nil || (pending.Signal != api.SignalStop && pending.Signal != api.SignalRestart) {
		return err
	}
	return e.closeSignal(tx, pending.ID, signalRegistered)
}

// AcknowledgeSignal says that the worker has received the pending signal, by its id. Repeated,
// it gets the same answer while nothing newer is pending (contract 5.3). Errors: stale_signal
// for any other id, instance_superseded, not_found.
func (e *Engine) AcknowledgeSignal(ctx context.Context, c Caller, id api.WorkerID, in api.SignalAck) (out api.Worker, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := workerOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		if err := sameInstance(w, in.InstanceID); err != nil {
			return err
		}
		if err := e.acknowledgeTx(tx, w, in.SignalID); err != nil {
			return err
		}
		out, err = e.showWorker(tx.Context(), tx, w)
		return err
	})
	return out, err
}

func (e *Engine) acknowledgeTx(tx *db.Tx, w *workerRow, id api.SignalID) error {
	last, err := tx.LastSignal(tx.Context(), w.ID)
	if err != nil && !db.None(err) {
		return fmt.Errorf("read the last signal to worker %s: %w", w.ID, err)
	}
	switch {
	case db.None(err) || last.ID != id:
		return api.Refuse(api.CodeStaleSignal, "That is not the signal that is pending: a newer one replaced it, or it was never sent to this worker.")
	case last.Resolution == signalAcknowledged:
		return nil
	case last.ClosedAt != 0:
		return api.Refuse(api.CodeStaleSignal, "That signal is not pending any more: the worker has registered since.")
	}
	if err := e.closeSignal(tx, id, signalAcknowledged); err != nil {
		return err
	}
	return e.logWorker(tx, w, w.ID.String(), api.EventSignalAcked, api.EventData{"signal": string(last.Kind), "id": id.String()})
}

// Known is what a waiting caller knows of a worker's orders: it is held while they are the same.
type Known struct {
	Signal  api.SignalID  // pending; 0 = none
	Landing api.LandingID // asked for; 0 = none
	Lands   bool          // it wants to know of requests to land
}

// AwaitSignal returns the worker as soon as its pending signal, or what it is asked to land, is
// another than the caller knows, else after wait. instance, if given, must be the current one.
// Errors: instance_superseded, not_found.
func (e *Engine) AwaitSignal(ctx context.Context, c Caller, id api.WorkerID, instance string, known Known, wait time.Duration) (out api.Worker, err error) {
	s := newWaiter(toControl)
	e.waiters.join(s, []waitingWorker{{worker: id}}) // before the look, so that no signal falls in between
	defer e.waiters.leave(s)
	err = untilFound(ctx, wait, func() (found bool, wake <-chan struct{}, err error) {
		var current *workerRow
		out, current, err = e.workerNow(ctx, c, id)
		if err == nil && instance != "" {
			err = sameInstance(current, instance)
		}
		return pendingID(out) != known.Signal || (known.Lands && askedID(out) != known.Landing), s.wake, err
	})
	return out, err
}

func pendingID(w api.Worker) api.SignalID {
	if w.PendingSignal == nil {
		return 0
	}
	return w.PendingSignal.ID
}

func askedID(w api.Worker) api.LandingID {
	if w.Landing == nil {
		return 0
	}
	return w.Landing.ID
}

// EditWorker changes a worker's name, instructions, labels or limit. merge puts the changes
// over the record's present values. A later registration leaves alone what was changed here.
// merge may be called more than once. Rights: only the owner of a local worker, an admin for a
// cloud one. Errors: what merge returns, invalid, conflict for a name that is taken,
// forbidden, not_found.
func (e *Engine) EditWorker(ctx context.Context, c Caller, id api.WorkerID, merge func(*api.WorkerEdit) error) (out api.Worker, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := ownWorker(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		in := api.WorkerEdit{Name: w.Name, Instructions: w.Instructions, Labels: slices.Clone(w.Labels), MaxConcurrent: w.MaxConcurrent}
		if err := merge(&in); err != nil {
			return err
		}
		if err := checkEdit(&in); err != nil {
			return err
		}
		wrote, err := writes(in, merge)
		if err != nil {
			return err
		}
		setBy := w.InstructionsSetBy
		if wrote {
			setBy = c.InPerson()
		}
		if err := e.editWorkerTx(tx, c, w, in, setBy); err != nil {
			return err
		}
		out, err = e.showWorker(tx.Context(), tx, w)
		return err
	})
	return out, err
}

// writes reports whether a merge sets the instructions, even to what they were: somebody who
// leaves them alone has not read them.
func writes(in api.WorkerEdit, merge func(*api.WorkerEdit) error) (bool, error) {
	const nobodys = "\x00"
	in.Instructions = nobodys
	err := merge(&in)
	return in.Instructions != nobodys, err
}

// CheckWorkerEdit names everything that is wrong with what a person wrote about a worker, and
// writes nothing. It doesn't check whether the name is free.
func CheckWorkerEdit(in api.WorkerEdit) error { return checkEdit(&in) }

func checkEdit(in *api.WorkerEdit) error {
	var v api.Invalid
	checkWorkerText(&v, in.Name, in.Instructions)
	if in.MaxConcurrent == 0 {
		in.MaxConcurrent = 1
	}
	checkLimit(&v, in.MaxConcurrent)
	checkLabels(&v, &in.Labels)
	return v.Err()
}

// The names of what a person can pin.
const (
	pinName          = "name"
	pinInstructions  = "instructions"
	pinLabels        = "labels"
	pinMaxConcurrent = "maxConcurrent"
)

func (e *Engine) editWorkerTx(tx *db.Tx, c Caller, w *workerRow, in api.WorkerEdit, setBy api.UserID) error {
	var changed api.Labels
	note := func(is bool, pin string) {
		if is {
			changed = append(changed, pin)
		}
	}
	note(in.Name != w.Name, pinName)
	note(in.Instructions != w.Instructions || w.InstructionsSetBy != setBy, pinInstructions)
	note(!slices.Equal(in.Labels, w.Labels.Normal()), pinLabels)
	note(in.MaxConcurrent != w.MaxConcurrent, pinMaxConcurrent)
	if len(changed) == 0 {
		return nil
	}
	if in.Name != w.Name {
		_, err := tx.WorkerByName(tx.Context(), queries.WorkerByNameParams{AgentID: w.AgentID, OwnerUserID: w.OwnerUserID, Name: in.Name})
		if err == nil {
			return &api.Error{
				Code: api.CodeConflict, Detail: fmt.Sprintf("Another worker of this agent is called %q already.", in.Name),
				Fields: []api.FieldError{{Field: "name", Detail: "is another worker's of this agent already"}},
			}
		}
		if !db.None(err) {
			return fmt.Errorf("look for a worker called %q: %w", in.Name, err)
		}
	}
	w.Name, w.Instructions, w.InstructionsSetBy, w.Labels, w.MaxConcurrent = in.Name, in.Instructions, setBy, in.Labels, in.MaxConcurrent
	w.Pinned = append(slices.Clone(w.Pinned), changed...).Normal()
	err := db.One(tx.EditWorker(tx.Context(), queries.EditWorkerParams{
		Name: w.Name, Instructions: w.Instructions, InstructionsSetBy: w.InstructionsSetBy, Labels: w.Labels,
		MaxConcurrent: w.MaxConcurrent, Pinned: w.Pinned, ID: w.ID,
	}))
	if err != nil {
		return fmt.Errorf("change worker %s: %w", w.ID, err)
	}
	return e.logWorker(tx, w, c.Actor(), api.EventWorkerEdited, api.EventData{"fields": []string(changed)})
}

// withPins puts what a person set for a worker over what its process says.
func withPins(w *workerRow, in api.WorkerInput) api.WorkerInput {
	for _, pin := range w.Pinned {
		switch pin {
		case pinName:
			in.Name = w.Name
		case pinInstructions:
			in.Instructions = w.Instructions
		case pinLabels:
			in.Labels = w.Labels
		case pinMaxConcurrent:
			in.MaxConcurrent = w.MaxConcurrent
		}
	}
	return in
}
