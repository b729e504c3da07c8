package worker

import (
	"context"
	"errors"
	"fmt"

	"stint/api"
)

var (
	// ErrRestart says that this process was asked to restart: all its work is given back, and
	// its caller is to start it again.
	ErrRestart = errors.New("the worker was asked to restart")

	errToldToStop    = errors.New("the worker was asked to stop")
	errToldToRestart = errors.New("the worker was asked to restart")
	errAllStopped    = errors.New("every worker record was asked to stop")
)

// orders are the coordinator's signals to a record that aren't done yet. The record's lock
// guards them.
type orders struct {
	told   *api.Signal  // pending, as the last answer said
	acked  api.SignalID // the last one whose acknowledgement was accepted
	ending *api.Signal  // the stop or restart in progress
}

// hear takes in what an answer says about the record.
func (r *record) hear(w api.Worker) {
	r.mu.Lock()
	changed := r.desired != w.DesiredState
	r.desired, r.told = w.DesiredState, w.PendingSignal
	r.landing.asked = w.Landing
	r.mu.Unlock()
	r.lands()
	if changed {
		r.p.wakeClaims()
	}
}

// isEnding reports whether the record is on its way to stop or restart: it
// takes nothing new.
func (r *record) isEnding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending != nil
}

// order returns the signal to act on, nil when there is none or its acknowledgement hasn't
// been confirmed yet; and the one already in progress.
func (r *record) order() (told, ending *api.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told != nil && r.told.ID != r.acked {
		told = r.told
	}
	switch e := r.ending; {
	case e == nil:
	case told == nil && e.Signal == api.SignalStop && r.desired != api.DesiredStopped:
		r.ending = nil // it is no longer wanted
	case told != nil && told.ID != e.ID && !(e.Signal == api.SignalRestart && e.ID == r.acked):
		r.ending = nil // a newer one has replaced it; only an acknowledged restart can't be taken back
	}
	return told, r.ending
}

func (r *record) setEnding(told *api.Signal) {
	r.mu.Lock()
	was := r.ending
	r.ending = told
	r.mu.Unlock()
	if was == nil {
		r.p.wakeClaims()
	}
}

// obey does one step of what the record was asked to do (contract 5.3). It is called after
// each answer and again when a session of the record has closed. gone says that the record has
// finished and ends, and for which signal; err that the step must be tried again.
func (r *record) obey(ctx context.Context) (gone, err error) {
	told, ending := r.order()
	if told != nil {
		ends := told.Signal == api.SignalStop || told.Signal == api.SignalRestart
		if ends && (ending == nil || told.Signal == api.SignalStop) {
			ending = told
			r.setEnding(told)
		}
		// A stop is acknowledged when it is done; the others have nothing to wait for.
		if told.Signal != api.SignalStop {
			if err := r.acknowledge(ctx, *told); err != nil {
				return nil, err
			}
		}
	}
	if ending == nil || r.wind() > 0 {
		return nil, nil
	}
	if told != nil && told.Signal == api.SignalStop { // else it was acknowledged and the answer got lost
		if err := r.acknowledge(ctx, *told); err != nil {
			return nil, err
		}
	}
	r.bye(ctx)
	if ending.Signal == api.SignalRestart {
		return errToldToRestart, nil
	}
	return errToldToStop, nil
}

// wind lets the record's sessions come to an end: a command is interrupted, and what it hasn't
// finished is given back. It returns how many are left.
func (r *record) wind() int {
	left := r.p.sessionsOf(r.agent)
	for _, s := range left {
		s.endGently(errToldToStop)
	}
	return len(left)
}

// acknowledge tells the coordinator that a signal was received. There is no need to insist on
// one that was replaced meanwhile: the next beat brings the newer one.
func (r *record) acknowledge(ctx context.Context, told api.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, r.p.clocks.Answer)
	defer cancel()
	worker := r.id()
	r.p.at("acknowledge")
	got, err := r.p.client.AcknowledgeSignal(ctx, r.agent, worker, api.SignalAck{InstanceID: r.p.instance, SignalID: told.ID})
	err = ours(err, got.ID, worker)
	r.p.at("acknowledged")
	switch {
	case api.CodeOf(err) == api.CodeStaleSignal:
		r.wake()
		return fmt.Errorf("the signal %s was replaced: %w", told.Signal, err)
	case err != nil:
		return fmt.Errorf("acknowledge the signal %s: %w", told.Signal, err)
	}
	r.log.Info("asked to "+string(told.Signal), "by", told.SentByName)
	r.mu.Lock()
	r.acked = told.ID
	r.mu.Unlock()
	r.hear(got)
	return nil
}

// bye makes the record offline at once. If that fails, its silence will.
func (r *record) bye(ctx context.Context) {
	if err := r.beat(ctx, true); err != nil {
		r.log.Warn("no goodbye was said", "error", err)
	}
}

// left removes a record that has ended for a reason, and decides what happens to its agent and
// to this process.
func (p *Process) left(rec *record, why error) {
	worker := rec.id()
	rec.leave(why)
	p.mu.Lock()
	delete(p.records, rec.agent)
	switch {
	case errors.Is(why, errToldToStop):
		p.stopped[rec.agent] = worker
	case errors.Is(why, errToldToRestart):
		// A process's only record stands for the process; one of several starts again by
		// itself.
		p.restart = !p.opts.Embedded && len(p.records) == 0 && len(p.stopped) == 0
	case errors.Is(why, errRecordGone):
		p.forgotten[rec.agent] = true
	case errors.Is(why, ErrUnfit):
		p.unfit[rec.agent] = misfit{rec.registering, why}
	}
	p.mu.Unlock()
	if !errors.Is(why, errToldToStop) && !errors.Is(why, errToldToRestart) && !errors.Is(why, ErrUnfit) {
		p.abandon(rec)
	}
	p.wakeClaims()
	p.relistAgents()
}

// over says why this process has nothing left to serve, nil while it has.
func (p *Process) over() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.restart:
		return ErrRestart
	case !p.opts.Embedded && len(p.records) == 0 && len(p.stopped) > 0:
		return errAllStopped
	}
	return nil
}

// staysAway reports whether an agent's record is not to be served: it was stopped and nobody
// has started it since, or it was deleted.
func (p *Process) staysAway(ctx context.Context, a api.Agent) (bool, error) {
	p.mu.Lock()
	worker, stopped := p.stopped[a.ID]
	forgotten := p.forgotten[a.ID]
	p.mu.Unlock()
	if stopped {
		return p.staysStopped(ctx, a, worker), nil
	}
	known, err := p.state.worker(a.ID)
	if err != nil {
		return true, err
	}
	return known.deleted && (forgotten || !p.opts.Register), nil
}

func (p *Process) staysStopped(ctx context.Context, a api.Agent, worker api.WorkerID) bool {
	ctx, cancel := context.WithTimeout(ctx, p.clocks.Answer)
	defer cancel()
	w, err := p.client.Worker(ctx, a.ID, worker)
	switch {
	case api.CodeOf(err) == api.CodeNotFound:
		if err := p.state.forgetWorker(a.ID, worker); err != nil {
			p.log.Error("the worker id can't be forgotten", "error", err)
		}
	case ours(err, w.ID, worker) != nil || w.DesiredState == api.DesiredStopped:
		return true
	}
	p.mu.Lock()
	delete(p.stopped, a.ID)
	if err != nil {
		p.forgotten[a.ID] = true
	}
	p.mu.Unlock()
	return err != nil
}

// wasStopped reports whether this process served a worker until that was asked to stop.
func (p *Process) wasStopped(worker api.WorkerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.stopped {
		if id == worker {
			return true
		}
	}
	return false
}
