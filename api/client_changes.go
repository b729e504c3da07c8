package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ReportChanges says what a worker found in its session's workspace.
func (c *Client) ReportChanges(ctx context.Context, h Held, in ChangesReport) (ChangesNoted, error) {
	return post[ChangesNoted](ctx, c, h.path("changes"), in)
}

// AnswerLanding says what came of a request to land.
func (c *Client) AnswerLanding(ctx context.Context, agent AgentID, worker WorkerID, id LandingID, in LandReport) (Landing, error) {
	return post[Landing](ctx, c, workerPath(agent, worker, "landings", id.String()), in)
}

// Changes shows what a session changed, with its diffs.
func (c *Client) Changes(ctx context.Context, id SessionID) (Changes, error) {
	return get[Changes](ctx, c, path("sessions", id.String(), "changes"), nil)
}

// RequestLanding asks the worker of a session to do something with its changes.
func (c *Client) RequestLanding(ctx context.Context, id SessionID, in LandInput) (Landing, error) {
	return post[Landing](ctx, c, path("sessions", id.String(), "landings"), in)
}

// AwaitLanding returns a request once its worker has answered it, else after wait, in whole
// seconds.
func (c *Client) AwaitLanding(ctx context.Context, session SessionID, id LandingID, wait time.Duration) (Landing, error) {
	q := url.Values{"wait": {strconv.FormatInt(int64(wait/time.Second), 10)}}
	var out Landing
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("sessions", session.String(), "landings", id.String()), query: q, held: wait}, &out)
	return out, err
}

// WithdrawLanding takes back a request that wasn't answered.
func (c *Client) WithdrawLanding(ctx context.Context, session SessionID, id LandingID) (Landing, error) {
	var out Landing
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("sessions", session.String(), "landings", id.String())}, &out)
	return out, err
}
