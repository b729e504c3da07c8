package proc

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// BootNow reads the boot-time clock.
func BootNow() BootTime {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("read the boot-time clock: " + err.Error()) // in every kernel since 2.6.39
	}
	return BootTime(ts.Nano())
}

// Alarm rings at an instant of the boot-time clock; at once on wake if the machine
// slept past it.
type Alarm struct {
	// C carries at most one ring. A ring may be left over from an earlier setting, so it
	// means: look at the clock.
	C <-chan struct{}

	mu     sync.Mutex
	fd     int // of file; guarded by mu, -1 once closed
	file   *os.File
	closed chan struct{}
}

// NewAlarm returns an alarm that is not set. It must be closed.
func NewAlarm() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create boot-time timer: %w", err)
	}
	c := make(chan struct{}, 1)
	a := &Alarm{C: c, fd: fd, file: os.NewFile(uintptr(fd), "timer"), closed: make(chan struct{})}
	go func() {
		defer close(a.closed)
		var rings [8]byte
		for {
			if _, err := a.file.Read(rings[:]); err != nil {
				return
			}
			select {
			case c <- struct{}{}:
			default: // one unread ring says as much as two
			}
		}
	}()
	return a, nil
}

// Set makes the alarm ring at that instant, at once if it has passed, and replaces the
// previous setting; zero means never.
func (a *Alarm) Set(at BootTime) {
	var spec unix.ItimerSpec
	if at != 0 {
		spec.Value = unix.NsecToTimespec(max(int64(at), 1)) // zero would disarm it
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fd < 0 {
		return
	}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		panic("set the boot-time timer: " + err.Error()) // our own descriptor, a valid time
	}
}

// Close ends the alarm; it never rings again.
func (a *Alarm) Close() {
	a.mu.Lock()
	a.fd = -1
	a.mu.Unlock()
	a.file.Close()
	<-a.closed
}
