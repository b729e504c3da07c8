package engine

import (
	"sync"

	"stint/api"
	"stint/db"
)

// itemSignals keeps one signal per session for which somebody waits.
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
func (e *Engine) ItemsChanged(id api.SessionID) (<-chan struct{}, func()) { return e.items.watch(id) }

func (e *Engine) wakeItems(tx *db.Tx, id api.SessionID) { e.items.wake(tx, id) }

// watch returns a channel that is closed at the session's next wake, and a func to call when done
// with it.
func (t *itemSignals) watch(id api.SessionID) (<-chan struct{}, func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[api.SessionID]*itemSignal{}
	}
	s := t.by[id]
	if s == nil {
		s = &itemSignal{}
		t.by[id] = s
	}
	s.watchers++
	return s.Wait(), sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s.watchers--; s.watchers == 0 && t.by[id] == s {
			delete(t.by, id)
		}
	})
}

// wake wakes those that watch a session, after the commit.
func (t *itemSignals) wake(tx *db.Tx, id api.SessionID) {
	tx.AfterCommit(func() {
		t.mu.Lock()
		s := t.by[id]
		t.mu.Unlock()
		if s != nil {
			s.Wake()
		}
	})
}
