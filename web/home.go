package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// homePage is what home.templ draws.
type homePage struct {
	engine.HomeView
	by       engine.Caller
	zone     *time.Location
	runnable []api.Agent // that the reader may start, the last used first
}

func (v *visit) home() error {
	view, err := v.web.engine.Home(v.r.Context(), v.caller, v.prefs.zone)
	if err != nil {
		return err
	}
	runnable, err := v.web.engine.Runnable(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	p := homePage{view, v.caller, v.prefs.zone, runnable}
	return v.page(http.StatusOK, Shell{Title: "Home", Place: "home", Stream: streamURL("home", view.View), Now: view.At}, home(p))
}

// watchHome draws the bands of the home page again.
func (v *visit) watchHome() watcher {
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		view, err := v.web.engine.Home(ctx, c, v.prefs.zone)
		if err != nil {
			return nil, position{}, err
		}
		p := homePage{HomeView: view, by: c, zone: v.prefs.zone}
		return []part{
			{target: "home-status", draw: homeStatus(p)},
			{target: "home-trouble", draw: homeTrouble(p)},
			{target: "needs", draw: homeNeeds(p)},
			{target: "unlanded", draw: homeUnlanded(p)},
			{target: "active", draw: homeActive(p)},
			{target: "next", draw: homeNext(p)},
			{target: "recent", draw: homeRecent(p)},
			{target: "home-aside", draw: homeAside(p)},
		}, position{seq: view.Seq}, nil
	}
}

// sentence says the state of everything in one line: the page's title.
func (p homePage) sentence() string {
	needs, active := len(p.Inbox), len(p.running())
	var parts []string
	switch {
	case needs > 0:
		parts = append(parts, Count(needs, "thing needs you", "things need you"))
	case active == 0 && len(p.Queued) == 0:
		return "All quiet"
	}
	if active > 0 {
		parts = append(parts, Count(active, "session", "sessions")+" running")
	}
	if n := len(p.Queued); n > 0 && needs == 0 && active == 0 {
		parts = append(parts, Count(n, "session waits", "sessions wait"))
	}
	return strings.Join(parts, ", ")
}

// unlandedWords count sessions whose changes wait.
func unlandedWords(n int64) string {
	if n >= engine.MostUnlanded {
		return fmt.Sprintf("The changes of %d sessions or more wait to be landed", n)
	}
	if n == 1 {
		return "The changes of 1 session wait to be landed"
	}
	return fmt.Sprintf("The changes of %d sessions wait to be landed", n)
}

// running are the active sessions that don't wait for a person.
func (p homePage) running() []engine.SessionView {
	var out []engine.SessionView
	for _, s := range p.Active {
		if s.Status == api.Active {
			out = append(out, s)
		}
	}
	return out
}

// empty reports whether nothing has ever been set up.
func (p homePage) empty() bool {
	return len(p.Agents) == 0 && len(p.Recent) == 0 && len(p.Active) == 0 && len(p.Queued) == 0
}

// today puts the day so far into words.
func (p homePage) today() string {
	var sum int64
	for _, n := range p.Today {
		sum += n
	}
	if sum == 0 {
		return "No sessions yet"
	}
	text := Count(int(sum), "session", "sessions")
	if p.TodayOf > 0 {
		text = fmt.Sprintf("%d sessions or more", sum)
	}
	if n := p.Today[api.Failed]; n > 0 {
		text += fmt.Sprintf(", %d in error", n)
	}
	if n := p.TodayMarked; n > 0 {
		text += fmt.Sprintf(", %d to look at", n)
	}
	return text
}

// clockIn is the time of day in a zone, with the date unless that is today.
func clockIn(t, now time.Time, zone *time.Location) string {
	t, now = t.In(zone), now.In(zone)
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04 MST")
	}
	return t.Format("Mon 2 Jan 15:04 MST")
}
