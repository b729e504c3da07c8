package direct

import (
	"testing"
	"unsafe"
)

// The stack of a goroutine grows, and with that moves, at whatever call it is full: here at each
// depth at which that can be.
func TestUnseen_IsWhatItWasGivenThoughTheStackMoves(t *testing.T) {
	wrong := make(chan int, 1)
	for depth := range 600 {
		go func() { wrong <- moved(depth) }()
		if n := <-wrong; n != 0 {
			t.Fatalf("at depth %d the arguments are elsewhere", depth)
		}
	}
}

//go:noinline
func moved(depth int) int {
	if depth > 0 {
		return moved(depth - 1)
	}
	values := [3]any{depth, "two", nil}
	got := unseen(values[:])
	if unsafe.SliceData(got) != &values[0] || len(got) != 3 || got[1] != "two" {
		return 1
	}
	return 0
}
