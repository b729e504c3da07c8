package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// secondLook is how long the watch waits between finding the guardian overdue and taking over.
// A worker that was itself stopped finds the guardian's reports waiting in the pipe and needs
// a moment to read them.
const secondLook = 250 * time.Millisecond

// killPatience is how much longer than its stages the guardian may take to report after it has
// begun to send KILL.
const killPatience = 5 * time.Second

// The guardian's descriptors beyond the standard three.
const (
	fdOrders = 3 + iota
	fdReports
	fdStdin
	fdStdout
	fdStderr
)

// spawnGuardian starts the guardian with the pipes of the agent, and returns the worker's end
// of the agent's input.
func spawnGuardian(spec Spec, sink Sink) (p *Process, stdin *os.File, err error) {
	var opened []*os.File
	pipe := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		if r, w, err = os.Pipe(); err == nil {
			opened = append(opened, r, w)
		}
		return r, w
	}
	socket := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		if r, w, err = socketPair(); err == nil {
			opened = append(opened, r, w)
		}
		return r, w
	}
	orderR, orderW := socket()
	reportR, reportW := socket()
	stdinR, stdinW := pipe()
	stdoutR, stdoutW := pipe()
	stderrR, stderrW := pipe()
	var alarm *Alarm
	if err == nil {
		alarm, err = NewAlarm()
	}
	var cmd *exec.Cmd
	if err == nil {
		cmd, err = startGuardian(spec.Record, orderR, reportW, stdinR, stdoutW, stderrW)
	}
	if err != nil {
		for _, f := range opened {
			f.Close()
		}
		if alarm != nil {
			alarm.Close()
		}
		return nil, nil, err
	}
	for _, f := range []*os.File{orderR, reportW, stdinR, stdoutW, stderrW} {
		f.Close() // the guardian's: an end of file must reach us
	}
	record := spec.Record
	record.Guardian, _ = lookupID(cmd.Process.Pid) // it is our child: the pid can't be reused
	reports := receive[report](reportR)
	p = &Process{
		record: record, stages: spec.Stages.orDefault(), deadline: spec.Deadline,
		guardian: cmd, orders: newOrders(orderW), reports: reports, alarm: alarm,
		moved: make(chan struct{}, 1), done: make(chan struct{}),
	}
	p.output = newOutput(stdoutR, stderrR, sink, p.pastDeadline)
	return p, stdinW, nil
}

func startGuardian(rec Record, files ...*os.File) (*exec.Cmd, error) {
	if os.Args[0] == guardianName {
		// Without this a program that forgot GuardianMain would start itself for ever.
		return nil, fmt.Errorf("%s is running as a guardian: main must call proc.GuardianMain first", guardianName)
	}
	self, err := selfPath()
	if err != nil {
		return nil, fmt.Errorf("find our own binary: %w", err)
	}
	cmd := &exec.Cmd{
		Path: self,
		// Session and mark are not secrets: ps may show them, and a later process of the
		// worker finds the guardian by them.
		Args:        []string{guardianName, rec.Session, rec.Mark},
		Env:         []string{"GOMAXPROCS=1"},
		Dir:         "/",
		ExtraFiles:  files,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return cmd, nil
}

// watch follows the guardian until the tree is gone, and fills in the result. It is the only
// goroutine that touches p.result, p.guardian and p.alarm after Start.
func (p *Process) watch(ctx context.Context, follow func() (BootTime, <-chan struct{})) {
	defer p.alarm.Close()
	defer p.orders.close()
	var (
		asked    = ctx.Done()
		askedAt  time.Time
		due      overdue
		liveness = newLiveness(p.record.Guardian)
	)
	due.stages = p.stages
	beat := time.NewTicker(livenessEvery)
	defer beat.Stop()
	var moves <-chan struct{}
	if follow != nil {
		moves = p.followTo(follow) // it may have moved since the start
	}
	for {
		due.deadline = p.currentDeadline()
		p.alarm.Set(due.at())
		select {
		case r, ok := <-p.reports:
			if !ok || r.Hampered {
				p.takeOver(ctx, askedAt)
				return
			}
			if p.reported(ctx, r, &due, liveness) {
				return
			}
		case <-asked:
			asked = nil
			askedAt, due.asked = time.Now(), BootNow()
			// If it doesn't arrive, the watch below takes over.
			_ = p.orders.send(order{End: true})
		case <-moves:
			moves = p.followTo(follow)
		case <-p.moved:
		case <-beat.C:
			if liveness.lost() {
				p.takeOver(ctx, askedAt)
				return
			}
			if liveness.due() {
				_ = p.orders.send(order{Ping: true}) // if it doesn't arrive, it isn't answered
			}
		case <-p.alarm.C:
			if due.passed(BootNow()) {
				p.takeOver(ctx, askedAt)
				return
			}
		}
	}
}

// reported takes in what the guardian says; true when the process has ended.
func (p *Process) reported(ctx context.Context, r report, due *overdue, l *liveness) bool {
	switch {
	case r.Alive:
		if l.answered() {
			_ = p.orders.send(order{Ping: true})
		}
	case r.Killing:
		due.killing = BootNow()
	case r.Ended != nil:
		p.reapGuardian()
		p.conclude(ctx, *r.Ended)
		p.lookAgain()
		return true
	}
	return false
}

// followTo moves the deadline to where it is now and returns the channel that announces its
// next move.
func (p *Process) followTo(follow func() (BootTime, <-chan struct{})) <-chan struct{} {
	at, moves := follow()
	if at != p.currentDeadline() {
		// If it doesn't arrive the guardian keeps the earlier deadline, or is gone.
		_ = p.SetDeadline(at)
	}
	return moves
}

// overdue says when the guardian should have acted and didn't: it may be stopped, or the
// machine starved. Owned by watch.
type overdue struct {
	stages   Stages
	deadline BootTime
	asked    BootTime
	killing  BootTime
	found    BootTime // when it was first seen to be overdue
}

func (o *overdue) limit() BootTime {
	if o.killing != 0 {
		return o.killing.Add(o.stages.Kill + killPatience)
	}
	var kill BootTime
	if o.asked != 0 {
		kill = o.asked.Add(o.stages.Interrupt + o.stages.Term)
	}
	if o.deadline != 0 {
		if byDeadline := o.deadline.Add(-o.stages.Kill); kill == 0 || byDeadline < kill {
			kill = byDeadline
		}
	}
	if kill == 0 {
		return 0
	}
	return kill.Add(o.stages.Kill / 2)
}

func (o *overdue) at() BootTime {
	if o.found != 0 {
		return o.found.Add(secondLook)
	}
	return o.limit()
}

// passed reports whether it is time to take over; the first call only notes the time.
func (o *overdue) passed(now BootTime) bool {
	limit := o.limit()
	if limit == 0 || now < limit {
		o.found = 0
		return false
	}
	if o.found == 0 {
		o.found = now
		return false
	}
	return now >= o.found.Add(secondLook)
}

func (p *Process) currentDeadline() BootTime {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deadline
}

// pastDeadline reports whether the deadline has passed, which the output asks before it hands
// anything on. contract 4.7
func (p *Process) pastDeadline() bool {
	d := p.currentDeadline()
	return d != 0 && BootNow() >= d
}

// conclude turns the guardian's last report into the result.
func (p *Process) conclude(ctx context.Context, e ended) {
	r := &p.result
	r.ExitCode = -1
	if e.Exited {
		r.exit(e.Status)
	}
	switch e.Why {
	case whyAsked:
		r.Cause = context.Cause(ctx)
	case whyDeadline:
		r.Cause = ErrDeadline
	case whyWorkerGone: // our socket broke though we are alive
		r.Cause = ErrGuardianLost
	}
	r.Stage = e.Stage
	r.Asked, r.Interrupted, r.Terminated, r.Killed, r.Exited = e.Asked, e.Interrupted, e.Terminated, e.Killed, e.ExitedAt
	r.Swept, r.Left, r.Survivors = e.Swept, e.Left, e.Survivors
}

// takeOver ends the tree without the guardian: it is dead, or it is overdue and then we end it
// first. Graces make no sense any more, so it sends KILL at once.
func (p *Process) takeOver(ctx context.Context, asked time.Time) {
	p.killGuardian()
	p.reapGuardian()
	r := &p.result
	r.ExitCode = -1
	r.Cause = ErrGuardianLost
	if ctx.Err() != nil {
		r.Cause = context.Cause(ctx)
	}
	r.Stage = StageKill
	r.Asked, r.Killed = asked, time.Now()
	h := newTree(p.record)
	h.group = true // the agent ended with the guardian or is alive: its number is current
	r.Survivors = h.killed(p.stages.Kill)
	delete(h.seen, p.record.Agent)
	r.Swept = len(h.seen)
}

// lookAgain makes sure that the guardian's last report is true: a process that can write to
// its socket, or keep it from reading the system's table, can have it report that everything is
// over.
func (p *Process) lookAgain() {
	r := &p.result
	if len(r.Survivors) > 0 {
		return // it tried for long enough
	}
	h := newTree(p.record)
	members, err := h.members()
	if len(members) == 0 && (err == nil || errors.Is(err, errNoTable)) {
		return // where there is no table the guardian's count of its children must be enough
	}
	r.Survivors = h.killed(p.stages.Kill)
	r.Swept += len(h.seen)
}

// killed is kill for a result: a process not known to be gone counts as a survivor.
func (h *tree) killed(limit time.Duration) []ID {
	left, err := h.kill(limit)
	if err != nil {
		return h.unknown()
	}
	return left
}

// reapGuardian waits for the guardian, which has sent its last report or was killed.
func (p *Process) reapGuardian() {
	impatient := time.AfterFunc(2*time.Second, p.killGuardian)
	defer impatient.Stop()
	_ = p.guardian.Wait() // how it ended adds nothing to its report
}

// killGuardian may find it already gone, which is its purpose.
func (p *Process) killGuardian() { _ = p.guardian.Process.Kill() }

// abandon undoes a failed start, however far it came.
func (p *Process) abandon() {
	p.killGuardian()
	p.reapGuardian()
	p.orders.close()
	p.alarm.Close()
	p.output.close()
	_, _ = newTree(p.record).kill(p.stages.Kill) // the start has already failed for another reason
}
