package enginetest

import (
	"sync/atomic"
	"time"
)

// Clock is the wall clock of a fixture. It stands still unless a test moves it,
// and may be moved backward. Any goroutine may use it.
type Clock struct{ micros atomic.Int64 }

// NewClock makes a clock that shows an instant.
func NewClock(at time.Time) *Clock {
	c := &Clock{}
	c.Set(at)
	return c
}

// Now is what the clock shows, in UTC.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Set sets the clock.
func (c *Clock) Set(at time.Time) { c.micros.Store(at.UnixMicro()) }

// Step moves the clock.
func (c *Clock) Step(d time.Duration) { c.micros.Add(d.Microseconds()) }

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
