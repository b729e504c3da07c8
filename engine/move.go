package engine

import (
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// transitions is the one table of status changes (contract 2.3): from → to.
var transitions = map[api.Status][]api.Status{
	api.Pending:       {api.Queued, api.Cancelled},
	api.Queued:        {api.Active, api.Failed, api.Cancelled},
	api.Stale:         {api.Active, api.Queued, api.Failed, api.Cancelled},
	api.Active:        {api.AwaitingInput, api.Queued, api.Pending, api.Complete, api.Failed, api.Stale, api.Cancelled},
	api.AwaitingInput: {api.Active, api.Queued, api.Pending, api.Complete, api.Failed, api.Stale, api.Cancelled},
}

// Allowed reports whether the table has a change from one status to another.
func Allowed(from, to api.Status) bool {
	for _, s := range transitions[from] {
		if s == to {
			return true
		}
	}
	return false
}

// move changes a session's status: nothing else does. The caller has filled next, a copy of
// before with the new values; the statement repeats the old status and the old live claim, and
// the event goes into the same transaction.
func (e *Engine) move(tx *db.Tx, before *sessionRow, next sessionRow, actor, kind string, data api.EventData) (*sessionRow, error) {
	if !Allowed(before.Status, next.Status) {
		return nil, fmt.Errorf("session %s can't go from %s to %s", before.ID, before.Status, next.Status)
	}
	if next.Status.Running() != (next.ClaimID != 0) {
		return nil, fmt.Errorf("session %s would be %s with live claim %d", before.ID, next.Status, next.ClaimID)
	}
	now := db.Micros(tx.Now)
	stamp(&next, now)
	err := db.One(tx.MoveSession(tx.Context(), queries.MoveSessionParams{
		Status: next.Status, ClaimID: next.ClaimID, WorkerID: next.WorkerID, Fence: next.Fence, QueuedAt: next.QueuedAt,
		StartedAt: next.StartedAt, EndedAt: next.EndedAt, AdmitAt: next.AdmitAt, NotBefore: next.NotBefore,
		OverlapHeld: next.OverlapHeld, PromptID: next.PromptID, ReclaimAt: next.ReclaimAt, AffinityUntil: next.AffinityUntil,
		ProcessID: next.ProcessID, StopRequestedAt: next.StopRequestedAt, Lapses: next.Lapses, Releases: next.Releases, Tries: next.Tries, Result: next.Result,
		Outcome: next.Outcome, ErrorCode: next.ErrorCode, ErrorMessage: next.ErrorMessage, PlaceAt: next.PlaceAt,
		Instructions: next.Instructions,
		ID:           before.ID, FromStatus: before.Status, FromClaimID: before.ClaimID,
	}))
	if err != nil {
		return nil, fmt.Errorf("move session %s from %s to %s: %w", before.ID, before.Status, next.Status, err)
	}
	tx.KeepSession(&next)
	if data == nil {
		data = api.EventData{}
	}
	data["from"], data["to"] = before.Status, next.Status
	if next.Status.Terminal() && next.Outcome != "" {
		data["outcome"] = next.Outcome // what is complete may have been stopped
	}
	if next.Status.Terminal() && next.Refused > 0 {
		data["refused"] = next.Refused
	}
	if err := e.logSession(tx, &next, actor, kind, data); err != nil {
		return nil, err
	}
	if was, now := api.ThreadState(before.Status), api.ThreadState(next.Status); now != was && now != api.ThreadPending {
		if err := e.logThread(tx, &next, actor, now); err != nil {
			return nil, err
		}
	}
	if next.Status == api.Queued || next.Status == api.Stale {
		e.offer(next.AgentID)
		if next.ReclaimAt > 0 || next.AffinityUntil > 0 {
			tx.AfterCommit(e.lift.Wake)
		}
	}
	if next.TaskID != 0 {
		if err := e.taskFollows(tx, before, &next, actor); err != nil {
			return nil, err
		}
	}
	if next.Status.Terminal() {
		e.observeEnd(tx, &next)
		if err := e.ended(tx, &next, actor); err != nil {
			return nil, err
		}
	}
	return &next, nil
}

// stamp sets what follows from a session's new status alone.
func stamp(next *sessionRow, now int64) {
	if next.Status == api.Queued || next.Status == api.Stale {
		next.QueuedAt = now
		if next.PlaceAt == 0 {
			next.PlaceAt = now // else it was given back and keeps its place (contract 2.6)
		}
	}
	if next.Status != api.Pending {
		next.AdmitAt, next.OverlapHeld = 0, 0
	}
	if next.Status.Terminal() {
		next.EndedAt = now
		next.AffinityUntil = 0
	}
}

// ended does what follows from the end of a session, in the same transaction: its open prompt
// is closed, it is counted in the figures of the day, its followers continue or are cancelled, a series of failures may pause the
// agent.
func (e *Engine) ended(tx *db.Tx, s *sessionRow, actor string) error {
	if s.PromptID != 0 {
		return fmt.Errorf("session %s ended with an open prompt", s.ID)
	}
	if err := e.forgetSecrets(tx, s); err != nil {
		return err
	}
	if err := count(tx, s); err != nil {
		return err
	}
	if s.Followers > 0 {
		if err := e.releaseFollowers(tx, s); err != nil {
			return fmt.Errorf("go on after session %s: %w", s.ID, err)
		}
	}
	if s.Status == api.Complete {
		if err := e.goOn(tx, s); err != nil {
			return fmt.Errorf("go on with the conversation of session %s: %w", s.ID, err)
		}
	}
	if s.TriggeredBy == api.ByScheduler {
		if err := e.countOutcome(tx, s); err != nil {
			return fmt.Errorf("count the outcome of session %s: %w", s.ID, err)
		}
		// A cancelled waiting run may have been the only thing that held the next one back.
		return e.admitHeld(tx, s.AgentID)
	}
	return nil
}

func (e *Engine) releaseFollowers(tx *db.Tx, s *sessionRow) error {
	rows, err := tx.Followers(tx.Context(), s.ID)
	if err != nil {
		return err
	}
	for i := range rows {
		f := &rows[i]
		if s.Status != api.Complete && f.AfterAny == 0 {
			next := *f
			next.Status = api.Cancelled
			next.ErrorCode = "predecessor_failed"
			next.ErrorMessage = fmt.Sprintf("Session %s, which this one waited for, ended as %s.", s.ID, s.Status)
			if _, err := e.move(tx, f, next, api.ActorSystem, api.EventSessionCancelled, api.EventData{"reason": next.ErrorCode}); err != nil {
				return err
			}
			continue
		}
		if err := e.tryAdmit(tx, f); err != nil {
			return err
		}
	}
	return nil
}

// closePrompt closes the open prompt of next, if there is one. It must run
// before the move that ends or requeues the session.
func (e *Engine) closePrompt(tx *db.Tx, next *sessionRow, actor, resolution string) error {
	if next.PromptID == 0 {
		return nil
	}
	p, err := promptOf(tx.Context(), tx, next)
	if err != nil {
		return fmt.Errorf("read prompt %s: %w", next.PromptID, err)
	}
	err = db.One(tx.ClosePrompt(tx.Context(), queries.ClosePromptParams{
		ClosedAt: db.Micros(tx.Now), ClosedBy: actor, Resolution: resolution, ID: next.PromptID,
	}))
	if err != nil && p.Text != gone {
		return fmt.Errorf("close prompt %s: %w", next.PromptID, err)
	}
	by, err := e.nameOf(tx, actor)
	if err != nil {
		return err
	}
	err = e.addItem(tx, queries.InsertItemParams{
		SessionID: next.ID, Kind: api.ItemPromptResolved, Text: resolution + " by " + by,
		ClientID: "prompt-" + next.PromptID.String(), CallID: next.PromptID.String(),
	})
	if err != nil {
		return err
	}
	id := next.PromptID
	next.PromptID = 0
	return e.logSession(tx, next, actor, api.EventPromptClosed, api.EventData{"prompt": id.String(), "resolution": resolution})
}
