package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"stint/worker/proc"
)

// The causes that end what runs under a claim.
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

// leash is the claim context of contract 4.7. Its context ends, with a cause,
// when the claim is lost or no longer wanted, and in any case the staging time
// before min(lease end, last good beat + offlineAfter), so that nothing runs any
// more when the coordinator may give the session to somebody else. Both ends are
// instants of the boot-time clock, counted from before the request that got them
// was sent. They only ever move on.
type leash struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	boot    func() proc.BootTime
	staging time.Duration

	mu       sync.Mutex
	leaseEnd proc.BootTime // guarded by mu
	beatEnd  proc.BootTime // guarded by mu
	moved    chan struct{} // guarded by mu; closed and made anew at each move
}

// newLeash starts the context. It lasts until end is called or ctx ends; watch must run for it.
func newLeash(ctx context.Context, boot func() proc.BootTime, staging time.Duration, leaseEnd, beatEnd proc.BootTime) *leash {
	l := &leash{boot: boot, staging: staging, leaseEnd: leaseEnd, beatEnd: beatEnd, moved: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// end ends the context for a named cause; the first one stays.
func (l *leash) end(cause error) { l.cancel(cause) }

// cause is why the context ended, nil while it goes on.
func (l *leash) cause() error { return context.Cause(l.ctx) }

// renewed moves the lease's end; beaten that of the worker's being online.
func (l *leash) renewed(until proc.BootTime) { l.move(&l.leaseEnd, until) }
func (l *leash) beaten(until proc.BootTime)  { l.move(&l.beatEnd, until) }

func (l *leash) move(end *proc.BootTime, until proc.BootTime) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until <= *end {
		return // an answer that was overtaken by a later one
	}
	*end = until
	close(l.moved)
	l.moved = make(chan struct{})
}

// deadline is the instant at which nothing may be alive any more, and a channel
// that is closed when it moves.
func (l *leash) deadline() (proc.BootTime, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.leaseEnd, l.beatEnd), l.moved
}

// check ends the context if its time has come. It must come before anything is
// believed of the agent: after sleep the timers are late, the clock isn't.
func (l *leash) check() error {
	if at, _ := l.deadline(); l.boot() >= at.Add(-l.staging) {
		l.end(errFenced)
	}
	return l.cause()
}

// watch ends the context in time. It returns when the context has ended.
func (l *leash) watch() error {
	alarm, err := proc.NewAlarm()
	if err != nil {
		err = fmt.Errorf("watch the lease: %w", err)
		l.end(err)
		return err
	}
	defer alarm.Close()
	for l.check() == nil {
		at, moved := l.deadline()
		alarm.Set(at.Add(-l.staging))
		select {
		case <-alarm.C:
		case <-moved:
		case <-l.ctx.Done():
		}
	}
	return nil
}
