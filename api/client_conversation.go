package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// AwaitAnswer returns a prompt once it is closed, else after wait, in whole seconds.
func (c *Client) AwaitAnswer(ctx context.Context, session SessionID, id PromptID, wait time.Duration) (Prompt, error) {
	q := url.Values{"wait": {strconv.FormatInt(int64(wait/time.Second), 10)}}
	var out Prompt
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("sessions", session.String(), "prompts", id.String()), query: q, held: wait}, &out)
	return out, err
}

// PostMessage says something to the agent of a session's thread.
func (c *Client) PostMessage(ctx context.Context, session SessionID, in MessageInput) (Posted, error) {
	return post[Posted](ctx, c, path("sessions", session.String(), "messages"), in)
}

// Messages returns what people wrote to a session's thread after a message, oldest first.
func (c *Client) Messages(ctx context.Context, session SessionID, after MessageID) (Messages, error) {
	q := url.Values{}
	if after != 0 {
		q.Set("after", after.String())
	}
	return get[Messages](ctx, c, path("sessions", session.String(), "messages"), q)
}

// Thread returns the conversation behind sessions.
func (c *Client) Thread(ctx context.Context, id ThreadID) (Thread, error) {
	return get[Thread](ctx, c, path("threads", id.String()), nil)
}

// PatchThread hands a conversation to its agent again, or stops it.
func (c *Client) PatchThread(ctx context.Context, id ThreadID, in ThreadPatch) (ThreadChanged, error) {
	var out ThreadChanged
	_, err := c.do(ctx, call{method: http.MethodPatch, path: path("threads", id.String()), body: in}, &out)
	return out, err
}
