//go:build unix

package engine_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is the processor time that this process has used, which a busy machine changes less than the wall.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
