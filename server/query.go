package server

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
)

// query reads a request's query parameters. It gathers what is wrong with them, so that one
// refusal names all of it; an unknown name is wrong too, since a misspelt filter that filters
// nothing misleads.
type query struct {
	values url.Values
	known  []string
	bad    api.Invalid
}

func (x *exchange) query() *query {
	q := &query{}
	if x.r.URL.RawQuery == "" {
		return q
	}
	var err error
	if q.values, err = url.ParseQuery(x.r.URL.RawQuery); err != nil {
		q.values = nil
		q.bad.Add("query", "can't be read: check its percent signs and semicolons")
	}
	return q
}

// text returns a parameter, "" when it is absent.
func (q *query) text(name string) string {
	q.known = append(q.known, name)
	sent := q.values[name]
	if len(sent) > 1 {
		q.bad.Add(name, "is given twice")
	}
	if len(sent) == 0 {
		return ""
	}
	return sent[0]
}

// whole returns a whole number of at least least and at most most; other when it is absent.
func (q *query) whole(name string, least, most, other int64) int64 {
	text := q.text(name)
	if text == "" {
		return other
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.bad.Add(name, "must be a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
		return other
	}
	return n
}

// wait is for how long the request may be held.
func (q *query) wait() time.Duration {
	return time.Duration(q.whole("wait", 0, maxWait, 0)) * time.Second
}

func (q *query) yes(name string) bool {
	switch q.text(name) {
	case "", "false":
		return false
	case "true":
		return true
	}
	q.bad.Add(name, "must be true or false")
	return false
}

func (q *query) time(name string) time.Time {
	var t api.Time
	if err := t.UnmarshalText([]byte(q.text(name))); err != nil {
		q.bad.Add(name, err.Error())
	}
	return t.Time
}

// id reads an id into one of the api's ids.
func (q *query) id(name string, into interface{ UnmarshalText([]byte) error }) {
	if err := into.UnmarshalText([]byte(q.text(name))); err != nil {
		q.bad.Add(name, err.Error())
	}
}

func (q *query) page() api.Page {
	return api.Page{Cursor: q.text("cursor"), Limit: q.limit()}
}

const maxLimit = 200 // contract 9.2

func (q *query) limit() int { return int(q.whole("limit", 1, maxLimit, 0)) }

// words splits a list at its commas.
func (q *query) words(name string) []string {
	text := q.text(name)
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// sessions reads the filter of session lists, of an agent if it is not "". None says that status
// and phase contradict each other, so that nothing can match.
func (q *query) sessions(agent string, now time.Time) (f api.SessionFilter, none bool) {
	asked, err := api.ParseSessionQuery(q.text("query"), now)
	q.bad.Join(err)
	f = api.SessionFilter{
		Agent: agent, Trigger: api.Trigger(q.text("triggeredBy")), Query: q.text("q"),
		Since: api.Time{Time: q.time("since")}, Archived: q.yes("archived"), Unlanded: q.yes("unlanded"),
	}
	q.id("thread", &f.ThreadID)
	q.id("retryOf", &f.RetryOf)
	switch f.Trigger {
	case "", api.ByUser, api.ByScheduler, api.ByWebhook, api.ByAgent:
	default:
		q.bad.Add("triggeredBy", "must be one of user, scheduler, webhook, agent")
	}
	phases := api.SessionFilter{}
	f.Statuses, phases.Statuses = q.statuses()
	for _, more := range []api.SessionFilter{f, phases} {
		var clash string
		if asked, clash = asked.And(more); clash == "status" {
			none = true
		} else if clash != "" {
			q.bad.Add("query", "says something else of "+clash+" than the other parameters")
		}
	}
	f = asked
	if len(f.Texts()) > api.MaxQueryTexts {
		q.bad.Add("q", fmt.Sprintf("is one more than the %d texts that the query may have", api.MaxQueryTexts))
	}
	return f, none
}

// statuses are those that status says, and those of phase.
func (q *query) statuses() (said, within []api.Status) {
	for _, word := range q.words("status") {
		status := api.Status(word)
		if !slices.Contains(api.Statuses, status) {
			q.bad.Add("status", strconv.Quote(word)+" is no status")
			continue
		}
		if !slices.Contains(said, status) {
			said = append(said, status)
		}
	}
	for _, word := range q.words("phase") {
		of := api.Phase(word).Statuses()
		if len(of) == 0 {
			q.bad.Add("phase", strconv.Quote(word)+" is no phase: it is one of pending, running, complete, failed")
		}
		within = append(within, of...)
	}
	return said, within
}

// end refuses the query when anything was wrong with it.
func (q *query) end() error {
	names := make([]string, 0, len(q.values))
	for name := range q.values {
		if !slices.Contains(q.known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		q.bad.Add(name, "is not a parameter of this path")
	}
	return q.bad.Err()
}
