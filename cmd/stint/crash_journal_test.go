package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// journal is what the clients of a coordinator were told, and what must stay true of it from
// then on (contract 14). It may be used from any goroutine.
type journal struct {
	mu       sync.Mutex
	sessions map[api.SessionID]*entry
	fresh    map[api.SessionID]bool // with facts that haven't been checked after a restart
	seen     map[int64]string       // events that somebody saw, by their number
	claims   map[api.ClaimKey]api.Claim
	fences   map[fence]api.ClaimKey
	keyed    map[string]keyed        // creations with an Idempotency-Key
	versions map[agentVersion]string // what an agent was at a version
	faults   []string
}

// entry is what is known about one session.
type entry struct {
	facts   []fact
	reports int64 // numbers given to reports of plan, link and usage
}

// fact is something that is true of a session from now on. holds returns what is wrong, or "".
type fact struct {
	what  string
	holds func(v *view) string
}

type fence struct {
	session api.SessionID
	fence   int64
}

type keyed struct {
	agent string
	in    api.SessionInput
	id    api.SessionID
}

type agentVersion struct {
	id      api.AgentID
	version int64
}

func newJournal() *journal {
	return &journal{
		sessions: map[api.SessionID]*entry{}, fresh: map[api.SessionID]bool{}, seen: map[int64]string{},
		claims: map[api.ClaimKey]api.Claim{}, fences: map[fence]api.ClaimKey{}, keyed: map[string]keyed{},
		versions: map[agentVersion]string{},
	}
}

// fault notes something wrong that was noticed at once.
func (j *journal) fault(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

func (j *journal) of(id api.SessionID) *entry {
	e := j.sessions[id]
	if e == nil {
		e = &entry{}
		j.sessions[id] = e
	}
	j.fresh[id] = true
	return e
}

// expect adds a fact.
func (j *journal) expect(id api.SessionID, what string, holds func(v *view) string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.of(id)
	e.facts = append(e.facts, fact{what, holds})
}

// nextReport numbers a report on a session. Reports are made one after the other.
func (j *journal) nextReport(id api.SessionID) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.of(id)
	e.reports++
	return e.reports
}

// some are the sessions with fresh facts, which it marks as checked, and a few others.
func (j *journal) some(others int) []api.SessionID {
	j.mu.Lock()
	defer j.mu.Unlock()
	ids := slices.Collect(maps.Keys(j.fresh))
	clear(j.fresh)
	for id := range j.sessions { // in no order
		if others--; others < 0 {
			break
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (j *journal) factsOf(id api.SessionID) []fact {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.sessions[id].facts)
}

// sawEvent notes an event that somebody was shown.
func (j *journal) sawEvent(e api.Event) {
	text := eventText(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	if was, known := j.seen[e.Seq]; known && was != text {
		j.faults = append(j.faults, fmt.Sprintf("event %d was %s and is %s", e.Seq, was, text))
	}
	j.seen[e.Seq] = text
}

func eventText(e api.Event) string {
	b, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// sawAgent notes what an agent was at a version.
func (j *journal) sawAgent(a api.Agent) {
	b, err := json.Marshal(a.AgentInput, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	k := agentVersion{a.ID, a.Version}
	if was, known := j.versions[k]; known && was != string(b) {
		j.faults = append(j.faults, fmt.Sprintf("agent %s was at version %d %s and is %s", a.Slug, a.Version, was, b))
	}
	j.versions[k] = string(b)
}

// latest is the highest version of an agent that any client saw.
func (j *journal) latest(id api.AgentID) (version int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for k := range j.versions {
		if k.id == id {
			version = max(version, k.version)
		}
	}
	return version
}

// sawSession notes the state in which somebody saw a session.
func (j *journal) sawSession(s api.Session) {
	status, at := s.Status, s.Fence
	j.expect(s.ID, fmt.Sprintf("seen %s with fence %d", status, at), func(v *view) string {
		if !v.reached(status, at) {
			return fmt.Sprintf("it never was so: it is %s with fence %d", v.session.Status, v.session.Fence)
		}
		return changed(s, v.session)
	})
}

// changed compares what can't change, or can't any longer, in a session.
func changed(was, is api.Session) string {
	var out []string
	same := func(field string, a, b any) {
		if a != b {
			out = append(out, fmt.Sprintf("%s was %v and is %v", field, a, b))
		}
	}
	same("agent", was.AgentID, is.AgentID)
	same("thread", was.ThreadID, is.ThreadID)
	same("triggered at", was.TriggeredAt, is.TriggeredAt)
	same("triggered by", was.TriggeredBy, is.TriggeredBy)
	same("created at", was.CreatedAt, is.CreatedAt)
	same("title", was.Title, is.Title)
	same("prompt", was.Prompt, is.Prompt)
	same("context", was.UntrustedContext, is.UntrustedContext)
	same("priority", was.Priority, is.Priority)
	same("retry of", was.RetryOf, is.RetryOf)
	same("attempt", was.Attempt, is.Attempt)
	if !was.StartedAt.IsZero() {
		same("started at", was.StartedAt, is.StartedAt)
	}
	if !was.StopRequestedAt.IsZero() {
		same("stop requested at", was.StopRequestedAt, is.StopRequestedAt)
	}
	if was.Fence > is.Fence {
		same("fence", was.Fence, is.Fence)
	}
	if was.Usage.Turns > is.Usage.Turns {
		same("turns", was.Usage.Turns, is.Usage.Turns)
	}
	if !was.ArchivedAt.IsZero() {
		same("archived at", was.ArchivedAt, is.ArchivedAt)
	}
	if was.Status.Terminal() {
		same("status", was.Status, is.Status)
		same("result", was.Result, is.Result)
		same("outcome", was.Outcome, is.Outcome)
		same("plan", was.Plan, is.Plan)
		same("url", was.ExternalURL, is.ExternalURL)
		same("usage", was.Usage, is.Usage)
		same("lapses", was.Lapses, is.Lapses)
		same("error", why(was.Error), why(is.Error))
		same("ended at", was.EndedAt, is.EndedAt)
	}
	return strings.Join(out, "; ")
}

func why(f *api.Failure) api.Failure {
	if f == nil {
		return api.Failure{}
	}
	return *f
}

// sawClaim notes a claim that was granted, or returned again.
func (j *journal) sawClaim(c api.Claim) {
	j.mu.Lock()
	at := fence{c.SessionID, c.Fence}
	if was, known := j.fences[at]; known && was != c.ClaimID.Key {
		j.faults = append(j.faults, fmt.Sprintf("two claims on session %s have fence %d", c.SessionID, c.Fence))
	}
	if was, known := j.claims[c.ClaimID.Key]; known && (was.SessionID != c.SessionID || was.Fence != c.Fence || was.WorkerID != c.WorkerID) {
		j.faults = append(j.faults, fmt.Sprintf("claim %s was on session %s with fence %d and is on %s with %d", c.ClaimID.Key, was.SessionID, was.Fence, c.SessionID, c.Fence))
	}
	j.fences[at], j.claims[c.ClaimID.Key] = c.ClaimID.Key, c
	j.mu.Unlock()
	j.sawSession(c.Session)
	j.sawLease(c.SessionID, c.Fence, c.LeaseExpiresAt)
	j.hasEvent(c.SessionID, "session_claimed", "fence", float64(c.Fence))
}

// sawLease notes until when a claim holds: it lapses no sooner, and while it holds no answer
// gives an earlier end.
func (j *journal) sawLease(id api.SessionID, at int64, until api.Time) {
	j.expect(id, fmt.Sprintf("the lease of fence %d ends at %s", at, until), func(v *view) string {
		if s := v.session; s.Status.Running() && s.Fence == at && s.LeaseExpiresAt.Before(until.Time) {
			return "it ends at " + s.LeaseExpiresAt.String()
		}
		for _, e := range v.events {
			lapsed := e.Data["reason"] == "lapse" && e.Data["fence"] == float64(at)
			if lapsed && e.At.Before(until.Time) {
				return fmt.Sprintf("it lapsed at %s", e.At)
			}
		}
		return ""
	})
}

// hasEvent expects an event with a value in its data.
func (j *journal) hasEvent(id api.SessionID, kind, field string, value any) {
	j.expect(id, fmt.Sprintf("event %s with %s %v", kind, field, value), func(v *view) string {
		if n := v.count(kind, field, value); n != 1 {
			return fmt.Sprintf("there are %d", n)
		}
		return ""
	})
}

// view is a session as the coordinator shows it, all of it.
type view struct {
	session    api.Session
	events     []api.Event // ascending
	items      []api.Item
	activities []api.Activity
}

// reached reports whether the session's own log says that it once had the status.
func (v *view) reached(status api.Status, at int64) bool {
	var is api.Status
	var fence int64
	for _, e := range v.events {
		to, moved := e.Data["to"].(string)
		if !moved {
			continue
		}
		is = api.Status(to)
		if e.Type == "session_claimed" {
			fence++
		}
		if is == status && fence == at {
			return true
		}
	}
	return false
}

// count counts the events of a kind with a value in their data.
func (v *view) count(kind, field string, value any) (n int) {
	for _, e := range v.events {
		if e.Type == kind && e.Data[field] == value {
			n++
		}
	}
	return n
}

// texts counts the items with a text.
func (v *view) texts(text string) (n int) {
	for _, it := range v.items {
		if it.Text == text {
			n++
		}
	}
	return n
}

// whole is what must be true of any session at any time.
func (v *view) whole() string {
	for i, it := range v.items {
		if it.Seq != int64(i+1) {
			return fmt.Sprintf("item %d has number %d", i+1, it.Seq)
		}
	}
	if len(v.events) == 0 || v.events[0].Type != "session_created" {
		return "its log doesn't begin with its creation"
	}
	// Plan, link and usage are reported together, by number.
	if n := v.session.Usage.Turns; n > 0 && (v.session.Plan != planOf(n) || v.session.ExternalURL != linkOf(n)) {
		return fmt.Sprintf("report %d is there in part: plan %q, link %q", n, v.session.Plan, v.session.ExternalURL)
	}
	return ""
}

func planOf(n int64) string { return fmt.Sprintf("step %d", n) }
func linkOf(n int64) string { return fmt.Sprintf("https://example.org/%d", n) }

// readView reads all of a session. Its events were read before.
func readView(ctx context.Context, c *api.Client, id api.SessionID, events []api.Event) (*view, error) {
	v := &view{events: events}
	var err error
	if v.session, err = c.Session(ctx, id); err != nil {
		return nil, err
	}
	for after := int64(0); ; {
		page, err := c.Items(ctx, id, after, 1000)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, page.Items...)
		if len(page.Items) == 0 || page.Items[len(page.Items)-1].Seq >= page.LastSeq {
			break
		}
		after = page.Items[len(page.Items)-1].Seq
	}
	if v.count("activity", "type", string(api.ActivityProgress)) == 0 {
		return v, nil
	}
	for p := (api.Page{Limit: 200}); ; {
		page, err := c.Activities(ctx, id, p)
		if err != nil {
			return nil, err
		}
		v.activities = append(v.activities, page.Items...)
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			slices.SortFunc(v.activities, func(a, b api.Activity) int { return cmp.Compare(a.ID, b.ID) })
			return v, nil
		}
	}
}
