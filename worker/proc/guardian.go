package proc

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// guardianName is argv[0] of a guardian.
const guardianName = "stint-guardian"

// GuardianMain turns the process into a guardian if it was started as one, and then
// doesn't return. It must be the first call in main, and in TestMain of packages that
// start agents.
func GuardianMain() {
	if len(os.Args) == 0 || os.Args[0] != guardianName {
		return
	}
	// The agent is tied to the thread that starts it (agentAttr).
	runtime.LockOSThread()
	g := &guardian{reports: gob.NewEncoder(os.NewFile(fdReports, "reports"))}
	code := 0
	if err := g.run(); err != nil {
		g.report(report{Failed: failed("set up guardian", err)})
		code = 1
	}
	// Not os.Exit: the worker waits, and a build with the race detector would sleep a second
	// first.
	syscall.Exit(code)
}

// guardian is the state of the guardian process. One goroutine owns all of it.
type guardian struct {
	reports *gob.Encoder
	stages  Stages
	tree    *tree

	deadline   BootTime
	workerGone bool
	end        *ending // nil until an ending has begun
	status     syscall.WaitStatus
	gone       bool // the agent has ended
	collected  bool // and was collected, so its number is free

	limits limitSet // the limits that the system gave us at the start

	reapAt, lastReap BootTime // when to collect orphans next, and when we last did
}

// run guards one agent from its start to the end of the last process below it.
func (g *guardian) run() error {
	if err := settleIn(); err != nil {
		return err
	}
	// No core file of ours or the agent's, which would hold its secrets.
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("switch off core files: %w", err)
	}
	child := make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	signal.Notify(make(chan os.Signal, 1), deafTo...)

	orders := receive[order](os.NewFile(fdOrders, "orders"))
	first, ok := <-orders
	if !ok || first.Launch == nil {
		return errors.New("no launch order")
	}
	alarm, err := NewAlarm()
	if err != nil {
		return err
	}
	if f := g.launch(*first.Launch); f != nil {
		g.report(report{Failed: f})
		return nil
	}
	g.report(report{Started: &g.tree.agent})

	for !g.step(BootNow()) {
		alarm.Set(g.wakeAt())
		select {
		case o, ok := <-orders:
			if !ok {
				orders = nil // the worker is gone, whatever ended it
				g.workerGone = true
			}
			g.obey(o)
		case <-child:
			g.gone = g.gone || g.collected || exited(g.tree.agent.Pid)
			g.reapAt = max(BootNow(), g.lastReap.Add(reapEvery))
		case <-alarm.C:
		}
	}
	g.report(report{Ended: g.lastWord()})
	return nil
}

// deafTo are the signals that a guardian ignores: it ends when its work is done. Having a
// handler for them also gives the agent their defaults back if the worker was started with
// some of them ignored (a background job of a script is).
var deafTo = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGALRM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGXCPU,
	syscall.SIGVTALRM, syscall.SIGPROF, syscall.SIGWINCH, syscall.SIGIO,
}

// report sends a report to the worker, if it is still there.
func (g *guardian) report(r report) { _ = g.reports.Encode(r) }

// launch starts the agent.
func (g *guardian) launch(l launch) *failure {
	g.stages, g.deadline = l.Stages, l.Deadline
	if g.deadline != 0 && BootNow() >= g.deadline.Add(-g.stages.Total()) {
		return &failure{Op: "leave time for staging", Deadline: true}
	}
	if info, err := os.Stat(l.Dir); err != nil {
		return failed("working directory "+l.Dir, err)
	} else if !info.IsDir() {
		return failed("working directory "+l.Dir, syscall.ENOTDIR)
	}
	attr := &syscall.ProcAttr{
		Dir: l.Dir, Env: l.Env, Sys: agentAttr(),
		Files: []uintptr{fdStdin, fdStdout, fdStderr},
	}
	wearBrand(l.Brand)
	g.limits = limits()
	pid, err := fork(l, attr)
	for _, fd := range attr.Files {
		syscall.Close(int(fd)) // only the agent's copies may keep the pipes open
	}
	if err != nil {
		return failed("run "+l.Path, err)
	}
	id, err := lookupID(pid)
	if err != nil {
		id = ID{Pid: pid} // no /proc here: the group and the count of children must be enough
	}
	g.tree = newTree(Record{Mark: l.Mark, Brand: l.Brand, Agent: id})
	g.tree.root, g.tree.group = os.Getpid(), true
	return nil
}

// fork tries again while the executable is still open for writing somewhere: the writer's
// descriptor may exist for a moment in a child that is just being started.
func fork(l launch, attr *syscall.ProcAttr) (pid int, err error) {
	for range 100 {
		pid, err = syscall.ForkExec(l.Path, l.Argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) {
			return pid, err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return pid, err
}

// obey takes an order. Once an ending has begun it can't be undone.
func (g *guardian) obey(o order) {
	if o.Ping {
		same := limits() == g.limits
		g.report(report{Alive: same, Hampered: !same})
	}
	if o.Move && g.end == nil {
		g.deadline = o.Deadline
	}
	if o.End && g.end == nil && !g.gone {
		g.begin(whyAsked, BootNow())
	}
}

// wakeAt is the next instant at which there is something to do without an order.
func (g *guardian) wakeAt() BootTime {
	if g.end != nil {
		return g.end.lookAt
	}
	at := g.reapAt
	if g.deadline != 0 {
		if begin := g.deadline.Add(-g.stages.Total()); at == 0 || begin < at {
			at = begin
		}
	}
	return at
}
