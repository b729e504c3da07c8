package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// schedulesPage is what schedules.templ draws.
type schedulesPage struct {
	engine.SchedulesView
	by    engine.Caller
	zone  *time.Location
	after string
	span  time.Duration
}

const (
	aDay  = 24 * time.Hour
	aWeek = 7 * aDay
)

// spanOf is how far ahead the reader looks: a day, unless they asked for a week.
func spanOf(q url.Values) time.Duration {
	if q.Get("span") == "7d" {
		return aWeek
	}
	return aDay
}

func (v *visit) readSchedules(ctx context.Context, c engine.Caller, after string, span time.Duration) (schedulesPage, error) {
	view, err := v.web.engine.SchedulesOf(ctx, c, after, span)
	return schedulesPage{view, c, v.prefs.zone, after, span}, err
}

func (v *visit) schedules() error {
	q := v.r.URL.Query()
	p, err := v.readSchedules(v.r.Context(), v.caller, q.Get("after"), spanOf(q))
	if err != nil {
		return err
	}
	shell := Shell{Title: "Schedules", Place: "schedules", Now: p.At, Stream: streamURL("schedules", p.View, "after", p.after, "span", q.Get("span"))}
	return v.page(http.StatusOK, shell, schedules(p))
}

func (v *visit) watchSchedules(q url.Values) watcher {
	after, span := q.Get("after"), spanOf(q)
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		p, err := v.readSchedules(ctx, c, after, span)
		if err != nil {
			return nil, position{}, err
		}
		return []part{{target: "schedules", draw: scheduleBands(p)}}, position{seq: p.Seq}, nil
	}
}

// comingDay are the runs of one day in the reader's zone.
type comingDay struct {
	word string
	runs []engine.ComingRun
}

// days groups what comes by day.
func (p schedulesPage) days() (out []comingDay) {
	for _, r := range p.Coming {
		word := dayWord(r.At, p.At, p.zone)
		if n := len(out); n == 0 || out[n-1].word != word {
			out = append(out, comingDay{word: word})
		}
		out[len(out)-1].runs = append(out[len(out)-1].runs, r)
	}
	return out
}

// dayWord names a day that is to come.
func dayWord(t, now time.Time, zone *time.Location) string {
	day := t.In(zone)
	switch day.Format(time.DateOnly) {
	case now.In(zone).Format(time.DateOnly):
		return "Today"
	case now.In(zone).AddDate(0, 0, 1).Format(time.DateOnly):
		return "Tomorrow"
	}
	return day.Format("Monday 2 January")
}

// often says how many slots an agent has within the span.
func (p schedulesPage) often(m engine.ComingMany) string {
	words := Count(m.Count, "slot", "slots")
	if m.More {
		words = "more than " + words
	}
	return words + " in " + p.spanWord()
}

func (p schedulesPage) spanWord() string {
	if p.span == aWeek {
		return "7 days"
	}
	return "24 hours"
}

// notRunWords say how many slots of an agent nothing ran at, and when last.
func notRunWords(n engine.NotRun) string {
	var parts []string
	if n.Missed > 0 {
		parts = append(parts, Count(int(n.Missed), "slot", "slots")+" missed")
	}
	if n.Skipped > 0 {
		parts = append(parts, Count(int(n.Skipped), "slot", "slots")+" skipped")
	}
	return strings.Join(parts, ", ")
}

// skipAgent has the next slot not fire, or takes that back, and leads back to where the button
// was.
func (v *visit) skipAgent(slug string, skip bool) error {
	to, said := v.back(), "Every slot fires again"
	var a api.Agent
	var err error
	if skip {
		a, _, err = v.web.engine.SkipSlots(v.r.Context(), v.caller, slug, time.Time{})
		said = "Nothing runs until after " + clockIn(a.SkipUntil.Time, v.web.engine.Now(), v.prefs.zone)
	} else {
		a, _, err = v.web.engine.KeepSlots(v.r.Context(), v.caller, slug)
	}
	if err != nil {
		return err
	}
	if to == "/" {
		to = agentURL(a.Slug)
	}
	return v.to(to, said)
}
