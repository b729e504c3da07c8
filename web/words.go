package web

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"stint/api"
)

// statusLook is how a status is shown: a word and an icon, since colour alone says nothing to
// a reader who can't see it.
type statusLook struct{ word, icon string }

var statusLooks = map[api.Status]statusLook{
	api.Pending:       {"Pending", "hourglass"},
	api.Queued:        {"Queued", "circle-dashed"},
	api.Active:        {"Active", "circle-play"},
	api.AwaitingInput: {"Awaiting input", "message-circle-question-mark"},
	api.Complete:      {"Complete", "circle-check"},
	api.Failed:        {"Error", "circle-x"},
	api.Stale:         {"Stale", "unplug"},
	api.Cancelled:     {"Cancelled", "circle-slash"},
}

// StatusWord is the status as people read it.
func StatusWord(s api.Status) string { return statusLooks[s].word }

// StatusIcon names the status's icon in the sprite.
func StatusIcon(s api.Status) string { return statusLooks[s].icon }

func statusClass(s api.Status) string { return "s-" + string(s) }

// capitalised begins words with a capital, as a label does.
func capitalised(words string) string {
	if words == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(words)
	return string(unicode.ToUpper(first)) + words[n:]
}

// Span writes a length of time in its two largest units: "42s", "3m 12s", "2h 5m", "4d 3h".
// Under ten seconds it shows tenths, because that is where they matter; a negative length is
// "0s".
func Span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", math.Floor(d.Seconds()*10)/10)
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return pair(d, time.Minute, "m", time.Second, "s")
	case d < 24*time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "m")
	default:
		return pair(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

// WholeSpan is [Span] without tenths, as a running clock shows it.
func WholeSpan(d time.Duration) string {
	if d >= 0 && d < 10*time.Second {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return Span(d)
}

func pair(d, big time.Duration, bigWord string, small time.Duration, smallWord string) string {
	first, second := d/big, d%big/small
	if second == 0 {
		return fmt.Sprintf("%d%s", first, bigWord)
	}
	return fmt.Sprintf("%d%s %d%s", first, bigWord, second, smallWord)
}

// Clock writes what is left of a countdown: "4:07", "1:02:30".
func Clock(d time.Duration) string {
	s := max(0, int(math.Ceil(d.Seconds())))
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Ago writes t as seen from now, in the words that the page's script will use as well: "3 min
// ago", "in 2 hr", "yesterday", "5 mo ago".
func Ago(t, now time.Time) string {
	d := t.Sub(now)
	n, unit := nearestUnit(d.Abs())
	near := map[bool]map[string]string{
		true:  {"day": "yesterday", "wk": "last wk", "mo": "last mo", "yr": "last yr"},
		false: {"day": "tomorrow", "wk": "next wk", "mo": "next mo", "yr": "next yr"},
	}[d < 0]
	switch {
	case n == 0:
		return "now"
	case n == 1 && near[unit] != "":
		return near[unit]
	case unit == "day":
		unit = "days"
	}
	if d < 0 {
		return fmt.Sprintf("%d %s ago", n, unit)
	}
	return fmt.Sprintf("in %d %s", n, unit)
}

// nearestUnit rounds as the script's library does: 55 s are a minute, 55 minutes an hour, 21
// hours a day, 6 days a week, 27 days a month.
func nearestUnit(d time.Duration) (int, string) {
	const day = 24 * time.Hour
	round := func(unit time.Duration) int { return max(1, int(math.Round(float64(d)/float64(unit)))) }
	switch {
	case d < 10*time.Second:
		return 0, "sec"
	case d < 55*time.Second:
		return int(d / time.Second), "sec"
	case d < 55*time.Minute:
		return max(1, int(d/time.Minute)), "min"
	case d < 21*time.Hour:
		return max(1, int(d/time.Hour)), "hr"
	case d < 6*day:
		return round(day), "day"
	case d < 27*day:
		return round(7 * day), "wk"
	case d < 350*day:
		return round(30 * day), "mo"
	}
	return round(365 * day), "yr"
}

// stamp is the whole instant, for a title and for readers without scripts.
func stamp(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04:05 UTC") }

func machineTime(t time.Time) string { return api.Time{Time: t}.String() }

// Count writes a number with the noun that fits it: "1 run", "3 runs".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// excerptBytes is how much of a text is read for one line of it.
const excerptBytes = 8 << 10

// firstLine is the first line of text that says something, cut to n runes.
func firstLine(text string, n int) string {
	text = strings.TrimSpace(text)
	text = text[:min(len(text), excerptBytes)]
	line, _, _ := strings.Cut(strings.TrimSpace(PlainText(text)), "\n")
	runes := []rune(strings.TrimSpace(line))
	if len(runes) <= n {
		return string(runes)
	}
	return strings.TrimSpace(string(runes[:n-1])) + "…"
}
