package api

// The types of events. A type says what happened; the session's new status, if
// it changed, is in the data.
const (
	EventSessionCreated   = "session_created"
	EventSessionQueued    = "session_queued"
	EventSessionClaimed   = "session_claimed"
	EventSessionReleased  = "session_released"
	EventSessionStale     = "session_stale"
	EventSessionComplete  = "session_complete"
	EventSessionError     = "session_error"
	EventSessionCancelled = "session_cancelled"
	EventSessionArchived  = "session_archived"
	EventSessionKept      = "session_kept"   // retention leaves it alone
	EventSessionLetGo     = "session_let_go" // … no more
	EventStopRequested    = "stop_requested"
	EventAwaitingInput    = "session_awaiting_input"
	EventSessionResumed   = "session_resumed"
	EventPromptClosed     = "prompt_closed"
	EventMessagePosted    = "message_posted"
	EventThreadActive     = "thread_active"
	EventThreadCompleted  = "thread_completed"
	EventThreadFailed     = "thread_failed"
	EventClaimDrained     = "claim_drained"
	EventLeaseExtended    = "lease_extended"
	EventActivity         = "activity"
	EventReported         = "session_reported"
	EventLateResult       = "late_result"
	EventChangesRecorded  = "changes_recorded" // what it changed in its repository
	EventLandingRequested = "landing_requested"
	EventLandingDone      = "landing_done"
	EventLandingRefused   = "landing_refused"
	EventLandingWithdrawn = "landing_withdrawn"
	EventAgentCreated     = "agent_created"
	EventAgentEdited      = "agent_edited"
	EventAgentPaused      = "agent_paused"
	EventAgentResumed     = "agent_resumed"
	EventAgentDeleted     = "agent_deleted"
	EventSlotDecided      = "slot_decided"
	EventSlotsSkipped     = "slots_skipped" // somebody asked that no slot up to an instant fires
	EventSlotsKept        = "slots_kept"    // … and took that back
	EventScheduleError    = "schedule_error"
	EventWorkerRegistered = "worker_registered"
	EventWorkerOnline     = "worker_online"
	EventWorkerStale      = "worker_stale"
	EventWorkerOffline    = "worker_offline"
	EventWorkerDeleted    = "worker_deleted"
	EventWorkerEdited     = "worker_edited"
	EventSignalSent       = "signal_sent"
	EventSignalAcked      = "signal_acknowledged"
	EventApprovalGiven    = "standing_approval_given" // a worker's owner allowed something from now on
	EventApprovalRemoval  = "standing_approval_removal_requested"
	EventApprovalRemoved  = "standing_approval_removed"
	EventOutage           = "coordinator_outage"
	EventBackupMade       = "backup_made"
	EventBackupFailed     = "backup_failed"
	EventRestored         = "backup_restored"
	EventPruned           = "retention_pruned" // what was old was removed
	EventWorkspaceCreated = "workspace_created"
	EventWorkspaceRenamed = "workspace_renamed"
	EventInvited          = "member_invited"
	EventMemberJoined     = "member_joined"
	EventMemberRole       = "member_role_changed"
	EventMemberRemoved    = "member_removed"
	EventKeyCreated       = "key_created"
	EventKeyRevoked       = "key_revoked"

	EventSignInRefused    = "sign_in_refused"
	EventSignedIn         = "signed_in" // through an external provider
	EventIdentityLinked   = "identity_linked"
	EventIdentityUnlinked = "identity_unlinked"
	EventProgramSignedIn  = "program_signed_in"
	EventProgramSignedOut = "program_signed_out"
	EventProgramReused    = "program_token_reused"
	EventProgramRevoked   = "program_revoked" // its registration

	EventInvitationRevoked = "invitation_revoked"
	EventClockBack         = "clock_set_back"
	EventWebhookCreated    = "webhook_created"
	EventWebhookEdited     = "webhook_edited"
	EventWebhookRotated    = "webhook_rotated"
	EventWebhookDisabled   = "webhook_disabled"
	EventWebhookDeleted    = "webhook_deleted"
	EventChannelCreated    = "channel_created"
	EventChannelEdited     = "channel_edited"
	EventChannelDisabled   = "channel_disabled"
	EventChannelDeleted    = "channel_deleted"
	EventTriggerOpened     = "trigger_url_opened"
	EventTriggerClosed     = "trigger_url_closed"

	EventFindingOpened = "finding_opened" // something is wrong that a person should know
	EventFindingClosed = "finding_closed"

	EventTaskCreated    = "task_created"
	EventTaskEdited     = "task_edited"
	EventTaskMoved      = "task_moved" // a rule changed its state
	EventTaskCommented  = "task_commented"
	EventTaskClaimed    = "task_claimed"
	EventTaskExtended   = "task_lease_extended"
	EventTaskReleased   = "task_released"
	EventTaskLapsed     = "task_lapsed"
	EventTaskDispatched = "task_dispatched"
)

// EventTypes are all of them, for those who filter by one.
var EventTypes = []string{
	EventSessionCreated, EventSessionQueued, EventSessionClaimed, EventSessionReleased, EventSessionStale, EventSessionComplete,
	EventSessionError, EventSessionCancelled, EventSessionArchived, EventSessionKept, EventSessionLetGo, EventStopRequested, EventAwaitingInput, EventSessionResumed,
	EventPromptClosed, EventMessagePosted, EventThreadActive, EventThreadCompleted, EventThreadFailed, EventClaimDrained, EventLeaseExtended, EventActivity, EventReported, EventLateResult,
	EventChangesRecorded, EventLandingRequested, EventLandingDone, EventLandingRefused, EventLandingWithdrawn, EventAgentCreated,
	EventAgentEdited, EventAgentPaused, EventAgentResumed, EventAgentDeleted, EventSlotDecided, EventSlotsSkipped, EventSlotsKept, EventScheduleError,
	EventWorkerRegistered, EventWorkerOnline, EventWorkerStale, EventWorkerOffline, EventWorkerDeleted,
	EventWorkerEdited, EventSignalSent, EventSignalAcked, EventApprovalGiven, EventApprovalRemoval, EventApprovalRemoved, EventOutage, EventClockBack, EventBackupMade, EventBackupFailed, EventRestored, EventPruned,
	EventWebhookCreated, EventWebhookEdited, EventWebhookRotated, EventWebhookDisabled, EventWebhookDeleted, EventTriggerOpened, EventTriggerClosed,
	EventChannelCreated, EventChannelEdited, EventChannelDisabled, EventChannelDeleted,
	EventWorkspaceCreated, EventWorkspaceRenamed, EventInvited, EventInvitationRevoked, EventMemberJoined, EventMemberRole,
	EventMemberRemoved, EventKeyCreated, EventKeyRevoked, EventSignInRefused, EventSignedIn, EventIdentityLinked, EventIdentityUnlinked, EventProgramSignedIn, EventProgramSignedOut, EventProgramReused, EventProgramRevoked,
	EventTaskCreated, EventTaskEdited, EventTaskMoved, EventTaskCommented, EventTaskClaimed, EventTaskExtended, EventTaskReleased,
	EventTaskLapsed, EventTaskDispatched, EventFindingOpened, EventFindingClosed,
}

// Who did it when nobody did.
const (
	ActorSystem    = "system"
	ActorScheduler = "scheduler"
	ActorDeadline  = "deadline" // of a prompt
)
