package engine

import (
	"sync"

	"stint/api"
	"stint/db"
)

// itemSignals keeps one signal per session whose output somebody watches.
type itemSignals struct {
	mu sync.Mutex
	by map[api.SessionID]*itemSignal
}

type itemSignal struct {
	db.Signal
	watchers int
}

// Changed returns a channel that is closed after the next committed event. Take it before
// looking; a lost signal does no harm, the table decides.
func (e *Engine) Changed() <-chan struct{} { return e.store.Changed() }

// ItemsChanged returns a channel that is closed after the session's next items are committed,
// and a func to call when done with it.
func (e *Engine) ItemsChanged(id api.SessionID) (<-chan struct{}, func()) {
	e.items.mu.Lock()
	defer e.items.mu.Unlock()
	if e.items.by == nil {
		e.items.by = map[api.SessionID]*itemSignal{}
	}
	s := e.items.by[id]
	if s == nil {
		s = &itemSignal{}
		e.items.by[id] = s
	}
	s.watchers++
	return s.Wait(), sync.OnceFunc(func() {
		e.items.mu.Lock()
		defer e.items.mu.Unlock()
		if s.watchers--; s.watchers == 0 && e.items.by[id] == s {
			delete(e.items.by, id)
		}
	})
}

func (e *Engine) wakeItems(tx *db.Tx, id api.SessionID) {
	tx.AfterCommit(func() {
		e.items.mu.Lock()
		s := e.items.by[id]
		e.items.mu.Unlock()
		if s != nil {
			s.Wake()
		}
	})
}
