package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"stint/api"
	"stint/db"
)

// The reducer: what the event log alone says about each session, by rules that are written
// down here once more and not taken from the engine's own table.

const ruleReplay = "the event log tells what the rows say"

// legal are the status changes of contract 2.3, as the log writes them.
var legal = map[[2]api.Status]bool{
	{"", "pending"}: true, {"", "queued"}: true, // creation, and admission in the same step
	{"pending", "queued"}: true, {"pending", "cancelled"}: true,
	{"queued", "active"}: true, {"queued", "error"}: true, {"queued", "cancelled"}: true,
	{"stale", "active"}: true, {"stale", "queued"}: true, {"stale", "error"}: true, {"stale", "cancelled"}: true,
	{"active", "awaiting_input"}: true, {"awaiting_input", "active"}: true,
	{"active", "queued"}: true, {"active", "pending"}: true, {"active", "complete"}: true,
	{"active", "error"}: true, {"active", "stale"}: true, {"active", "cancelled"}: true,
	{"awaiting_input", "queued"}: true, {"awaiting_input", "pending"}: true, {"awaiting_input", "complete"}: true,
	{"awaiting_input", "error"}: true, {"awaiting_input", "stale"}: true, {"awaiting_input", "cancelled"}: true,
}

// afterEnd are the events that an ended session may still have.
var afterEnd = map[string]bool{
	api.EventSessionArchived: true, api.EventSessionKept: true, api.EventSessionLetGo: true, api.EventClaimDrained: true, api.EventLateResult: true, api.EventThreadCompleted: true, api.EventThreadFailed: true, api.EventFindingClosed: true,
	api.EventLandingRequested: true, api.EventLandingDone: true, api.EventLandingRefused: true, api.EventLandingWithdrawn: true,
}

// standing is what an event of a thread says, by the status of its newest session.
var standing = map[api.Status]string{
	"active": api.EventThreadActive, "awaiting_input": api.EventThreadActive, "complete": api.EventThreadCompleted, "error": api.EventThreadFailed, "cancelled": api.EventThreadFailed,
}

// ofThread are the events of threads.
var ofThread = map[string]bool{api.EventThreadActive: true, api.EventThreadCompleted: true, api.EventThreadFailed: true}

// logged is a session as its events describe it.
type logged struct {
	status api.Status
	events int64
	fence  int64
	thread string // the last event of its thread
	fault  string // the first event that does not fit
}

func (l *logged) apply(seq int64, kind string, data []byte) {
	l.events++
	var d struct {
		From, To api.Status
		Fence    int64
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	if err := json.Unmarshal(data, &d); err != nil {
		l.blame(seq, kind, "can't be read")
		return
	}
	switch {
	case (kind == api.EventSessionCreated) != (l.events == 1):
		l.blame(seq, kind, "is not where it must be")
	case ofThread[kind]:
		if standing[l.status] != kind || l.thread == kind {
			l.blame(seq, kind, "is not what became of it")
		}
		l.thread = kind
		return
	case d.To == "":
		if ended(l.status) && !afterEnd[kind] {
			l.blame(seq, kind, "comes after the end")
		}
		return
	case d.From != l.status:
		l.blame(seq, kind, fmt.Sprintf("goes on from %q, but the session was %q", d.From, l.status))
	case !legal[[2]api.Status{d.From, d.To}]:
		l.blame(seq, kind, fmt.Sprintf("goes from %q to %q", d.From, d.To))
	}
	if kind == api.EventSessionClaimed {
		if d.Fence <= l.fence {
			l.blame(seq, kind, fmt.Sprintf("has fence %d after %d", d.Fence, l.fence))
		}
		l.fence = d.Fence
	}
	if l.status = d.To; standing[d.To] == "" {
		l.thread = ""
	}
}

func (l *logged) blame(seq int64, kind, what string) {
	if l.fault == "" {
		l.fault = fmt.Sprintf("event %d (%s) %s", seq, kind, what)
	}
}

func ended(s api.Status) bool { return s == "complete" || s == "error" || s == "cancelled" }

const replayPage = 500 // sessions that one read replays

// replayAll compares what the log says with the sessions, page by page, each
// page in one snapshot.
func (e *Engine) replayAll(ctx context.Context) (found []Violation, err error) {
	for after := api.SessionID(0); ; {
		var n int
		err := e.store.Read(ctx, func(tx *db.ReadTx) error {
			page, last, err := stored(ctx, tx, after)
			if err != nil {
				return err
			}
			n = len(page)
			replayed, err := replay(ctx, tx, after, last)
			if err != nil {
				return err
			}
			after = last
			for _, s := range page {
				if v := differs(s, replayed[s.id]); v != "" && len(found) < maxFound {
					found = append(found, Violation{Rule: ruleReplay, Detail: v})
				}
			}
			return nil
		})
		if err != nil || n < replayPage {
			return found, err
		}
	}
}

type storedSession struct {
	id     api.SessionID
	status api.Status
	fence  int64
	pruned bool // its events are old and gone
}

func differs(s storedSession, l *logged) string {
	switch {
	case s.pruned && ended(s.status):
		return ""
	case l == nil:
		return fmt.Sprintf("session %d has no events", s.id)
	case l.fault != "":
		return fmt.Sprintf("session %d: %s", s.id, l.fault)
	case l.status != s.status || l.fence != s.fence:
		return fmt.Sprintf("session %d is %s with fence %d, its events say %s with fence %d", s.id, s.status, s.fence, l.status, l.fence)
	}
	return ""
}

func stored(ctx context.Context, tx *db.ReadTx, after api.SessionID) (page []storedSession, last api.SessionID, err error) {
	rows, err := tx.Query(ctx, `SELECT id, status, fence, events_removed_at > 0 FROM sessions WHERE id > ?1 ORDER BY id LIMIT ?2`, after, replayPage)
	if err != nil {
		return nil, after, err
	}
	defer rows.Close()
	last = after
	for rows.Next() {
		var s storedSession
		if err := rows.Scan(&s.id, &s.status, &s.fence, &s.pruned); err != nil {
			return nil, after, err
		}
		page, last = append(page, s), s.id
	}
	return page, last, rows.Err()
}

func replay(ctx context.Context, tx *db.ReadTx, after, last api.SessionID) (map[api.SessionID]*logged, error) {
	rows, err := tx.Query(ctx, `
SELECT session_id, seq, type, data FROM events
WHERE session_id > 0 AND session_id > ?1 AND session_id <= ?2 ORDER BY session_id, seq`, after, last)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	replayed := map[api.SessionID]*logged{}
	for rows.Next() {
		var id api.SessionID
		var seq int64
		var kind string
		var data []byte
		if err := rows.Scan(&id, &seq, &kind, &data); err != nil {
			return nil, err
		}
		if replayed[id] == nil {
			replayed[id] = &logged{}
		}
		replayed[id].apply(seq, kind, data)
	}
	return replayed, rows.Err()
}
