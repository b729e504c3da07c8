package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Error is why Parse refused. Field is the field of the request to correct, "schedule" or
// "timeZone"; Reason is one plain sentence that names the bad part, what is allowed, and the
// correction.
type Error struct {
	Field  string
	Reason string
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason }

// horizonYears is how far ahead a schedule must have a slot (contract 3.1).
const horizonYears = 5

// maxExpr bounds an expression in bytes. Every field written out in full as a
// list needs about 360.
const maxExpr = 512

// macros are the named schedules and what they stand for.
var macros = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// Parse checks an expression and a zone in full (contract 3.1) and makes the
// schedule. The language is 5-field cron (names, ranges, lists, steps, 7 for
// Sunday), @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and
// "@every <n>m", "h" or "d" with n >= 1. When day of month and day of week are
// both restricted, a day that fits one of them is enough; a field is
// unrestricted only if it is, or has in its list, a plain * (*/2 restricts).
//
// now decides whether there is a slot in the next five years; without one the
// schedule is refused. Any refusal is an *Error. No input panics, and none
// takes longer than a few milliseconds.
func Parse(expr, zone string, now time.Time) (Schedule, error) {
	fields, err := splitExpr(expr)
	if err != nil {
		return Schedule{}, err
	}
	s := Schedule{text: strings.Join(fields, " ")}
	if fields[0] == "@every" {
		s.every, err = parseEvery(fields)
	} else {
		s.cron, err = parseCron(fields)
	}
	if err != nil {
		return Schedule{}, err
	}
	if s.loc, err = loadZone(zone); err != nil {
		return Schedule{}, err
	}
	next := s.Next(now, now)
	if next.IsZero() || next.After(now.AddDate(horizonYears, 0, 0)) {
		return Schedule{}, refuse("%q has no slot in the next %d years: choose a date that exists, or a shorter distance.", s.text, horizonYears)
	}
	return s, nil
}

func refuse(format string, args ...any) *Error {
	return &Error{Field: "schedule", Reason: fmt.Sprintf(format, args...)}
}

// splitExpr checks what concerns an expression as a whole and splits it at its blanks.
func splitExpr(expr string) ([]string, error) {
	if len(expr) > maxExpr {
		return nil, refuse("A schedule has at most %d characters and this one has %d: write it shorter, with ranges or steps.", maxExpr, len(expr))
	}
	for i, r := range expr {
		if (r < ' ' || r > '~') && r != '\t' {
			return nil, refuse("The character %+q at position %d is not allowed: use plain letters, digits, blanks and * , - / only.", r, i+1)
		}
	}
	fields := strings.Fields(expr)
	if len(fields) == 0 {
		return nil, refuse("The schedule is empty: write five fields such as 0 9 * * 1-5, or @daily, or @every 15m.")
	}
	// The parser below would read a zone from here, and panics on some.
	if upper := strings.ToUpper(fields[0]); strings.HasPrefix(upper, "TZ=") || strings.HasPrefix(upper, "CRON_TZ=") {
		return nil, refuse("%s is not part of a schedule: put the zone into timeZone and leave only the five fields here.", quote(fields[0]))
	}
	return fields, nil
}

// parseCron reads five fields, or a macro that stands for them.
func parseCron(fields []string) (pattern, error) {
	items, err := parseFields(fields)
	if err != nil {
		return pattern{}, err
	}
	plain := make([]string, len(cronFields))
	for i, f := range cronFields {
		plain[i] = f.plain(items[i])
	}
	spec, err := parsePlain(strings.Join(plain, " "))
	if err != nil {
		return pattern{}, refuse("The schedule can't be read (%v): write five fields such as 0 9 * * 1-5.", err)
	}
	return newPattern(spec, items[1][0].star), nil
}

// parseFields checks five fields, or a macro that stands for them, one by one.
func parseFields(fields []string) (items [len(cronFields)][]item, err error) {
	if strings.HasPrefix(fields[0], "@") {
		expansion, ok := macros[fields[0]]
		if !ok || len(fields) > 1 {
			return items, refuse("%s is not a known name: write @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually or @every with a distance, in small letters.", quote(strings.Join(fields, " ")))
		}
		fields = strings.Fields(expansion)
	}
	if len(fields) != len(cronFields) {
		return items, refuse("A schedule has five fields (minute, hour, day of month, month, day of week) and this one has %d: write for example 0 9 * * 1-5; there is no field for seconds or years.", len(fields))
	}
	for i, f := range cronFields {
		if items[i], err = f.parse(fields[i]); err != nil {
			return items, err
		}
	}
	return items, nil
}

// parsePlain hands an expression that passed all checks to the cron parser. Even so it is not
// trusted: a panic in it is a refusal.
func parsePlain(expr string) (spec *cron.SpecSchedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	schedule, err := parser.Parse(expr)
	if err != nil {
		return nil, err
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("unexpected schedule %T", schedule)
	}
	return spec, nil
}

// parseEvery reads the distance of "@every <n>(m|h|d)", in seconds.
func parseEvery(fields []string) (seconds int64, err error) {
	const mend = "write @every with a whole number of m, h or d, such as @every 15m, @every 6h or @every 2d"
	if len(fields) != 2 {
		return 0, refuse("@every needs one distance and this has %d: %s.", len(fields)-1, mend)
	}
	distance := fields[1]
	unit := map[byte]int64{'m': 60, 'h': 60 * 60, 'd': 24 * 60 * 60}[distance[len(distance)-1]]
	n, ok := number(distance[:len(distance)-1])
	if unit == 0 || !ok {
		return 0, refuse("%s is not a distance: %s.", quote(distance), mend)
	}
	if n == 0 {
		return 0, refuse("%s is no distance at all, and the least is 1m: %s.", quote(distance), mend)
	}
	return int64(n) * unit, nil
}
