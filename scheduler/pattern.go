package scheduler

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

// pattern is what a cron expression says about the face of a clock: which minutes of which
// hours of which days. It knows neither zones nor instants; its measure of time is the wall
// minute, the minutes that a clock that never changes would have shown since 1 January 1970
// 00:00.
type pattern struct {
	minute, hour    uint64 // bit n set: minute or hour n
	dom, month, dow uint64 // bit n set: day n, month n, weekday n (Sunday is 0)

	// eitherDay is set when day of month and day of week are both restricted:
	// then a day that fits one of them is enough (contract 3.1).
	eitherDay bool

	// elapsed is set when the hour field begins with * or lists all 24 hours:
	// then slots follow elapsed time through clock changes (contract 3.2).
	elapsed bool
}

const (
	starBit  = 1 << 63 // robfig's mark for a field that is a plain *
	allHours = 1<<24 - 1
	allWeek  = 1<<7 - 1

	minutesPerDay = 24 * 60

	// horizonMonths is how far next and prev look. The rarest date, 29 February, is at most
	// eight years away (2096 to 2104).
	horizonMonths = 9*12 + 1
)

// newPattern takes over the bits that the parser found. Whether the hour field begins with *
// must be passed in: to the parser */2 is a plain list.
func newPattern(spec *cron.SpecSchedule, starHour bool) pattern {
	p := pattern{
		minute:    spec.Minute &^ starBit,
		hour:      spec.Hour &^ starBit,
		dom:       spec.Dom &^ starBit,
		month:     spec.Month &^ starBit,
		dow:       spec.Dow &^ starBit,
		eitherDay: spec.Dom&starBit == 0 && spec.Dow&starBit == 0,
	}
	p.elapsed = starHour || p.hour == allHours
	return p
}

// days is the set of matching days of a month, bit n for day n.
func (p pattern) days(year int, month time.Month) uint64 {
	if p.month>>month&1 == 0 {
		return 0
	}
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	length := first.AddDate(0, 1, -1).Day()
	inMonth := uint64(1)<<(length+1) - 2

	// The week rotated so that bit 0 is the weekday of day 1, five times over.
	start := int(first.Weekday())
	week := (p.dow>>start | p.dow<<(7-start)) & allWeek
	const fiveTimes = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28
	weekdays := week * fiveTimes << 1

	if p.eitherDay {
		return (p.dom | weekdays) & inMonth
	}
	return p.dom & weekdays & inMonth
}

// next is the first matching wall minute after one; ok is false when there is
// none within the horizon.
func (p pattern) next(after int64) (minute int64, ok bool) {
	year, month, day, ofDay := civil(after + 1)
	days := p.days(year, month) &^ (1<<day - 1)
	if days>>day&1 == 1 {
		if m, ok := p.firstFrom(ofDay); ok {
			return wallMinute(year, month, day, m), true
		}
		days &^= 1 << day
	}
	for range horizonMonths {
		if days != 0 {
			m, ok := p.firstFrom(0)
			return wallMinute(year, month, bits.TrailingZeros64(days), m), ok
		}
		if month++; month > time.December {
			year, month = year+1, time.January
		}
		days = p.days(year, month)
	}
	return 0, false
}

// prev is the last matching wall minute that is not after one; ok is false when
// there is none within the horizon.
func (p pattern) prev(until int64) (minute int64, ok bool) {
	year, month, day, ofDay := civil(until)
	days := p.days(year, month) & (1<<(day+1) - 1)
	if days>>day&1 == 1 {
		if m, ok := p.lastUntil(ofDay); ok {
			return wallMinute(year, month, day, m), true
		}
		days &^= 1 << day
	}
	for range horizonMonths {
		if days != 0 {
			m, ok := p.lastUntil(minutesPerDay - 1)
			return wallMinute(year, month, bits.Len64(days)-1, m), ok
		}
		if month--; month < time.January {
			year, month = year-1, time.December
		}
		days = p.days(year, month)
	}
	return 0, false
}

// count is the number of matching wall minutes in (after, until], by whole
// months, so that years of downtime cost microseconds.
func (p pattern) count(after, until int64) (n int64) {
	if until <= after {
		return 0
	}
	perDay := int64(bits.OnesCount64(p.hour) * bits.OnesCount64(p.minute))
	year, month, day, ofDay := civil(after)
	endYear, endMonth, endDay, endOfDay := civil(until)
	n = p.countInMonth(endYear, endMonth, endDay, endOfDay) - p.countInMonth(year, month, day, ofDay)
	for year != endYear || month != endMonth {
		n += int64(bits.OnesCount64(p.days(year, month))) * perDay
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return n
}

// countInMonth counts the matching minutes of a month up to and including a minute.
func (p pattern) countInMonth(year int, month time.Month, day, ofDay int) int64 {
	days := p.days(year, month)
	perDay := bits.OnesCount64(p.hour) * bits.OnesCount64(p.minute)
	n := bits.OnesCount64(days&(1<<day-1)) * perDay
	if days>>day&1 == 1 {
		hour, minute := ofDay/60, ofDay%60
		n += bits.OnesCount64(p.hour&(1<<hour-1)) * bits.OnesCount64(p.minute)
		if p.hour>>hour&1 == 1 {
			n += bits.OnesCount64(p.minute & (1<<(minute+1) - 1))
		}
	}
	return int64(n)
}

// firstFrom is the first matching minute of a day, counted from midnight, that
// is not before one.
func (p pattern) firstFrom(ofDay int) (minute int, ok bool) {
	hour := ofDay / 60
	if p.hour>>hour&1 == 1 {
		if left := p.minute &^ (1<<(ofDay%60) - 1); left != 0 {
			return hour*60 + bits.TrailingZeros64(left), true
		}
	}
	left := p.hour &^ (1<<(hour+1) - 1)
	return bits.TrailingZeros64(left)*60 + bits.TrailingZeros64(p.minute), left != 0
}

// lastUntil is the last matching minute of a day, counted from midnight, that
// is not after one.
func (p pattern) lastUntil(ofDay int) (minute int, ok bool) {
	hour := ofDay / 60
	if p.hour>>hour&1 == 1 {
		if left := p.minute & (1<<(ofDay%60+1) - 1); left != 0 {
			return hour*60 + bits.Len64(left) - 1, true
		}
	}
	left := p.hour & (1<<hour - 1)
	return (bits.Len64(left)-1)*60 + bits.Len64(p.minute) - 1, left != 0
}

// civil is the date that a wall minute lies on, and the minute of that day.
func civil(minute int64) (year int, month time.Month, day, ofDay int) {
	t := time.Unix(minute*60, 0).UTC()
	year, month, day = t.Date()
	return year, month, day, t.Hour()*60 + t.Minute()
}

// wallMinute is the inverse of civil.
func wallMinute(year int, month time.Month, day, ofDay int) int64 {
	return time.Date(year, month, day, 0, ofDay, 0, 0, time.UTC).Unix() / 60
}
