package db

import (
	"sync"
	"sync/atomic"
)

// Signal wakes everybody who waits for the next change. A waiter takes the
// channel before it looks at the store, so that no change can fall between.
type Signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// Wait returns a channel that is closed by the next Wake.
func (s *Signal) Wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// Wake wakes whoever waits.
func (s *Signal) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// told is what a store's owners hear of its commits; the recovery gives it to the
// next writer.
type told struct {
	events Signal
	rights atomic.Uint64 // commits that took rights away
}

// Changed returns a channel that is closed after the next committed event. Take
// it before looking; it may be lost without harm, the table decides.
func (s *Store) Changed() <-chan struct{} { return s.told.events.Wait() }

// RightsEpoch changes with every commit that takes a right away, so that whoever
// keeps what [Store.ReadRights] answered knows when to ask again.
func (s *Store) RightsEpoch() uint64 { return s.told.rights.Load() }

// LessRights makes kept answers about rights old once the transaction is kept.
func (tx *Tx) LessRights() { tx.AfterCommit(func() { tx.w.told.rights.Add(1) }) }
