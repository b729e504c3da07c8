package engine

import (
	"slices"

	"stint/api"
)

// right is something that not everybody in a workspace may do.
type right int

const (
	mayRead right = iota
	mayTriggerLocal
	mayTriggerCloud
	mayCancelOwn
	mayCancelAny
	mayRetryOwn
	mayRetryAny
	mayArchiveOwn
	mayArchiveAny
	mayAnswerOwn
	mayAnswerAny
	mayEditAgents
	mayDeleteAgents
	mayRunLocalWorkers
	mayRunCloudWorkers
	mayHaveKeys
	mayHaveAllKeys
	mayEditWorkspace
	mayManageMembers
	mayAudit
	mayManageWebhooks
	mayOpenTriggersOwn
	mayOpenTriggersAny
)

// rights is who may do what (contract 8.3): from which role on, by an API key of
// which scope (none = only by a user's own sign-in), and the words of a refusal.
var rights = map[right]struct {
	role  api.Role
	scope api.Scope
	words string
}{
	mayRead:            {api.Viewer, api.ScopeRead, "read this workspace"},
	mayTriggerLocal:    {api.Member, api.ScopeTrigger, "run this agent"},
	mayTriggerCloud:    {api.Admin, api.ScopeTrigger, "run this agent"},
	mayCancelOwn:       {api.Member, api.ScopeCancel, "end this session"},
	mayCancelAny:       {api.Admin, api.ScopeCancel, "end somebody else's session"},
	mayRetryOwn:        {api.Member, api.ScopeTrigger, "retry this session"},
	mayRetryAny:        {api.Admin, api.ScopeTrigger, "retry somebody else's session"},
	mayArchiveOwn:      {api.Member, "", "archive this session"},
	mayArchiveAny:      {api.Admin, "", "archive somebody else's session"},
	mayAnswerOwn:       {api.Member, "", "answer this session"},
	mayAnswerAny:       {api.Admin, "", "answer somebody else's session"},
	mayEditAgents:      {api.Admin, "", "make or change agents"},
	mayDeleteAgents:    {api.Owner, "", "delete this agent"},
	mayRunLocalWorkers: {api.Member, "", "run a worker"},
	mayRunCloudWorkers: {api.Admin, "", "run a cloud worker"},
	mayHaveKeys:        {api.Member, "", "make or revoke API keys"},
	mayHaveAllKeys:     {api.Admin, "", "see or revoke somebody else's API keys"},
	mayAudit:           {api.Admin, "", "read the audit"},
	mayManageWebhooks:  {api.Admin, "", "look at or change webhooks"},
	mayOpenTriggersOwn: {api.Member, "", "open addresses that start this agent"},
	mayOpenTriggersAny: {api.Admin, "", "open addresses that start this agent"},
	mayEditWorkspace:   {api.Admin, "", "change this workspace"},
	mayManageMembers:   {api.Owner, "", "invite, change or remove members"},
}

// lasting are the rights whose exercise outlives a sign-in: what was made by them
// goes on once it has ended. A program that registered itself has none of them.
var lasting = []right{mayHaveKeys, mayHaveAllKeys, mayManageMembers, mayManageWebhooks, mayOpenTriggersOwn, mayOpenTriggersAny}

// may refuses a caller whose role, or whose API key, doesn't reach a right.
func (c Caller) may(what right) error {
	row := rights[what]
	if slices.Contains(lasting, what) {
		if err := inPerson(c.Client); err != nil {
			return err
		}
	}
	if c.Run != nil && what != mayTriggerLocal && what != mayTriggerCloud {
		return UserTokenRequired("")
	}
	if c.KeyID != 0 && (row.scope == "" || !slices.Contains(c.Scopes, row.scope)) {
		return UserTokenRequired(row.scope)
	}
	return c.reach(row.role, row.words)
}

// can is may as a yes or no, for lists and pages.
func (c Caller) can(what right) bool { return c.may(what) == nil }

// CanEditAgents reports whether the caller may make and change agents.
func (c Caller) CanEditAgents() bool { return c.can(mayEditAgents) }

// CanManageMembers reports whether the caller may invite, change and remove members.
func (c Caller) CanManageMembers() bool { return c.can(mayManageMembers) }

// CanHaveKeys reports whether the caller may make API keys.
func (c Caller) CanHaveKeys() bool { return c.can(mayHaveKeys) }

// CanManageWebhooks reports whether the caller may look at and change webhooks.
func (c Caller) CanManageWebhooks() bool { return c.can(mayManageWebhooks) }

// UserTokenRequired refuses an API key where only a user's own sign-in counts,
// or one that lacks the scope (contract 8.2).
func UserTokenRequired(scope api.Scope) *api.Error {
	if scope == "" {
		return api.Refuse(api.CodeUserTokenRequired, "Neither an API key nor a run's token can do this; sign in as a user.")
	}
	return api.Refuse(api.CodeForbidden, "This API key doesn't have the scope “"+string(scope)+"”.")
}
