package engine

import (
	"context"
	"time"

	"stint/db"
	"stint/queries"
)

// handout is what one round has for one viewer.
type handout struct {
	viewer  viewer
	batch   *Batch
	streams []*Stream
}

// runHub reads and hands out until the last stream has left.
func (e *Engine) runHub(empty <-chan struct{}) {
	place := int64(-1) // none yet
	for {
		changed := e.store.Changed() // taken before the look
		r, err := e.readRound(place)
		switch {
		case err != nil:
			e.log.Warn("could not read the events for the streams; trying again", "error", err)
			if !rest(hubRetry, empty) {
				return
			}
			continue
		case !handOut(r.all, empty):
			return
		}
		place = r.to
		if !r.more {
			select {
			case <-changed:
			case <-empty:
				return
			}
		}
		if !rest(hubPace, empty) {
			return
		}
	}
}

// round is what one read found.
type round struct {
	to   int64
	more bool // there is more after it
	all  []handout
}

// readRound reads what happened after a place, and determines what each viewer is sent. The
// set of listeners is taken after the snapshot began, so that a stream that comes later reads
// what is in it by itself. Without a place it finds the end of the log, and streams that
// aren't there yet are asked to read on by themselves.
func (e *Engine) readRound(place int64) (r round, err error) {
	ctx := context.Background()
	err = e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		r = round{to: place}
		var rows []queries.Event
		if place < 0 {
			if r.to, err = tx.Counter(ctx, "event"); err != nil {
				return err
			}
			place = r.to
		} else {
			if rows, r.to, err = e.hub.window(ctx, tx, place); err != nil || r.to == place {
				return err
			}
			r.more = len(rows) == hubWindow
		}
		r.all = e.hub.listeners()
		known := newVisibilityCache(tx)
		for i := range r.all {
			if r.all[i].batch, err = shownTo(ctx, known, r.all[i].viewer, rows, place, r.to); err != nil {
				return err
			}
		}
		return nil
	})
	return r, err
}

func (h *hub) listeners() []handout {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]handout, 0, len(h.groups))
	for v, group := range h.groups {
		streams := make([]*Stream, 0, len(group))
		for s := range group {
			streams = append(streams, s)
		}
		all = append(all, handout{viewer: v, streams: streams})
	}
	return all
}

// handOut gives every stream its batch, a few at a time: ten thousand woken at once would make
// everybody else wait. False when nobody listens any more.
func handOut(all []handout, empty <-chan struct{}) bool {
	woken := 0
	for _, one := range all {
		for _, s := range one.streams {
			if !s.offer(one.viewer, one.batch) {
				continue
			}
			if woken++; woken%hubSlice == 0 && !rest(hubSlice*hubEach, empty) {
				return false
			}
		}
	}
	return true
}

// rest sleeps; false when nobody listens any more.
func rest(d time.Duration, empty <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-empty:
		return false
	}
}
