package engine

import (
	"context"
	"fmt"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

// reasonSkipped is why the slots up to an agent's skip_until don't fire.
const reasonSkipped = "Somebody asked for it to be skipped."

// maxSkip is how far ahead slots may be skipped: whoever wants more pauses the agent.
const maxSkip = 366 * 24 * time.Hour

// SkipSlots has an agent's slots up to and including an instant not fire; the zero instant is
// its next slot that isn't skipped yet. The ledger notes each as paused when it comes. What
// people start by hand isn't touched. It reports whether this call changed it. Rights: admin.
// Errors: invalid, naming until; conflict where no slot comes.
func (e *Engine) SkipSlots(ctx context.Context, c Caller, ref string, until time.Time) (out api.Agent, changed bool, err error) {
	return e.setSkip(ctx, c, ref, func(a *agentRow, now time.Time) (int64, error) {
		s, err := scheduler.Parse(a.Schedule, a.TimeZone, now)
		switch {
		case a.Schedule == "" || err != nil:
			return 0, api.Refuse(api.CodeConflict, "The agent has no schedule that could be followed, so there is nothing to skip.")
		case until.IsZero():
			from := time.UnixMicro(max(a.SkipUntil, db.Micros(now)))
			slot := s.Next(time.UnixMicro(a.AnchorAt), from)
			if slot.IsZero() {
				return 0, api.Refuse(api.CodeConflict, "No slot comes, so there is nothing to skip.")
			}
			return db.Micros(slot), checkSkip(slot, now)
		}
		return db.Micros(until), checkSkip(until, now)
	})
}

func checkSkip(until, now time.Time) error {
	switch {
	case !until.After(now):
		return api.BadField("until", "has passed: give a time to come")
	case until.Sub(now) > maxSkip:
		return api.BadField("until", "is more than 366 days away: pause the agent instead")
	}
	return nil
}

// KeepSlots takes a skip back: the slots that haven't come yet fire again. It reports whether
// this call changed it. Rights: admin.
func (e *Engine) KeepSlots(ctx context.Context, c Caller, ref string) (api.Agent, bool, error) {
	return e.setSkip(ctx, c, ref, func(*agentRow, time.Time) (int64, error) { return 0, nil })
}

func (e *Engine) setSkip(ctx context.Context, c Caller, ref string, until func(a *agentRow, now time.Time) (int64, error)) (out api.Agent, changed bool, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		a, err := agentOf(tx.Context(), tx, c, ref)
		if err != nil {
			return err
		}
		if err := c.May(account.EditAgents); err != nil {
			return err
		}
		to, err := until(a, tx.Now)
		if err != nil {
			return err
		}
		was := skipsUntil(a, db.Micros(tx.Now))
		if changed = was != to; !changed {
			out = e.toAgent(a, nil)
			return nil
		}
		// Slots that are due already are decided by the rule of before.
		if err := e.tickNow(tx, a); err != nil {
			return err
		}
		a.SkipUntil = to
		if err := db.One(tx.SetSkipUntil(tx.Context(), queries.SetSkipUntilParams{ID: a.ID, SkipUntil: to})); err != nil {
			return fmt.Errorf("skip slots of agent %s: %w", a.ID, err)
		}
		out = e.toAgent(a, nil)
		data := api.EventData{}
		kind := api.EventSlotsKept
		if to != 0 {
			kind, data["until"] = api.EventSlotsSkipped, api.At(to).String()
		}
		return e.logAgent(tx, a, c.Actor(), kind, data)
	})
	return out, changed, err
}

// skipsUntil is until when slots are skipped, 0 when that is over.
func skipsUntil(a *agentRow, now int64) int64 {
	if a.SkipUntil <= now {
		return 0
	}
	return a.SkipUntil
}

// skip notes what of a decision's slots is to be skipped, and returns the rest: none when all
// are.
func (e *Engine) skip(tx *db.Tx, a *agentRow, s slots, d decision) (rest decision, err error) {
	if d.first > a.SkipUntil {
		return d, nil
	}
	skipped := d
	if d.last > a.SkipUntil {
		skipped = s.within(d.first, a.SkipUntil)
		d = s.within(a.SkipUntil+1, d.last)
	} else {
		d.count = 0
	}
	skipped.verdict, skipped.reason = api.SlotPaused, reasonSkipped
	return d, e.note(tx, a, skipped)
}
