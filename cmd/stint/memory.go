package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go lets garbage grow to as much as is live before it collects. That is nothing while little
// is live; with thousands of held requests it is most of what the process takes. So garbage
// may be spareGarbage, or a fifth of the live memory if that is more. And memory that a burst
// left free goes back to the system soon, not over the hours that the runtime takes.
const (
	spareGarbage = 20 << 20 // bytes
	leastPercent = 20
	mostPercent  = 100 // Go's own default

	spareFree  = 8 << 20 // bytes
	freeAtMost = time.Minute
)

// boundMemory watches live and free memory until ctx ends. It leaves an operator's GOGC alone.
func boundMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	var freed time.Time
	for {
		metrics.Read(heap)
		debug.SetGCPercent(garbagePercent(heap[0].Value.Uint64()))
		if heap[1].Value.Uint64() > spareFree && time.Since(freed) >= freeAtMost {
			debug.FreeOSMemory()
			freed = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// garbagePercent is Go's GOGC for a number of live bytes.
func garbagePercent(live uint64) int {
	if live == 0 {
		return mostPercent
	}
	return int(max(leastPercent, min(mostPercent, 100*spareGarbage/live)))
}
