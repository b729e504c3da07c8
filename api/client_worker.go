package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

func workerPath(agent AgentID, worker WorkerID, more ...string) string {
	return path(append([]string{"agents", agent.String(), "workers", worker.String()}, more...)...)
}

// RegisterWorker finds or creates the worker's record for an agent (contract 5.1).
func (c *Client) RegisterWorker(ctx context.Context, agent string, in WorkerInput) (Registered, error) {
	return post[Registered](ctx, c, path("agents", agent, "workers"), in)
}

// Workers lists all workers of the workspace that the caller may see, newest first.
func (c *Client) Workers(ctx context.Context, p Page) (List[Worker], error) {
	return get[List[Worker]](ctx, c, "workers", p.query())
}

// AgentWorkers lists one agent's workers, newest first.
func (c *Client) AgentWorkers(ctx context.Context, agent string, p Page) (List[Worker], error) {
	return get[List[Worker]](ctx, c, path("agents", agent, "workers"), p.query())
}

// Worker returns one worker's record.
func (c *Client) Worker(ctx context.Context, agent AgentID, id WorkerID) (Worker, error) {
	return get[Worker](ctx, c, workerPath(agent, id), nil)
}

// AwaitSignal returns the worker once its pending signal is another than the known one (0 =
// none), else after wait, in whole seconds.
func (c *Client) AwaitSignal(ctx context.Context, agent AgentID, id WorkerID, instance string, known SignalID, wait time.Duration) (Worker, error) {
	q := url.Values{"instanceId": {instance}, "wait": {strconv.FormatInt(int64(wait/time.Second), 10)}}
	if known != 0 {
		q.Set("signal", known.String())
	}
	var out Worker
	_, err := c.do(ctx, call{method: http.MethodGet, path: workerPath(agent, id), query: q, held: wait}, &out)
	return out, err
}

// EditWorker merges changes into a worker's record: members of a [WorkerEdit] by
// their names, null to clear one.
func (c *Client) EditWorker(ctx context.Context, agent AgentID, id WorkerID, changes map[string]any) (Worker, error) {
	var out Worker
	_, err := c.do(ctx, call{method: http.MethodPatch, path: workerPath(agent, id), body: changes}, &out)
	return out, err
}

// SignalWorker asks a worker to stop, pause, resume or restart.
func (c *Client) SignalWorker(ctx context.Context, agent AgentID, id WorkerID, signal SignalKind) (SignalAnswer, error) {
	return post[SignalAnswer](ctx, c, workerPath(agent, id, "control-signal"), SignalRequest{Signal: signal})
}

// AcknowledgeSignal says that the worker has received its pending signal.
func (c *Client) AcknowledgeSignal(ctx context.Context, agent AgentID, id WorkerID, in SignalAck) (Worker, error) {
	return post[Worker](ctx, c, workerPath(agent, id, "ack-control-signal"), in)
}

// DeleteWorker deletes a worker's record and ends its claims.
func (c *Client) DeleteWorker(ctx context.Context, agent AgentID, id WorkerID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: workerPath(agent, id)}, nil)
	return err
}

// Beat reports that the worker is alive; see [Beat].
func (c *Client) Beat(ctx context.Context, agent AgentID, worker WorkerID, in Beat) (BeatAnswer, error) {
	return post[BeatAnswer](ctx, c, workerPath(agent, worker, "heartbeat"), in)
}

// ReportApprovals says what the worker's owner allowed its agent from now on.
func (c *Client) ReportApprovals(ctx context.Context, agent AgentID, worker WorkerID, in ApprovalsReport) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: workerPath(agent, worker, "approvals"), body: in}, nil)
	return err
}

// Approvals lists what the caller, the worker's owner, allowed its agent from now on, the newest
// first.
func (c *Client) Approvals(ctx context.Context, agent AgentID, worker WorkerID) (List[StandingApproval], error) {
	return get[List[StandingApproval]](ctx, c, workerPath(agent, worker, "approvals"), nil)
}

// RemoveApproval asks the worker to remove a standing approval.
func (c *Client) RemoveApproval(ctx context.Context, agent AgentID, worker WorkerID, id string) (StandingApproval, error) {
	var out StandingApproval
	_, err := c.do(ctx, call{method: http.MethodDelete, path: workerPath(agent, worker, "approvals", id)}, &out)
	return out, err
}

// Poll lists what the worker may claim, and what waits at a gate; it is held up to wait, in
// whole seconds, while there is nothing to claim.
func (c *Client) Poll(ctx context.Context, agent AgentID, worker WorkerID, instance string, wait time.Duration) (PollAnswer, error) {
	q := url.Values{"instanceId": {instance}}
	if wait > 0 {
		q.Set("wait", strconv.FormatInt(int64(wait/time.Second), 10))
	}
	var out PollAnswer
	_, err := c.do(ctx, call{method: http.MethodGet, path: workerPath(agent, worker, "sessions"), query: q, held: wait}, &out)
	return out, err
}

// Claim asks for one session.
func (c *Client) Claim(ctx context.Context, agent AgentID, worker WorkerID, id SessionID, in ClaimRequest) (Claim, error) {
	return post[Claim](ctx, c, workerPath(agent, worker, "sessions", id.String(), "claim"), in)
}

// ClaimNext asks for the best eligible session of any of the request's workers. It is nil when
// the wait ended without one. The same RequestID gets the same claim, so a call without an
// answer is repeated unchanged.
func (c *Client) ClaimNext(ctx context.Context, in ClaimNextRequest) (*Claim, error) {
	out := new(Claim)
	k := call{method: http.MethodPost, path: "claim-next", body: in, held: time.Duration(in.WaitSeconds) * time.Second}
	resp, err := c.do(ctx, k, out)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	return out, nil
}

// Held makes the writes under one claim.
type Held struct {
	Agent   AgentID
	Worker  WorkerID
	Session SessionID
}

func (h Held) path(verb string) string {
	return workerPath(h.Agent, h.Worker, "sessions", h.Session.String(), verb)
}

// Renew moves the lease to now + its length.
func (c *Client) Renew(ctx context.Context, h Held, in RenewRequest) (Lease, error) {
	return post[Lease](ctx, c, h.path("renew"), in)
}

// Extend stretches the lease once.
func (c *Client) Extend(ctx context.Context, h Held, in ExtendRequest) (Lease, error) {
	return post[Lease](ctx, c, h.path("extend"), in)
}

// Complete finishes the session well. Repeated with the same body it gets the same answer.
func (c *Client) Complete(ctx context.Context, h Held, in CompleteRequest) (Finished, error) {
	return post[Finished](ctx, c, h.path("complete"), in)
}

// Fail finishes the session in error. Repeated with the same body it gets the same answer.
func (c *Client) Fail(ctx context.Context, h Held, in FailRequest) (Finished, error) {
	return post[Finished](ctx, c, h.path("fail"), in)
}

// Release gives the session back undone. Repeated with the same body it gets the same answer.
func (c *Client) Release(ctx context.Context, h Held, in ReleaseRequest) (Finished, error) {
	return post[Finished](ctx, c, h.path("release"), in)
}

// AddActivity appends an activity; a repeated key adds no second one.
func (c *Client) AddActivity(ctx context.Context, h Held, in ActivityInput) (Activity, error) {
	return post[Activity](ctx, c, h.path("activities"), in)
}

// AddItems appends a batch of items; repeated client ids add no second ones.
func (c *Client) AddItems(ctx context.Context, h Held, in ItemsRequest) (ItemsAnswer, error) {
	return post[ItemsAnswer](ctx, c, h.path("items"), in)
}

// PatchSession changes the session's own fields, or opens and withdraws its prompt.
func (c *Client) PatchSession(ctx context.Context, h Held, in SessionPatch) (Session, error) {
	var out Session
	k := call{method: http.MethodPatch, path: workerPath(h.Agent, h.Worker, "sessions", h.Session.String()), body: in}
	_, err := c.do(ctx, k, &out)
	return out, err
}

// KeepLateResult keeps on the thread a result that came after its claim ended (contract 10.8).
func (c *Client) KeepLateResult(ctx context.Context, thread ThreadID, in CompleteRequest) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: path("threads", thread.String(), "late-results"), body: in}, nil)
	return err
}
