package engine

import (
	"fmt"
	"math"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

// A clock that was set back shows instants a second time. The rule: a slot that fired never
// fires again; the other verdicts on slots that will come again are taken back, and decided
// again when they come. So a ledger never mentions a slot twice, and an agent whose anchor was
// far ahead is not silent until then.

const (
	reasonMissed = "The coordinator was away, and the agent doesn't catch up."
	reasonFull   = "The database takes all that STINT_DATA_MIB lets it take, so nothing new is started."
	reasonPassed = "The clock was set back; a later slot was decided already."
)

// slots are an agent's slots as they are counted from one anchor.
type slots struct {
	schedule scheduler.Schedule
	anchor   time.Time
}

// within is the run of slots from one instant to another, both included; its
// count is 0 when there is none.
func (s slots) within(from, to int64) decision {
	first, last, n := s.schedule.Between(s.anchor, time.UnixMicro(from-1), time.UnixMicro(to))
	if n == 0 {
		return decision{}
	}
	return decision{of: s, first: db.Micros(first), last: db.Micros(last), count: n}
}

// follows reports whether a slot is the one that comes after another in these slots. With
// "@every" it isn't when the slots are counted from a new anchor.
func (s slots) follows(slot, last int64) bool {
	at := time.UnixMicro(last)
	return s.schedule.Next(at, at).Equal(time.UnixMicro(slot))
}

// gaps are the runs of due slots that have no verdict yet: all of them, except after a clock
// was set back. session is what the slot behind a gap made.
func (e *Engine) gaps(tx *db.Tx, a *agentRow, s slots, due scheduler.Due) ([]decision, error) {
	first, last := db.Micros(due.First), db.Micros(due.Last)
	rows, err := tx.LedgerWithin(tx.Context(), queries.LedgerWithinParams{AgentID: a.ID, FromSlot: first, ToSlot: last})
	if err != nil {
		return nil, fmt.Errorf("read the ledger of agent %s: %w", a.ID, err)
	}
	if len(rows) == 0 {
		return []decision{{of: s, first: first, last: last, count: due.Count}}, nil
	}
	var out []decision
	from := first
	for _, r := range rows {
		if d := s.within(from, r.FirstSlot-1); r.FirstSlot > from && d.count > 0 {
			d.session = r.SessionID
			out = append(out, d)
		}
		from = max(from, r.LastSlot+1)
	}
	if d := s.within(from, last); from <= last && d.count > 0 {
		out = append(out, d)
	}
	return out, nil
}

// undecided is the run of due slots that ends with the latest one and has no verdict yet; ok
// is false when the latest has one. Older gaps are settled here: what fired after them stands
// for them.
func (e *Engine) undecided(tx *db.Tx, a *agentRow, s slots, due scheduler.Due) (d decision, ok bool, err error) {
	gaps, err := e.gaps(tx, a, s, due)
	if err != nil {
		return d, false, err
	}
	for _, gap := range gaps {
		if gap.last == db.Micros(due.Last) {
			gap.session = 0
			return gap, true, nil
		}
		gap.verdict, gap.reason = api.SlotFolded, reasonPassed
		if gap.session == 0 || a.CatchUp == api.CatchUpNone {
			gap.verdict = api.SlotMissed
		}
		if err := e.note(tx, a, gap); err != nil {
			return d, false, err
		}
	}
	e.duplicates.Add(1)
	return d, false, nil
}

// recall takes back the verdicts on slots after now, because they will come again; what fired
// stays, alone.
func (e *Engine) recall(tx *db.Tx, a *agentRow, now int64) error {
	rows, err := tx.LedgerWithin(tx.Context(), queries.LedgerWithinParams{AgentID: a.ID, FromSlot: now + 1, ToSlot: math.MaxInt64})
	if err != nil {
		return fmt.Errorf("read the ledger of agent %s: %w", a.ID, err)
	}
	for i := range rows {
		if err := e.recallRow(tx, a, &rows[i], now); err != nil {
			return fmt.Errorf("take ledger row %s back: %w", rows[i].ID, err)
		}
	}
	return nil
}

func (e *Engine) recallRow(tx *db.Tx, a *agentRow, r *queries.Ledger, now int64) error {
	passed, err := e.passed(tx, a, r, now)
	if err != nil {
		return err
	}
	if r.Verdict != api.SlotFired {
		if passed.count == 0 {
			return db.One(tx.DeleteLedger(tx.Context(), r.ID))
		}
		return db.One(tx.SetLedgerRange(tx.Context(), queries.SetLedgerRangeParams{FirstSlot: passed.first, LastSlot: passed.last, Slots: passed.count, ID: r.ID}))
	}
	err = db.One(tx.SetLedgerRange(tx.Context(), queries.SetLedgerRangeParams{FirstSlot: r.LastSlot, LastSlot: r.LastSlot, Slots: 1, ID: r.ID}))
	if err != nil || passed.count == 0 {
		return err
	}
	passed.verdict, passed.reason, passed.session = api.SlotFolded, reasonPassed, r.SessionID
	return e.note(tx, a, passed)
}

// passed is the part of a ledger row up to now.
func (e *Engine) passed(tx *db.Tx, a *agentRow, r *queries.Ledger, now int64) (decision, error) {
	if r.FirstSlot > now {
		return decision{}, nil
	}
	s, err := scheduler.Parse(a.Schedule, a.TimeZone, tx.Now)
	if err != nil {
		return decision{first: r.FirstSlot, last: r.FirstSlot, count: 1}, nil
	}
	anchor := time.UnixMicro(r.FirstSlot)
	if every, ok := s.Every(); ok {
		anchor = anchor.Add(-every) // the row's slots are counted from its own first
	}
	all := slots{s, anchor}
	if whole := all.within(r.FirstSlot, r.LastSlot); whole.first != r.FirstSlot || whole.last != r.LastSlot || whole.count != r.Slots {
		// The schedule was another one then.
		return decision{first: r.FirstSlot, last: r.FirstSlot, count: 1}, nil
	}
	return all.within(r.FirstSlot, now), nil
}

// settleDue gives what is due for an agent its verdict before its schedule changes (contract
// 3.6): the tick decides a slot that is on time, as it would in the next moment; an older one
// never fires any more. The row is read again.
func (e *Engine) settleDue(tx *db.Tx, a *agentRow) error {
	now := db.Micros(tx.Now)
	if a.Paused != 0 || a.NextSlotAt == 0 || a.NextSlotAt > now {
		return nil
	}
	s, err := scheduler.Parse(a.Schedule, a.TimeZone, tx.Now)
	if err != nil {
		return nil // without a readable schedule there are no slots
	}
	due, ok := s.Latest(time.UnixMicro(a.AnchorAt), tx.Now)
	if !ok || now-db.Micros(due.Last) > db.Span(e.cfg.OnTime) {
		return e.noteDue(tx, a, api.SlotMissed, "The schedule was changed before it could run.")
	}
	return e.tickNow(tx, a)
}

// tickNow decides what is due for an agent, as the scheduler would in the next moment. The row is
// read again.
func (e *Engine) tickNow(tx *db.Tx, a *agentRow) (err error) {
	if err := e.tickAgent(tx, a.ID); err != nil {
		return err
	}
	if *a, err = tx.Agent(tx.Context(), a.ID); err != nil {
		return fmt.Errorf("read agent %s: %w", a.ID, err)
	}
	return nil
}

func pausedWords(a *agentRow) string { return "The agent was paused" + because(a.PausedReason) + "." }

// noteDue gives one verdict to all slots that are due and have none: those that passed while
// the agent was paused, or that its deletion leaves.
func (e *Engine) noteDue(tx *db.Tx, a *agentRow, verdict api.Verdict, why string) error {
	s, err := scheduler.Parse(a.Schedule, a.TimeZone, tx.Now)
	if err != nil || a.Schedule == "" {
		return nil // without a readable schedule there were no slots
	}
	due, ok := s.Latest(time.UnixMicro(a.AnchorAt), tx.Now)
	if !ok {
		return nil
	}
	gaps, err := e.gaps(tx, a, slots{s, time.UnixMicro(a.AnchorAt)}, due)
	for _, d := range gaps {
		d.verdict, d.reason = verdict, why
		if err := e.note(tx, a, d); err != nil {
			return err
		}
	}
	return err
}
