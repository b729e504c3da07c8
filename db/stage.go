package db

import (
	"runtime"
	"runtime/debug"
)

// stage is a goroutine that runs functions for others, one at a time. SQLite needs 16 KB of
// stack, which a goroutine that once had them gives back late: thousands of held requests,
// each of which had read in its own goroutine, kept 10 KB each.
type stage struct {
	work chan func()
}

func newStage() stage {
	s := stage{work: make(chan func())}
	go s.run()
	return s
}

func (s stage) run() {
	whole := false
	defer func() {
		if !whole { // a function ended this goroutine
			go s.run()
		}
	}()
	for f := range s.work {
		f()
	}
	whole = true
}

// close ends the goroutine. Nothing may be done any more.
func (s stage) close() { close(s.work) }

// do runs f and returns when it has ended. A panic of f panics here too, with a
// [*PanicError]; if f ends its goroutine, this one ends.
func (s stage) do(f func()) {
	var caught *PanicError
	whole := false
	done := make(chan struct{})
	s.work <- func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				caught = &PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		f()
		whole = true
	}
	<-done
	if caught != nil {
		panic(caught)
	}
	if !whole {
		runtime.Goexit()
	}
}
