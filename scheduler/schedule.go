// Package scheduler owns WHEN: the schedule language, the slots that a schedule names on a
// real clock in a real zone, the English words for it, and the one timer loop that every
// clock-driven part of the product runs on.
//
// A slot is an instant, always a whole second, at which a schedule is due. Everything said
// about slots anywhere (the tick, the preview, the ledger, the warnings in a form) comes from
// this code, so that what people are shown and what happens cannot differ.
//
// The package is a pure leaf. It must not know agents, sessions, ledgers or stores: an anchor
// is just an instant here, and catching up, overlap and jitter are decided elsewhere from the
// slots that this package counts. It reads no clock except inside Loop, and never anything of
// the machine's zone settings.
package scheduler

import "time"

// Schedule is a validated schedule in one zone, made by Parse. It is a value:
// copy it freely, use it from any goroutine. The zero Schedule has no slots.
type Schedule struct {
	text  string
	loc   *time.Location
	every int64 // seconds between slots; 0 for a cron expression
	cron  pattern
}

// Due describes the slots that have come due: the first and the last of them, in the
// schedule's zone, and how many there are.
type Due struct {
	First, Last time.Time
	Count       int64
}

// maxPreview bounds a preview, however many slots are asked for.
const maxPreview = 1000

// The instants between which slots exist, in Unix seconds. Beyond them there are no slots, and
// no arithmetic overflows.
const (
	earliest = -62135596800 // 0001-01-01T00:00:00Z
	latest   = 253402300799 // 9999-12-31T23:59:59Z
)

// Next is the first slot after an instant, in the schedule's zone. Only "@every" uses the
// anchor: its slots are anchor + k·n for k >= 1, the anchor cut to whole seconds. The result
// is the zero time when no slot follows within nine years; the zero time is never a slot.
func (s Schedule) Next(anchor, after time.Time) time.Time {
	from := bounded(after)
	if s.every > 0 {
		start := bounded(anchor)
		return s.slot(start + (max(from-start, 0)/s.every+1)*s.every)
	}
	if next, ok := s.cron.nextSlot(s.loc, from); ok {
		return s.slot(next)
	}
	return time.Time{}
}

// Latest returns which slots lie after the anchor and not after now. Last is the slot that the
// tick fires (contract 3.3), First to Last what it catches up on. It is exact for any downtime
// and takes microseconds per year of it. ok is false when nothing is due.
func (s Schedule) Latest(anchor, now time.Time) (due Due, ok bool) {
	first, last, count := s.Between(anchor, anchor, now)
	return Due{First: first, Last: last, Count: count}, count > 0
}

// LatestBefore is the last slot that is after the anchor and strictly before an instant: given
// a slot that fires late, the newest of those folded into it.
func (s Schedule) LatestBefore(anchor, before time.Time) (slot time.Time, ok bool) {
	_, last, count := s.Between(anchor, anchor, before.Add(-time.Nanosecond))
	return last, count > 0
}

// Between returns the first and last slot in (from, to] and how many slots lie there. As in
// Next, only "@every" uses the anchor. With no slot there, the count is 0 and both times are
// zero.
func (s Schedule) Between(anchor, from, to time.Time) (first, last time.Time, count int64) {
	var slots tally
	if s.every > 0 {
		slots = tallyEvery(s.every, bounded(anchor), bounded(from), bounded(to))
	} else {
		slots = s.cron.tally(s.loc, bounded(from), bounded(to))
	}
	if slots.count == 0 {
		return time.Time{}, time.Time{}, 0
	}
	return s.slot(slots.first), s.slot(slots.last), slots.count
}

// Preview lists the next n slots after an instant (at most 1000), in the
// schedule's zone and so with its offset at that time. For "@every" on an agent
// that does not exist yet, pass the same instant twice.
func (s Schedule) Preview(anchor, after time.Time, n int) []time.Time {
	n = min(max(n, 0), maxPreview)
	slots := make([]time.Time, 0, n)
	for len(slots) < n {
		next := s.Next(anchor, after)
		if next.IsZero() {
			break
		}
		slots = append(slots, next)
		after = next
	}
	return slots
}

// String is the expression as it was written, with single blanks between its
// parts. Two schedules with the same String and zone have the same slots.
func (s Schedule) String() string { return s.text }

// Zone is the zone the schedule is read in. Its String is the exact tzdata name.
func (s Schedule) Zone() *time.Location {
	if s.loc == nil {
		return time.UTC
	}
	return s.loc
}

// Every is the distance between slots of an "@every" schedule; ok is false for
// any other schedule.
func (s Schedule) Every() (distance time.Duration, ok bool) {
	return time.Duration(s.every) * time.Second, s.every > 0
}

// slot makes the instant from its Unix seconds, or the zero time beyond the
// years in which slots exist.
func (s Schedule) slot(unix int64) time.Time {
	if unix > latest {
		return time.Time{}
	}
	return time.Unix(unix, 0).In(s.Zone())
}

// bounded is an instant in whole Unix seconds, kept between earliest and latest. Cutting loses
// nothing: slots are whole seconds, so one is after an instant exactly when it is after the
// second that the instant lies in.
func bounded(t time.Time) int64 {
	return min(max(t.Unix(), earliest), latest)
}

// tally is what is known about the slots in a stretch of time, in Unix seconds. first and last
// mean nothing while count is 0.
type tally struct {
	first, last, count int64
}

// add counts n slots of which first and last are given. Stretches are added in order of time.
func (t *tally) add(first, last, n int64) {
	if n <= 0 {
		return
	}
	if t.count == 0 {
		t.first = first
	}
	t.last = last
	t.count += n
}

// tallyEvery counts the slots anchor + k·every, k >= 1, in (from, to].
func tallyEvery(every, anchor, from, to int64) (slots tally) {
	before := max(from-anchor, 0) / every
	until := max(to-anchor, 0) / every
	slots.add(anchor+(before+1)*every, anchor+until*every, until-before)
	return slots
}
