package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// The types of events. A type says what happened; the session's new status, if
// it changed, is in the data.
const (
	evSessionCreated   = "session_created"
	evSessionQueued    = "session_queued"
	evSessionClaimed   = "session_claimed"
	evSessionReleased  = "session_released"
	evSessionStale     = "session_stale"
	evSessionComplete  = "session_complete"
	evSessionError     = "session_error"
	evSessionCancelled = "session_cancelled"
	evSessionArchived  = "session_archived"
	evStopRequested    = "stop_requested"
	evAwaitingInput    = "session_awaiting_input"
	evSessionResumed   = "session_resumed"
	evPromptClosed     = "prompt_closed"
	evMessagePosted    = "message_posted"
	evThreadActive     = "thread_active"
	evThreadCompleted  = "thread_completed"
	evThreadFailed     = "thread_failed"
	evClaimDrained     = "claim_drained"
	evLeaseExtended    = "lease_extended"
	evActivity         = "activity"
	evReported         = "session_reported"
	evLateResult       = "late_result"
	evAgentCreated     = "agent_created"
	evAgentEdited      = "agent_edited"
	evAgentPaused      = "agent_paused"
	evAgentResumed     = "agent_resumed"
	evAgentDeleted     = "agent_deleted"
	evSlotDecided      = "slot_decided"
	evScheduleError    = "schedule_error"
	evWorkerRegistered = "worker_registered"
	evWorkerOnline     = "worker_online"
	evWorkerStale      = "worker_stale"
	evWorkerOffline    = "worker_offline"
	evWorkerDeleted    = "worker_deleted"
	evWorkerEdited     = "worker_edited"
	evSignalSent       = "signal_sent"
	evSignalAcked      = "signal_acknowledged"
	evOutage           = "coordinator_outage"
	evWorkspaceCreated = "workspace_created"
	evWorkspaceRenamed = "workspace_renamed"
	evInvited          = "member_invited"
	evMemberJoined     = "member_joined"
	evMemberRole       = "member_role_changed"
	evMemberRemoved    = "member_removed"
	evKeyCreated       = "key_created"
	evKeyRevoked       = "key_revoked"

	evSignInRefused    = "sign_in_refused"
	evSignedIn         = "signed_in" // through an external provider
	evIdentityLinked   = "identity_linked"
	evIdentityUnlinked = "identity_unlinked"
	evProgramSignedIn  = "program_signed_in"
	evProgramSignedOut = "program_signed_out"
	evProgramReused    = "program_token_reused"
	evProgramRevoked   = "program_revoked" // its registration

	evInvitationRevoked = "invitation_revoked"
	evClockBack         = "clock_set_back"
	evWebhookCreated    = "webhook_created"
	evWebhookEdited     = "webhook_edited"
	evWebhookRotated    = "webhook_rotated"
	evWebhookDisabled   = "webhook_disabled"
	evWebhookDeleted    = "webhook_deleted"
	evTriggerOpened     = "trigger_url_opened"
	evTriggerClosed     = "trigger_url_closed"
)

// eventTypes are all of them, for those who filter by one.
var eventTypes = []string{
	evSessionCreated, evSessionQueued, evSessionClaimed, evSessionReleased, evSessionStale, evSessionComplete,
	evSessionError, evSessionCancelled, evSessionArchived, evStopRequested, evAwaitingInput, evSessionResumed,
	evPromptClosed, evMessagePosted, evThreadActive, evThreadCompleted, evThreadFailed, evClaimDrained, evLeaseExtended, evActivity, evReported, evLateResult, evAgentCreated,
	evAgentEdited, evAgentPaused, evAgentResumed, evAgentDeleted, evSlotDecided, evScheduleError,
	evWorkerRegistered, evWorkerOnline, evWorkerStale, evWorkerOffline, evWorkerDeleted,
	evWorkerEdited, evSignalSent, evSignalAcked, evOutage, evClockBack,
	evWebhookCreated, evWebhookEdited, evWebhookRotated, evWebhookDisabled, evWebhookDeleted, evTriggerOpened, evTriggerClosed,
	evWorkspaceCreated, evWorkspaceRenamed, evInvited, evInvitationRevoked, evMemberJoined, evMemberRole,
	evMemberRemoved, evKeyCreated, evKeyRevoked, evSignInRefused, evSignedIn, evIdentityLinked, evIdentityUnlinked, evProgramSignedIn, evProgramSignedOut, evProgramReused, evProgramRevoked,
}

const (
	actorSystem    = "system"
	actorScheduler = "scheduler"
	actorDeadline  = "deadline" // of a prompt
)

type event struct {
	workspace api.WorkspaceID
	agent     api.AgentID
	session   api.SessionID
	actor     string
	kind      string
	data      api.EventData
}

// log appends an event in the transaction that makes the change, and wakes the
// streams after its commit.
func (e *Engine) logEvent(tx *db.Tx, ev event) error {
	_, err := e.logNumbered(tx, ev)
	return err
}

// logNumbered is logEvent and answers the event's number.
func (e *Engine) logNumbered(tx *db.Tx, ev event) (int64, error) {
	ev.data = whence(tx, ev.data)
	data := ""
	if len(ev.data) > 0 {
		b, err := json.Marshal(ev.data)
		if err != nil {
			return 0, fmt.Errorf("write the data of event %s: %w", ev.kind, err)
		}
		data = string(b)
	}
	seq := tx.NextEvent()
	err := tx.InsertEvent(wctx(), queries.InsertEventParams{
		Seq: seq, WorkspaceID: ev.workspace, AgentID: ev.agent, SessionID: ev.session,
		At: micros(tx.Now), Actor: ev.actor, Type: ev.kind, Data: data,
	})
	if err != nil {
		return 0, fmt.Errorf("append event %s: %w", ev.kind, err)
	}
	tx.AfterCommit(e.events.wake)
	return seq, nil
}

// What the data of an event says of where its call came from, if not from here.
const (
	dataFrom = "address"
	dataVia  = "via"
)

func whence(tx *db.Tx, data api.EventData) api.EventData {
	if tx.From == "" && tx.Via == "" {
		return data
	}
	out := maps.Clone(data)
	if out == nil {
		out = api.EventData{}
	}
	if tx.From != "" {
		out[dataFrom] = tx.From
	}
	if tx.Via != "" {
		out[dataVia] = tx.Via
	}
	return out
}

func (e *Engine) logSession(tx *db.Tx, s *sessionRow, actor, kind string, data api.EventData) error {
	return e.logEvent(tx, event{session: s.ID, actor: actor, kind: kind, data: data})
}

func (e *Engine) logAgent(tx *db.Tx, a *agentRow, actor, kind string, data api.EventData) error {
	return e.logEvent(tx, event{workspace: a.WorkspaceID, agent: a.ID, actor: actor, kind: kind, data: data})
}

func toEvent(r queries.Event) api.Event {
	ev := api.Event{Seq: r.Seq, At: api.At(r.At), Type: r.Type, Actor: r.Actor, AgentID: r.AgentID, SessionID: r.SessionID, Data: api.EventData{}}
	if r.Data == "" {
		return ev
	}
	if err := json.Unmarshal([]byte(r.Data), &ev.Data); err != nil {
		ev.Data = api.EventData{"unreadable": r.Data}
	}
	return ev
}

// Events returns what happened after a sequence number, oldest first, as far as
// the caller may see it. limit is clamped to 1–1000.
func (e *Engine) Events(ctx context.Context, c Caller, after int64, limit int) ([]api.Event, error) {
	out := []api.Event{}
	err := e.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.EventsAfter(ctx, queries.EventsAfterParams{
			After: after, WorkspaceID: c.WorkspaceID, Me: c.UserID, N: int64(min(max(limit, 1), 1000)),
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			ev := toEvent(r.Event)
			ev.AgentID = api.AgentID(r.Agent)
			out = append(out, ev)
		}
		return newEyes(tx, c.WorkspaceID, c.UserID).dimAll(ctx, out)
	})
	return out, err
}

// EventRange returns the oldest and the newest sequence number that are kept; 0, 0 when there is none.
func (e *Engine) EventRange(ctx context.Context) (oldest, newest int64, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if newest, err = tx.Counter(ctx, "event"); err != nil {
			return err
		}
		oldest, err = tx.OldestEvent(ctx)
		return err
	})
	return oldest, newest, err
}

// LastEvent returns the newest sequence number, 0 when there is none.
func (e *Engine) LastEvent(ctx context.Context) (int64, error) {
	_, newest, err := e.EventRange(ctx)
	return newest, err
}

// SessionEvents returns the session's timeline, newest first.
func (e *Engine) SessionEvents(ctx context.Context, c Caller, id api.SessionID, page api.Page) (api.List[api.Event], error) {
	var out api.List[api.Event]
	n, before, err := pageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		s, err := visible(ctx, tx, c, id)
		if err != nil {
			return err
		}
		rows, err := tx.EventsOfSession(ctx, queries.EventsOfSessionParams{SessionID: id, Before: before, N: n + 1})
		if err != nil {
			return fmt.Errorf("list the events of session %s: %w", id, err)
		}
		out = listOf(rows, n, func(r queries.Event) api.Event {
			ev := toEvent(r)
			ev.AgentID = s.AgentID
			return ev
		}, func(r queries.Event) int64 { return r.Seq })
		return newEyes(tx, c.WorkspaceID, c.UserID).dimAll(ctx, out.Items)
	})
	return out, err
}
