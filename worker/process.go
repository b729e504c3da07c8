package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"stint/api"
	"stint/worker/proc"
	"stint/worker/workflow"
)

// The exit codes of [Run].
const (
	ExitOK        = 0
	ExitFailed    = 1
	ExitNoRecord  = 3  // every worker record was deleted, or an agent to serve doesn't exist
	ExitNotSigned = 4  // the token is not accepted
	ExitConflict  = 5  // another process uses the state directory
	ExitRestart   = 75 // asked to restart: the caller is to start it again
)

var (
	// ErrNoRecord says that no worker record is left that this process may serve.
	ErrNoRecord = errors.New("no worker record is left")
	// ErrAccountChanged says that the state directory belongs to another server,
	// workspace or user than it is to be used with.
	ErrAccountChanged = errors.New("the state directory belongs to another account")

	// ErrUnfit says that the coordinator refuses what this process says about itself for an
	// agent, for example when the agent's leases are shorter than the time that the process
	// takes to end what it runs. Asking again doesn't help: one of the settings has to change.
	ErrUnfit = errors.New("this worker does not fit the agent")

	errReportsOver = errors.New("the worker ends")
)

// Process hosts any number of worker records with one shared pool of slots.
type Process struct {
	filesDir string // of people's files; guarded by mu
	opts     Options
	clocks   Clocks
	stages   proc.Stages
	client   *api.Client
	state    *state
	log      *slog.Logger
	boot     func() proc.BootTime
	at       func(point string)
	source   []string // this process's environment

	me        api.Whoami
	machine   string // random name of this machine
	processID string // stable name of this worker process, for affinity
	instance  string // boot nonce

	folders   *folders
	routes    routes
	slots     chan struct{}   // one token per busy slot
	reporting context.Context // reports are sent until it ends
	stopAll   context.CancelCauseFunc
	parts     sync.WaitGroup // sessions
	told      told
	relist    chan struct{} // one token: read the list of agents again
	tidy      tidy

	mu        sync.Mutex
	records   map[api.AgentID]*record      // guarded by mu
	flows     map[string]*workflow.Watcher // by path; guarded by mu
	sessions  map[int64]*session           // by line of the journal; guarded by mu
	leftovers map[int64]*leftover          // of an earlier process, not taken up yet; guarded by mu
	stopped   map[api.AgentID]api.WorkerID // records that were asked to stop; guarded by mu
	forgotten map[api.AgentID]bool         // records that were deleted while this process ran; guarded by mu
	unfit     map[api.AgentID]misfit       // agents that this process doesn't fit; guarded by mu
	said      map[string]bool              // said once only; guarded by mu
	restart   bool                         // this process was asked to restart; guarded by mu
	draining  bool                         // guarded by mu
	woken     chan struct{}                // closed and replaced when claims should be asked for again; guarded by mu
}

// Run serves agents until ctx ends or there is nothing left to serve, and returns the
// process's exit code. If the coordinator can't be reached it waits, for ever. It also ends
// when each of its records was asked to stop, with [ErrRestart] when its only one was asked to
// restart, and with [ErrUnfit] when it fits none of its agents. When ctx ends it claims
// nothing more, ends what runs in short stages, gives those sessions back, and says goodbye.
//
// The program must call [proc.GuardianMain] first thing in main.
func Run(ctx context.Context, o Options) (exitCode int, err error) {
	p, err := open(o)
	if err != nil {
		if errors.Is(err, ErrAlreadyRunning) {
			return ExitConflict, err
		}
		return ExitFailed, err
	}
	defer p.close()
	err = p.serve(ctx)
	switch {
	case err == nil, errors.Is(err, errAllStopped):
		return ExitOK, nil
	case errors.Is(err, ErrRestart):
		return ExitRestart, err
	case errors.Is(err, ErrNoRecord), errors.Is(err, ErrAccountChanged), api.CodeOf(err) == api.CodeNotFound:
		return ExitNoRecord, err
	case api.CodeOf(err) == api.CodeUnauthenticated, api.CodeOf(err) == api.CodeForbidden:
		return ExitNotSigned, err
	}
	return ExitFailed, err
}

// opened is what must be undone in reverse order.
type opened struct {
	*Process
	lock lock
}

func open(o Options) (*opened, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.ClientConfig{URL: o.URL, Token: o.Token, Credentials: o.Credentials, Workspace: o.Workspace, Agent: "stint-worker/" + o.Version, Transport: o.transport})
	if err != nil {
		return nil, err
	}
	held, err := takeLock(o.StateDir)
	if err != nil {
		return nil, err
	}
	p, err := newProcess(o, client)
	if err != nil {
		held.release()
		return nil, err
	}
	return &opened{p, held}, nil
}

func newProcess(o Options, client *api.Client) (*Process, error) {
	machine, err := machineID(o.MachineFile)
	if err != nil {
		return nil, err
	}
	o.Name = cmp.Or(o.Name, "worker-"+strings.ToLower(machine[:4]))
	s, err := openState(o.StateDir)
	if err != nil {
		return nil, err
	}
	p := &Process{
		opts: o, clocks: o.Clocks, stages: o.Stages, client: client, state: s, log: o.Log, boot: o.boot, at: o.at, source: o.environ,
		machine: machine, instance: "ins_" + strings.ToLower(rand.Text()),
		folders: newFolders(), routes: routes{inside: map[string]int{}}, slots: make(chan struct{}, o.Slots), relist: make(chan struct{}, 1), tidy: tidy{urgent: make(chan struct{}, 1)},
		records: map[api.AgentID]*record{}, flows: map[string]*workflow.Watcher{}, sessions: map[int64]*session{}, leftovers: map[int64]*leftover{}, woken: make(chan struct{}),
		stopped: map[api.AgentID]api.WorkerID{}, forgotten: map[api.AgentID]bool{}, unfit: map[api.AgentID]misfit{},
	}
	if err := errors.Join(o.Places.Note(o.StateDir), o.Places.NoteUsual()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	p.reporting, p.stopAll = context.WithCancelCause(context.Background())
	if err := errors.Join(p.nameProcess(), p.sweepPrompts(), p.sweepFiles(), p.sweepScratch()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return p, nil
}

// nameProcess reads or creates the name by which agent sessions find their way back to this
// process.
func (p *Process) nameProcess() (err error) {
	if p.processID, err = p.state.fact("process"); err != nil || p.processID != "" {
		return err
	}
	p.processID = "prc_" + strings.ToLower(rand.Text())
	return p.state.setFact("process", p.processID)
}

func (o *opened) close() {
	o.stopAll(errReportsOver)
	o.closeFlows()
	if err := o.state.close(); err != nil {
		o.log.Error("the worker's state was not closed well", "error", err)
	}
	o.lock.release()
}

// token is the one that this process acts with now, to be masked in what agents print.
func (p *Process) token() string {
	token, err := p.client.Token(p.reporting)
	if err != nil {
		return ""
	}
	return token
}

// identify learns as whom this process acts and checks that the state
// directory is that account's. contract 10.1
func (p *Process) identify(ctx context.Context) error {
	var workspace api.WorkspaceID
	err := p.insist(ctx, "reach the coordinator", func() (err error) {
		if p.me, err = p.client.Whoami(ctx); err != nil {
			return err
		}
		if err = ours(err, p.me.UserID == 0, false); err != nil {
			return err
		}
		workspace, err = p.workspace(ctx)
		return err
	})
	if err != nil {
		return err
	}
	ids := workspace.String() + " " + p.me.UserID.String()
	account := p.client.URL() + " " + ids
	stored, err := p.state.fact("account")
	if err != nil || stored == account {
		return err
	}
	if stored != "" {
		if !p.opts.Register {
			return fmt.Errorf("%w: it was used with %q and is to be used with %q; use another one, or allow to register anew", ErrAccountChanged, stored, account)
		}
		if !strings.HasSuffix(stored, " "+ids) { // not merely another address
			p.log.Warn("the state directory is taken over from another account", "was", stored, "is", account)
			if err := p.forget(); err != nil {
				return err
			}
		}
	}
	return p.state.setFact("account", account)
}

// workspace is the id of the served workspace, however it was named.
func (p *Process) workspace(ctx context.Context) (api.WorkspaceID, error) {
	list, err := p.client.Workspaces(ctx)
	if err != nil {
		return 0, err
	}
	name := p.client.Workspace()
	i := slices.IndexFunc(list.Items, func(w api.Workspace) bool { return w.ID != 0 && (w.Slug == name || w.ID.String() == name) })
	if i >= 0 {
		return list.Items[i].ID, nil
	}
	if slices.ContainsFunc(list.Items, func(w api.Workspace) bool { return w.ID != 0 }) {
		return 0, api.Refuse(api.CodeNotFound, fmt.Sprintf("There is no workspace %q that this user is a member of.", name))
	}
	return 0, ours(nil, 0, 1) // everybody has one
}

// insist repeats a call until it gets an answer: nil, or a final refusal.
func (p *Process) insist(ctx context.Context, doing string, do func() error) error {
	var wait backoff
	for {
		err := do()
		if err == nil || !api.Retriable(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pause := wait.next(api.RetryAfter(err))
		p.log.Warn("no answer", "doing", doing, "again in", pause, "error", err)
		if !sleepAwake(ctx, pause, nil) {
			return context.Cause(ctx)
		}
	}
}

// serve runs all loops until ctx ends, then drains. It is nil after a clean end.
func (p *Process) serve(ctx context.Context) error {
	swept, err := p.sweepLeftovers()
	if err != nil {
		return err
	}
	if err := p.identify(ctx); err != nil {
		<-swept
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	loops, stopLoops := context.WithCancelCause(ctx)
	defer stopLoops(nil)
	beats, stopBeats := context.WithCancelCause(context.WithoutCancel(ctx))
	var running, beating sync.WaitGroup
	running.Go(func() {
		if err := p.follow(loops, beats, &beating); err != nil {
			stopLoops(err)
		}
	})
	running.Go(func() { p.hear(loops) })
	running.Go(func() { p.poll(loops) })
	running.Go(func() {
		select {
		case <-swept: // nothing is claimed while something of an earlier process may run
			p.claims(loops)
		case <-loops.Done():
		}
	})
	running.Go(func() {
		select {
		case <-swept: // what runs in a workspace is known
			p.tidies(loops)
		case <-loops.Done():
		}
	})
	<-loops.Done()
	reason := context.Cause(loops)
	p.log.Info("shutting down", "reason", reason)
	p.drain()
	running.Wait()
	lastWord := time.AfterFunc(p.opts.Goodbye, func() { p.stopAll(errReportsOver) })
	defer lastWord.Stop()
	p.parts.Wait()
	stopBeats(errDraining)
	beating.Wait()
	p.sayGoodbye()
	if ctx.Err() != nil {
		return nil
	}
	return reason
}

// drain ends every session's command; reporting goes on.
func (p *Process) drain() {
	p.mu.Lock()
	p.draining = true
	all := make([]*session, 0, len(p.sessions))
	for _, s := range p.sessions {
		all = append(all, s)
	}
	p.mu.Unlock()
	for _, s := range all {
		s.drain()
	}
}

// sayGoodbye makes the records offline at once.
func (p *Process) sayGoodbye() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, r := range p.allRecords() {
		if r.id() == 0 {
			continue
		}
		all.Go(func() {
			if err := r.beat(ctx, true); err != nil {
				r.log.Warn("no goodbye was said", "error", err)
			}
		})
	}
	all.Wait()
}

// sessionsOf returns the running sessions of an agent.
func (p *Process) sessionsOf(agent api.AgentID) []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*session
	for _, s := range p.sessions {
		if s.rec.agent == agent {
			out = append(out, s)
		}
	}
	return out
}

func (p *Process) allRecords() []*record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.records))
}

func (p *Process) recordOf(worker api.WorkerID) *record {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.records {
		if r.id() == worker {
			return r
		}
	}
	return nil
}
