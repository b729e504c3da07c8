package scheduler

import (
	"errors"
	"testing"
	"time"
)

// FuzzParse checks that no input panics or takes long, that what is refused is refused with a
// reason for the right field, and that what is accepted has a slot within five years, reads
// back as the same schedule, and can be put into words.
func FuzzParse(f *testing.F) {
	for _, expr := range []string{
		"* * * * *", "*/15 9-17 * * mon-fri", "0 0 13 * 5", "0 0 29 2 *", "0 0 30 2 *", "5/15 */2 1,15 jan-jun/2 5-7", "0 0 * * sat-sun",
		"@daily", "@every 90m", "@every 0m", "@every 1826d", "@", "@every", "TZ=0", "TZ=", "CRON_TZ=UTC", "TZ=UTC 0 5 * * *", "1,,2 * * * *",
		"*/90 * * * *", "*-5 * * * *", "+5 * * * *", "0-59/9223372036854775807 * * * *", "0\u00a09 * * *", "\xff", "\x00", "", " \t", "60 * * * *",
	} {
		f.Add(expr, "UTC", int64(1767225600))
	}
	for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Local", "local", "", "../../etc/passwd", "Factory", "\xff"} {
		f.Add("30 2 * * *", zone, int64(1772928000))
	}
	for _, now := range []int64{0, -1, 1 << 40, -1 << 40, 1<<63 - 1, -1 << 63, latest, earliest} {
		f.Add("0 0 29 2 *", "America/New_York", now)
		f.Add("@every 7d", "UTC", now)
	}
	loadAll(f)
	f.Fuzz(func(t *testing.T, expr, zone string, unix int64) {
		now := time.Unix(unix, 0)
		checkQuick(t, expr, func() { Parse(expr, zone, now) })
		s, err := Parse(expr, zone, now)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Field != "schedule" && e.Field != "timeZone" || e.Reason == "" || len(e.Reason) > 400 {
				t.Fatalf("%q in %q: %#v", expr, zone, err)
			}
			return
		}
		next := s.Next(now, now)
		if !next.After(now) || next.After(now.AddDate(5, 0, 1)) || next.Nanosecond() != 0 {
			t.Fatalf("%q in %q after %s: next is %s", expr, zone, now, next)
		}
		if first, last, n := s.Between(now, now, next); n != 1 || !first.Equal(next) || !last.Equal(next) {
			t.Fatalf("%q in %q: %d slots from %s to %s, want just %s", expr, zone, n, first, last, next)
		}
		again, err := Parse(s.String(), s.Zone().String(), now)
		if err != nil || again != s {
			t.Fatalf("%q in %q: %q reads as %+v, %v", expr, zone, s, again, err)
		}
		if s.Words() == "" {
			t.Fatalf("%q can't be said", expr)
		}
		s.Warnings(now)
	})
}
