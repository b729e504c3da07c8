package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"stint/worker/proc"
)

// The causes that end whatever runs under a claim.
var (
	errCancelled  = errors.New("the session was cancelled")
	errLost       = errors.New("the claim was lost")
	errFenced     = errors.New("the lease could not be kept up and would end while the command runs")
	errStop       = errors.New("a person asked the session to stop")
	errDraining   = errors.New("the worker is shutting down")
	errRecordGone = errors.New("the worker's record was deleted")
	errSuperseded = errors.New("another process has taken this worker's place")
	errTimeout    = errors.New("the turn took too long")
	errStalled    = errors.New("the command was silent for too long")
	errFolderGone = errors.New("the work folder is gone")
)

// claimContext is the claim context of contract 4.7. Its context ends, with a cause,
// when the claim is lost or no longer wanted, and in any case the staging time
// before min(lease end, last good beat + offlineAfter), so that nothing runs any
// more when the coordinator may give the session to somebody else. Both ends are
// instants of the boot-time clock, counted from before the request that got them
// was sent. They only ever move on.
type claimContext struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	boot    func() proc.BootTime
	staging time.Duration

	mu       sync.Mutex
	asking   proc.BootTime // while asking for the lease: until when nothing runs, else 0; guarded by mu
	leaseEnd proc.BootTime // guarded by mu
	beatEnd  proc.BootTime // guarded by mu
	moved    chan struct{} // guarded by mu; closed and replaced at each move
}

// newClaimContext starts the context. It lasts until end is called or ctx ends; watch must run for it.
func newClaimContext(ctx context.Context, boot func() proc.BootTime, staging time.Duration, leaseEnd, beatEnd proc.BootTime) *claimContext {
	l := &claimContext{boot: boot, staging: staging, leaseEnd: leaseEnd, beatEnd: beatEnd, moved: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// end ends the context for a named cause; the first one stays.
func (l *claimContext) end(cause error) { l.cancel(cause) }

// cause is why the context ended, nil while it goes on.
func (l *claimContext) cause() error { return context.Cause(l.ctx) }

// ask lets the context continue, until the given instant at the latest, while it is found out
// how long the lease lasts. Nothing may run before known.
func (l *claimContext) ask(until proc.BootTime) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = until
}

// known says that the lease and the last beat are up to date: from now on they count.
func (l *claimContext) known() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = 0
	close(l.moved)
	l.moved = make(chan struct{})
}

// fence is the instant at which the context ends.
func (l *claimContext) fence() proc.BootTime {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking != 0 {
		return l.asking
	}
	return min(l.leaseEnd, l.beatEnd).Add(-l.staging)
}

// renewed moves the lease's end; beaten moves the end of the worker's being online.
func (l *claimContext) renewed(until proc.BootTime) { l.move(&l.leaseEnd, until) }
func (l *claimContext) beaten(until proc.BootTime)  { l.move(&l.beatEnd, until) }

func (l *claimContext) move(end *proc.BootTime, until proc.BootTime) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until <= *end {
		return // an answer that a later one has overtaken
	}
	*end = until
	close(l.moved)
	l.moved = make(chan struct{})
}

// deadline returns the instant at which nothing may be running any more, and a channel that is
// closed when it moves.
func (l *claimContext) deadline() (proc.BootTime, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.leaseEnd, l.beatEnd), l.moved
}

// check ends the context if its time has come. It must come before anything the agent says is
// believed: after sleep the timers are late, the clock isn't.
func (l *claimContext) check() error {
	if l.boot() >= l.fence() {
		l.end(errFenced)
	}
	return l.cause()
}

// watch ends the context in time. It returns when the context has ended.
func (l *claimContext) watch() error {
	alarm, err := proc.NewAlarm()
	if err != nil {
		err = fmt.Errorf("watch the lease: %w", err)
		l.end(err)
		return err
	}
	defer alarm.Close()
	for l.check() == nil {
		_, moved := l.deadline()
		alarm.Set(l.fence())
		select {
		case <-alarm.C:
		case <-moved:
		case <-l.ctx.Done():
		}
	}
	return nil
}
