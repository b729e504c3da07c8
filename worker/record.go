package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"stint/api"
	"stint/worker/proc"
)

// record is one worker record: this process in its role for one agent.
type record struct {
	p     *Process
	agent api.AgentID
	log   *slog.Logger
	ended chan struct{} // closed when its goroutine has ended
	wakes chan struct{} // one token: beat now

	crowded bool // as many sessions run as its owner allows; guarded by p.mu

	beating sync.Mutex // one beat at a time, so that answers come in order

	mu        sync.Mutex
	slug      string
	said      self          // as registered; guarded by mu
	version   int64         // of the agent, as registered; guarded by mu
	worker    api.WorkerID  // zero until registered; guarded by mu
	beatAt    proc.BootTime // before the last good beat was sent; guarded by mu
	beatEvery time.Duration // guarded by mu
	desired   api.Desired   // guarded by mu
	orders                  // guarded by mu
	landing   landingOrder  // guarded by mu
	minding   bool          // the standing approvals are being changed or told; guarded by mu
	idle      bool          // it only hands in what an earlier process held

	registering int64 // the agent's version that it was made for
}

func (p *Process) newRecord(a api.Agent) *record {
	return &record{
		p: p, agent: a.ID, slug: a.Slug, registering: a.Version, log: p.log.With("agent", a.Slug),
		ended: make(chan struct{}), wakes: make(chan struct{}, 1), beatEvery: p.clocks.Beat,
	}
}

func (r *record) wake() {
	select {
	case r.wakes <- struct{}{}:
	default: // one is due already
	}
}

func (r *record) lastBeat() proc.BootTime {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beatAt
}

func (r *record) id() api.WorkerID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.worker
}

// eligible reports whether claims may be requested in this record's name.
func (r *record) eligible() (api.WorkerID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.worker, r.worker != 0 && !r.idle && r.desired == api.DesiredRunning && r.ending == nil
}

// run registers the record, retrying for as long as that may help, and then beats until ctx
// ends or the record is gone for good. It returns why.
func (r *record) run(ctx context.Context, a api.Agent) error {
	var wait backoff
	for {
		err := r.register(ctx, a)
		if err == nil {
			break
		}
		if api.CodeOf(err) == api.CodeNotFound {
			return fmt.Errorf("%w, or the agent %s was", errRecordGone, a.Slug)
		}
		if api.CodeOf(err) == api.CodeInvalid {
			return fmt.Errorf("%w %s: %w", ErrUnfit, a.Slug, err)
		}
		pause := wait.next(api.RetryAfter(err))
		r.unregistered(ctx, pause, err)
		if !sleep(ctx, pause, nil) {
			return context.Cause(ctx)
		}
	}
	return r.keepBeating(ctx)
}

// unregistered logs why the record isn't registered yet. Another worker of this name, such as one
// that ended without a goodbye, is in the way of every agent until it has been silent for long
// enough: that is said once for all of them.
func (r *record) unregistered(ctx context.Context, pause time.Duration, err error) {
	level := slog.LevelWarn
	if refused := (*api.Error)(nil); errors.As(err, &refused) && refused.Code == api.CodeWorkerRunning {
		level = slog.LevelDebug
		if r.p.first("another worker of this name") {
			r.p.log.Warn("another worker of this name was heard of a moment ago; agents are served from here once it has ended or been silent for long enough (--name runs both)",
				"name", refused.Holder, "at the earliest", refused.ExpiresAt)
		}
	}
	r.log.Log(ctx, level, "not registered", "again in", pause, "error", err)
}

// register makes this process the record's current instance. The claims that an earlier
// process held come with it and are taken up or given back. contract 5.1
func (r *record) register(ctx context.Context, a api.Agent) error {
	known, err := r.p.state.worker(a.ID)
	if err != nil {
		return err
	}
	said := r.p.self(a)
	in := r.p.registration(a, said)
	in.WorkerID = known.worker
	// The last request may have been accepted without our learning of it.
	previous := []string{known.instance}
	if known.pending != known.instance {
		previous = []string{known.pending, known.instance}
	}
	err = r.p.state.saveWorker(known.sending(a.ID, r.p.instance))
	if err != nil {
		return err
	}
	var got api.Registered
	var sent proc.BootTime
	for _, in.PreviousInstanceID = range previous {
		sent = r.p.boot()
		r.p.at("register")
		got, err = r.call(ctx, in)
		r.p.at("registered")
		if api.CodeOf(err) != api.CodeWorkerRunning {
			break
		}
	}
	if api.CodeOf(err) == api.CodeNotFound && in.WorkerID != 0 && r.p.opts.Register {
		// It was deleted while this process was away, and this process may create it again.
		in.WorkerID, in.PreviousInstanceID = 0, ""
		sent = r.p.boot()
		got, err = r.call(ctx, in)
	}
	if api.CodeOf(err) == api.CodeNotFound && in.WorkerID != 0 {
		return errors.Join(err, r.p.state.forgetWorker(a.ID, in.WorkerID))
	}
	if err != nil {
		return err
	}
	known.agent, known.worker, known.instance, known.pending = a.ID, got.Worker.ID, r.p.instance, r.p.instance
	if err := r.p.state.saveWorker(known); err != nil {
		return err
	}
	r.mu.Lock()
	first := r.worker == 0
	r.worker, r.beatAt = got.Worker.ID, sent
	r.desired, r.told = got.Worker.DesiredState, got.Worker.PendingSignal
	r.landing.asked = got.Worker.Landing
	r.said, r.version = said, a.Version
	if got.BeatSeconds > 0 {
		r.beatEvery = min(r.p.clocks.Beat, time.Duration(got.BeatSeconds)*time.Second)
	}
	r.mu.Unlock()
	if first {
		r.log.Info("registered", "worker", got.Worker.ID.String(), "claims taken over", len(got.Claims))
		r.p.takeOver(r, got.Claims, sent, got.ServerTime)
	}
	r.p.wakeClaims()
	r.lands()
	return nil
}

func (r *record) call(ctx context.Context, in api.WorkerInput) (api.Registered, error) {
	ctx, cancel := context.WithTimeout(ctx, r.p.clocks.Answer)
	defer cancel()
	got, err := r.p.client.RegisterWorker(ctx, r.agent.String(), in)
	err = ours(err, got.Worker.AgentID, r.agent)
	return got, ours(err, got.Worker.ID == 0, false)
}

// registration is what this process says about itself for an agent.
func (p *Process) registration(a api.Agent, s self) api.WorkerInput {
	return api.WorkerInput{
		Name: s.name, InstanceID: p.instance, ProcessID: p.processID, Mode: a.Mode,
		Types: p.types(), Labels: p.opts.Labels, MaxConcurrent: int64(p.opts.Slots), ProcessSlots: int64(p.opts.Slots),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Version: p.opts.Version,
		FolderKey: folderKey(p.machine, s.folder), FolderShared: s.shared, StagingSeconds: int64(p.stages.Total().Round(time.Second) / time.Second),
		TaskUpdates: s.updates, Land: s.land,
	}
}

// types are the agent types that this process runs.
func (p *Process) types() []api.AgentType {
	return append([]api.AgentType{api.TypeCommand}, slices.Sorted(maps.Keys(p.opts.adapters))...)
}

// keepBeating beats on its own clock, more often while something runs, and at once when there
// is something to say. It depends on nothing that an agent does.
func (r *record) keepBeating(ctx context.Context) error {
	var wait backoff
	away := false
	for {
		pause := r.turnClock()
		err := r.beat(ctx, false)
		if err == nil {
			var gone error
			if gone, err = r.obey(ctx); gone != nil {
				return gone
			}
		}
		if err != nil {
			away = true
			switch api.CodeOf(err) {
			case api.CodeNotFound:
				return errRecordGone
			case api.CodeInstanceSuperseded:
				return fmt.Errorf("%w: %w", errSuperseded, err)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			pause = min(wait.next(api.RetryAfter(err)), pause)
			r.log.Warn("not in step with the coordinator", "again in", pause, "error", err)
		} else {
			wait.reset()
			if away {
				r.p.reconnected(r)
			}
			away = false
		}
		if !sleepAwake(ctx, pause, r.wakes) {
			return context.Cause(ctx)
		}
	}
}

// reconnected wakes what waits for its next try: the coordinator is back.
func (p *Process) reconnected(r *record) {
	for _, s := range p.sessionsOf(r.agent) {
		s.nudge()
	}
	p.wakeClaims()
}

// turnClock is the time to the next beat: while something runs, a beat also brings news of a
// cancel or a stop. contract 10.1
func (r *record) turnClock() time.Duration {
	r.mu.Lock()
	every := r.beatEvery
	r.mu.Unlock()
	if len(r.p.sessionsOf(r.agent)) > 0 {
		return min(every, r.p.clocks.Signal)
	}
	return every
}

// beat reports once that this process is alive, lists the claims it holds, and says which ones
// are drained. goodbye makes the worker offline at once.
func (r *record) beat(ctx context.Context, goodbye bool) error {
	r.beating.Lock()
	defer r.beating.Unlock()
	worker := r.id()
	drained, err := r.p.state.drained(worker)
	if err != nil {
		return err
	}
	drained = drained[:min(len(drained), 1000)] // the rest goes with the next one
	in := api.Beat{Notices: r.p.notices(r.agentSlug()), InstanceID: r.p.instance, Drained: drained, Goodbye: goodbye, Platform: runtime.GOOS + "/" + runtime.GOARCH, Version: r.p.opts.Version}
	held := map[api.ClaimID]*session{}
	for _, s := range r.p.sessionsOf(r.agent) {
		if id := s.live(); !id.IsZero() {
			held[id] = s
			in.ClaimIDs = append(in.ClaimIDs, id)
		}
	}
	in.Unsent = r.unsent()
	ctx, cancel := context.WithTimeout(ctx, r.p.clocks.Answer)
	defer cancel()
	sent := r.p.boot()
	r.p.at("beat")
	answer, err := r.p.client.Beat(ctx, r.agent, worker, in)
	err = ours(err, answer.Worker.ID, worker)
	r.p.at("beaten")
	if err != nil {
		return err
	}
	r.beaten(sent, answer, held)
	if len(drained) > 0 {
		return r.p.state.reported(drained)
	}
	return nil
}

// unsent is what the record's sessions have not handed in yet.
func (r *record) unsent() (u api.Unsent) {
	now := r.p.boot()
	for _, s := range r.p.sessionsOf(r.agent) {
		n, stuck, err := s.out.unsent(now)
		if err != nil {
			r.log.Warn("what is unsent can't be told", "error", err)
			continue
		}
		if n > 0 {
			u.Reports, u.Seconds = u.Reports+n, max(u.Seconds, int64(stuck/time.Second))
		}
	}
	return u
}

// beaten takes in the answer to a good beat. sent is the instant before it was sent.
func (r *record) beaten(sent proc.BootTime, answer api.BeatAnswer, held map[api.ClaimID]*session) {
	r.mu.Lock()
	r.beatAt = max(r.beatAt, sent)
	r.mu.Unlock()
	r.hear(answer.Worker)
	r.minds(answer.Approvals)
	for _, s := range r.p.sessionsOf(r.agent) {
		s.claimContext.beaten(sent.Add(s.silent))
	}
	for _, a := range answer.Claims {
		if s := held[a.ClaimID]; s != nil {
			s.beaten(sent, a, answer.ServerTime)
		}
	}
}

// leave ends what runs for a record that is gone, and forgets its id.
func (r *record) leave(cause error) {
	r.mu.Lock()
	worker := r.worker
	r.worker = 0
	r.mu.Unlock()
	for _, s := range r.p.sessionsOf(r.agent) {
		s.gone(s.claimID(), cause)
	}
	if worker == 0 || !errors.Is(cause, errRecordGone) {
		return
	}
	if err := r.p.state.forgetWorker(r.agent, worker); err != nil {
		r.log.Error("the worker id can't be forgotten", "error", err)
	}
}
