package scheduler

import (
	"fmt"
	"strings"
	"time"
)

// Warnings lists, in plain sentences, what may surprise people about a valid schedule: days of
// which either is enough, steps that don't come out even, a long wait, and clock changes
// within a year of now that affect its slots. Nothing to say is nil.
func (s Schedule) Warnings(now time.Time) []string {
	if s.loc == nil {
		return nil
	}
	if s.every > 0 {
		return s.everyWarnings(now)
	}
	var warnings []string
	if s.cron.eitherDay {
		warnings = append(warnings, "Day of month and day of week are both set: a day that fits either one is enough.")
	}
	warnings = append(warnings, s.stepWarnings()...)
	if next := s.Next(now, now); next.After(now.AddDate(1, 0, 0)) {
		warnings = append(warnings, fmt.Sprintf("The first slot is more than a year away, on %s.", next.Format(dayLayout)))
	}
	for _, change := range s.changes(now) {
		if warning := s.cron.changeWarning(change, s.loc); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings
}

const (
	dayLayout  = "2 January 2006"
	hourLayout = "15:04"
)

// everyWarnings warns that whole days of elapsed time drift against a clock that changes.
func (s Schedule) everyWarnings(now time.Time) []string {
	const day = 24 * 60 * 60
	changes := s.changes(now)
	if s.every%day != 0 || len(changes) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s counts days of exactly 24 hours: on %s the clocks in %s change and its time of day moves.",
		s.text, time.Unix(changes[0].at, 0).In(s.loc).Format(dayLayout), s.loc)}
}

// stepWarnings warns of steps such as */7 in minutes, whose last distance in each hour is
// shorter than the others.
func (s Schedule) stepWarnings() []string {
	items, err := parseFields(strings.Fields(s.text))
	if err != nil { // can't happen: Parse has read the same text
		return nil
	}
	var warnings []string
	for i, starts := range []string{"at minute 0 of each hour", "at midnight", "on the 1st of each month", "each January", "each Sunday"} {
		f, uneven := cronFields[i], false
		for _, item := range items[i] {
			values := f.max - f.min + 1
			uneven = uneven || item.star && values%item.step != 0 || item.star && item.step > 1 && f.name == "day of month"
		}
		if uneven {
			warnings = append(warnings, fmt.Sprintf("The step in the %s starts again %s, so not all distances are equal.", f.name, starts))
		}
	}
	return warnings
}

// change is an instant at which a zone's offset changes.
type change struct {
	at            int64 // Unix seconds, the first second with the new offset
	before, after int64 // offsets in seconds
}

// changes lists the clock changes within a year of now.
func (s Schedule) changes(now time.Time) (found []change) {
	until := bounded(now.AddDate(1, 0, 0))
	here := spanAt(s.loc, bounded(now))
	for here.end <= until {
		next := spanAt(s.loc, here.end)
		if next.offset != here.offset {
			found = append(found, change{at: here.end, before: here.offset, after: next.offset})
		}
		here = next
	}
	return found
}

// changeWarning says what a clock change does to the slots of a pattern, or nothing if it
// affects none, or if the pattern runs in every hour anyway.
func (p pattern) changeWarning(c change, loc *time.Location) string {
	if p.hour == allHours {
		return ""
	}
	forward := c.after > c.before
	// The wall seconds that are hidden or repeated, the last excluded.
	from, end := c.at+min(c.before, c.after), c.at+max(c.before, c.after)
	n := p.count(floorMinute(from-1), floorMinute(end-1))
	if n == 0 {
		return ""
	}
	first, _ := p.next(floorMinute(from - 1))
	last, _ := p.prev(floorMinute(end - 1))
	slots, runs, are := "the slot at "+wallClock(first*60), "runs", "is"
	if n > 1 {
		slots, runs, are = fmt.Sprintf("the %d slots from %s to %s", n, wallClock(first*60), wallClock(last*60)), "run", "are"
	}
	var effect string
	switch {
	case forward && p.elapsed:
		effect = are + " left out"
	case forward:
		effect = runs + " once, at " + wallClock(end)
	case p.elapsed:
		effect = runs + " twice"
	default:
		effect = runs + " once, the first time"
	}
	verb := "repeat"
	if forward {
		verb = "skip"
	}
	return fmt.Sprintf("On %s the clocks in %s %s %s to %s: %s %s.",
		time.Unix(c.at, 0).In(loc).Format(dayLayout), loc, verb, wallClock(from), wallClock(end), slots, effect)
}

// wallClock shows the hour and minute of a wall second.
func wallClock(second int64) string {
	return time.Unix(second, 0).UTC().Format(hourLayout)
}
