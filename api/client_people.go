package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Whoami says who the client's token acts for.
type Whoami struct {
	UserID UserID  `json:"userId"`
	Name   string  `json:"name"`
	KeyID  KeyID   `json:"keyId,omitzero"` // of the API key that the token is
	Scopes []Scope `json:"scopes,omitzero"`

	SessionID SessionID `json:"sessionId,omitzero"` // whose agent has the token
}

// AgentChanged answers pause and resume, skip and unskip: the agent now, and whether this call changed it.
type AgentChanged struct {
	Agent   Agent `json:"agent"`
	Changed bool  `json:"changed"`
}

// ItemsPage is a part of a session's items in ascending order, and the last sequence number stored.
type ItemsPage struct {
	Items   []Item `json:"items"`
	LastSeq int64  `json:"lastSeq"`
}

// path joins escaped segments.
func path(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var out T
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query}, &out)
	return out, err
}

func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var out T
	if body == nil {
		body = struct{}{}
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: path, body: body}, &out)
	return out, err
}

func (p Page) query() url.Values {
	q := url.Values{}
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	return q
}

func (f SessionFilter) query(p Page) url.Values {
	q := p.query()
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("status", commas(f.Statuses))
	set("agent", f.Agent)
	set("triggeredBy", string(f.Trigger))
	set("q", f.Query)
	set("since", f.Since.String())
	set("thread", f.ThreadID.String())
	set("retryOf", f.RetryOf.String())
	only := f
	only.Statuses, only.Agent, only.Trigger, only.Query, only.Since, only.ThreadID, only.Unlanded = nil, "", "", "", Time{}, 0, false
	set("query", only.QueryText()) // what has no parameter of its own
	if f.Archived {
		q.Set("archived", "true")
	}
	if f.Unlanded {
		q.Set("unlanded", "true")
	}
	return q
}

// Whoami asks who the token acts for.
func (c *Client) Whoami(ctx context.Context) (Whoami, error) {
	return get[Whoami](ctx, c, "/api/v1/whoami", nil)
}

// Workspaces lists the caller's workspaces.
func (c *Client) Workspaces(ctx context.Context) (List[Workspace], error) {
	return get[List[Workspace]](ctx, c, "/api/v1/workspaces", nil)
}

// Healthy is nil once the coordinator answers.
func (c *Client) Healthy(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/healthz"}, nil)
	return err
}

// Agents lists a page of agents, newest first.
func (c *Client) Agents(ctx context.Context, p Page) (List[Agent], error) {
	return get[List[Agent]](ctx, c, "agents", p.query())
}

// Agent returns one agent by id or slug.
func (c *Client) Agent(ctx context.Context, ref string) (Agent, error) {
	return get[Agent](ctx, c, path("agents", ref), nil)
}

// CreateAgent creates an agent. The body holds the fields to set, an [AgentInput] or a map of
// some of its members; absent ones take their defaults.
func (c *Client) CreateAgent(ctx context.Context, body any) (Agent, error) {
	return post[Agent](ctx, c, "agents", body)
}

// ImportedHeader says of a new agent that it was taken from a file.
const ImportedHeader = "Stint-Imported"

// ImportAgent creates an agent from a file of somebody else's: what it executes doesn't count as
// set by the caller.
func (c *Client) ImportAgent(ctx context.Context, body any) (Agent, error) {
	var out Agent
	_, err := c.do(ctx, call{method: http.MethodPost, path: "agents", body: body, header: http.Header{ImportedHeader: {"true"}}}, &out)
	return out, err
}

// EditAgent merges patch into the agent: absent members stay, null ones are cleared.
func (c *Client) EditAgent(ctx context.Context, ref string, patch any) (Agent, error) {
	var out Agent
	_, err := c.do(ctx, call{method: http.MethodPatch, path: path("agents", ref), body: patch}, &out)
	return out, err
}

// DeleteAgent deletes an agent and cancels its sessions.
func (c *Client) DeleteAgent(ctx context.Context, ref string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("agents", ref)}, nil)
	return err
}

// PauseAgent keeps the agent's sessions from being claimed.
func (c *Client) PauseAgent(ctx context.Context, ref, reason string) (AgentChanged, error) {
	return post[AgentChanged](ctx, c, path("agents", ref, "pause"), map[string]string{"reason": reason})
}

// ResumeAgent ends a pause.
func (c *Client) ResumeAgent(ctx context.Context, ref string) (AgentChanged, error) {
	return post[AgentChanged](ctx, c, path("agents", ref, "resume"), nil)
}

// Schedules lists the agents that have a schedule, newest first.
func (c *Client) Schedules(ctx context.Context, p Page) (List[Agent], error) {
	return get[List[Agent]](ctx, c, path("schedules"), p.query())
}

// SkipSlots has no slot of the agent's schedule up to a time fire; the zero time is its next
// slot.
func (c *Client) SkipSlots(ctx context.Context, ref string, until Time) (AgentChanged, error) {
	body := map[string]Time{}
	if !until.IsZero() {
		body["until"] = until
	}
	return post[AgentChanged](ctx, c, path("agents", ref, "skip"), body)
}

// KeepSlots takes a skip back.
func (c *Client) KeepSlots(ctx context.Context, ref string) (AgentChanged, error) {
	return post[AgentChanged](ctx, c, path("agents", ref, "unskip"), nil)
}

// Ledger lists the verdicts on an agent's slots, newest first.
func (c *Client) Ledger(ctx context.Context, ref string, p Page) (List[LedgerEntry], error) {
	return get[List[LedgerEntry]](ctx, c, path("agents", ref, "ledger"), p.query())
}

// Preview asks what a schedule means: words, warnings and the next n slots
// after from; the zero from is now.
func (c *Client) Preview(ctx context.Context, schedule, zone string, from time.Time, n int) (SchedulePreview, error) {
	q := url.Values{"schedule": {schedule}, "timeZone": {zone}, "n": {strconv.Itoa(n)}}
	if !from.IsZero() {
		q.Set("from", from.UTC().Format(time.RFC3339Nano))
	}
	return get[SchedulePreview](ctx, c, "schedules/preview", q)
}

// CreateSession triggers an agent. With a key, repeating the call returns the first call's
// session and replayed is true.
func (c *Client) CreateSession(ctx context.Context, agent string, in SessionInput, key string) (s Session, replayed bool, err error) {
	resp, err := c.do(ctx, call{method: http.MethodPost, path: path("agents", agent, "sessions"), body: in, header: keyHeader(key)}, &s)
	if err != nil {
		return Session{}, false, err
	}
	return s, resp.Header.Get("Idempotent-Replayed") == "true", nil
}

// Session returns one session.
func (c *Client) Session(ctx context.Context, id SessionID) (Session, error) {
	return get[Session](ctx, c, path("sessions", id.String()), nil)
}

// Sessions lists a page of sessions, newest first.
func (c *Client) Sessions(ctx context.Context, f SessionFilter, p Page) (List[Session], error) {
	return get[List[Session]](ctx, c, "sessions", f.query(p))
}

// SessionCounts counts sessions by status.
func (c *Client) SessionCounts(ctx context.Context, f SessionFilter) (SessionCounts, error) {
	return get[SessionCounts](ctx, c, "sessions/counts", f.query(Page{}))
}

// CancelSession ends a session that is not terminal.
func (c *Client) CancelSession(ctx context.Context, id SessionID, in CancelInput) (Changed, error) {
	return post[Changed](ctx, c, path("sessions", id.String(), "cancel"), in)
}

// StopSession asks a running session to end after its current turn.
func (c *Client) StopSession(ctx context.Context, id SessionID) (Changed, error) {
	return post[Changed](ctx, c, path("sessions", id.String(), "stop"), nil)
}

// RetrySession makes a new session of a terminal one, or queues a stale one again.
func (c *Client) RetrySession(ctx context.Context, id SessionID) (Retried, error) {
	return post[Retried](ctx, c, path("sessions", id.String(), "retry"), nil)
}

// ArchiveSession hides a finished session.
func (c *Client) ArchiveSession(ctx context.Context, id SessionID) (Changed, error) {
	return post[Changed](ctx, c, path("sessions", id.String(), "archive"), nil)
}

// KeepSession keeps a session and its conversation from retention, or lets them go.
func (c *Client) KeepSession(ctx context.Context, id SessionID, keep bool) (Changed, error) {
	at := path("sessions", id.String(), "keep")
	if keep {
		return post[Changed](ctx, c, at, nil)
	}
	var out Changed
	_, err := c.do(ctx, call{method: http.MethodDelete, path: at}, &out)
	return out, err
}

// AnswerPrompt answers a session's open question.
func (c *Client) AnswerPrompt(ctx context.Context, id SessionID, in AnswerInput) (Session, error) {
	return post[Session](ctx, c, path("sessions", id.String(), "answer"), in)
}

// Activities lists a session's activities, newest first.
func (c *Client) Activities(ctx context.Context, id SessionID, p Page) (List[Activity], error) {
	return get[List[Activity]](ctx, c, path("sessions", id.String(), "activities"), p.query())
}

// SessionEvents lists a session's events, newest first.
func (c *Client) SessionEvents(ctx context.Context, id SessionID, p Page) (List[Event], error) {
	return get[List[Event]](ctx, c, path("sessions", id.String(), "events"), p.query())
}

// Items returns up to limit items with a sequence number above after; limit 0 is the coordinator's default.
func (c *Client) Items(ctx context.Context, id SessionID, after int64, limit int) (ItemsPage, error) {
	q := Page{Limit: limit}.query()
	q.Set("after", strconv.FormatInt(after, 10))
	return get[ItemsPage](ctx, c, path("sessions", id.String(), "items"), q)
}

// ItemsBefore returns the last items with a sequence number below before; 0 is the end.
func (c *Client) ItemsBefore(ctx context.Context, id SessionID, before int64, limit int) (ItemsPage, error) {
	q := Page{Limit: limit}.query()
	q.Set("before", strconv.FormatInt(before, 10))
	return get[ItemsPage](ctx, c, path("sessions", id.String(), "items"), q)
}
