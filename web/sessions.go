package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// listPage is what sessions.templ draws.
type listPage struct {
	engine.SessionListView
	by     engine.Caller
	query  listQuery
	whole  time.Duration
	cursor string
}

// listQuery is the filter of the list in the form that the address has: what the page has
// controls for, and the rest as a query.
type listQuery struct {
	status  []api.Status
	agent   string
	trigger api.Trigger
	text    string // as it was written

	unlanded bool // only those whose changes wait

	rest api.SessionFilter // what text says
	bad  []string          // what of it can't be read, and was left out
}

var triggers = []api.Trigger{api.ByUser, api.ByScheduler, api.ByWebhook, api.ByAgent}

// readList reads the filter; invalid parts are left out, so that a mistyped address shows the
// list and not an error. Of the query they are told.
func readList(q url.Values, now time.Time) listQuery {
	out := listQuery{agent: q.Get("agent"), unlanded: q.Get(unlandedParam) == "true"}
	out.status = knownWords(q.Get("status"), api.Statuses)
	if t := api.Trigger(q.Get("by")); slices.Contains(triggers, t) {
		out.trigger = t
	}
	text := strings.TrimSpace(cmp.Or(q.Get("q"), q.Get("query"))) // REST calls it query
	said, err := api.ParseSessionQuery(text, now)
	if bad, ok := errors.AsType[*api.Error](err); ok {
		for _, f := range bad.Fields {
			out.bad = append(out.bad, f.Detail)
		}
	}
	// What the query says goes before what the controls said before it.
	if len(said.Statuses) > 0 {
		out.status = said.Statuses
	}
	out.agent, out.trigger, out.unlanded = cmp.Or(said.Agent, out.agent), cmp.Or(said.Trigger, out.trigger), said.Unlanded || out.unlanded
	said.Statuses, said.Agent, said.Trigger, said.Unlanded = nil, "", "", false
	out.rest, out.text = said, text
	if len(out.bad) == 0 {
		out.text = api.WithoutFields(out.text, "status", "phase", "agent", "by", "is:unlanded")
	}
	return out
}

func (q listQuery) filter() api.SessionFilter {
	f := q.rest
	f.Agent, f.Statuses, f.Trigger, f.Unlanded = q.agent, q.status, q.trigger, q.unlanded
	return f
}

// values writes the filter back; empty parts are left out.
func (q listQuery) values() url.Values {
	return filterValues("status", commaWords(q.status), "agent", q.agent, "by", string(q.trigger), "q", q.text, unlandedParam, trueOr(q.unlanded))
}

// unlandedParam narrows a list to sessions whose changes wait.
const unlandedParam = "unlanded"

func trueOr(on bool) string {
	if on {
		return "true"
	}
	return ""
}

// waiting is the same filter with or without only those whose changes wait.
func (q listQuery) waiting(only bool) listQuery {
	q.unlanded = only
	return q
}

func (q listQuery) url(more ...string) string {
	return filterURL("/sessions", q.values(), more)
}

// only is the same filter for one status; "" is every status.
func (q listQuery) only(s api.Status) listQuery {
	q.status = nil
	if s != "" {
		q.status = []api.Status{s}
	}
	return q
}

func (q listQuery) narrowed() bool { return len(q.values()) > 0 }

func (q listQuery) isOnly(s api.Status) bool {
	if s == "" {
		return len(q.status) == 0
	}
	return len(q.status) == 1 && q.status[0] == s
}

func (v *visit) sessions() error {
	q := v.r.URL.Query()
	p := listPage{by: v.caller, query: readList(q, v.web.engine.Now().In(v.prefs.zone)), cursor: q.Get("cursor")}
	view, err := v.web.engine.SessionList(v.r.Context(), v.caller, p.query.filter(), api.Page{Cursor: p.cursor})
	if err != nil {
		return err
	}
	p.SessionListView = view
	p.whole = longest(view.Rows, view.At)
	shell := Shell{Title: "Sessions", Place: "sessions", Now: view.At, Stream: p.stream()}
	return v.page(http.StatusOK, shell, sessions(p))
}

// stream is the address of the list's live stream.
func (p listPage) stream() string {
	more := []string{"cursor", p.cursor, rowsParam, rowsOnPage(p.Rows, func(r engine.SessionView) api.SessionID { return r.ID })}
	for name, values := range p.query.values() {
		more = append(more, name, values[0])
	}
	return streamURL("sessions", p.View, more...)
}

// longest is the length of the longest row, by which all ribbons are measured; an outlier
// would make it useless, so it is capped at six times the median.
func longest(rows []engine.SessionView, now time.Time) time.Duration {
	var all []time.Duration
	for _, v := range rows {
		end := now
		if !v.EndedAt.IsZero() {
			end = v.EndedAt.Time
		}
		all = append(all, end.Sub(v.CreatedAt.Time))
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return min(all[len(all)-1], 6*all[len(all)/2])
}

// watchSessions draws the rows of the list again, in place, and says how many newer ones there
// are without moving the rows under the pointer.
func (v *visit) watchSessions(q url.Values) watcher {
	query := readList(q, v.web.engine.Now().In(v.prefs.zone))
	ids, newest := rowsAsked[api.SessionID](q)
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		now, err := v.web.engine.SessionsAgain(ctx, c, query.filter(), ids, newest)
		if err != nil {
			return nil, position{}, err
		}
		parts := []part{{target: "state-chips", draw: stateChips(query, now.Counts, now.CountsOf, now.Unlanded)}}
		for _, r := range rowsOf(now.Rows, now.At, longest(now.Rows, now.At)) {
			parts = append(parts, part{target: "row-" + r.ID.String(), draw: SessionRow(r)})
		}
		if q.Get("cursor") == "" {
			parts = append(parts, part{target: "newer", draw: newerPill(query.url(), now.Newer)})
		}
		return parts, position{seq: now.Seq}, nil
	}
}

// total says how many sessions match, if that was counted.
func total(counts map[api.Status]int64, of int64) string {
	var sum int64
	for _, n := range counts {
		sum += n
	}
	if of > 0 {
		return strconv.FormatInt(of, 10) + "+"
	}
	return strconv.FormatInt(sum, 10)
}

func triggerWord(t api.Trigger) string {
	switch t {
	case api.ByUser:
		return "A person"
	case api.ByScheduler:
		return "The schedule"
	case api.ByWebhook:
		return "A webhook"
	case api.ByAgent:
		return "An agent"
	default:
		return "Anyone"
	}
}
