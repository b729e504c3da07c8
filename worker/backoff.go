package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"stint/worker/proc"
)

const (
	backoffFirst = 200 * time.Millisecond
	backoffMost  = 30 * time.Second
)

// backoff spaces the repetitions of a call that has to succeed some time: they never stop,
// grow rarer, and are never in step with other workers'.
type backoff struct{ last time.Duration }

// next returns how long to wait before the next repetition; atLeast is what the
// other side asked for.
func (b *backoff) next(atLeast time.Duration) time.Duration {
	b.last = min(max(backoffFirst, b.last*2), backoffMost)
	return max(b.last/2+rand.N(b.last/2+1), min(atLeast, time.Hour))
}

// reset starts over after a success.
func (b *backoff) reset() { b.last = 0 }

// sleep waits for d, or until ctx ends or wake is readable. It reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// sleepAwake is sleep on the boot-time clock: if the machine slept past the end, it returns on
// wake-up, not later by the time asleep.
func sleepAwake(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	alarm, err := proc.NewAlarm()
	if err != nil { // out of descriptors: late on wake is better than not at all
		return sleep(ctx, d, wake)
	}
	defer alarm.Close()
	end := proc.BootNow().Add(d)
	for alarm.Set(end); ; {
		select {
		case <-alarm.C:
			if proc.BootNow() >= end {
				return ctx.Err() == nil
			}
		case <-wake:
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
	}
}
