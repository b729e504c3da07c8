//go:build unix && !linux && !darwin

package proc

import "time"

// BootNow is the wall clock where we know no clock that goes on in sleep: the same in
// all processes, and right but for steps.
func BootNow() BootTime { return BootTime(time.Now().UnixNano()) }
