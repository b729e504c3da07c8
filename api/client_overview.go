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
	URL      string           `json:"url"` // of the coordinator, as the caller reached it
	Version  string           `json:"version"`
	User     string           `json:"user"`
	Sessions map[Status]int64 `json:"sessions"` // how many there are in each status
	Agents   []Agent          `json:"agents"`
	Workers  []Worker         `json:"workers"`
	Inbox    []InboxItem      `json:"inbox"` // what needs a person
}

// Overview returns how things stand in the workspace.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	return get[Overview](ctx, c, path("status"), nil)
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
