package engine

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// settleFor is how long a finding that is over is remembered: one that comes back within it is
// shown at once, but told again only after it has stayed for as long.
const settleFor = time.Hour

// The members of a finding's events.
const (
	dataFinding = "finding" // its kind
	dataCode    = "code"
	dataTitle   = "title"
	dataDetail  = "detail"
	dataOpened  = "opened" // of the end: the number of the event of its beginning
	dataMended  = "mended" // of the end: it is over because it works again
)

// findingKey names a finding in the store.
type findingKey struct {
	workspace api.WorkspaceID
	kind      api.Cause
	agent     api.AgentID
	session   api.SessionID
}

func findingKeyOf(f *queries.Finding) findingKey {
	return findingKey{f.WorkspaceID, f.Kind, f.AgentID, f.SessionID}
}

// findingChange is one difference between what is wrong and what the store says is.
type findingChange struct {
	row   queries.Finding
	event string // what to log, "" = nothing
	drop  bool
}

// Watch compares what is wrong with what the store says is wrong, and logs what began and what
// is over. It writes nothing as long as nothing changes.
func (e *Engine) Watch(ctx context.Context, now time.Time) (time.Time, error) {
	if e.Trouble() != nil {
		return time.Time{}, nil // nothing can be written: the pages and the log say so
	}
	h, err := e.house(ctx)
	if err != nil {
		return time.Time{}, err
	}
	var changes []findingChange
	err = e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		changes, err = e.findingChanges(ctx, tx, db.Micros(now), h)
		return err
	})
	if err != nil || len(changes) == 0 {
		return time.Time{}, err
	}
	return time.Time{}, e.write(ctx, func(tx *db.Tx) error {
		changes, err := e.findingChanges(tx.Context(), tx, db.Micros(tx.Now), h)
		if err != nil {
			return err
		}
		for i := range changes {
			if err := e.changeFinding(tx, &changes[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *Engine) findingChanges(ctx context.Context, q queries.Querier, now int64, h house) (out []findingChange, err error) {
	rows, err := q.Findings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what was found wrong: %w", err)
	}
	have := map[findingKey]*queries.Finding{}
	for i := range rows {
		have[findingKeyOf(&rows[i])] = &rows[i]
	}
	all, err := e.everything(ctx, q, now, h)
	if err != nil {
		return nil, err
	}
	for i := range all {
		next := all[i].row()
		was := have[findingKeyOf(&next)]
		delete(have, findingKeyOf(&next))
		if c := stillWrong(was, next, now); c != nil {
			out = append(out, *c)
		}
	}
	for i := range rows {
		if have[findingKeyOf(&rows[i])] == nil {
			continue
		}
		if rows[i].Code == api.FoundPagesDamaged && !h.pages {
			continue // it was found before the start, and isn't gone because nobody has looked yet
		}
		if c := noLongerWrong(rows[i], now); c != nil {
			out = append(out, *c)
		}
	}
	return out, nil
}

// stillWrong is what changes with a finding that is there now; was is what the store says, nil
// for nothing.
func stillWrong(was *queries.Finding, next queries.Finding, now int64) *findingChange {
	switch {
	case was == nil:
		next.Since = now
		return &findingChange{row: next, event: api.EventFindingOpened}
	case was.EndedAt != 0: // it is back
		next.Since = now
		return &findingChange{row: next}
	}
	next.Since, next.ToldSeq = was.Since, was.ToldSeq
	switch {
	case was.ToldSeq == 0 && now-was.Since >= db.Span(settleFor):
		return &findingChange{row: next, event: api.EventFindingOpened}
	case *was != next:
		return &findingChange{row: next}
	}
	return nil
}

// noLongerWrong is what changes with a finding that isn't there any more.
func noLongerWrong(f queries.Finding, now int64) *findingChange {
	if f.EndedAt != 0 {
		if now-f.EndedAt < db.Span(settleFor) {
			return nil
		}
		return &findingChange{row: f, drop: true}
	}
	c := findingChange{row: f}
	c.row.EndedAt = now
	if f.ToldSeq != 0 {
		c.event = api.EventFindingClosed
	}
	return &c
}

func (e *Engine) changeFinding(tx *db.Tx, c *findingChange) error {
	f := &c.row
	if c.drop {
		_, err := tx.DropFinding(tx.Context(), queries.DropFindingParams{WorkspaceID: f.WorkspaceID, Kind: f.Kind, AgentID: f.AgentID, SessionID: f.SessionID})
		if err != nil {
			return fmt.Errorf("forget a finding of kind %s: %w", f.Kind, err)
		}
		return nil
	}
	if c.event != "" {
		data := api.EventData{dataFinding: string(f.Kind), dataCode: f.Code, dataTitle: f.Title, dataDetail: f.Detail}
		if c.event == api.EventFindingClosed {
			title, mended, err := e.mendedWords(tx, f)
			if err != nil {
				return err
			}
			data = api.EventData{dataFinding: string(f.Kind), dataOpened: strconv.FormatInt(f.ToldSeq, 10), dataTitle: title, dataMended: mended}
		}
		seq, err := tx.LogNumbered(db.Event{Workspace: f.WorkspaceID, Agent: f.AgentID, Session: f.SessionID, Actor: api.ActorSystem, Type: c.event, Data: data})
		if err != nil {
			return err
		}
		if c.event == api.EventFindingOpened {
			f.ToldSeq = seq
		}
	}
	if err := tx.PutFinding(tx.Context(), queries.PutFindingParams(*f)); err != nil {
		return fmt.Errorf("note a finding of kind %s: %w", f.Kind, err)
	}
	return nil
}

// mendedWords say what works again now that a finding is over; mended is false when it is over
// because nobody wants it any more, or, of a spend limit, by the calendar.
func (e *Engine) mendedWords(tx *db.Tx, f *queries.Finding) (title string, mended bool, err error) {
	switch f.Kind {
	case api.CauseDisk:
		if f.Code == api.FoundPagesDamaged {
			return "The database is whole again", true, nil
		}
		return "There is room on the disk again", true, nil
	case api.CauseBackup:
		return "Backups succeed again", true, nil
	}
	a, err := agentEvenDeleted(tx.Context(), tx, f.AgentID)
	if err != nil {
		return "", false, fmt.Errorf("read agent %s: %w", f.AgentID, err)
	}
	switch f.Kind {
	case api.CauseSchedule:
		s, err := tx.FiredUpTo(tx.Context(), queries.FiredUpToParams{AgentID: a.ID, Before: maxSeq})
		if err != nil && !db.None(err) {
			return "", false, fmt.Errorf("read the newest run of agent %s: %w", a.Slug, err)
		}
		runs := err == nil && (s.CreatedAt >= f.Since || s.Fence > 0)
		return a.Slug + " runs on schedule again", runs && a.Paused == 0 && a.DeletedAt == 0 && a.Schedule != "", nil
	case api.CauseWorkerLost:
		s, err := tx.Session(tx.Context(), f.SessionID)
		if err != nil && !db.None(err) {
			return "", false, fmt.Errorf("read session %s: %w", f.SessionID, err)
		}
		return a.Slug + " goes on", err == nil && (s.Status.Running() || s.Status == api.Complete), nil
	}
	return a.Slug + " may spend again", false, nil
}

// findingNotes tells of what is wrong, unless it is over by now. A workspace's channel is read
// by everybody, and the coordinator's own trouble isn't for everybody.
func (e *Engine) findingNotes(tx *db.Tx, w *queries.Webhook, ev api.Event) ([]noted, error) {
	if w.Scope == api.ScopeWorkspace && ofHouse(api.Cause(textIn(ev, dataFinding))) {
		return nil, nil
	}
	if over, err := findingOver(tx, ev.Seq); err != nil || over {
		return nil, err
	}
	path, err := findingPath(tx, ev)
	if err != nil {
		return nil, err
	}
	kind, title, detail := textIn(ev, dataFinding), textIn(ev, dataTitle), textIn(ev, dataDetail)
	return []noted{{Note{api.Cause(kind), title, detail, path}, findingCause + strconv.FormatInt(ev.Seq, 10)}}, nil
}

// mendedNotes tells of what works again to whom its beginning was told.
func (e *Engine) mendedNotes(tx *db.Tx, w *queries.Webhook, ev api.Event) ([]noted, error) {
	if ev.Data[dataMended] != true {
		return nil, nil
	}
	key := findingCause + textIn(ev, dataOpened)
	id, err := tx.ToldOf(tx.Context(), queries.ToldOfParams{WebhookID: w.ID, Cause: key})
	if db.None(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look whether channel %s told of %s: %w", api.ChannelID(w.ID), key, err)
	}
	d, err := tx.Delivery(tx.Context(), id)
	if err != nil {
		return nil, fmt.Errorf("read delivery %s: %w", id, err)
	}
	if d.Tries == 0 && d.PartOf == 0 {
		return nil, nil // nobody has been told yet, and nobody will be
	}
	path, err := findingPath(tx, ev)
	if err != nil {
		return nil, err
	}
	return []noted{{Note{api.CauseRecovered, textIn(ev, dataTitle), "What was told before is over.", path}, "recovered-" + key}}, nil
}

// findingOver reports whether what an event told of is over.
func findingOver(tx *db.Tx, seq int64) (bool, error) {
	_, err := tx.FindingTold(tx.Context(), seq)
	if err != nil && !db.None(err) {
		return false, fmt.Errorf("look whether what event %d told of is over: %w", seq, err)
	}
	return err != nil, nil
}

func findingPath(tx *db.Tx, ev api.Event) (string, error) {
	switch {
	case ev.SessionID != 0:
		return sessionPath(ev.SessionID), nil
	case ev.AgentID == 0:
		return "/inbox", nil
	}
	slug, err := slugOf(tx, ev.AgentID)
	return "/agents/" + slug, err
}

func textIn(ev api.Event, member string) string {
	text, _ := ev.Data[member].(string)
	return text
}
