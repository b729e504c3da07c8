package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Overview is how things stand in a workspace. Of agents and workers it has the newest
// thousand.
type Overview struct {
	URL      string        `json:"url"` // of the coordinator, as the caller reached it
	Version  string        `json:"version"`
	User     string        `json:"user"`
	Sessions SessionCounts `json:"sessions"`
	Agents   []Agent       `json:"agents"`
	Workers  []Worker      `json:"workers"`
	Inbox    []InboxItem   `json:"inbox"` // what needs a person

	Processes WorkerCount `json:"processes"`
}

// WorkerCount counts worker processes as people do: one has a record for each agent that it
// serves, and counts once.
type WorkerCount struct {
	All    int64 `json:"all"`
	Online int64 `json:"online"` // those with a record that is
}

// Overview returns how things stand in the workspace.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	return get[Overview](ctx, c, path("status"), nil)
}

// System returns how the coordinator itself is.
func (c *Client) System(ctx context.Context) (System, error) {
	return get[System](ctx, c, path("system"), nil)
}

// SupportBundle returns what somebody who helps needs to know of the coordinator.
func (c *Client) SupportBundle(ctx context.Context) (SupportBundle, error) {
	return get[SupportBundle](ctx, c, path("system", "bundle"), nil)
}

// Prune removes what is old, or with a dry run says what that would be.
func (c *Client) Prune(ctx context.Context, in PruneInput) (Pruned, error) {
	return post[Pruned](ctx, c, path("system", "prune"), in)
}

// Output is a part of a session's output as text: what the agent said and what a command
// printed unchanged, without escape sequences, and a line for each tool call and message.
type Output struct {
	Text   string `json:"text"`
	Cursor string `json:"cursor"` // where the next part begins
	More   bool   `json:"more"`   // it is there already
	Status Status `json:"status"` // of the session: once that is terminal and there is no more, this was all
}

// Output returns the part of a session's output that begins at a cursor, "" for the beginning.
func (c *Client) Output(ctx context.Context, id SessionID, cursor string) (Output, error) {
	q := url.Values{}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return get[Output](ctx, c, path("sessions", id.String(), "output"), q)
}

// AwaitSession returns a session once it has ended or asks a person, else after wait, in whole
// seconds.
func (c *Client) AwaitSession(ctx context.Context, id SessionID, wait time.Duration) (Session, error) {
	q := url.Values{"wait": {strconv.FormatInt(int64(wait/time.Second), 10)}}
	var out Session
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("sessions", id.String()), query: q, held: wait}, &out)
	return out, err
}

// Doctor returns what is wrong with the coordinator and the workspace.
func (c *Client) Doctor(ctx context.Context) (Examination, error) {
	return get[Examination](ctx, c, path("doctor"), nil)
}
