package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyExpr draws an expression that may be anything the language has, dense
// enough to have slots near a clock change.
func anyExpr(t *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
		unit := rapid.SampledFrom([]string{"m", "h", "d"}).Draw(t, "unit")
		return fmt.Sprintf("@every %d%s", rapid.IntRange(1, 40).Draw(t, "n"), unit)
	}
	var fields []string
	for i, f := range cronFields {
		// Days and months are mostly left open.
		if i >= 2 && rapid.IntRange(0, 2).Draw(t, "open") > 0 {
			fields = append(fields, "*")
			continue
		}
		items := rapid.SliceOfN(rapid.Custom(f.anyItem), 1, 3).Draw(t, f.name)
		fields = append(fields, strings.Join(items, ","))
	}
	return strings.Join(fields, " ")
}

func (f cronField) anyItem(t *rapid.T) string {
	top := max(f.max, f.also)
	low := rapid.IntRange(f.min, top).Draw(t, "low")
	high := rapid.IntRange(low, top).Draw(t, "high")
	switch rapid.IntRange(0, 5).Draw(t, "form") {
	case 0:
		return "*"
	case 1:
		return fmt.Sprintf("*/%d", rapid.IntRange(1, f.max-f.min).Draw(t, "step"))
	case 2:
		return fmt.Sprintf("%d-%d", low, high)
	case 3:
		return fmt.Sprintf("%d-%d/%d", low, high, rapid.IntRange(1, max(high-low, 1)).Draw(t, "step"))
	default:
		return fmt.Sprint(low)
	}
}

// anySchedule draws a schedule in a zone, and an instant within a day of one of that zone's
// clock changes, including the odd ones of the last two centuries.
func anySchedule(t *rapid.T) (s Schedule, near time.Time) {
	zone := rapid.SampledFrom(Zones()).Draw(t, "zone")
	expr := anyExpr(t)
	s, err := Parse(expr, zone, at("2025-01-01T00:00:00Z"))
	if err != nil {
		t.Skip("never due: ", err)
	}
	year := rapid.IntRange(1860, 2060).Draw(t, "year")
	unix := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	if change := spanAt(s.loc, unix); change.end < latest {
		unix = change.end
	}
	return s, time.Unix(unix+rapid.Int64Range(-90000, 90000).Draw(t, "off"), 0)
}

// Next against its own definition, second by second: the zone's clock is read
// at each second, and nothing else.
func TestNext_IsTheFirstSecondThatTheRuleNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, after := anySchedule(t)
		if s.every > 0 {
			t.Skip("only @every")
		}
		shows := func(u int64) int64 {
			_, offset := time.Unix(u, 0).In(s.loc).Zone()
			return u + int64(offset)
		}
		matches := func(wall int64) bool {
			w := time.Unix(wall, 0).UTC()
			set := func(bits uint64, v int) bool { return bits>>v&1 == 1 }
			dom, dow := set(s.cron.dom, w.Day()), set(s.cron.dow, int(w.Weekday()))
			day := dom && dow || s.cron.eitherDay && (dom || dow)
			return day && w.Second() == 0 && set(s.cron.minute, w.Minute()) && set(s.cron.hour, w.Hour()) && set(s.cron.month, int(w.Month()))
		}
		// How far the clock has come before. Two days back is further than any jump.
		top := shows(after.Unix())
		back := after.Unix() - 49*60*60
		if spanAt(s.loc, back).end <= after.Unix() {
			for u := back; u <= after.Unix(); u++ {
				top = max(top, shows(u))
			}
		}
		got := s.Next(after, after).Unix()
		const most = 5 * 60 * 60
		for u := after.Unix() + 1; u <= after.Unix()+most; u++ {
			wall, due := shows(u), false
			if s.cron.elapsed {
				due = matches(wall)
			} else {
				for w := top + 1; w <= wall && !due; w++ {
					due = matches(w)
				}
				top = max(top, wall)
			}
			if due {
				if got != u {
					t.Fatalf("%s in %s after %s: got %s, want %s", s, s.loc, after.In(s.loc), time.Unix(got, 0).In(s.loc), time.Unix(u, 0).In(s.loc))
				}
				return
			}
		}
		if got <= after.Unix()+most {
			t.Fatalf("%s in %s after %s: got %s, want nothing for five hours", s, s.loc, after.In(s.loc), time.Unix(got, 0).In(s.loc))
		}
	})
}

// Between and Latest against walking from slot to slot.
func TestBetween_IsWhatWalkingFromSlotToSlotFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, near := anySchedule(t)
		within := time.Duration(rapid.Int64Range(0, int64(60*time.Hour)).Draw(t, "within"))
		if rapid.Bool().Draw(t, "long") {
			within *= 30
		}
		from, to := near, near.Add(within)
		anchor := near.Add(-time.Duration(rapid.Int64Range(-int64(time.Hour), int64(100*time.Hour)).Draw(t, "anchor")))

		var want tally
		previous := from
		const most = 20_000
		for slot := s.Next(anchor, from); !slot.IsZero() && !slot.After(to); slot = s.Next(anchor, slot) {
			if !slot.After(previous) {
				t.Fatalf("%s in %s: %s follows %s", s, s.loc, slot, previous)
			}
			want.add(slot.Unix(), slot.Unix(), 1)
			if previous = slot; want.count == most {
				to = slot
			}
		}
		first, last, count := s.Between(anchor, from, to)
		if count != want.count {
			t.Fatalf("%s in %s: %d slots in (%s, %s], want %d", s, s.loc, count, from.In(s.loc), to.In(s.loc), want.count)
		}
		if count == 0 {
			if !first.IsZero() || !last.IsZero() {
				t.Fatalf("no slots, and yet %s and %s", first, last)
			}
			return
		}
		if first.Unix() != want.first || last.Unix() != want.last {
			t.Fatalf("%s in %s: got %s to %s, want %s to %s", s, s.loc, first, last, s.slot(want.first), s.slot(want.last))
		}
		if before, ok := s.LatestBefore(anchor, last); ok && (!before.Before(last) || !s.Next(anchor, before).Equal(last)) {
			t.Fatalf("%s in %s: LatestBefore %s is %s", s, s.loc, last, before)
		}
		if due, ok := s.Latest(from, to); s.every == 0 && (!ok || due != (Due{first, last, count})) {
			t.Fatalf("%s in %s: Latest is %+v", s, s.loc, due)
		}
	})
}

// Years of downtime, cut into pieces: no slot is lost or counted twice at a
// cut, wherever it falls.
func TestBetween_PiecesAddUpToTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, from := anySchedule(t)
		to := from.AddDate(rapid.IntRange(1, 60).Draw(t, "years"), 0, 0)
		_, wantLast, want := s.Between(from, from, to)

		var count int64
		var last time.Time
		for at := from; at.Before(to); {
			piece := time.Duration(rapid.Int64Range(1, int64(4*365*24*time.Hour)).Draw(t, "piece"))
			end := at.Add(piece)
			if end.After(to) {
				end = to
			}
			if _, pieceLast, n := s.Between(from, at, end); n > 0 {
				count, last = count+n, pieceLast
			}
			at = end
		}
		if count != want || !last.Equal(wantLast) {
			t.Fatalf("%s in %s over %s: pieces give %d up to %s, the whole %d up to %s", s, s.loc, to.Sub(from), count, last, want, wantLast)
		}
	})
}
