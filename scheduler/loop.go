package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Loop is the one timer loop: whatever the product does because time has passed, a Loop does,
// each with its own Do. All logic is in Do, which tests call directly; Loop only decides when.
// Fill in the exported fields, then Run it once. A Loop must not be copied.
type Loop struct {
	// Name identifies the loop in the log.
	Name string

	// Every is the longest pause between two runs of Do, greater than 0. It is what finds work
	// after the clock was set, the machine slept or a Wake was lost, so correctness depends on
	// it and never on the other two reasons.
	Every time.Duration

	// Do does everything that is due at now, which is read before Do begins, and returns the
	// first instant later than now at which more is due; the zero time means that it knows of
	// nothing. What came due while Do was running is such an instant too: it has passed, so Do
	// runs again at once. Do itself logs and skips the failure of one row. An error, or a
	// panic, is logged here and retried after a growing pause, at most Every; the next instant
	// returned with an error still counts if it lies ahead.
	Do func(ctx context.Context, now time.Time) (next time.Time, err error)

	// Now reads the wall clock that instants refer to; nil means time.Now.
	Now func() time.Time

	// Log receives the failures; nil means slog.Default().
	Log *slog.Logger

	once sync.Once
	wake chan struct{} // holds at most one wake, so that many are one
}

const (
	// firstRetry is the pause after a first failure. It doubles with each further one. No wake
	// shortens it, so a loop that fails under a storm of wakes neither spins nor fills the
	// log.
	firstRetry = 250 * time.Millisecond

	// firstAgain and lastAgain bound the pause when Do succeeds and yet returns an instant
	// that is not later than its now: it doubles as long as that goes on.
	firstAgain = 10 * time.Millisecond
	lastAgain  = time.Second
)

// Wake makes the loop run Do soon, although neither its time nor Every has come. It never
// blocks, and may be called from any goroutine and also before Run; wakes that come while Do
// runs make it run once more.
func (l *Loop) Wake() {
	select {
	case l.wakes() <- struct{}{}:
	default:
	}
}

// Run runs Do at once, and then again at the earliest of the time that Do returned, Every, and
// a wake. It returns when ctx has ended and Do, which gets the same ctx, has returned. It
// panics if Every or Do is missing.
func (l *Loop) Run(ctx context.Context) {
	if l.Every <= 0 || l.Do == nil {
		panic(fmt.Sprintf("scheduler: loop %q needs Every and Do", l.Name))
	}
	var p pace
	for ctx.Err() == nil {
		select {
		case <-l.wakes(): // the run that begins now covers it
		default:
		}
		now := l.now()
		next, err := l.attempt(ctx, now)
		if ctx.Err() != nil {
			return
		}
		l.report(ctx, err, p.failures)
		hold, pause := p.after(now, l.now(), next, err, l.Every)
		if !l.sleep(ctx, hold, nil) || !l.sleep(ctx, pause-hold, l.wakes()) {
			return
		}
	}
}

func (l *Loop) wakes() chan struct{} {
	l.once.Do(func() { l.wake = make(chan struct{}, 1) })
	return l.wake
}

// now reads the clock without its monotonic part, so that instants are compared
// on the wall clock.
func (l *Loop) now() time.Time {
	if l.Now == nil {
		return time.Now().Round(0)
	}
	return l.Now().Round(0)
}

// panicked is a panic in Do, as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// attempt runs Do once and turns a panic into an error.
func (l *Loop) attempt(ctx context.Context, now time.Time) (next time.Time, err error) {
	defer func() {
		if r := recover(); r != nil {
			next, err = time.Time{}, &panicked{value: r, stack: debug.Stack()}
		}
	}()
	return l.Do(ctx, now)
}

// report logs a failure, and the end of a series of them.
func (l *Loop) report(ctx context.Context, err error, failuresBefore int) {
	log := l.Log
	if log == nil {
		log = slog.Default()
	}
	log = log.With("loop", l.Name)
	var p *panicked
	switch {
	case errors.As(err, &p):
		log.ErrorContext(ctx, "loop panicked, will try again", "err", err, "failures", failuresBefore+1, "stack", string(p.stack))
	case err != nil:
		log.ErrorContext(ctx, "loop failed, will try again", "err", err, "failures", failuresBefore+1)
	case failuresBefore > 0:
		log.InfoContext(ctx, "loop works again", "failures", failuresBefore)
	}
}

// sleep waits for a duration or a wake. It returns false when ctx has ended.
func (l *Loop) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return true
}

// pace decides how long a loop pauses.
type pace struct {
	failures int // in a row, up to now
	stuck    int // successes in a row that returned no instant later than their now
}

// after returns the pause after a run of Do that began and ended at these instants, and how
// much of it must be kept whatever happens.
func (p *pace) after(began, ended, next time.Time, err error, every time.Duration) (hold, pause time.Duration) {
	ahead := every
	if !next.IsZero() {
		ahead = next.Sub(ended)
	}
	if err != nil {
		pause = doubled(firstRetry, p.failures, every)
		p.failures, p.stuck = p.failures+1, 0
		if ahead > 0 {
			pause = min(pause, ahead)
		}
		hold = min(firstRetry, every)
		return hold, max(pause, hold)
	}
	p.failures = 0
	if !next.IsZero() && !next.After(began) {
		pause = doubled(firstAgain, p.stuck, min(lastAgain, every))
		p.stuck++
		return 0, pause
	}
	p.stuck = 0
	return 0, min(max(ahead, 0), every)
}

// doubled is a pause doubled n times, at most a given one.
func doubled(pause time.Duration, n int, most time.Duration) time.Duration {
	for ; n > 0 && pause < most; n-- {
		pause *= 2
	}
	return min(pause, most)
}
