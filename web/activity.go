package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/engine"
)

// activityPage is what activity.templ draws.
type activityPage struct {
	api.List[api.AuditEntry]
	view   engine.AuditView
	names  engine.AuditNames
	zone   *time.Location
	query  activityQuery
	cursor string
}

// activityQuery is the filter in the form that the address has.
type activityQuery struct{ actor, kind, agent, session string }

func readActivity(q url.Values) activityQuery {
	return activityQuery{
		actor: strings.TrimSpace(q.Get("actor")), kind: strings.TrimSpace(q.Get("type")),
		agent: q.Get("agent"), session: strings.TrimSpace(q.Get("session")),
	}
}

func (q activityQuery) filter() (api.AuditFilter, error) {
	f := api.AuditFilter{Actor: q.actor, Type: q.kind, Agent: q.agent}
	if err := f.Session.UnmarshalText([]byte(q.session)); err != nil {
		var v api.Invalid
		v.Add("session", err.Error())
		return f, v.Err()
	}
	return f, nil
}

func (q activityQuery) values() url.Values {
	return filterValues("actor", q.actor, "type", q.kind, "agent", q.agent, "session", q.session)
}

func (q activityQuery) url(path string, more ...string) string {
	return filterURL(path, q.values(), more)
}

func (v *visit) activity() error {
	q := v.r.URL.Query()
	p := activityPage{zone: v.prefs.zone, query: readActivity(q), cursor: q.Get("cursor")}
	f, err := p.query.filter()
	if err != nil {
		return err
	}
	if p.List, err = v.web.engine.Audit(v.r.Context(), v.caller, f, api.Page{Cursor: p.cursor}); err != nil {
		return err
	}
	if p.view, err = v.web.engine.AuditChoices(v.r.Context(), v.caller); err != nil {
		return err
	}
	if p.names, err = v.web.engine.NamesInAudit(v.r.Context(), v.caller, p.Items); err != nil {
		return err
	}
	return v.page(http.StatusOK, Shell{Title: "Activity", Place: "activity"}, activity(p))
}

// exportActivity writes all matching entries, one JSON object a line. It reads page by page,
// so that a long export blocks nothing.
func (v *visit) exportActivity() error {
	f, err := readActivity(v.r.URL.Query()).filter()
	if err != nil {
		return err
	}
	page, err := v.web.engine.Audit(v.r.Context(), v.caller, f, api.Page{Limit: exportedAtOnce})
	if err != nil {
		return err
	}
	v.Header().Set("Content-Type", "application/x-ndjson")
	v.Header().Set("Content-Disposition", `attachment; filename="stint-activity.ndjson"`)
	for {
		for _, e := range page.Items {
			line, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if _, err := v.Write(append(line, '\n')); err != nil {
				return nil // the reader went away
			}
		}
		if page.NextCursor == "" {
			return nil
		}
		page, err = v.web.engine.Audit(v.r.Context(), v.caller, f, api.Page{Limit: exportedAtOnce, Cursor: page.NextCursor})
		if err != nil {
			v.web.log.Error("export the activity", "error", err)
			panic(http.ErrAbortHandler) // half a file must not look like a whole one
		}
	}
}

// exportedAtOnce is how many entries an export reads at a time.
const exportedAtOnce = 200

// sessionName is a session's title, if somebody has given it one.
func (p activityPage) sessionName(e api.AuditEntry) string {
	if s := p.names.Sessions[e.SessionID]; s.Title != "" {
		return "“" + s.Title + "”"
	}
	return "a run"
}

// eventWords is an event's type in words.
func eventWords(kind string) string {
	return capitalised(strings.ReplaceAll(kind, "_", " "))
}

// whence says where a call came from; empty for this machine.
func whence(e api.AuditEntry) string {
	parts := make([]string, 0, 2)
	if e.Via != "" {
		parts = append(parts, "with "+e.Via)
	}
	if e.From != "" {
		parts = append(parts, "from "+e.From)
	}
	return strings.Join(parts, ", ")
}

// eventFacts are the parts of an event's data, by name.
func eventFacts(e api.AuditEntry) string {
	line, err := json.Marshal(e.Data, json.Deterministic(true))
	if err != nil || len(e.Data) == 0 {
		return ""
	}
	return string(line)
}
