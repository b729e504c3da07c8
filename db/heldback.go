package db

import (
	"context"
	"fmt"
	"strings"

	"stint/api"
	"stint/queries"
)

// heldBack is what the closures of a transaction have written in memory only. Many closures of
// a batch count on the same agent and each appends events: written together they cost less.
//
// It is written, in the order in which it came, before a statement that looks at it or
// changes the same (SQLite's authorizer says which those are), before a savepoint ends, and
// before the COMMIT. So no closure sees anything but what it would see otherwise.
type heldBack struct {
	counts []agentCount
	events []queries.Event
	args   []any // of the running statement; kept for its room

	failed error // why it could not be written; then the transaction is lost
}

// agentCount is the counting columns of an agent: as the table has them, and as they are now.
type agentCount struct {
	id                       api.AgentID
	running, fromRunning     int64
	triggered, fromTriggered int64
}

// maxHeld bounds the events that are held back.
const maxHeld = 1024

// drop forgets it, with the transaction.
func (h *heldBack) drop() {
	h.counts, h.events, h.failed = h.counts[:0], h.events[:0], nil
}

func (h *heldBack) none() bool { return len(h.counts) == 0 && len(h.events) == 0 }

// isHeldBack reports whether a column is written late.
func isHeldBack(table, column string) bool {
	switch table {
	case "events":
		return true
	case "agents":
		return column == "" || column == "running" || column == "last_triggered_at"
	}
	return false
}

// count changes the counting columns of an agent. It returns an error if change refuses.
func (tx *Tx) count(id api.AgentID, change func(a *queries.Agent) (may bool)) error {
	a, err := tx.AgentEvenDeleted(tx.Context(), id)
	if None(err) {
		return errGuard
	}
	if err != nil {
		return err
	}
	w := tx.w
	was := a
	if !change(&a) {
		return errGuard
	}
	w.guard.dirty = true
	n := w.held.countOf(&was)
	n.running, n.triggered = a.Running, a.LastTriggeredAt
	if _, ok := w.rowCache.agents[id]; ok {
		w.rowCache.agents[id] = a
	}
	return nil
}

// countOf is what is held back of an agent, at first what its row says.
func (h *heldBack) countOf(a *queries.Agent) *agentCount {
	for i := range h.counts {
		if h.counts[i].id == a.ID {
			return &h.counts[i]
		}
	}
	h.counts = append(h.counts, agentCount{
		id: a.ID, running: a.Running, fromRunning: a.Running, triggered: a.LastTriggeredAt, fromTriggered: a.LastTriggeredAt,
	})
	return &h.counts[len(h.counts)-1]
}

// flush writes what is held back.
func (w *writer) flush() error {
	if w.held.none() {
		return w.held.failed
	}
	dirty := w.guard.dirty // who is made to write it isn't the one who wrote
	defer func() { w.guard.dirty = dirty }()
	counts, events := w.held.counts, w.held.events
	w.held.counts, w.held.events = nil, nil // its own statements are told to flush as well
	err := w.writeCounts(counts)
	if err == nil {
		err = w.writeEvents(events)
	}
	w.held.counts, w.held.events, w.held.failed = counts[:0], events[:0], err
	return err
}

func (w *writer) writeCounts(counts []agentCount) error {
	w.guard.keeping = true
	defer func() { w.guard.keeping = false }()
	for _, n := range counts {
		err := One(w.queries.SetAgentCounts(context.Background(), queries.SetAgentCountsParams{
			ID: n.id, Running: n.running, FromRunning: n.fromRunning, LastTriggeredAt: n.triggered, FromTriggeredAt: n.fromTriggered,
		}))
		if err != nil {
			return fmt.Errorf("write what agent %s runs: %w", n.id, err)
		}
	}
	return nil
}

// eventsAtOnce are how many rows one statement inserts, the largest that fits first.
var eventsAtOnce = [...]int{32, 8, 1}

// insertEvents are the statements for so many rows. sqlc has no statement of many rows.
var insertEvents = func() (texts [len(eventsAtOnce)]string) {
	const one = ", (?, ?, ?, ?, ?, ?, ?, ?, ?)"
	for i, n := range eventsAtOnce {
		texts[i] = "INSERT INTO events (seq, workspace_id, agent_id, session_id, task_id, at, actor, type, data) VALUES" +
			strings.Repeat(one, n)[1:]
	}
	return texts
}()

func (w *writer) writeEvents(events []queries.Event) error {
	for i, n := range eventsAtOnce {
		for len(events) >= n {
			args := w.held.args[:0]
			for j := range events[:n] {
				ev := &events[j]
				args = append(args, &ev.Seq, (*int64)(&ev.WorkspaceID), (*int64)(&ev.AgentID), (*int64)(&ev.SessionID),
					(*int64)(&ev.TaskID), &ev.At, &ev.Actor, &ev.Type, &ev.Data)
			}
			w.held.args = args
			if _, err := w.guard.direct.ExecContext(context.Background(), insertEvents[i], args...); err != nil {
				return fmt.Errorf("append events %d to %d: %w", events[0].Seq, events[n-1].Seq, err)
			}
			events = events[n:]
		}
	}
	return nil
}
