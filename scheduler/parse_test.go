package scheduler

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

// checkError requires an *Error for a field whose reason is a plain, printable sentence of
// bounded length that says what is wanted.
func checkError(t *testing.T, err error, field, reason string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("got %T (%v), want *Error", err, err)
		return
	}
	if e.Field != field || !strings.Contains(e.Reason, reason) {
		t.Errorf("got %s: %s\nwant %s: ...%s...", e.Field, e.Reason, field, reason)
	}
	if !strings.HasSuffix(e.Reason, ".") || len(e.Reason) > 300 || !strings.Contains(e.Reason, ": ") {
		t.Errorf("not a sentence with a mend: %q", e.Reason)
	}
	for _, r := range e.Reason {
		if r < ' ' || r > '~' {
			t.Errorf("%q holds %q", e.Reason, r)
		}
	}
	if e.Error() != e.Field+": "+e.Reason {
		t.Errorf("Error: got %q", e.Error())
	}
}

func TestParse_RefusesBadSchedulesAndSaysWhy(t *testing.T) {
	tests := []struct{ expr, reason string }{
		// Out of range, each field, both ends.
		{"60 * * * *", "The minute 60 is out of range: write 0 to 59, or * for all."},
		{"0-60 * * * *", "The minute 60 is out of range"},
		{"* 24 * * *", "The hour 24 is out of range: write 0 to 23"},
		{"* * 0 * *", "The day of month 0 is out of range: write 1 to 31"},
		{"* * 32 * *", "The day of month 32 is out of range"},
		{"* * * 0 *", "The month 0 is out of range: write 1 to 12 or a name from jan to dec"},
		{"* * * 13 *", "The month 13 is out of range"},
		{"* * * * 8", "The day of week 8 is out of range: write 0 to 7 or a name from sun to sat"},
		{"99999999999999999999 * * * *", `The minute "99999999999999999999" is not a value`},

		// Steps.
		{"*/0 * * * *", `The step in the minute "*/0" is 0 and must be from 1 to 59`},
		{"*/00 * * * *", "is 0 and must be"},
		{"*/60 * * * *", `The step in the minute "*/60" goes beyond its range and must be from 1 to 59`},
		{"*/61 * * * *", "goes beyond its range"},
		{"*/90 * * * *", `The step in the minute "*/90" goes beyond its range`},
		{"0-59/9223372036854775807 * * * *", "is not a whole number from 1 to 59"},
		{"*/99999999999999999999 * * * *", "is not a whole number from 1 to 59"},
		{"0 */24 * * *", "must be from 1 to 23"},
		{"0 0 */31 * *", "must be from 1 to 30"},
		{"0 0 1 */12 *", "must be from 1 to 11"},
		{"0 0 * * */7", "must be from 1 to 6"},
		{"10-20/11 * * * *", "must be from 1 to 10"},
		{"59/5 * * * *", "goes beyond its range"},
		{"0 0 * * 7/2", "goes beyond its range"},
		{"*/ * * * *", "is not a whole number"},
		{"*/x * * * *", "is not a whole number"},
		{"*/-5 * * * *", "is not a whole number"},
		{"*/+5 * * * *", "is not a whole number"},
		{"*/1.5 * * * *", "is not a whole number"},
		{"*/5/5 * * * *", "is not a whole number"},

		// Lists and ranges.
		{"1,,2 * * * *", `The minute "1,,2" has an empty place in its list: take out the extra comma.`},
		{",1 * * * *", "has an empty place in its list"},
		{"1, * * * *", "has an empty place in its list"},
		{"0 0 * * ,", "The day of week"},
		{"50-10 * * * *", `The minute range "50-10" runs backwards`},
		{"0 0 * * 5-1", `The day of week range "5-1" runs backwards`},
		{"0 0 * * 7-2", "runs backwards"},
		{"0 0 * nov-feb *", "runs backwards"},
		{"*-5 * * * *", `The minute "*-5" is not a range`},
		{"5-* * * * *", `The minute "5-*" is not a range`},
		{"-5 * * * *", "is not a range"},
		{"5- * * * *", "is not a range"},
		{"1-2-3 * * * *", `The minute "2-3" is not a value`},
		{"+5 * * * *", `The minute "+5" is not a value`},
		{"** * * * *", `The minute "**" is not a value`},
		{"1.5 * * * *", "is not a value"},
		{"0x5 * * * *", "is not a value"},

		// Names and other dialects.
		{"0 0 * * monday", `The day of week "monday" is not a value: write 0 to 7 or a name from sun to sat`},
		{"0 0 * mon *", `The month "mon" is not a value`},
		{"0 0 jan * *", `The day of month "jan" is not a value`},
		{"mon * * * *", `The minute "mon" is not a value`},
		{"0 0 L * *", "of another cron dialect"},
		{"0 0 15W * *", "of another cron dialect"},
		{"0 0 * * 5L", "of another cron dialect"},
		{"0 0 * * 5#2", "of another cron dialect"},
		{"0 0 ? * 1", "of another cron dialect"},
		{"H * * * *", "is not a value"},

		// The number of fields.
		{"", "The schedule is empty"},
		{"   ", "The schedule is empty"},
		{"\t", "The schedule is empty"},
		{"*", "has five fields (minute, hour, day of month, month, day of week) and this one has 1"},
		{"* * * *", "and this one has 4"},
		{"* * * * * *", "and this one has 6"},
		{"0 0 9 * * 1-5 2026", "and this one has 7"},
		{"banana", "and this one has 1"},

		// Zones inside the expression.
		{"TZ=0", `"TZ=0" is not part of a schedule: put the zone into timeZone`},
		{"TZ=", "put the zone into timeZone"},
		{"CRON_TZ=", "put the zone into timeZone"},
		{"CRON_TZ=UTC", "put the zone into timeZone"},
		{"TZ=UTC", "put the zone into timeZone"},
		{"CRON_TZ=Europe/Berlin", "put the zone into timeZone"},
		{"TZ= 0 5 * * *", "put the zone into timeZone"},
		{"TZ=Local 0 5 * * *", "put the zone into timeZone"},
		{"TZ=Bogus/Zone 0 2 * * *", "put the zone into timeZone"},
		{"TZ=UTC @daily", "put the zone into timeZone"},
		{"TZ=UTC @every 1h", "put the zone into timeZone"},
		{" TZ=UTC 0 5 * * *", "put the zone into timeZone"},
		{"tz=UTC 0 5 * * *", "put the zone into timeZone"},
		{"TZ=UTC\t0 5 * * *", "put the zone into timeZone"},
		{"TZ=+05:30 0 5 * * *", "put the zone into timeZone"},

		// Characters.
		{"0 0 * * *\n", `The character '\n' at position 10 is not allowed`},
		{"0 9 * * *\n0 10 * * *", `The character '\n'`},
		{"0\u00a09 * * *", `The character '\u00a0' at position 2`},
		{"0 9 * * \uff11", `The character '\uff11'`},
		{"0 9 * * 1\u20135", `The character '\u2013'`},
		{"0 9 * * \xff", `The character '\ufffd'`},
		{"0 9 * * \x00", `The character '\x00'`},
		{strings.Repeat("*", 513), "has at most 512 characters and this one has 513"},
		{strings.Repeat("1,", 1<<20) + "1 * * * *", "has at most 512 characters"},

		// Macros.
		{"@DAILY", `"@DAILY" is not a known name: write @hourly, @daily`},
		{"@reboot", "is not a known name"},
		{"@", "is not a known name"},
		{"@daily 5", `"@daily 5" is not a known name`},
		{"@EVERY 5m", "is not a known name"},
		{"@every5m", "is not a known name"},

		// @every.
		{"@every", "@every needs one distance and this has 0"},
		{"@every 1h 30m", "@every needs one distance and this has 2"},
		{"@every 0m", `"0m" is no distance at all, and the least is 1m`},
		{"@every 0s", `"0s" is not a distance`},
		{"@every 00d", "is no distance at all"},
		{"@every 1", `"1" is not a distance: write @every with a whole number of m, h or d`},
		{"@every m", "is not a distance"},
		{"@every -5m", "is not a distance"},
		{"@every +5m", "is not a distance"},
		{"@every 90s", "is not a distance"},
		{"@every 500ms", "is not a distance"},
		{"@every 1h30m", "is not a distance"},
		{"@every 1.5h", "is not a distance"},
		{"@every 5M", "is not a distance"},
		{"@every 9999999999m", "is not a distance"},
		{"@every 1w", "is not a distance"},
		{"@every 1827d", "has no slot in the next 5 years"},
		{"@every 999999999d", "has no slot in the next 5 years"},

		// Dates that never come.
		{"0 0 30 2 *", `"0 0 30 2 *" has no slot in the next 5 years: choose a date that exists`},
		{"0 9 31 2 *", "has no slot in the next 5 years"},
		{"0 0 31 4 *", "has no slot in the next 5 years"},
		{"0 0 31 2,4,6,9,11 *", "has no slot in the next 5 years"},
	}
	now := at("2026-01-01T00:00:00Z")
	for _, test := range tests {
		s, err := Parse(test.expr, "UTC", now)
		if err == nil {
			t.Errorf("%.60q was taken: %s", test.expr, s.Words())
			continue
		}
		if s != (Schedule{}) {
			t.Errorf("%.60q was refused, and yet a schedule came back", test.expr)
		}
		t.Run(test.expr[:min(len(test.expr), 40)], func(t *testing.T) { checkError(t, err, "schedule", test.reason) })
	}
}

func TestParse_TakesEveryFieldWrittenOutInFull(t *testing.T) {
	numbers := func(low, high int) string {
		var parts []string
		for v := low; v <= high; v++ {
			parts = append(parts, strconv.Itoa(v))
		}
		return strings.Join(parts, ",")
	}
	expr := strings.Join([]string{numbers(0, 59), numbers(0, 23), numbers(1, 31), numbers(1, 12), numbers(0, 7)}, " ")
	s := must(t, expr, "UTC")
	anchor := at("2026-01-01T00:00:00Z")
	if due, _ := s.Latest(anchor, anchor.AddDate(0, 0, 7)); due.Count != 7*24*60 {
		t.Errorf("got %d slots in a week, want one a minute", due.Count)
	}
}

func TestParse_FiveYearsAreCountedFromNow(t *testing.T) {
	if _, err := Parse("0 0 29 2 *", "UTC", at("2026-01-01T00:00:00Z")); err != nil {
		t.Errorf("29 February in 2028 was refused: %v", err)
	}
	_, err := Parse("0 0 29 2 *", "UTC", at("2096-03-01T00:00:00Z")) // the next is in 2104
	checkError(t, err, "schedule", "has no slot in the next 5 years")
	if _, err := Parse("@every 1826d", "UTC", at("2026-01-01T00:00:00Z")); err != nil {
		t.Errorf("five years in days were refused: %v", err)
	}
}

func TestParse_IsQuickOnAnyOfItsLimits(t *testing.T) {
	loadAll(t)
	now := at("2026-01-01T00:00:00Z")
	inputs := []string{
		strings.Repeat("1,", 250) + "1 * * * *",
		strings.Repeat("@", 512),
		"0 0 30 2 *",
		"0 0 * * " + strings.Repeat("0-7,", 120) + "1",
		"*/1" + strings.Repeat(",*/1", 100) + " * * * *",
		strings.Repeat("9", 512),
		strings.Repeat("a", 1<<24),
	}
	for _, input := range inputs {
		checkQuick(t, input, func() {
			if s, err := Parse(input, "America/New_York", now); err == nil {
				_ = s.Words()
			}
		})
	}
}

// checkQuick requires that something takes at most 50 ms. One quick time proves it: many slow
// ones before it are due to a machine that is busy with others.
func checkQuick(t *testing.T, what string, do func()) {
	t.Helper()
	const tries = 200
	var took time.Duration
	for range tries {
		start := time.Now()
		do()
		if took = time.Since(start); took <= 50*time.Millisecond {
			return
		}
	}
	t.Errorf("%.40q took %s and more, %d times", what, took, tries)
}

// loadAll reads the zone database, so that what is measured next doesn't include that.
func loadAll(t testing.TB) {
	t.Helper()
	if len(Zones()) == 0 {
		t.Fatal("no zones")
	}
}
