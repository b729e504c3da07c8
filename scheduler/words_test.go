package scheduler

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWords_SayWhenAndWhere(t *testing.T) {
	tests := []struct{ expr, want string }{
		{"* * * * *", "Every minute"},
		{"*/15 * * * *", "Every 15 minutes"},
		{"*/1 * * * *", "Every minute"},
		{"0 * * * *", "Every hour"},
		{"@hourly", "Every hour"},
		{"1 * * * *", "At 1 minute past the hour"},
		{"5 * * * *", "At 5 minutes past the hour"},
		{"5/15 * * * *", "Every 15 minutes, starting at 5 minutes past the hour"},
		{"10-40/10 * * * *", "Every 10 minutes, minutes 10 through 40 past the hour"},
		{"0,30 * * * *", "At 0 and 30 minutes past the hour"},
		{"0-10/5,30 9 * * *", "At 0, 5, 10, and 30 minutes past the hour, at 09:00"},
		{"0 */2 * * *", "Every 2 hours"},
		{"15 */2 * * *", "At 15 minutes past the hour, every 2 hours"},
		{"30 2 * * *", "At 02:30"},
		{"05 9 * * *", "At 09:05"},
		{"0 0,12 * * *", "At 00:00 and 12:00"},
		{"0 8-10,14 * * *", "At 08:00, 09:00, 10:00 and 14:00"},
		{"0 9-17 * * 1-5", "Every hour, between 09:00 and 17:59, Monday through Friday"},
		{"*/10 9-17 * * *", "Every 10 minutes, between 09:00 and 17:59"},
		{"0 9 * * MON-FRI", "At 09:00, Monday through Friday"},
		{"0 9 * * 5-7", "At 09:00, Friday through Sunday"},
		{"0 9 * * 7", "At 09:00, only on Sunday"},
		{"0 9 * * sat,sun", "At 09:00, only on Saturday and Sunday"},
		{"0 9 * * 0-7", "At 09:00"},
		{"0 9 * * */2", "At 09:00, only on Tuesday, Thursday, Saturday, and Sunday"},
		{"@daily", "At 00:00"},
		{"@midnight", "At 00:00"},
		{"@weekly", "At 00:00, only on Sunday"},
		{"@monthly", "At 00:00, on day 1 of the month"},
		{"@yearly", "At 00:00, on day 1 of the month, only in January"},
		{"0 0 1 */3 *", "At 00:00, on day 1 of the month, every 3 months"},
		{"0 0 1,15 mar,may *", "At 00:00, on day 1 and 15 of the month, only in March and May"},
		{"0 0 5-10 * *", "At 00:00, between day 5 and 10 of the month"},
		{"0 0 13 * 5", "At 00:00, on day 13 of the month or on Friday"},
		{"0 0 13 * 1-5", "At 00:00, on day 13 of the month or Monday through Friday"},
		{"0 0 13 6 5", "At 00:00, on day 13 of the month or on Friday, only in June"},
		{"0 0 1-31 * 5", "At 00:00"},
		{"@every 1m", "Every minute from when it was set"},
		{"@every 90m", "Every 90 minutes from when it was set"},
		{"@every 120m", "Every 2 hours from when it was set"},
		{"@every 24h", "Every day from when it was set"},
		{"@every 2d", "Every 2 days from when it was set"},
	}
	for _, test := range tests {
		if got, want := must(t, test.expr, "Europe/Berlin").Words(), test.want+" (Europe/Berlin)"; got != want {
			t.Errorf("%s:\n got %q\nwant %q", test.expr, got, want)
		}
	}
}

// Whatever is accepted can be put into words, the same ones each time: the library replaces
// names in the order of a map, which must not affect it.
func TestWords_SayAnySchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := anySchedule(t)
		words := s.Words()
		if strings.HasPrefix(words, "On ") || len(words) < 10 || strings.Contains(words, "%") {
			t.Fatalf("%s: %q", s, words)
		}
		if again := s.Words(); again != words {
			t.Fatalf("%s: %q, then %q", s, words, again)
		}
	})
}

func TestWarnings_TellWhatMaySurprise(t *testing.T) {
	const (
		either  = "Day of month and day of week are both set: a day that fits either one is enough."
		january = "2026-01-01T00:00:00Z"
	)
	tests := []struct {
		expr, zone, now string
		want            []string
	}{
		{"0 9 * * 1-5", "America/New_York", january, nil},
		{"* * * * *", "America/New_York", january, nil},
		{"*/15 * * * *", "Australia/Lord_Howe", january, nil},
		{"30 2 * * *", "UTC", january, nil},
		{"30 2 * * *", "Asia/Kathmandu", january, nil},
		{"30 2 * * *", "America/Sao_Paulo", january, nil},
		{"0 0 13 * 5", "UTC", january, []string{either}},
		{"0 0 * * 5", "UTC", january, nil},
		{"30 2 * * *", "America/New_York", january, []string{
			"On 8 March 2026 the clocks in America/New_York skip 02:00 to 03:00: the slot at 02:30 runs once, at 03:00.",
		}},
		{"30 2 * * *", "America/New_York", "2026-03-08T12:00:00Z", nil}, // the next one is in March 2027, over a year away
		{"*/20 2 * * *", "America/New_York", january, []string{
			"On 8 March 2026 the clocks in America/New_York skip 02:00 to 03:00: the 3 slots from 02:00 to 02:40 run once, at 03:00.",
		}},
		{"30 1 * * *", "America/New_York", january, []string{
			"On 1 November 2026 the clocks in America/New_York repeat 01:00 to 02:00: the slot at 01:30 runs once, the first time.",
		}},
		{"0,30 1 * * *", "America/New_York", january, []string{
			"On 1 November 2026 the clocks in America/New_York repeat 01:00 to 02:00: the 2 slots from 01:00 to 01:30 run once, the first time.",
		}},
		{"0 1,2 * * *", "America/New_York", january, []string{
			"On 8 March 2026 the clocks in America/New_York skip 02:00 to 03:00: the slot at 02:00 runs once, at 03:00.",
			"On 1 November 2026 the clocks in America/New_York repeat 01:00 to 02:00: the slot at 01:00 runs once, the first time.",
		}},
		{"0 */2 * * *", "America/New_York", january, []string{
			"On 8 March 2026 the clocks in America/New_York skip 02:00 to 03:00: the slot at 02:00 is left out.",
		}},
		{"*/30 */2 * * *", "Europe/Berlin", january, []string{
			"On 29 March 2026 the clocks in Europe/Berlin skip 02:00 to 03:00: the 2 slots from 02:00 to 02:30 are left out.",
			"On 25 October 2026 the clocks in Europe/Berlin repeat 02:00 to 03:00: the 2 slots from 02:00 to 02:30 run twice.",
		}},
		{"30 2 8 3 *", "America/New_York", january, []string{
			"On 8 March 2026 the clocks in America/New_York skip 02:00 to 03:00: the slot at 02:30 runs once, at 03:00.",
		}},
		{"30 2 9 3 *", "America/New_York", january, nil},
		{"15 2 * * *", "Australia/Lord_Howe", january, []string{
			"On 4 October 2026 the clocks in Australia/Lord_Howe skip 02:00 to 02:30: the slot at 02:15 runs once, at 02:30.",
		}},
		{"0 0 * * *", "Africa/Cairo", january, []string{
			"On 24 April 2026 the clocks in Africa/Cairo skip 00:00 to 01:00: the slot at 00:00 runs once, at 01:00.",
		}},
		{"*/7 * * * *", "UTC", january, []string{"The step in the minute starts again at minute 0 of each hour, so not all distances are equal."}},
		{"0 */5 * * *", "UTC", january, []string{"The step in the hour starts again at midnight, so not all distances are equal."}},
		{"0 0 */2 * *", "UTC", january, []string{"The step in the day of month starts again on the 1st of each month, so not all distances are equal."}},
		{"0 0 29 2 *", "UTC", january, []string{"The first slot is more than a year away, on 29 February 2028."}},
		{"@every 12h", "America/New_York", january, nil},
		{"@every 1d", "UTC", january, nil},
		{"@every 2d", "America/New_York", january, []string{
			"@every 2d counts days of exactly 24 hours: on 8 March 2026 the clocks in America/New_York change and its time of day moves.",
		}},
	}
	for _, test := range tests {
		got := must(t, test.expr, test.zone).Warnings(at(test.now))
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s in %s:\n got %q\nwant %q", test.expr, test.zone, got, test.want)
		}
	}
}
