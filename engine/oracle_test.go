package engine_test

import (
	"fmt"
	"slices"
	"time"

	"stint/api"
)

// The oracle: what must happen to every slot, worked out with none of the product's code. It
// walks through time minute by minute with a clock on the wall, and settles what is due by the
// words of contract 3.3 to 3.6.

// wall is what a clock and a calendar on a wall show.
type wall struct {
	minute, hour, day int
	weekday           time.Weekday
}

// timetable is a schedule as the oracle knows it: its expression for the product,
// and plain Go for the oracle.
type timetable struct {
	expr, zone string
	every      time.Duration // instead of due
	elapsed    bool          // follows elapsed time over clock changes
	due        func(w wall) bool
}

// slotsOf lists the slots of a timetable from begin to end. A time on the wall
// is due at the first minute at which the clock has reached it; what follows
// elapsed time is due whenever it is shown.
func (tt timetable) slotsOf(begin, end time.Time) (slots []time.Time) {
	loc, err := time.LoadLocation(tt.zone)
	if err != nil {
		panic(err)
	}
	naive := func(at time.Time) time.Time { // the wall's reading as a number that can be counted
		l := at.In(loc)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	at := begin.Truncate(time.Minute).Add(-24 * time.Hour)
	reached := naive(at)
	for ; at.Before(end); at = at.Add(time.Minute) {
		shown, hit := naive(at), false
		if tt.elapsed {
			hit = tt.matches(shown)
		} else {
			for reached.Before(shown) {
				reached = reached.Add(time.Minute)
				hit = hit || tt.matches(reached)
			}
		}
		if hit && at.After(begin) {
			slots = append(slots, at)
		}
	}
	return slots
}

func (tt timetable) matches(t time.Time) bool {
	return tt.due(wall{t.Minute(), t.Hour(), t.Day(), t.Weekday()})
}

// expected is what the oracle knows of one agent.
type expected struct {
	timetable
	in       api.AgentInput
	id       api.AgentID
	all      []time.Time // every slot of a cron timetable, far enough
	anchor   time.Time
	ahead    []time.Time           // what had fired and will come again, when the clock was set back
	verdicts map[int64]api.Verdict // by slot, in Unix seconds
}

// situation is the agent just before a tick, as its rows show it.
type situation struct {
	busy     bool // something of the agent runs or is not drained
	waiting  bool // a scheduled run waits
	draining bool // a scheduled run isn't drained: replacing it means waiting for it
}

// pending lists the slots after the anchor and not after now.
func (x *expected) pending(now time.Time) (due []time.Time) {
	if x.every > 0 {
		for at := x.anchor.Add(x.every); !at.After(now); at = at.Add(x.every) {
			due = append(due, at)
		}
		return due
	}
	from, _ := slices.BinarySearchFunc(x.all, x.anchor, func(s, a time.Time) int {
		if s.After(a) {
			return 1
		}
		return -1
	})
	for _, at := range x.all[from:] {
		if at.After(now) {
			break
		}
		due = append(due, at)
	}
	return due
}

// outlook is what a tick would decide.
type outlook struct {
	latest time.Time
	missed bool
}

func (x *expected) outlook(now time.Time) outlook {
	due := x.pending(now)
	if len(due) == 0 {
		return outlook{}
	}
	latest := due[len(due)-1]
	return outlook{latest, x.tooLate(latest, now)}
}

// tooLate reports whether a slot is missed.
func (x *expected) tooLate(slot, now time.Time) bool {
	late, window := now.Sub(slot), time.Duration(x.in.CatchUpWindowSeconds)*time.Second
	return late > time.Minute && (x.in.CatchUp == api.CatchUpNone || window > 0 && late > window)
}

// tick settles what is due at an instant. It returns the slot that must have fired and whether
// its session must be held back; fired is the zero time when none must.
func (x *expected) tick(now time.Time, s situation) (fired time.Time, held bool) {
	due := x.pending(now)
	if len(due) == 0 {
		return fired, false
	}
	latest := due[len(due)-1]
	x.anchor = latest
	due = x.afterFired(due)
	if len(due) == 0 {
		return fired, false
	}
	if x.tooLate(latest, now) {
		x.give(due, api.SlotMissed)
		return fired, false
	}
	older := api.SlotFolded
	if x.in.CatchUp == api.CatchUpNone {
		x.give(due[:len(due)-1], api.SlotMissed)
		due = due[len(due)-1:]
	}
	switch x.in.Overlap {
	case api.OverlapSkip:
		if s.busy || s.waiting {
			x.give(due, api.SlotSkipped)
			return fired, false
		}
	case api.OverlapQueueOne:
		if s.waiting {
			x.give(due, api.SlotFolded)
			return fired, false
		}
		held = s.busy
	case api.OverlapReplace:
		held = s.draining
	}
	x.give(due[len(due)-1:], api.SlotFired)
	x.give(due[:len(due)-1], older)
	return latest, held
}

// give gives a verdict to slots that have none.
func (x *expected) give(slots []time.Time, v api.Verdict) {
	for _, s := range slots {
		if _, decided := x.verdicts[s.Unix()]; !decided {
			x.verdicts[s.Unix()] = v
		}
	}
}

// afterFired settles the due slots up to the last that fired before the clock was set back:
// that run stands for them, unless the agent doesn't catch up. It returns the slots after it.
func (x *expected) afterFired(due []time.Time) []time.Time {
	for i := len(due) - 1; i >= 0 && len(x.ahead) > 0; i-- {
		if !slices.ContainsFunc(x.ahead, func(f time.Time) bool { return !f.Before(due[i]) && !f.After(due[len(due)-1]) }) {
			continue
		}
		v := api.SlotFolded
		if x.in.CatchUp == api.CatchUpNone {
			v = api.SlotMissed
		}
		x.give(due[:i+1], v)
		return due[i+1:]
	}
	return due
}

// setBack is a clock that shows an instant again. An anchor more than a tick ahead is clamped;
// what fired stays, other verdicts come again.
func (x *expected) setBack(now time.Time) {
	if !x.anchor.After(now.Add(30 * time.Second)) {
		return
	}
	x.anchor, x.ahead = now.Truncate(time.Second), nil
	for s, v := range x.verdicts {
		switch at := time.Unix(s, 0); {
		case !at.After(now):
		case v == api.SlotFired:
			x.ahead = append(x.ahead, at)
		default:
			delete(x.verdicts, s)
		}
	}
}

// differs compares the ledger with the oracle, slot by slot; "" when they agree.
func (x *expected) differs(ledger []api.LedgerEntry) string {
	decided := make([]int64, 0, len(x.verdicts))
	for s := range x.verdicts {
		decided = append(decided, s)
	}
	slices.Sort(decided)
	got := map[int64]api.Verdict{}
	for _, l := range ledger {
		from, _ := slices.BinarySearch(decided, l.FirstSlot.Unix())
		to, last := slices.BinarySearch(decided, l.LastSlot.Unix())
		if !last || decided[from] != l.FirstSlot.Unix() || int64(to-from+1) != l.Count {
			return fmt.Sprintf("a row %s of %d slots from %s to %s covers %d", l.Verdict, l.Count, l.FirstSlot, l.LastSlot, to-from)
		}
		for _, s := range decided[from : to+1] {
			v := l.Verdict
			if v == api.SlotFired && s != decided[to] {
				v = api.SlotFolded
			}
			if _, twice := got[s]; twice {
				return fmt.Sprintf("slot %s has two verdicts", time.Unix(s, 0).UTC())
			}
			got[s] = v
		}
	}
	for s, v := range x.verdicts {
		if got[s] != v {
			return fmt.Sprintf("slot %s is %q in the ledger and must be %q", time.Unix(s, 0).UTC(), got[s], v)
		}
	}
	return ""
}
