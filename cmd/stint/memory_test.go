package main

import "testing"

func TestGarbagePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 10 << 20: 100, 20 << 20: 100, 40 << 20: 50, 80 << 20: 25, 100 << 20: 20, 8 << 30: 20} {
		if got := garbagePercent(live); got != want {
			t.Errorf("with %d MiB alive: %d percent, not %d", live>>20, got, want)
		}
	}
}
