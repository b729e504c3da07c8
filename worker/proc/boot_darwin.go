package proc

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// BootNow reads the clock that goes on while the machine sleeps, which macOS calls
// monotonic.
func BootNow() BootTime {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("read the boot-time clock: " + err.Error())
	}
	return BootTime(ts.Nano())
}

// Alarm rings at an instant of the boot-time clock, at most a second late on wake if
// the machine slept past it.
type Alarm struct {
	// C carries at most one ring. A ring may be left over from an earlier setting, so it
	// means: look at the clock.
	C <-chan struct{}

	set    chan BootTime
	stop   chan struct{}
	closed chan struct{}
	once   sync.Once
}

// NewAlarm returns an alarm that is not set. It must be closed.
func NewAlarm() (*Alarm, error) {
	c := make(chan struct{}, 1)
	a := &Alarm{C: c, set: make(chan BootTime), stop: make(chan struct{}), closed: make(chan struct{})}
	go a.run(c)
	return a, nil
}

// run looks at the clock at least once a second: Go's timers stop during sleep.
func (a *Alarm) run(c chan<- struct{}) {
	defer close(a.closed)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var at BootTime
	for {
		wait := time.Hour
		if at != 0 {
			wait = min(at.Sub(BootNow()), time.Second)
		}
		if wait <= 0 {
			at = 0
			select {
			case c <- struct{}{}:
			default: // one unread ring says as much as two
			}
			continue
		}
		timer.Reset(wait)
		select {
		case at = <-a.set:
		case <-timer.C:
		case <-a.stop:
			return
		}
	}
}

// Set makes the alarm ring at that instant, at once if it has passed, and replaces the
// previous setting; zero means never.
func (a *Alarm) Set(at BootTime) {
	select {
	case a.set <- at:
	case <-a.closed:
	}
}

// Close ends the alarm; it never rings again.
func (a *Alarm) Close() {
	a.once.Do(func() { close(a.stop) })
	<-a.closed
}
