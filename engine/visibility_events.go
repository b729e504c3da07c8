package engine

import (
	"context"
	"fmt"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// thing is the kind of thing that an event is about. The rule by which things of that kind are
// listed decides who may see an event (contract 9.3).
type thing int

const (
	aboutNothing thing = iota // for those who may read the audit
	aboutSession
	aboutAgent
	aboutWorker
	aboutApproval // a standing approval, its worker owner's alone
	aboutWorkspace
	aboutMember
	aboutInvitation
	aboutKey
	aboutWebhook
	aboutChannel
	aboutTrigger
	aboutSignIn
	aboutTask
	aboutHouse // the coordinator itself: for those who may read the audit
	aboutFinding
)

// about is what each type of event is about.
var about = map[string]thing{
	api.EventSessionCreated: aboutSession, api.EventSessionQueued: aboutSession, api.EventSessionClaimed: aboutSession, api.EventSessionReleased: aboutSession,
	api.EventSessionStale: aboutSession, api.EventSessionComplete: aboutSession, api.EventSessionError: aboutSession, api.EventSessionCancelled: aboutSession,
	api.EventSessionArchived: aboutSession, api.EventSessionKept: aboutSession, api.EventSessionLetGo: aboutSession, api.EventStopRequested: aboutSession, api.EventAwaitingInput: aboutSession, api.EventSessionResumed: aboutSession,
	api.EventPromptClosed: aboutSession, api.EventMessagePosted: aboutSession, api.EventThreadActive: aboutSession, api.EventThreadCompleted: aboutSession,
	api.EventThreadFailed: aboutSession, api.EventClaimDrained: aboutSession, api.EventLeaseExtended: aboutSession, api.EventActivity: aboutSession,
	api.EventReported: aboutSession, api.EventLateResult: aboutSession, api.EventChangesRecorded: aboutSession,
	api.EventLandingRequested: aboutSession, api.EventLandingDone: aboutSession, api.EventLandingRefused: aboutSession, api.EventLandingWithdrawn: aboutSession,

	api.EventAgentCreated: aboutAgent, api.EventAgentEdited: aboutAgent, api.EventAgentPaused: aboutAgent, api.EventAgentResumed: aboutAgent,
	api.EventAgentDeleted: aboutAgent, api.EventSlotDecided: aboutAgent, api.EventSlotsSkipped: aboutAgent, api.EventSlotsKept: aboutAgent, api.EventScheduleError: aboutAgent,

	api.EventWorkerRegistered: aboutWorker, api.EventWorkerOnline: aboutWorker, api.EventWorkerStale: aboutWorker, api.EventWorkerOffline: aboutWorker,
	api.EventWorkerDeleted: aboutWorker, api.EventWorkerEdited: aboutWorker, api.EventSignalSent: aboutWorker, api.EventSignalAcked: aboutWorker,
	api.EventApprovalGiven: aboutApproval, api.EventApprovalRemoval: aboutApproval, api.EventApprovalRemoved: aboutApproval,

	api.EventWorkspaceCreated: aboutWorkspace, api.EventWorkspaceRenamed: aboutWorkspace, api.EventOutage: aboutWorkspace, api.EventClockBack: aboutWorkspace,
	api.EventRestored: aboutWorkspace, api.EventBackupMade: aboutHouse, api.EventBackupFailed: aboutHouse, api.EventPruned: aboutHouse,
	api.EventMemberJoined: aboutMember, api.EventMemberRole: aboutMember, api.EventMemberRemoved: aboutMember,
	api.EventInvited: aboutInvitation, api.EventInvitationRevoked: aboutInvitation,
	api.EventKeyCreated: aboutKey, api.EventKeyRevoked: aboutKey,
	api.EventWebhookCreated: aboutWebhook, api.EventWebhookEdited: aboutWebhook, api.EventWebhookRotated: aboutWebhook,
	api.EventWebhookDisabled: aboutWebhook, api.EventWebhookDeleted: aboutWebhook,
	api.EventChannelCreated: aboutChannel, api.EventChannelEdited: aboutChannel, api.EventChannelDisabled: aboutChannel, api.EventChannelDeleted: aboutChannel,
	api.EventTriggerOpened: aboutTrigger, api.EventTriggerClosed: aboutTrigger,

	api.EventSignInRefused: aboutSignIn, api.EventSignedIn: aboutSignIn, api.EventIdentityLinked: aboutSignIn, api.EventIdentityUnlinked: aboutSignIn,
	api.EventProgramSignedIn: aboutSignIn, api.EventProgramSignedOut: aboutSignIn, api.EventProgramReused: aboutSignIn, api.EventProgramRevoked: aboutSignIn,

	api.EventTaskCreated: aboutTask, api.EventTaskEdited: aboutTask, api.EventTaskMoved: aboutTask, api.EventTaskCommented: aboutTask,
	api.EventTaskClaimed: aboutTask, api.EventTaskExtended: aboutTask, api.EventTaskReleased: aboutTask, api.EventTaskLapsed: aboutTask,
	api.EventTaskDispatched: aboutTask,

	api.EventFindingOpened: aboutFinding, api.EventFindingClosed: aboutFinding,
}

// neededFor are the parts of an event's data that belong to another kind of thing than the
// event is about, and the right that it takes to see them.
var neededFor = map[string]account.Right{
	"invitation": account.ManageMembers, "invitedBy": account.ManageMembers,
	db.DataFrom: account.Audit, db.DataVia: account.Audit,
}

// seesKind reports whether the thing that a type of event is about is visible to the reader.
// It doesn't check the event's own session. What is gone without a trace is for those who may
// read the audit.
func (v *visibility) seesKind(ctx context.Context, kind string, agent api.AgentID, data map[string]any) (bool, error) {
	switch about[kind] {
	case aboutSession, aboutAgent, aboutWorkspace, aboutMember, aboutTask:
		return true, nil
	case aboutInvitation:
		return v.caller.Can(account.ManageMembers), nil
	case aboutWebhook:
		return v.caller.Can(account.ManageWebhooks), nil
	case aboutChannel:
		return v.knowsChannel(ctx, data["channel"])
	case aboutWorker:
		return v.knowsWorker(ctx, data["worker"], func(w *workerRow) bool { return seesWorker(v.caller, w) })
	case aboutApproval:
		return v.knowsWorker(ctx, data["worker"], func(w *workerRow) bool { return seesWorker(v.caller, w) && ownApprovals(v.caller, w) == nil })
	case aboutKey:
		return v.knowsKey(ctx, data["key"])
	case aboutTrigger:
		return v.knowsTriggers(ctx, agent)
	case aboutFinding:
		kind, _ := data["finding"].(string)
		return seesFinding(v.caller, api.Cause(kind)), nil
	}
	return v.caller.Can(account.Audit), nil
}

func (v *visibility) knowsWorker(ctx context.Context, named any, seen func(*workerRow) bool) (bool, error) {
	id, ok := idNamed(named, api.ParseWorkerID)
	w, err := remember(v.cache.workers, id, func() (workerRow, error) { return v.cache.q.WorkerEvenDeleted(ctx, id) })
	if err != nil {
		return false, fmt.Errorf("look who sees worker %s: %w", id, err)
	}
	if !ok || w == nil {
		return v.caller.Can(account.Audit), nil
	}
	return seen(w), nil
}

func (v *visibility) knowsKey(ctx context.Context, named any) (bool, error) {
	id, ok := idNamed(named, parseKeyID)
	k, err := remember(v.cache.keys, id, func() (queries.ApiKey, error) { return v.cache.q.Key(ctx, id) })
	if err != nil {
		return false, fmt.Errorf("look who sees API key %s: %w", id, err)
	}
	if !ok || k == nil {
		return v.caller.Can(account.Audit), nil
	}
	return v.caller.SeesKey(k), nil
}

func (v *visibility) knowsChannel(ctx context.Context, named any) (bool, error) {
	id, ok := idNamed(named, parseChannelID)
	w, err := remember(v.cache.channels, id, func() (queries.Webhook, error) { return v.cache.q.WebhookEvenDeleted(ctx, api.WebhookID(id)) })
	if err != nil {
		return false, fmt.Errorf("look who sees channel %s: %w", id, err)
	}
	if !ok || w == nil {
		return v.caller.Can(account.Audit), nil
	}
	return seesChannel(v.caller, w), nil
}

func parseChannelID(text string) (id api.ChannelID, err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

func parseKeyID(text string) (id api.KeyID, err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

func (v *visibility) knowsTriggers(ctx context.Context, id api.AgentID) (bool, error) {
	a, err := remember(v.cache.agents, id, func() (agentRow, error) { return v.cache.q.AgentEvenDeleted(ctx, id) })
	if err != nil {
		return false, fmt.Errorf("look who sees the trigger URLs of agent %s: %w", id, err)
	}
	if a == nil {
		return v.caller.Can(account.Audit), nil
	}
	return mayOpen(v.caller, a) == nil, nil
}

// remember reads a row once; nil when there is none.
func remember[K comparable, R any](known map[K]*R, id K, read func() (R, error)) (*R, error) {
	if row, ok := known[id]; ok {
		return row, nil
	}
	row, err := read()
	switch {
	case db.None(err):
		known[id] = nil
	case err != nil:
		return nil, err
	default:
		known[id] = &row
	}
	return known[id], nil
}

func idNamed[ID comparable](value any, parse func(string) (ID, error)) (id ID, ok bool) {
	text, ok := value.(string)
	if !ok {
		return id, false
	}
	id, err := parse(text)
	var zero ID
	return id, err == nil && id != zero
}
