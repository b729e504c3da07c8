package proc

import "time"

// BootTime is an instant on the clock that goes on while the machine sleeps, counted from its
// start. Go's own timers and time differences stop during sleep, so a lease must be measured
// with this one. contract 4.7
//
// It is the same in all processes of one boot and means nothing in another.
type BootTime time.Duration

// Add returns the instant d later.
func (t BootTime) Add(d time.Duration) BootTime { return t + BootTime(d) }

// Sub returns how much later t is than u.
func (t BootTime) Sub(u BootTime) time.Duration { return time.Duration(t - u) }
