package arrivals

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// calendarNames are the calendar events of systemd.time(7) that have a name.
var calendarNames = map[string]string{
	"minutely": "* * * * *", "hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * 1", "monthly": "0 0 1 * *",
	"quarterly": "0 0 1 1,4,7,10 *", "semiannually": "0 0 1 1,7 *", "yearly": "0 0 1 1 *", "annually": "0 0 1 1 *",
}

var (
	calendarDate = regexp.MustCompile(`^(?:([^-:]+)-)?([^-:]+)-([^-:]+)$`)
	calendarTime = regexp.MustCompile(`^([^:]+):([^:]+)(?::([^:]+))?$`)
	calendarPart = regexp.MustCompile(`^(\*|\d+(?:\.\.\d+)?)(?:/(\d+))?$`)
)

// calendar is the schedule of a calendar event of systemd, and its zone if it names one. What
// can't be said here is refused.
func calendar(text string) (schedule, zone, refused string) {
	words := strings.Fields(text)
	if n := len(words); n > 1 {
		if _, err := time.LoadLocation(words[n-1]); err == nil && !strings.ContainsAny(words[n-1], ":*") {
			zone, words = words[n-1], words[:n-1]
		}
	}
	if len(words) == 1 {
		if known, ok := calendarNames[strings.ToLower(words[0])]; ok {
			return known, zone, ""
		}
	}
	f := struct{ minute, hour, day, month, weekday string }{"0", "0", "*", "*", "*"}
	for i, word := range words {
		switch date, clock := calendarDate.FindStringSubmatch(word), calendarTime.FindStringSubmatch(word); {
		case clock != nil:
			var why [2]string
			f.hour, why[0] = cronField(clock[1], "0")
			f.minute, why[1] = cronField(clock[2], "0")
			if refused = cmp.Or(why[:]...); refused != "" {
				return "", "", refused
			}
			if s := strings.Trim(clock[3], "0"); s != "" {
				return "", "", fmt.Sprintf("It names seconds (%s); the finest that a schedule here names is a minute.", word)
			}
		case strings.Contains(word, "~"):
			return "", "", fmt.Sprintf("It counts from the end of the month (%s), which no schedule here does: let the command ask for the day.", word)
		case date != nil:
			if date[1] != "" && date[1] != "*" {
				return "", "", fmt.Sprintf("It names a year (%s), which no schedule here does.", word)
			}
			var why [2]string
			f.month, why[0] = cronField(date[2], "1")
			f.day, why[1] = cronField(date[3], "1")
			if refused = cmp.Or(why[:]...); refused != "" {
				return "", "", refused
			}
		case i == 0:
			if f.weekday, refused = weekdays(word); refused != "" {
				return "", "", refused
			}
		default:
			return "", "", fmt.Sprintf("%q in %q is no time that is known here.", word, text)
		}
	}
	if len(words) == 0 {
		return "", "", "It names no time."
	}
	if f.day != "*" && f.weekday != "*" {
		return "", "", fmt.Sprintf("It runs on days that fit both %q and %q. No schedule here says so: let the command ask for one of them.", f.day, f.weekday)
	}
	return strings.Join([]string{f.minute, f.hour, f.day, f.month, f.weekday}, " "), zone, ""
}

// cronField is a component of a date or a time as a cron field says it.
func cronField(text, first string) (field, refused string) {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		m := calendarPart.FindStringSubmatch(part)
		if m == nil {
			return "", fmt.Sprintf("%q is no part of a time that is known here.", part)
		}
		from, to, isRange := strings.Cut(m[1], "..")
		out := trimmed(from)
		switch {
		case isRange:
			out += "-" + trimmed(to)
		case from == "*" && m[2] != "":
			out = first
		}
		if m[2] != "" {
			out += "/" + trimmed(m[2])
		}
		parts = append(parts, out)
	}
	if slices.Contains(parts, "*") {
		return "*", ""
	}
	return strings.Join(parts, ","), ""
}

func trimmed(number string) string {
	if n, err := strconv.Atoi(number); err == nil {
		return strconv.Itoa(n)
	}
	return number
}

var weekdayNames = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// weekdays is the day-of-week field for what systemd is given.
func weekdays(text string) (field, refused string) {
	number := func(name string) int {
		name = strings.ToLower(name)
		return slices.IndexFunc(weekdayNames, func(full string) bool { return name == full || name == full[:3] })
	}
	var days []string
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ","), ",") {
		from, to, isRange := strings.Cut(part, "..")
		if !isRange {
			to = from
		}
		first, last := number(from), number(to)
		if first < 0 || last < first {
			return "", fmt.Sprintf("%q is no time that is known here.", part)
		}
		for day := first; day <= last; day++ {
			days = append(days, strconv.Itoa(day+1))
		}
	}
	slices.Sort(days)
	if days = slices.Compact(days); len(days) == 7 {
		return "*", ""
	}
	return strings.Join(days, ","), ""
}
