package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ClaimHeader is the header in which a worker that waits for an answer names its claim.
const ClaimHeader = "Stint-Claim"

// AwaitAnswer returns a prompt once it is closed, else after wait, in whole seconds. Secret
// answers are included only for a caller that names the session's live claim; the zero claim
// names none.
func (c *Client) AwaitAnswer(ctx context.Context, session SessionID, id PromptID, claim ClaimID, wait time.Duration) (Prompt, error) {
	q := url.Values{"wait": {strconv.FormatInt(int64(wait/time.Second), 10)}}
	var header http.Header
	if !claim.IsZero() {
		header = http.Header{ClaimHeader: {claim.String()}}
	}
	var out Prompt
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("sessions", session.String(), "prompts", id.String()), query: q, header: header, held: wait}, &out)
	return out, err
}

// PostMessage sends a message to the agent of a session's thread.
func (c *Client) PostMessage(ctx context.Context, session SessionID, in MessageInput) (Posted, error) {
	return post[Posted](ctx, c, path("sessions", session.String(), "messages"), in)
}

// Messages returns what people wrote to a session's thread after a message, oldest first.
func (c *Client) Messages(ctx context.Context, session SessionID, after MessageID) (Messages, error) {
	return c.AwaitMessages(ctx, session, after, 0)
}

// AwaitMessages is Messages, held until there are some or wait is over, in whole seconds.
func (c *Client) AwaitMessages(ctx context.Context, session SessionID, after MessageID, wait time.Duration) (out Messages, err error) {
	q := url.Values{}
	if wait > 0 {
		q.Set("wait", strconv.FormatInt(int64(wait/time.Second), 10))
	}
	if after != 0 {
		q.Set("after", after.String())
	}
	_, err = c.do(ctx, call{method: http.MethodGet, path: path("sessions", session.String(), "messages"), query: q, held: wait}, &out)
	return out, err
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

// Attachments lists the files that came with a session's prompt and its messages.
func (c *Client) Attachments(ctx context.Context, session SessionID) (Attachments, error) {
	return get[Attachments](ctx, c, path("sessions", session.String(), "attachments"), nil)
}

// Attachment returns a file's bytes.
func (c *Client) Attachment(ctx context.Context, session SessionID, id AttachmentID) ([]byte, error) {
	_, b, err := c.answer(ctx, call{method: http.MethodGet, path: path("sessions", session.String(), "attachments", id.String())})
	return b, err
}
