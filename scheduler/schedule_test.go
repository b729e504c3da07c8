package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// must parses a schedule that is known to be valid.
func must(t testing.TB, expr, zone string) Schedule {
	t.Helper()
	s, err := Parse(expr, zone, at("2026-01-01T00:00:00Z"))
	if err != nil {
		t.Fatalf("Parse(%q, %q): %v", expr, zone, err)
	}
	return s
}

// at reads an instant.
func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t
}

// shown writes slots as people see them, with their offsets.
func shown(slots []time.Time) []string {
	texts := make([]string, len(slots))
	for i, slot := range slots {
		texts[i] = slot.Format("2006-01-02T15:04:05-07:00")
	}
	return texts
}

func TestNext_FollowsRealZonesThroughClockChanges(t *testing.T) {
	tests := []struct {
		name, expr, zone, after string
		want                    []string
	}{
		{
			name: "New York, fixed time in the gap runs at the end of it", expr: "30 2 * * *", zone: "America/New_York",
			after: "2026-03-07T00:00:00-05:00",
			want:  []string{"2026-03-07T02:30:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		}, {
			name: "New York, all fixed times in the gap are one slot", expr: "0,15,30 2 * * *", zone: "America/New_York",
			after: "2026-03-08T00:00:00-05:00",
			want:  []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00", "2026-03-09T02:15:00-04:00"},
		}, {
			name: "New York, the slot after the gap and the hidden one are one", expr: "30 2,3 * * *", zone: "America/New_York",
			after: "2026-03-08T00:00:00-05:00",
			want:  []string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"},
		}, {
			name: "New York, hidden 02:00 meets 03:00", expr: "0 2,3 * * *", zone: "America/New_York",
			after: "2026-03-08T00:00:00-05:00",
			want:  []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"},
		}, {
			name: "New York, repeated time runs the first time only", expr: "30 1 * * *", zone: "America/New_York",
			after: "2026-10-31T12:00:00-04:00",
			want:  []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		}, {
			name: "New York, asked between the two halves of a repeated hour", expr: "30 1 * * *", zone: "America/New_York",
			after: "2026-11-01T01:10:00-05:00",
			want:  []string{"2026-11-02T01:30:00-05:00"},
		}, {
			name: "New York, steps in a fixed hour run the first time only", expr: "*/30 1 * * *", zone: "America/New_York",
			after: "2026-11-01T00:00:00-04:00",
			want:  []string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:00:00-05:00"},
		}, {
			name: "New York, hourly follows elapsed time back", expr: "0 * * * *", zone: "America/New_York",
			after: "2026-11-01T00:00:00-04:00",
			want:  []string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"},
		}, {
			name: "New York, all 24 hours written out follow elapsed time", expr: "0 0-11,12-23 * * *", zone: "America/New_York",
			after: "2026-11-01T00:00:00-04:00",
			want:  []string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"},
		}, {
			name: "New York, every two hours follows elapsed time forward", expr: "0 */2 * * *", zone: "America/New_York",
			after: "2026-03-07T23:00:00-05:00",
			want:  []string{"2026-03-08T00:00:00-05:00", "2026-03-08T04:00:00-04:00", "2026-03-08T06:00:00-04:00"},
		}, {
			name: "Berlin, every two hours runs in both halves of a repeated hour", expr: "0 */2 * * *", zone: "Europe/Berlin",
			after: "2026-10-25T00:00:00+02:00",
			want:  []string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T04:00:00+01:00"},
		}, {
			name: "Berlin, the same hours as a list are fixed times", expr: "0 0,2,4 * * *", zone: "Europe/Berlin",
			after: "2026-10-25T00:00:00+02:00",
			want:  []string{"2026-10-25T02:00:00+02:00", "2026-10-25T04:00:00+01:00", "2026-10-26T00:00:00+01:00"},
		}, {
			name: "London, gap", expr: "30 1 * * *", zone: "Europe/London",
			after: "2026-03-28T02:00:00Z",
			want:  []string{"2026-03-29T02:00:00+01:00", "2026-03-30T01:30:00+01:00"},
		}, {
			name: "London, repeat", expr: "30 1 * * *", zone: "Europe/London",
			after: "2026-10-24T12:00:00+01:00",
			want:  []string{"2026-10-25T01:30:00+01:00", "2026-10-26T01:30:00+00:00"},
		}, {
			name: "Lord Howe, gap of half an hour", expr: "15 2 * * *", zone: "Australia/Lord_Howe",
			after: "2026-10-03T12:00:00+10:30",
			want:  []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		}, {
			name: "Lord Howe, half an hour repeated", expr: "45 1 * * *", zone: "Australia/Lord_Howe",
			after: "2026-04-04T12:00:00+11:00",
			want:  []string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		}, {
			name: "Lord Howe, quarters follow elapsed time", expr: "*/15 * * * *", zone: "Australia/Lord_Howe",
			after: "2026-04-05T01:30:00+11:00",
			want:  []string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30", "2026-04-05T02:00:00+10:30"},
		}, {
			name: "Lord Howe, even hours don't lose 02:00 to the half hour", expr: "0 */2 * * *", zone: "Australia/Lord_Howe",
			after: "2026-04-05T00:30:00+11:00",
			want:  []string{"2026-04-05T02:00:00+10:30", "2026-04-05T04:00:00+10:30"},
		}, {
			name: "São Paulo 2018, midnight in the gap", expr: "0 0 * * *", zone: "America/Sao_Paulo",
			after: "2018-11-02T12:00:00-03:00",
			want:  []string{"2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		}, {
			name: "São Paulo 2018, a weekday whose midnight is in the gap", expr: "*/30 * * * sun", zone: "America/Sao_Paulo",
			after: "2018-11-03T12:00:00-03:00",
			want:  []string{"2018-11-04T01:00:00-02:00", "2018-11-04T01:30:00-02:00", "2018-11-04T02:00:00-02:00"},
		}, {
			name: "São Paulo 2018, the last hour of a day repeated", expr: "30 23 * * *", zone: "America/Sao_Paulo",
			after: "2018-02-17T00:00:00-02:00",
			want:  []string{"2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"},
		}, {
			name: "São Paulo after 2019 changes no more", expr: "0 0 * * *", zone: "America/Sao_Paulo",
			after: "2026-11-01T12:00:00-03:00",
			want:  []string{"2026-11-02T00:00:00-03:00", "2026-11-03T00:00:00-03:00"},
		}, {
			name: "Cairo, midnight in the gap", expr: "0 0 * * *", zone: "Africa/Cairo",
			after: "2026-04-22T12:00:00+02:00",
			want:  []string{"2026-04-23T00:00:00+02:00", "2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
		}, {
			name: "Havana, midnight in the gap", expr: "0 0 * * *", zone: "America/Havana",
			after: "2026-03-07T12:00:00-05:00",
			want:  []string{"2026-03-08T01:00:00-04:00", "2026-03-09T00:00:00-04:00"},
		}, {
			name: "Havana, midnight repeated", expr: "0 0 * * *", zone: "America/Havana",
			after: "2026-10-31T12:00:00-04:00",
			want:  []string{"2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"},
		}, {
			name: "Kathmandu, offset of 5:45 and none to change", expr: "0 9 * * *", zone: "Asia/Kathmandu",
			after: "2026-03-28T03:15:00Z",
			want:  []string{"2026-03-29T09:00:00+05:45", "2026-03-30T09:00:00+05:45"},
		}, {
			name: "Apia 2011, a whole day skipped at the date line", expr: "0 9 * * *", zone: "Pacific/Apia",
			after: "2011-12-29T00:00:00-10:00",
			want:  []string{"2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"},
		}, {
			name: "Kwajalein 1969, a day lived twice", expr: "0 9 * * *", zone: "Pacific/Kwajalein",
			after: "1969-09-29T12:00:00+11:00",
			want:  []string{"1969-09-30T09:00:00+11:00", "1969-10-01T09:00:00-12:00"},
		}, {
			name: "Casablanca, Ramadan moves the clocks", expr: "30 2 * * *", zone: "Africa/Casablanca",
			after: "2026-03-21T12:00:00+00:00",
			want:  []string{"2026-03-22T03:00:00+01:00", "2026-03-23T02:30:00+01:00"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := must(t, test.expr, test.zone)
			after := at(test.after)
			got := shown(s.Preview(after, after, len(test.want)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s in %s after %s (-want +got):\n%s", test.expr, test.zone, test.after, diff)
			}
		})
	}
}

func TestNext_ReadsTheLanguage(t *testing.T) {
	const after = "2026-11-28T10:07:31Z" // a Saturday
	tests := []struct {
		expr string
		want []string
	}{
		{"* * * * *", []string{"2026-11-28T10:08", "2026-11-28T10:09"}},
		{"5/15 * * * *", []string{"2026-11-28T10:20", "2026-11-28T10:35", "2026-11-28T10:50", "2026-11-28T11:05"}},
		{"10-20/5 12 * * *", []string{"2026-11-28T12:10", "2026-11-28T12:15", "2026-11-28T12:20", "2026-11-29T12:10"}},
		{"0 0 13 * 5", []string{"2026-12-04T00:00", "2026-12-11T00:00", "2026-12-13T00:00", "2026-12-18T00:00"}},
		{"0 0 1 * 1", []string{"2026-11-30T00:00", "2026-12-01T00:00", "2026-12-07T00:00"}},
		{"0 0 1,* * 1", []string{"2026-11-30T00:00", "2026-12-07T00:00"}},
		{"0 0 * * 7", []string{"2026-11-29T00:00", "2026-12-06T00:00"}},
		{"0 0 * * sun", []string{"2026-11-29T00:00", "2026-12-06T00:00"}},
		{"0 0 * * 5-7", []string{"2026-11-29T00:00", "2026-12-04T00:00", "2026-12-05T00:00", "2026-12-06T00:00"}},
		{"0 0 * * 5-7/2", []string{"2026-11-29T00:00", "2026-12-04T00:00", "2026-12-06T00:00"}},
		{"0 0 * * Sat-SUN", []string{"2026-11-29T00:00", "2026-12-05T00:00"}},
		{"0 0 * * 0-7", []string{"2026-11-29T00:00", "2026-11-30T00:00"}},
		{"0 0 * * MON,3", []string{"2026-11-30T00:00", "2026-12-02T00:00"}},
		{"0 0 1 feb-APR *", []string{"2027-02-01T00:00", "2027-03-01T00:00", "2027-04-01T00:00", "2028-02-01T00:00"}},
		{"0 0 1 */3 *", []string{"2027-01-01T00:00", "2027-04-01T00:00"}},
		{"0 0 31 * *", []string{"2026-12-31T00:00", "2027-01-31T00:00", "2027-03-31T00:00"}},
		{"0 0 29 2 *", []string{"2028-02-29T00:00", "2032-02-29T00:00"}},
		{"05 09 * * *", []string{"2026-11-29T09:05"}},
		{" 0\t 9  * * *\t", []string{"2026-11-29T09:00"}},
		{"@hourly", []string{"2026-11-28T11:00", "2026-11-28T12:00"}},
		{"@daily", []string{"2026-11-29T00:00", "2026-11-30T00:00"}},
		{"@midnight", []string{"2026-11-29T00:00", "2026-11-30T00:00"}},
		{"@weekly", []string{"2026-11-29T00:00", "2026-12-06T00:00"}},
		{"@monthly", []string{"2026-12-01T00:00", "2027-01-01T00:00"}},
		{"@yearly", []string{"2027-01-01T00:00", "2028-01-01T00:00"}},
		{"@annually", []string{"2027-01-01T00:00", "2028-01-01T00:00"}},
	}
	for _, test := range tests {
		t.Run(test.expr, func(t *testing.T) {
			s := must(t, test.expr, "UTC")
			var got []string
			for _, slot := range s.Preview(at(after), at(after), len(test.want)) {
				got = append(got, slot.Format("2006-01-02T15:04"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNext_EveryCountsFromTheAnchor(t *testing.T) {
	anchor := at("2026-03-07T10:00:20.9Z")
	tests := []struct {
		expr, after, want string
	}{
		{"@every 90m", "2026-03-07T10:00:20.9Z", "2026-03-07T11:30:20Z"},
		{"@every 90m", "2026-03-07T11:30:19.999Z", "2026-03-07T11:30:20Z"},
		{"@every 90m", "2026-03-07T11:30:20Z", "2026-03-07T13:00:20Z"},
		{"@every 90m", "2026-03-07T11:30:20.5Z", "2026-03-07T13:00:20Z"},
		{"@every 1m", "2026-03-08T00:00:00Z", "2026-03-08T00:00:20Z"},
		{"@every 2d", "2026-03-08T00:00:00Z", "2026-03-09T10:00:20Z"}, // over New York's gap
		{"@every 6h", "2020-01-01T00:00:00Z", "2026-03-07T16:00:20Z"}, // asked before the anchor
	}
	for _, test := range tests {
		s := must(t, test.expr, "America/New_York")
		if got := s.Next(anchor, at(test.after)); !got.Equal(at(test.want)) {
			t.Errorf("%s after %s: got %s, want %s", test.expr, test.after, got.UTC(), test.want)
		}
	}
}

func TestNext_FindsTheLeapDayAcrossACenturyThatHasNone(t *testing.T) {
	s := must(t, "0 0 29 2 *", "UTC")
	after := at("2096-03-01T00:00:00Z")
	if got, want := s.Next(after, after), at("2104-02-29T00:00:00Z"); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSchedule_HasNoSlotsOutsideTheYearsOneTo9999(t *testing.T) {
	for _, expr := range []string{"* * * * *", "0 0 1 1 *", "@every 1d"} {
		s := must(t, expr, "Europe/Berlin")
		end := at("9999-12-31T23:59:59Z")
		for _, far := range []time.Time{end, end.AddDate(100, 0, 0), time.Unix(1<<60, 0)} {
			if got := s.Next(far, far); !got.IsZero() {
				t.Errorf("%s after %s: got %s, want none", expr, far, got)
			}
		}
		if got := s.Next(time.Time{}, time.Time{}.AddDate(-50, 0, 0)); got.IsZero() || got.Year() > 2 {
			t.Errorf("%s from before the year 1: got %s, want a slot in the year 1", expr, got)
		}
	}
}

func TestSchedule_ZeroValueIsNeverDue(t *testing.T) {
	var s Schedule
	now := at("2026-01-01T00:00:00Z")
	if got := s.Next(now, now); !got.IsZero() {
		t.Errorf("Next: got %s", got)
	}
	if due, ok := s.Latest(now, now.AddDate(1, 0, 0)); ok {
		t.Errorf("Latest: got %+v", due)
	}
	if got := s.Preview(now, now, 5); len(got) != 0 {
		t.Errorf("Preview: got %v", got)
	}
	if s.Zone() != time.UTC || s.Words() != "Never (UTC)" || s.Warnings(now) != nil {
		t.Errorf("got %v, %q, %v", s.Zone(), s.Words(), s.Warnings(now))
	}
}

func TestSchedule_SaysWhatItIs(t *testing.T) {
	s := must(t, "  0\t9  * *  MON-fri ", "Europe/Berlin")
	if got, want := s.String(), "0 9 * * MON-fri"; got != want {
		t.Errorf("String: got %q, want %q", got, want)
	}
	if got := s.Zone().String(); got != "Europe/Berlin" {
		t.Errorf("Zone: got %q", got)
	}
	if d, ok := s.Every(); ok || d != 0 {
		t.Errorf("Every of a cron expression: got %s, %v", d, ok)
	}
	if d, ok := must(t, "@every 36h", "UTC").Every(); !ok || d != 36*time.Hour {
		t.Errorf("Every: got %s, %v", d, ok)
	}
}

func TestPreview_IsBounded(t *testing.T) {
	s := must(t, "* * * * *", "UTC")
	now := at("2026-01-01T00:00:00Z")
	for n, want := range map[int]int{-1: 0, 0: 0, 5: 5, 1 << 40: maxPreview} {
		if got := len(s.Preview(now, now, n)); got != want {
			t.Errorf("Preview of %d: got %d slots, want %d", n, got, want)
		}
	}
}

func TestLatest_TellsWhatIsDue(t *testing.T) {
	tests := []struct {
		name, expr, zone, anchor, now string
		first, last                   string
		count                         int64
	}{
		{
			name: "an hour down on a minute cron", expr: "* * * * *", zone: "UTC",
			anchor: "2026-05-01T10:00:00Z", now: "2026-05-01T11:00:01Z",
			first: "2026-05-01T10:01:00Z", last: "2026-05-01T11:00:00Z", count: 60,
		}, {
			name: "the anchor itself is not due", expr: "* * * * *", zone: "UTC",
			anchor: "2026-05-01T10:00:00Z", now: "2026-05-01T10:00:59.999Z",
		}, {
			name: "now itself is due", expr: "0 10 * * *", zone: "UTC",
			anchor: "2026-05-01T09:59:59Z", now: "2026-05-01T10:00:00Z",
			first: "2026-05-01T10:00:00Z", last: "2026-05-01T10:00:00Z", count: 1,
		}, {
			name: "an anchor in the future", expr: "* * * * *", zone: "UTC",
			anchor: "2026-05-01T12:00:00Z", now: "2026-05-01T10:00:00Z",
		}, {
			name: "ten years down on a minute cron, clock changes included", expr: "* * * * *", zone: "Europe/Berlin",
			anchor: "2016-01-01T00:00:00Z", now: "2026-01-01T00:00:00Z",
			first: "2016-01-01T00:01:00Z", last: "2026-01-01T00:00:00Z", count: 3653 * 24 * 60,
		}, {
			name: "ten years down on a fixed hour, each gap one slot for sixty", expr: "* 2 * * *", zone: "Europe/Berlin",
			anchor: "2016-01-01T00:00:00Z", now: "2026-01-01T00:00:00Z",
			first: "2016-01-01T01:00:00Z", last: "2025-12-31T01:59:00Z", count: 3643*60 + 10,
		}, {
			name: "every 7 hours", expr: "@every 7h", zone: "UTC",
			anchor: "2026-05-01T10:00:03Z", now: "2026-05-02T10:00:00Z",
			first: "2026-05-01T17:00:03Z", last: "2026-05-02T07:00:03Z", count: 3,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			due, ok := must(t, test.expr, test.zone).Latest(at(test.anchor), at(test.now))
			if ok != (test.count > 0) || due.Count != test.count {
				t.Fatalf("got %+v, %v, want %d slots", due, ok, test.count)
			}
			if test.count == 0 {
				if due != (Due{}) {
					t.Errorf("nothing is due, got %+v", due)
				}
				return
			}
			if !due.First.Equal(at(test.first)) || !due.Last.Equal(at(test.last)) {
				t.Errorf("got %s to %s, want %s to %s", due.First.UTC(), due.Last.UTC(), test.first, test.last)
			}
		})
	}
}

func TestLatestBefore_IsTheNewestFoldedSlot(t *testing.T) {
	s := must(t, "0 * * * *", "UTC")
	anchor := at("2026-05-01T10:00:00Z")
	if got, ok := s.LatestBefore(anchor, at("2026-05-01T14:00:00Z")); !ok || !got.Equal(at("2026-05-01T13:00:00Z")) {
		t.Errorf("got %s, %v", got, ok)
	}
	if got, ok := s.LatestBefore(anchor, at("2026-05-01T11:00:00Z")); ok {
		t.Errorf("nothing lies between the anchor and the first slot, got %s", got)
	}
}

func TestBetween_EveryHasNoSlotsUpToItsAnchor(t *testing.T) {
	s := must(t, "@every 10m", "UTC")
	anchor := at("2026-05-01T10:00:00Z")
	first, last, count := s.Between(anchor, anchor.Add(-3*time.Hour), anchor.Add(25*time.Minute))
	if count != 2 || !first.Equal(anchor.Add(10*time.Minute)) || !last.Equal(anchor.Add(20*time.Minute)) {
		t.Errorf("got %d slots from %s to %s", count, first, last)
	}
	if _, _, count := s.Between(anchor, anchor.Add(-3*time.Hour), anchor); count != 0 {
		t.Errorf("got %d slots before the anchor", count)
	}
}
