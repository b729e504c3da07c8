package enginetest

import (
	"context"
	"fmt"

	"stint/api"
	"stint/engine"
)

// Worker is one worker record and the process behind it.
type Worker struct {
	w        *Fixture
	ID       api.WorkerID
	Name     string
	Agent    api.AgentID
	Instance string
	Caller   engine.Caller
}

// Worker registers a worker of an agent that takes up to 10 sessions at once. change may
// change that.
func (w *Fixture) Worker(a api.Agent, change ...func(*api.WorkerInput)) *Worker {
	w.Helper()
	w.workers++
	in := api.WorkerInput{
		Name: fmt.Sprintf("worker-%d", w.workers), InstanceID: fmt.Sprintf("boot-%d", w.workers),
		ProcessID: fmt.Sprintf("process-%d", w.workers), MaxConcurrent: 10,
	}
	for _, c := range change {
		c(&in)
	}
	got, err := w.RegisterWorker(context.Background(), w.Owner, a.ID.String(), in)
	if err != nil {
		w.Fatalf("register a worker: %v", err)
	}
	return &Worker{w: w, ID: got.Worker.ID, Name: in.Name, Agent: a.ID, Instance: in.InstanceID, Caller: w.Owner}
}

// Through returns the same worker talking to another coordinator.
func (k *Worker) Through(w *Fixture) *Worker {
	other := *k
	other.w = w
	return &other
}

// Under is the proof of a claim that a write carries.
func (k *Worker) Under(id api.ClaimID) api.UnderClaim {
	return api.UnderClaim{ClaimID: id, InstanceID: k.Instance}
}

// Try asks for the claim on a session.
func (k *Worker) Try(s api.SessionID, change ...func(*api.ClaimRequest)) (api.Claim, error) {
	in := api.ClaimRequest{InstanceID: k.Instance}
	for _, c := range change {
		c(&in)
	}
	return k.w.Engine.Claim(context.Background(), k.Caller, k.ID, s, in)
}

// Claim claims a session and fails the test if it can't.
func (k *Worker) Claim(s api.SessionID, change ...func(*api.ClaimRequest)) api.Claim {
	k.w.Helper()
	c, err := k.Try(s, change...)
	if err != nil {
		k.w.Fatalf("claim session %s: %v", s, err)
	}
	return c
}

// Next claims the best session there is, nil when there is none.
func (k *Worker) Next(change ...func(*api.ClaimNextRequest)) *api.Claim {
	k.w.Helper()
	in := api.ClaimNextRequest{WorkerIDs: []api.WorkerID{k.ID}, InstanceID: k.Instance}
	for _, c := range change {
		c(&in)
	}
	c, err := k.w.ClaimNext(context.Background(), k.Caller, in)
	if err != nil {
		k.w.Fatalf("claim the next session: %v", err)
	}
	return c
}

// Hold asks for the next session and waits for one, at most a number of seconds.
func (k *Worker) Hold(ctx context.Context, seconds int64) (*api.Claim, error) {
	return k.w.ClaimNext(ctx, k.Caller, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{k.ID}, InstanceID: k.Instance, WaitSeconds: seconds})
}

// Renew renews a claim.
func (k *Worker) Renew(c api.Claim) (api.Lease, error) {
	return k.w.Engine.Renew(context.Background(), k.Caller, k.ID, c.SessionID, api.RenewRequest{UnderClaim: k.Under(c.ClaimID)})
}

// Complete finishes a claim well.
func (k *Worker) Complete(c api.Claim, result string) (api.Finished, error) {
	return k.w.Engine.Complete(context.Background(), k.Caller, k.ID, c.SessionID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Result: result})
}

// Fail finishes a claim in error.
func (k *Worker) Fail(c api.Claim, code string) (api.Finished, error) {
	return k.w.Engine.Fail(context.Background(), k.Caller, k.ID, c.SessionID, api.FailRequest{UnderClaim: k.Under(c.ClaimID), Code: code})
}

// Release gives a claim back.
func (k *Worker) Release(c api.Claim, change ...func(*api.ReleaseRequest)) (api.Finished, error) {
	in := api.ReleaseRequest{UnderClaim: k.Under(c.ClaimID)}
	for _, f := range change {
		f(&in)
	}
	return k.w.Engine.Release(context.Background(), k.Caller, k.ID, c.SessionID, in)
}

// Ask opens a prompt.
func (k *Worker) Ask(c api.Claim, text string) (api.Session, error) {
	return k.w.PatchSession(context.Background(), k.Caller, k.ID, c.SessionID, api.SessionPatch{
		UnderClaim: k.Under(c.ClaimID), Status: api.AwaitingInput, Prompt: &api.PromptInput{Text: text},
	})
}

// Resumable reports an agent session, which later claims prefer to resume here.
func (k *Worker) Resumable(c api.Claim, agentSession string) (api.Session, error) {
	return k.w.PatchSession(context.Background(), k.Caller, k.ID, c.SessionID, api.SessionPatch{
		UnderClaim: k.Under(c.ClaimID), AgentSessionID: &agentSession,
	})
}

// Beat reports that the worker is alive and renews claims.
func (k *Worker) Beat(claims ...api.Claim) api.BeatAnswer {
	k.w.Helper()
	in := api.Beat{InstanceID: k.Instance}
	for _, c := range claims {
		in.ClaimIDs = append(in.ClaimIDs, c.ClaimID)
	}
	out, err := k.w.Engine.Beat(context.Background(), k.Caller, k.ID, in)
	if err != nil {
		k.w.Fatalf("beat: %v", err)
	}
	return out
}

// Drain reports that nothing of these claims runs any more.
func (k *Worker) Drain(claims ...api.Claim) {
	k.w.Helper()
	in := api.Beat{InstanceID: k.Instance}
	for _, c := range claims {
		in.Drained = append(in.Drained, c.ClaimID)
	}
	if _, err := k.w.Engine.Beat(context.Background(), k.Caller, k.ID, in); err != nil {
		k.w.Fatalf("beat: %v", err)
	}
}
