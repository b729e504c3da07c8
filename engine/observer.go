package engine

import (
	"time"

	"stint/api"
	"stint/db"
)

// Observer is told what people measure, after the commit that made it so. Its methods must be
// quick: every writer waits for them.
type Observer interface {
	// Claimed is told how long a session had been in the queue when it was claimed.
	Claimed(waited time.Duration)

	// Ended is told how a session ended, and how long after it was first claimed; 0 for one that
	// never was.
	Ended(status api.Status, ran time.Duration)

	// Lost is told of a claim that ended without its holder, and why: lapse, offline …
	Lost(reason string)

	// Decided is told what became of so many slots of a schedule.
	Decided(verdict api.Verdict, slots int64)
}

// observe has tell called after the commit, if anybody measures.
func (e *Engine) observe(tx *db.Tx, tell func(Observer)) {
	if o := e.cfg.Observer; o != nil {
		tx.AfterCommit(func() { tell(o) })
	}
}

func (e *Engine) observeEnd(tx *db.Tx, s *sessionRow) {
	var ran time.Duration
	if s.StartedAt > 0 {
		ran = between(s.StartedAt, s.EndedAt)
	}
	id, status := s.ID, s.Status
	e.observe(tx, func(o Observer) { o.Ended(status, ran) })
	if told := e.cfg.SessionEnded; told != nil {
		tx.AfterCommit(func() { told(id) })
	}
}

// between is the time from one instant of a row to a later one; a clock that was set back makes
// it 0.
func between(from, to int64) time.Duration {
	return max(0, time.Duration(to-from)*time.Microsecond)
}
