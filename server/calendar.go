package server

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
	"time"

	ics "github.com/arran4/golang-ical"

	"stint/api"
	"stint/engine"
)

const (
	calendarRoute = base + "/calendar.ics"

	// keyParameter is where a calendar's address has its key: programs that show calendars
	// send no headers. Nowhere else a query is looked at for one.
	keyParameter = "key"

	calendarLength = 15 * time.Minute // that a run is shown to take; nobody knows before
)

// calendar answers the coming runs as a calendar that other programs subscribe to (RFC 5545).
func (s *Server) calendar(x *exchange) (response, error) {
	q := x.query()
	q.text(keyParameter)
	if err := q.end(); err != nil {
		return response{}, err
	}
	runs, at, err := s.engine.Calendar(x.r.Context(), x.caller)
	if err != nil {
		return response{}, err
	}
	var out bytes.Buffer
	if err := calendarOf(runs, at, x.caller.Workspace, s.reached(x.r)).SerializeTo(&out); err != nil {
		return response{}, err
	}
	x.Header().Set("Content-Type", "text/calendar; charset=utf-8")
	x.WriteHeader(http.StatusOK)
	_, _ = x.Write(out.Bytes()) // a client that went away isn't our failure
	return response{written: true}, nil
}

// calendarOf names no prompt: a calendar is shown on lock screens and shared.
func calendarOf(runs []engine.ComingRun, at time.Time, workspace, home string) *ics.Calendar {
	out := ics.NewCalendarFor("Stint")
	out.SetMethod(ics.MethodPublish)
	out.SetName("Stint: " + workspace)
	out.SetXWRCalName("Stint: " + workspace)
	out.SetRefreshInterval("PT1H")
	out.SetXPublishedTTL("PT1H")
	for _, r := range runs {
		id, link, what := r.At.UTC().Format("20060102T150405Z")+"-"+r.Agent.ID.String(), "/agents/"+r.Agent.Slug, "On its schedule: "+r.Agent.ScheduleWords
		if r.Session != 0 {
			id, link, what = r.Session.String(), "/sessions/"+r.Session.String(), "Started by hand, for this time"
		}
		e := out.AddEvent(id + "@stint")
		e.SetDtStampTime(at)
		e.SetStartAt(r.At)
		e.SetEndAt(r.At.Add(calendarLength))
		e.SetSummary(cmp.Or(r.Agent.Name, r.Agent.Slug))
		e.SetDescription(what)
		e.SetURL(home + link)
		e.SetTimeTransparency(ics.TransparencyTransparent)
	}
	return out
}

func isCalendar(path string) bool {
	return strings.HasPrefix(path, "/api/v1/workspaces/") && strings.HasSuffix(path, "/calendar.ics")
}

// calendarKey is the key in a calendar's address, "" in any other request, and for keys that are
// good for more than a calendar: those don't belong into an address, which logs and programs
// keep.
func (s *Server) calendarKey(r *http.Request) string {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !isCalendar(r.URL.Path) || r.Header["Authorization"] != nil {
		return ""
	}
	key := r.URL.Query().Get(keyParameter)
	if key == "" {
		return ""
	}
	g, err := s.rights.grant(r.Context(), key)
	if err != nil || g.who.KeyID == 0 || !api.ForCalendar(g.who.Scopes) {
		return ""
	}
	return key
}
