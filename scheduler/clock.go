package scheduler

import (
	"math"
	"time"
)

// This file maps the wall minutes of a pattern to instants in a zone (contract 3.2). Both
// rules rest on one picture: a zone is a row of spans of constant offset, in which the wall
// clock runs as fast as time.
//
// A pattern that follows elapsed time is due whenever the clock shows a matching minute: not
// at all for minutes in a gap, twice for repeated ones.
//
// Any other pattern is due when the clock first REACHES a matching minute: the first instant
// at which it shows that minute or a later one. That single sentence is the whole clock-change
// rule. In a gap the clock reaches all the hidden minutes at the first instant after it, so
// they are one slot there; a repeated minute was already reached the first time.

// maxShift is more than offsets can differ by, in seconds, including a day that is skipped or
// repeated at the date line. A clock change longer ago than that no longer matters.
const maxShift = 48 * 60 * 60

// span is a stretch of time in a zone with one offset, in Unix seconds.
type span struct {
	from, end int64 // end is the first second of the next span
	offset    int64 // wall seconds = Unix seconds + offset
}

// spanAt is the span that an instant lies in.
func spanAt(loc *time.Location, unix int64) span {
	t := time.Unix(unix, 0).In(loc)
	start, end := t.ZoneBounds()
	_, offset := t.Zone()
	s := span{from: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	if !start.IsZero() {
		s.from = start.Unix()
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= unix {
		// Beyond a zone's table the library ends the year after 365 days, so on 31 December of
		// a leap year its end has passed. No zone changes its clocks on that day.
		s.end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return s
}

// reached is the latest wall second that the clock has shown up to an instant.
func reached(loc *time.Location, unix int64) int64 {
	at := spanAt(loc, unix)
	top := unix + at.offset
	for at.from > unix-maxShift {
		last := at.from - 1
		at = spanAt(loc, last)
		top = max(top, last+at.offset)
	}
	return top
}

// nextSlot is the first slot after an instant.
func (p pattern) nextSlot(loc *time.Location, after int64) (unix int64, ok bool) {
	if loc == nil {
		return 0, false
	}
	if p.elapsed {
		return p.nextShown(loc, after)
	}
	minute, ok := p.next(floorMinute(reached(loc, after)))
	if !ok {
		return 0, false
	}
	return arrival(loc, minute*60, after), true
}

// arrival is the first instant after one at which the clock shows a wall second that it has
// not reached by then, or a later one.
func arrival(loc *time.Location, wall, after int64) int64 {
	for at := max(after+1, wall-maxShift); ; {
		here := spanAt(loc, at)
		if t := max(at, wall-here.offset); t < here.end {
			return t
		}
		at = here.end
	}
}

// nextShown is the first instant after one at which the clock begins to show a
// matching minute.
func (p pattern) nextShown(loc *time.Location, after int64) (unix int64, ok bool) {
	const horizon = horizonMonths * 31 * 24 * 60 * 60
	for at := after + 1; at < after+horizon; {
		here := spanAt(loc, at)
		minute, ok := p.next(floorMinute(at - 1 + here.offset))
		if !ok {
			return 0, false
		}
		if t := minute*60 - here.offset; t < here.end {
			return t, true
		}
		at = here.end
	}
	return 0, false
}

// tally counts the slots in (from, to], span by span.
func (p pattern) tally(loc *time.Location, from, to int64) (slots tally) {
	if loc == nil {
		return slots
	}
	top := reached(loc, from)
	for at := from + 1; at <= to; {
		here := spanAt(loc, at)
		if p.elapsed {
			top = at - 1 + here.offset
		}
		// All minutes that the clock reaches in this one second, many if it has just jumped,
		// are one slot.
		if wall := at + here.offset; wall > top {
			if p.count(floorMinute(top), floorMinute(wall)) > 0 {
				slots.add(at, at, 1)
			}
			top = wall
		}
		// From here on each minute is a slot of its own.
		until := min(here.end-1, to)
		if wall := until + here.offset; wall > top {
			p.tallyRun(&slots, floorMinute(top), floorMinute(wall), here.offset)
			top = wall
		}
		at = until + 1
	}
	return slots
}

// tallyRun adds the matching wall minutes in (after, until] of one span.
func (p pattern) tallyRun(slots *tally, after, until, offset int64) {
	n := p.count(after, until)
	if n == 0 {
		return
	}
	first, _ := p.next(after)
	last, _ := p.prev(until)
	slots.add(first*60-offset, last*60-offset, n)
}

// floorMinute is the wall minute that a wall second lies in, also before 1970.
func floorMinute(second int64) int64 {
	minute := second / 60
	if second%60 < 0 {
		minute--
	}
	return minute
}
