// Package proc owns the processes of one session: it starts the agent, carries its input and
// output, and makes sure that nothing of it is alive afterwards.
//
// Between the worker and the agent stands a guardian, a small re-exec of this same binary in
// its own process session. The worker gives it the deadline over a pipe; the guardian ends the
// whole tree when that instant comes, when the worker asks, when the worker is gone (the pipe
// closes, whatever killed it) and when the agent has exited by itself but left something
// behind. It needs nothing of the worker for that: a worker that is stopped, killed or asleep
// can't keep an agent alive.
//
// What counts as belonging to a session:
//
//   - Linux: every descendant (the guardian is the child subreaper, so processes
//     that leave the group, fork twice or lose their parent stay below it), and, wherever
//     it is in the tree, every process that carries the session's mark in its environment,
//     or its brand, an inherited limit that nobody without privilege can remove.
//   - macOS: the agent's process group, descendants while their parents are alive, and
//     the mark, for processes whose environment the system lets us read. A process
//     that forks twice, leaves the group and clears its environment is not found.
//
// There is no version for other systems.
//
// An agent runs as the same user as its guardian and may kill or stop it. The worker asks the
// guardian for a sign of life all the time; if it is lost or stopped the session ends: what
// was below it is found by group, mark and brand, and killed. So is what is left when guardian
// and worker ended together, by [Sweep] in the worker's next process.
//
// Out of reach everywhere: work handed to somebody else's daemon (at, cron, a container
// engine, systemd-run) that clears the mark. A sandbox is the answer there.
//
// This package must not know of the server, of leases' numbers, of agent types or of where
// output goes. Deadlines are instants given to it; output goes to a function.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The reasons that Result.Cause names besides the cause of the caller's context.
var (
	// ErrDeadline: the deadline came.
	ErrDeadline = errors.New("the deadline came")
	// ErrGuardianLost: the guardian was killed, or is stopped, so the worker ended the tree
	// itself.
	ErrGuardianLost = errors.New("the guardian process was killed or stopped")
)

// The variables that Start puts into the agent's environment.
const (
	// SessionVar holds Record.Session.
	SessionVar = "STINT_SESSION"
	// MarkVar holds Record.Mark, by which the sweep knows the session's processes.
	MarkVar = "STINT_MARK"
)

// startPatience bounds how long a guardian may take to report the start. It has
// nothing to do but exec; a machine that needs longer is not fit to run agents.
const startPatience = 30 * time.Second

// Spec says what to run.
type Spec struct {
	// Record names the process tree that is started; made by NewRecord and journaled by the
	// caller before Start, so that a later process of the worker can find leftovers.
	Record Record
	// Argv is the command. Argv[0] is looked up by LookPath. Nothing secret belongs here:
	// everybody on the machine can see arguments.
	Argv []string
	// Dir is the working directory, absolute.
	Dir string
	// Env is the exact environment (see Env); SessionVar and MarkVar are added.
	Env []string
	// Stdin is copied to the agent, whose input then ends; nil is an empty input. If it is an
	// io.Closer it is closed when the agent has closed its input or is gone: the writer of an
	// io.Pipe then gets an error. Otherwise its Read must not block for ever.
	Stdin io.Reader
	// Stages are the graces of an ending.
	Stages Stages
	// Deadline is the instant at which nothing of the session may be alive any more:
	// the end of the lease, counted from before the request that got it was sent
	// (contract 4.7). Signals begin Stages.Total() earlier. Zero is none.
	Deadline BootTime
	// Follow, where it is set, replaces Deadline with one that moves, as that of a renewed
	// lease does: it returns the current deadline and a channel that is closed when it moves.
	// It is called at the start and then after each move.
	Follow func() (BootTime, <-chan struct{})
}

func (s Spec) validate() error {
	if len(s.Argv) == 0 {
		return errors.New("no command")
	}
	if s.Record.Mark == "" {
		return errors.New("no record: make one with NewRecord")
	}
	if !filepath.IsAbs(s.Dir) {
		return fmt.Errorf("working directory %q is not absolute", s.Dir)
	}
	if s.Stages.Interrupt < 0 || s.Stages.Term < 0 || s.Stages.Kill < 0 {
		return errors.New("a stage is negative")
	}
	return nil
}

// environ is the agent's environment: the caller's, with our two variables set once.
func (s Spec) environ() []string {
	env := slices.DeleteFunc(slices.Clone(s.Env), func(v string) bool {
		return strings.HasPrefix(v, SessionVar+"=") || strings.HasPrefix(v, MarkVar+"=")
	})
	return append(env, SessionVar+"="+s.Record.Session, MarkVar+"="+s.Record.Mark)
}

// Process is a started agent with everything below it.
type Process struct {
	record Record
	stages Stages

	guardian *exec.Cmd
	orders   *orders       // to the guardian
	reports  <-chan report // from the guardian, closed when it is gone
	output   *output
	alarm    *Alarm

	mu       sync.Mutex
	deadline BootTime // guarded by mu
	moved    chan struct{}

	done   chan struct{}
	result Result // written by the goroutine in Start before done closes
}

// Start runs the command under a guardian and returns once the agent has been exec'ed. Output
// goes to sink as it comes (see Sink). When ctx ends, the tree is ended in stages and
// Result.Cause is ctx's cause.
//
// Errors are the system's own and can be checked with errors.Is: fs.ErrNotExist,
// fs.ErrPermission, exec.ErrNotFound, syscall.ENOEXEC; ErrDeadline when the deadline leaves no
// time to run. After an error nothing is running.
//
// The program must call GuardianMain first thing in main.
func Start(ctx context.Context, spec Spec, sink Sink) (*Process, error) {
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	if sink == nil {
		return nil, errors.New("start agent: no sink for its output")
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start agent: %w", context.Cause(ctx))
	}
	path, err := LookPath(spec.Argv[0], spec.Dir, spec.Env)
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	if spec.Follow != nil {
		spec.Deadline, _ = spec.Follow()
	}
	p, stdin, err := spawnGuardian(spec, sink)
	if err != nil {
		return nil, fmt.Errorf("start guardian: %w", err)
	}
	order := order{Launch: &launch{
		Path: path, Argv: spec.Argv, Dir: spec.Dir, Env: spec.environ(),
		Mark: spec.Record.Mark, Brand: spec.Record.Brand, Stages: p.stages, Deadline: spec.Deadline,
	}}
	if err := p.handshake(ctx, order); err != nil {
		p.abandon()
		stdin.Close()
		return nil, fmt.Errorf("start agent: %w", err)
	}
	p.output.start()
	fed := feed(stdin, spec.Stdin)
	go func() {
		defer close(p.done)
		p.watch(ctx, spec.Follow)
		fed.end()
		p.result.OutputCut = p.output.finish()
	}()
	return p, nil
}

// handshake sends the launch and waits for the answer to it.
func (p *Process) handshake(ctx context.Context, launch order) error {
	if err := p.orders.send(launch); err != nil {
		return fmt.Errorf("reach the guardian: %w", err)
	}
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	select {
	case r, ok := <-p.reports:
		switch {
		case !ok:
			return fmt.Errorf("%w before the start", ErrGuardianLost)
		case r.Failed != nil:
			return r.Failed
		case r.Started == nil:
			return errors.New("the guardian answered out of turn")
		}
		p.record.Agent = *r.Started
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-patience.C:
		return fmt.Errorf("the guardian did not answer in %v", startPatience)
	}
}

// Record is this tree's record with the process ids filled in: journal it again after Start.
// contract 10.7
func (p *Process) Record() Record { return p.record }

// SetDeadline moves the deadline: each renewal calls it. It has no effect once an ending has
// begun. An error means that the agent is gone or that the guardian may still have the old
// deadline, which is the safe side.
func (p *Process) SetDeadline(at BootTime) error {
	p.mu.Lock()
	p.deadline = at
	p.mu.Unlock()
	select {
	case p.moved <- struct{}{}:
	default: // a look at the deadline is already due
	}
	if err := p.orders.send(order{Deadline: at, Move: true}); err != nil {
		return fmt.Errorf("move deadline: %w", err)
	}
	return nil
}

// Done is closed when nothing of the session is left and all output is in the sink.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until Done and returns how it ended. It may be called any number of times. It is
// bounded by the staging time once an ending has begun, and by the sink.
func (p *Process) Wait() Result {
	<-p.done
	return p.result
}

// feeding is the copy of the agent's input, ended by the goroutine in Start.
type feeding struct {
	pipe   *os.File
	source io.Reader
	copied chan struct{}
}

func feed(pipe *os.File, source io.Reader) feeding {
	f := feeding{pipe: pipe, source: source, copied: make(chan struct{})}
	go func() {
		defer close(f.copied)
		if source != nil {
			// An agent may close its input early.
			_, _ = io.Copy(pipe, source)
		}
		f.close()
	}()
	return f
}

// close ends the input for the agent, and for whatever writes to the source.
func (f feeding) close() {
	f.pipe.Close()
	if c, ok := f.source.(io.Closer); ok {
		c.Close()
	}
}

// end stops the copy: an agent that never read can't block it (contract 10.10).
func (f feeding) end() {
	f.close()
	<-f.copied
}
