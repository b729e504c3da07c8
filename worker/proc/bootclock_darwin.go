package proc

import "golang.org/x/sys/unix"

// BootNow reads the clock that goes on while the machine sleeps, which macOS calls
// monotonic.
func BootNow() BootTime {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("read the boot-time clock: " + err.Error())
	}
	return BootTime(ts.Nano())
}
