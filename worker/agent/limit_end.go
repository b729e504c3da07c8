package agent

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// justPast is how long ago a named end may have been for it to be meant: programs name only
// the hour, and repeat it for a while. Beyond that the next such hour is meant.
const justPast = time.Hour

// someTime is how soon to look again when a limit ends today at an unknown time.
const someTime = time.Hour

// lastSecond is beyond any plausible Unix seconds: the end of the year 2099.
const lastSecond = 4_102_444_799

// farthest is how far ahead an end is plausible.
const farthest = 366 * 24 * time.Hour

// limitEnd reads until when a usage limit holds, as programs put it for people: as Unix
// seconds, an RFC 3339 time, a length of time, a date, a weekday, or a time of day, with a
// zone or in local's. It may be in the past by less than an hour. The zero time means that the
// text names none, or no plausible one.
func limitEnd(text string, now time.Time, local *time.Location) time.Time {
	lower := strings.ToLower(strings.Join(strings.Fields(text), " "))
	if m := limitedUntil.FindStringSubmatch(lower); m != nil {
		if at := stamped(m[1]); at.Unix() <= lastSecond {
			return at // made by a program for programs: no plausibility check
		}
		return time.Time{}
	}
	for _, at := range limitWords.FindAllStringIndex(lower, 4) {
		rest := lower[at[0]:]
		if len(rest) > 100 {
			rest = rest[:100]
		}
		if end := endIn(rest, now, local); !end.IsZero() {
			return end
		}
	}
	return time.Time{}
}

func believed(at, now time.Time) time.Time {
	if at.Before(now.Add(-justPast)) || at.After(now.Add(farthest)) {
		return time.Time{}
	}
	return at
}

var (
	limitedUntil = regexp.MustCompile(`limit reached\|(\d{9,11})\b`)
	limitWords   = regexp.MustCompile(`\b(?:resets?(?:_at|_in_seconds)?|resetting|try again|retry(?:_after)?|available(?: again)?|renew(?:s|ed)?|restored?|refresh(?:es|ed)?|resumes?|lifts|lifted|ends?|expires?|back|wait|until)\b`)

	unixForm   = regexp.MustCompile(`^[a-z_ -]+["']?[ :=]*["']?(\d{10}|\d{13})\b`)
	lengthForm = regexp.MustCompile(`\b(?:in|after|wait)(?: for)? (?:about |approximately )?((?:(?:\d+(?:\.\d+)?|an?) ?(?:milliseconds?|ms|weeks?|wks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b,? ?(?:and )?)+|(?:\d+(?:\.\d+)?(?:ms|w|d|h|m|s))+\b)`)
	lengthPart = regexp.MustCompile(`(\d+(?:\.\d+)?|\ban?\b) ?(ms|milli|w|d|h|m|s)`)
	// Seconds without a unit, as in the header Retry-After and quotes of it.
	secondsForm = regexp.MustCompile(`^[a-z ]+[-_ ](?:after|in|in_seconds)(?:["']? ?[:=] ?["']?(\d{1,7})(?:[^\w:./-]|[.,]?$|\. )| (\d{1,7})(?:[.,;)]+ |[.,;)]*$))`)

	dayForm    = regexp.MustCompile(`\b(\d{4})-(\d{2})-(\d{2})(?:t|\b)`)
	monthFirst = regexp.MustCompile(`\b(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?\b(?:,? (\d{4})\b)?`)
	dayFirst   = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)?[ -](?:of )?(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.?(?:,?[ -](\d{4}))?\b`)
	dayName    = regexp.MustCompile(`\b(sun|mon|tue|wed|thu|fri|sat)(?:day|s|sday|nesday|r|rs|rsday|urday)?\b`)
	nearDay    = regexp.MustCompile(`\b(today|tonight|tomorrow)\b`)

	hourForm  = regexp.MustCompile(`\b(\d{1,2})(?::(\d{2}))?(?::(\d{2}))? ?([ap])\.?m\b\.?`)
	clockForm = regexp.MustCompile(`\b(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d+)?(z?)\b`)

	zoneName  = regexp.MustCompile(`\(?\b([a-z]+(?:/[a-z0-9_+-]+)+)\)?`)
	zoneShort = regexp.MustCompile(`\b(utc|gmt|bst|cest|cet|eest|eet|est|edt|cst|cdt|mst|mdt|pst|pdt|jst|ist|et|ct|mt|pt)\b`)
	// An offset follows a time or the name of the zone that it counts from.
	zoneOffset = regexp.MustCompile(`(?:\b(?:utc|gmt)|:\d{2}(?:\.\d+)?|[ap]\.?m\.?) ?([+-])(\d{1,2}):?(\d{2})?\b`)
)

// monthNumbers and the rest are tables for what the forms match.
var (
	monthNumbers = map[string]time.Month{
		"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
	}
	dayNumbers = map[string]time.Weekday{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
	lengths    = map[string]time.Duration{
		"ms": time.Millisecond, "milli": time.Millisecond, "w": 7 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second,
	}
	// What an abbreviation means to the people who use it; those of one country's zones follow
	// its summer time.
	zones = map[string]string{
		"utc": "UTC", "gmt": "UTC", "bst": "Europe/London", "cet": "Europe/Berlin", "cest": "Europe/Berlin", "eet": "Europe/Helsinki", "eest": "Europe/Helsinki",
		"est": "America/New_York", "edt": "America/New_York", "et": "America/New_York", "cst": "America/Chicago", "cdt": "America/Chicago", "ct": "America/Chicago",
		"mst": "America/Denver", "mdt": "America/Denver", "mt": "America/Denver", "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "pt": "America/Los_Angeles",
		"jst": "Asia/Tokyo", "ist": "Asia/Kolkata",
	}
)

// endIn reads a limit's end in a text that begins with the word that announces it. A day and a
// time of day may come in either order, so what names the day is removed before the time and
// its zone are looked for: 2026-12-05 contains no offset.
func endIn(rest string, now time.Time, local *time.Location) time.Time {
	if m := unixForm.FindStringSubmatch(rest); m != nil {
		return believed(stamped(m[1]), now)
	}
	if d, ok := lengthIn(rest); ok {
		return believed(now.Add(d), now)
	}
	said, m := without(rest, dayForm)
	if m != nil {
		return dated(number(m[1]), time.Month(number(m[2])), number(m[3]), said, now, local)
	}
	if said, m = without(rest, monthFirst); m != nil {
		return dated(number(m[3]), monthNumbers[m[1][:3]], number(m[2]), said, now, local)
	}
	if said, m = without(rest, dayFirst); m != nil {
		return dated(number(m[3]), monthNumbers[m[2][:3]], number(m[1]), said, now, local)
	}
	today := now.In(zoneOf(rest, local))
	if said, m = without(rest, nearDay); m != nil {
		ahead := map[string]int{"tomorrow": 1}[m[1]]
		at, timed := timeIn(said)
		if ahead == 0 && !timed {
			return now.Add(someTime)
		}
		return believed(at.on(today, ahead), now)
	}
	if said, m = without(rest, dayName); m != nil {
		ahead := (int(dayNumbers[m[1]]) - int(today.Weekday()) + 7) % 7
		at, timed := timeIn(said)
		if ahead == 0 && !timed {
			return now.Add(someTime)
		}
		return soonest(today, ahead, 7, at)
	}
	if at, ok := timeIn(rest); ok {
		return soonest(today, 0, 1, at)
	}
	return time.Time{}
}

// without removes the first match of a form from a text.
func without(text string, form *regexp.Regexp) (rest string, match []string) {
	at := form.FindStringSubmatchIndex(text)
	if at == nil {
		return text, nil
	}
	return text[:at[0]] + " " + text[at[1]:], form.FindStringSubmatch(text)
}

// stamped is the instant of Unix seconds, or of milliseconds where there are 13 digits.
func stamped(digits string) time.Time {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return time.Time{}
	}
	if len(digits) == 13 {
		return time.UnixMilli(n).UTC()
	}
	return time.Unix(n, 0).UTC()
}

// clock is a time of day.
type clock struct{ hour, minute, second int }

// on is the time of day a number of days after today.
func (c clock) on(today time.Time, ahead int) time.Time {
	return time.Date(today.Year(), today.Month(), today.Day()+ahead, c.hour, c.minute, c.second, 0, today.Location())
}

// soonest is the time of day a number of days ahead, or days later if that is past.
func soonest(today time.Time, ahead, later int, c clock) time.Time {
	at := c.on(today, ahead)
	if at.Before(today.Add(-justPast)) {
		at = c.on(today, ahead+later)
	}
	return at
}

// dated is an instant on a date; without a year, the one closest to now.
func dated(year int, month time.Month, day int, rest string, now time.Time, local *time.Location) time.Time {
	c, timed := timeIn(rest)
	zone := zoneOf(rest, local)
	on := func(year int) time.Time {
		return time.Date(year, month, day, c.hour, c.minute, c.second, 0, zone)
	}
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return time.Time{}
	}
	at := on(year)
	if year == 0 {
		if at = on(now.In(zone).Year()); at.Before(now.AddDate(0, -6, 0)) {
			at = on(now.In(zone).Year() + 1)
		}
	}
	if !timed && at.Before(now) && now.Before(at.AddDate(0, 0, 1)) {
		return now.Add(someTime)
	}
	return believed(at, now)
}

// lengthIn reads "in 3 days 4 hours", "in 2h15m", "in an hour", "retry-after: 3600".
func lengthIn(rest string) (sum time.Duration, ok bool) {
	m := lengthForm.FindStringSubmatch(rest)
	if m == nil {
		if m = secondsForm.FindStringSubmatch(rest); m == nil {
			return 0, false
		}
		return time.Duration(number(m[1]+m[2])) * time.Second, true
	}
	for _, part := range lengthPart.FindAllStringSubmatch(m[1], 6) {
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			n = 1 // a, an
		}
		sum += time.Duration(min(n, 100_000) * float64(lengths[part[2]]))
	}
	return sum, sum > 0
}

// timeIn reads a time of day.
func timeIn(text string) (c clock, ok bool) {
	if m := hourForm.FindStringSubmatch(text); m != nil {
		c = clock{number(m[1]), number(m[2]), number(m[3])}
		if c.hour < 1 || c.hour > 12 || c.minute > 59 || c.second > 59 {
			return clock{}, false
		}
		if c.hour %= 12; m[4] == "p" {
			c.hour += 12
		}
		return c, true
	}
	if m := clockForm.FindStringSubmatch(text); m != nil {
		c = clock{number(m[1]), number(m[2]), number(m[3])}
		return c, c.hour < 24 && c.minute < 60 && c.second < 60
	}
	switch {
	case strings.Contains(text, "noon"):
		return clock{hour: 12}, true
	case strings.Contains(text, "midnight"):
		return clock{}, true
	}
	return clock{}, false
}

// zoneOf is the zone that a text names, else local.
func zoneOf(text string, local *time.Location) *time.Location {
	if m := zoneName.FindStringSubmatch(text); m != nil {
		if zone, err := time.LoadLocation(properName(m[1])); err == nil {
			return zone
		}
	}
	if m := clockForm.FindStringSubmatch(text); m != nil && m[4] != "" {
		return time.UTC
	}
	if m := zoneOffset.FindStringSubmatch(text); m != nil {
		sec := (number(m[2])*60 + number(m[3])) * 60
		if m[1] == "-" {
			sec = -sec
		}
		if sec > -15*3600 && sec < 15*3600 {
			return time.FixedZone("", sec)
		}
	}
	if m := zoneShort.FindStringSubmatch(text); m != nil {
		if zone, err := time.LoadLocation(zones[m[1]]); err == nil {
			return zone
		}
	}
	return local
}

// properName capitalizes a zone's name as the zone data does.
func properName(lower string) string {
	parts := strings.Split(lower, "/")
	for i, part := range parts {
		words := strings.Split(part, "_")
		for j, w := range words {
			if w != "" && w != "of" && w != "es" {
				words[j] = strings.ToUpper(w[:1]) + w[1:]
			}
		}
		parts[i] = strings.Join(words, "_")
	}
	name := strings.Join(parts, "/")
	return strings.NewReplacer("Port-au-prince", "Port-au-Prince", "Etc/Gmt", "Etc/GMT", "Etc/Utc", "Etc/UTC").Replace(name)
}

// number reads digits; none are 0.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
