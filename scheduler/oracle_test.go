package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// The oracle knows nothing of bits, spans or clock changes. It walks through real time minute
// by minute, writes down what the clock on the wall shows, and applies contract 3.2 in its own
// words: a time shown is due when first shown, a time never shown is due at the first minute
// after the gap, and what follows elapsed time is due whenever it is shown. Whether a minute
// matches is plain Go beside each expression.

// wall is what a clock and a calendar on a wall show.
type wall struct {
	year                              int16
	month, day, weekday, hour, minute int8
}

// sameAs compares everything but the weekday, which follows from the date.
func (w wall) sameAs(o wall) bool {
	o.weekday = w.weekday
	return w == o
}

// before orders walls.
func (w wall) before(o wall) bool {
	order := func(w wall) int64 {
		return (((int64(w.year)*100+int64(w.month))*100+int64(w.day))*100+int64(w.hour))*100 + int64(w.minute)
	}
	return order(w) < order(o)
}

const everyMinute = "* * * * *"

var oracleSchedules = []struct {
	expr    string
	elapsed bool
	matches func(w wall) bool
}{
	{everyMinute, true, func(w wall) bool { return true }},
	{"*/15 * * * *", true, func(w wall) bool { return w.minute%15 == 0 }},
	{"0 * * * *", true, func(w wall) bool { return w.minute == 0 }},
	{"0 */2 * * *", true, func(w wall) bool { return w.minute == 0 && w.hour%2 == 0 }},
	{"20 */3,1 * * *", true, func(w wall) bool { return w.minute == 20 && (w.hour%3 == 0 || w.hour == 1) }},
	{"7 0-23 * * *", true, func(w wall) bool { return w.minute == 7 }},
	{"*/30 * * * sun", true, func(w wall) bool { return w.minute%30 == 0 && w.weekday == 0 }},
	{"0 0 * * *", false, func(w wall) bool { return w.minute == 0 && w.hour == 0 }},
	{"30 2 * * *", false, func(w wall) bool { return w.minute == 30 && w.hour == 2 }},
	{"30 1 * * *", false, func(w wall) bool { return w.minute == 30 && w.hour == 1 }},
	{"45 23 * * *", false, func(w wall) bool { return w.minute == 45 && w.hour == 23 }},
	{"*/5 0-3 * * *", false, func(w wall) bool { return w.minute%5 == 0 && w.hour <= 3 }},
	{"5/10 1,2,3 * * *", false, func(w wall) bool { return w.minute%10 == 5 && w.hour >= 1 && w.hour <= 3 }},
	{"0,15,45 1-23 * * *", false, func(w wall) bool {
		return (w.minute == 0 || w.minute == 15 || w.minute == 45) && w.hour >= 1
	}},
	{"15 2 * * 5-7", false, func(w wall) bool {
		return w.minute == 15 && w.hour == 2 && (w.weekday == 5 || w.weekday == 6 || w.weekday == 0)
	}},
	{"0 2 8,29 * 0", false, func(w wall) bool {
		return w.minute == 0 && w.hour == 2 && (w.day == 8 || w.day == 29 || w.weekday == 0)
	}},
	{"30 0 1 1-6/2 *", false, func(w wall) bool {
		return w.minute == 30 && w.hour == 0 && w.day == 1 && (w.month == 1 || w.month == 3 || w.month == 5)
	}},
	{"59 2 31 oct-dec *", false, func(w wall) bool {
		return w.minute == 59 && w.hour == 2 && w.day == 31 && w.month >= 10
	}},
}

var oracleYears = map[int][]string{
	2026: {
		"UTC", "America/New_York", "America/Havana", "America/Sao_Paulo", "America/Santiago", "America/Scoresbysund",
		"Europe/London", "Europe/Chisinau", "Africa/Cairo", "Africa/Casablanca", "Asia/Gaza", "Asia/Kathmandu",
		"Australia/Lord_Howe", "Pacific/Chatham", "Atlantic/Azores", "Antarctica/Troll",
	},
	2018: {"America/Sao_Paulo", "Asia/Pyongyang", "Asia/Tehran"},
	2011: {"Pacific/Apia", "Europe/Moscow"},
	2028: {"Europe/Berlin"}, // a leap year, at whose end the library's zone boundaries are wrong
}

func TestOracle_EverySlotOfAYearAgrees(t *testing.T) {
	for year, names := range oracleYears {
		for _, name := range names {
			t.Run(fmt.Sprint(year, name), func(t *testing.T) {
				loc, err := loadZone(name)
				if err != nil {
					t.Fatal(err)
				}
				year := watch(loc, year)
				for _, o := range oracleSchedules {
					if o.expr == everyMinute && loc.String() != "Australia/Lord_Howe" {
						continue // half a million slots, so in the hardest zone only
					}
					want := year.due(o.matches, o.elapsed)
					s := must(t, o.expr, name)
					slot := year.begin.Add(-time.Nanosecond)
					for i, due := range want {
						next := s.Next(slot, slot)
						if !next.Equal(due) {
							t.Fatalf("%s: slot %d after %s: got %s, want %s", o.expr, i, slot.In(loc), next, due.In(loc))
						}
						slot = next
					}
					if next := s.Next(slot, slot); next.Before(year.end) {
						t.Fatalf("%s: got %s, want no more slots before %s", o.expr, next, year.end)
					}
					count := int64(len(want))
					if _, last, n := s.Between(slot, year.begin.Add(-1), year.end.Add(-1)); n != count || n > 0 && !last.Equal(want[n-1]) {
						t.Fatalf("%s: Between counts %d slots up to %s, want %d", o.expr, n, last, count)
					}
				}
			})
		}
	}
}

// clockYear is what somebody saw who watched a wall clock for a year.
type clockYear struct {
	begin, end time.Time
	sightings  []sighting // every minute of real time
	calendar   []wall     // every minute of the calendar
	firstShown []int64    // for each of these, when the clock first showed it, or never
	jumps      []sighting // the minutes at which the clock had leapt forward
}

type sighting struct {
	unix int64
	wall
}

const never = 0 // as a time first shown

// watch begins and ends a day outside the year, so that it sees every clock
// change that matters to the year.
func watch(loc *time.Location, year int) *clockYear {
	y := &clockYear{
		begin:    time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC),
		end:      time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC),
		calendar: calendar(year),
	}
	start := y.begin.AddDate(0, 0, -1)
	for y.calendar[0].before(read(start.In(loc))) {
		y.calendar = y.calendar[1:]
	}
	y.sightings = make([]sighting, 0, len(y.calendar))
	y.firstShown = make([]int64, len(y.calendar))
	next := 0 // the minute of the calendar that comes after all that were shown
	for at := start; at.Before(y.end.AddDate(0, 0, 1)); at = at.Add(time.Minute) {
		saw := sighting{at.Unix(), read(at.In(loc))}
		y.sightings = append(y.sightings, saw)
		if next == len(y.calendar) || saw.before(y.calendar[next]) {
			continue // shown before, or past the end
		}
		if !saw.sameAs(y.calendar[next]) {
			y.jumps = append(y.jumps, saw)
			for !saw.sameAs(y.calendar[next]) {
				next++
			}
		}
		y.firstShown[next] = saw.unix
		next++
	}
	return y
}

// read reads a local time off the wall. It is returned as a time in UTC, because each reading
// in a zone looks the zone up again.
func read(local time.Time) wall {
	_, offset := local.Zone()
	local = local.UTC().Add(time.Duration(offset) * time.Second)
	year, month, day := local.Date()
	hour, minute, _ := local.Clock()
	return wall{int16(year), int8(month), int8(day), int8(weekday(year, int(month), day)), int8(hour), int8(minute)}
}

// due lists the instants within the year at which a schedule is due.
func (y *clockYear) due(matches func(wall) bool, elapsed bool) (slots []time.Time) {
	begin, end, last := y.begin.Unix(), y.end.Unix(), int64(never)
	add := func(unix int64) {
		if unix != last && unix >= begin && unix < end {
			slots = append(slots, time.Unix(unix, 0))
		}
		last = unix
	}
	if elapsed {
		for _, saw := range y.sightings {
			if matches(saw.wall) {
				add(saw.unix)
			}
		}
		return slots
	}
	for i, w := range y.calendar {
		if !matches(w) {
			continue
		}
		if unix := y.firstShown[i]; unix != never {
			add(unix)
			continue
		}
		for _, jump := range y.jumps {
			if w.before(jump.wall) {
				add(jump.unix)
				break
			}
		}
	}
	return slots
}

// calendar lists the minutes of a year and of two days on either side of it.
func calendar(year int) (minutes []wall) {
	day := func(year, month, day int) {
		for m := range 24 * 60 {
			minutes = append(minutes, wall{
				int16(year), int8(month), int8(day), int8(weekday(year, month, day)), int8(m / 60), int8(m % 60),
			})
		}
	}
	lengths := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if year%4 == 0 { // there is no century year in the tests
		lengths[1] = 29
	}
	day(year-1, 12, 30)
	day(year-1, 12, 31)
	for i, length := range lengths {
		for d := range length {
			day(year, i+1, d+1)
		}
	}
	day(year+1, 1, 1)
	day(year+1, 1, 2)
	return minutes
}

// weekday is Sakamoto's rule; Sunday is 0.
func weekday(year, month, day int) int {
	if month < 3 {
		year--
	}
	return (year + year/4 - year/100 + year/400 + [...]int{0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4}[month-1] + day) % 7
}
