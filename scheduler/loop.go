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

// Loop is the one timer loop: whatever the product does because time has
// passed, a Loop does, with another Do. All logic is in Do, which tests call
// directly; Loop only decides when. Fill in the exported fields, then Run it
// once. A Loop must not be copied.
type Loop struct {
	// Name says in the log which loop speaks.
	Name string

	// Every is the longest pause between two runs of Do, greater than 0. It is
	// what finds work after the clock was set, the machine slept or a Wake was
	// lost, so correctness rests on it and never on the other two reasons.
	Every time.Duration

	// Do does all that is due and answers when more will be, by the wall
	// clock; the zero time means it knows of nothing. A failure of one row is
	// Do's to log and pass over. An error, or a panic, is logged here and tried
	// again after a growing pause, at most Every; the next time given with an
	// error still counts if it lies ahead.
	Do func(ctx context.Context) (next time.Time, err error)

	// Log takes the failures; nil means slog.Default().
	Log *slog.Logger

	once sync.Once
	wake chan struct{} // holds at most one wake, so that many are one
}

const (
	// firstRetry is the pause after a first failure. It doubles with each
	// further one. No wake shortens it, so a loop that fails under a storm of
	// wakes neither spins nor fills the log.
	firstRetry = 250 * time.Millisecond

	// firstAgain and lastAgain bound the pause when Do succeeds and yet says
	// that it was due in the past: it doubles as long as that goes on.
	firstAgain = 10 * time.Millisecond
	lastAgain  = time.Second
)

// Wake makes the loop run Do soon, although neither its time nor Every has
// come. It never blocks, may be called from any goroutine and also before Run;
// wakes that come while Do runs make it run once more.
func (l *Loop) Wake() {
	select {
	case l.wakes() <- struct{}{}:
	default:
	}
}

// Run runs Do at once, and then again at the earliest of the time that Do
// answered, Every, and a wake. It returns when ctx has ended and Do, which gets
// the same ctx, has returned. It panics if Every or Do is missing.
func (l *Loop) Run(ctx context.Context) {
	if l.Every <= 0 || l.Do == nil {
		panic(fmt.Sprintf("scheduler: loop %q needs Every and Do", l.Name))
	}
	var p pace
	for ctx.Err() == nil {
		select {
		case <-l.wakes(): // the run that begins now answers it
		default:
		}
		next, err := l.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		l.report(ctx, err, p.failures)
		hold, pause := p.after(next, err, l.Every)
		if !l.sleep(ctx, hold, nil) || !l.sleep(ctx, pause-hold, l.wakes()) {
			return
		}
	}
}

func (l *Loop) wakes() chan struct{} {
	l.once.Do(func() { l.wake = make(chan struct{}, 1) })
	return l.wake
}

// panicked is a panic in Do, as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// attempt runs Do once and turns a panic into an error.
func (l *Loop) attempt(ctx context.Context) (next time.Time, err error) {
	defer func() {
		if r := recover(); r != nil {
			next, err = time.Time{}, &panicked{value: r, stack: debug.Stack()}
		}
	}()
	return l.Do(ctx)
}

// report logs a failure, and the end of a row of them.
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

// sleep waits for a duration or a wake. It answers false when ctx has ended.
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
	overdue  int // successes in a row that answered a time in the past
}

// after answers the pause after a run of Do, and how much of it must be kept
// whatever happens.
func (p *pace) after(next time.Time, err error, every time.Duration) (hold, pause time.Duration) {
	ahead := every
	if !next.IsZero() {
		// Without its monotonic part, so that it is compared on the wall clock.
		ahead = time.Until(next.Round(0))
	}
	if err != nil {
		pause = doubled(firstRetry, p.failures, every)
		p.failures, p.overdue = p.failures+1, 0
		if ahead > 0 {
			pause = min(pause, ahead)
		}
		hold = min(firstRetry, every)
		return hold, max(pause, hold)
	}
	p.failures = 0
	if ahead <= 0 {
		pause = doubled(firstAgain, p.overdue, min(lastAgain, every))
		p.overdue++
		return 0, pause
	}
	p.overdue = 0
	return 0, min(ahead, every)
}

// doubled is a pause doubled n times, at most a given one.
func doubled(pause time.Duration, n int, most time.Duration) time.Duration {
	for ; n > 0 && pause < most; n-- {
		pause *= 2
	}
	return min(pause, most)
}
