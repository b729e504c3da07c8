package account

import (
	"slices"

	"stint/api"
)

// Right is something that not everybody in a workspace may do.
type Right int

// What there is a right to. Own and Any are over what somebody themselves, and what
// anybody else began.
const (
	Read Right = iota
	TriggerLocal
	TriggerCloud
	CancelOwn
	CancelAny
	RetryOwn
	RetryAny
	ArchiveOwn
	ArchiveAny
	KeepOwn
	KeepAny
	AnswerOwn
	AnswerAny
	EditAgents
	DeleteAgents
	RunLocalWorkers
	RunCloudWorkers
	HaveKeys
	HaveAllKeys
	EditWorkspace
	ManageMembers
	Audit
	ManageWebhooks
	HaveChannels
	OpenTriggersOwn
	OpenTriggersAny
	EditTasks
	ForceTasks
	Examine
	Prune
	SeeCalendar
	LandOwn
	LandAny
	OwnApprovals // of one's own worker
)

// rights is who may do what (contract 8.3): from which role on, by an API key of which scope
// (none = only by a user's own sign-in), and the words of a refusal.
var rights = map[Right]struct {
	role  api.Role
	scope api.Scope
	words string
}{
	Read:            {api.Viewer, api.ScopeRead, "read this workspace"},
	SeeCalendar:     {api.Viewer, api.ScopeCalendar, "read the calendar"},
	TriggerLocal:    {api.Member, api.ScopeTrigger, "run this agent"},
	TriggerCloud:    {api.Admin, api.ScopeTrigger, "run this agent"},
	CancelOwn:       {api.Member, api.ScopeCancel, "end this session"},
	CancelAny:       {api.Admin, api.ScopeCancel, "end somebody else's session"},
	RetryOwn:        {api.Member, api.ScopeTrigger, "retry this session"},
	RetryAny:        {api.Admin, api.ScopeTrigger, "retry somebody else's session"},
	ArchiveOwn:      {api.Member, "", "archive this session"},
	ArchiveAny:      {api.Admin, "", "archive somebody else's session"},
	KeepOwn:         {api.Member, "", "keep this session"},
	KeepAny:         {api.Admin, "", "keep somebody else's session"},
	AnswerOwn:       {api.Member, "", "answer this session"},
	AnswerAny:       {api.Admin, "", "answer somebody else's session"},
	LandOwn:         {api.Member, "", "land changes"},
	LandAny:         {api.Admin, "", "land the changes of a cloud agent"},
	OwnApprovals:    {api.Viewer, "", "see or remove what agents may do from now on"},
	EditAgents:      {api.Admin, "", "make or change agents"},
	DeleteAgents:    {api.Owner, "", "delete this agent"},
	RunLocalWorkers: {api.Member, "", "run a worker"},
	RunCloudWorkers: {api.Admin, "", "run a cloud worker"},
	HaveKeys:        {api.Member, "", "make or revoke API keys"},
	HaveAllKeys:     {api.Admin, "", "see or revoke somebody else's API keys"},
	Audit:           {api.Admin, "", "read the audit"},
	ManageWebhooks:  {api.Admin, "", "look at or change webhooks"},
	HaveChannels:    {api.Viewer, "", "be told of what happens"},
	OpenTriggersOwn: {api.Member, "", "open addresses that start this agent"},
	OpenTriggersAny: {api.Admin, "", "open addresses that start this agent"},
	EditTasks:       {api.Member, api.ScopeTasks, "make, change or claim tasks"},
	ForceTasks:      {api.Admin, api.ScopeTasks, "dispatch a task that somebody holds"},
	Examine:         {api.Admin, "", "look for what is wrong with the server"},
	Prune:           {api.Owner, "", "remove what is old"},
	EditWorkspace:   {api.Admin, "", "change this workspace"},
	ManageMembers:   {api.Owner, "", "invite, change or remove members"},
}

// lasting are the rights whose exercise outlasts a sign-in: what was created with them stays
// once it has ended. A program that registered itself has none of them.
var lasting = []Right{HaveKeys, HaveAllKeys, ManageMembers, ManageWebhooks, HaveChannels, OpenTriggersOwn, OpenTriggersAny, LandOwn, LandAny, OwnApprovals}

// Role is the lowest that has a right.
func (r Right) Role() api.Role { return rights[r].role }

// May refuses a caller whose role, or whose API key, doesn't reach a right.
func (c Caller) May(what Right) error {
	row := rights[what]
	if slices.Contains(lasting, what) {
		if err := InPerson(c.Client); err != nil {
			return err
		}
	}
	if c.Run != nil && what != TriggerLocal && what != TriggerCloud {
		return UserTokenRequired("")
	}
	if c.KeyID != 0 && (row.scope == "" || !slices.Contains(c.Scopes, row.scope)) {
		return UserTokenRequired(row.scope)
	}
	return c.reach(row.role, row.words)
}

// Can is May as a yes or no, for lists and pages.
func (c Caller) Can(what Right) bool { return c.May(what) == nil }

// CanEditAgents reports whether the caller may make and change agents.
func (c Caller) CanEditAgents() bool { return c.Can(EditAgents) }

// CanManageMembers reports whether the caller may invite, change and remove members.
func (c Caller) CanManageMembers() bool { return c.Can(ManageMembers) }

// CanEditTasks reports whether the caller makes, changes, claims and dispatches tasks.
func (c Caller) CanEditTasks() bool { return c.Can(EditTasks) }

// CanHaveKeys reports whether the caller may make API keys.
func (c Caller) CanHaveKeys() bool { return c.Can(HaveKeys) }

// CanManageWebhooks reports whether the caller may look at and change webhooks.
func (c Caller) CanManageWebhooks() bool { return c.Can(ManageWebhooks) }

// CanHaveChannels reports whether the caller may be told of what happens by a channel.
func (c Caller) CanHaveChannels() bool { return c.Can(HaveChannels) }

// UserTokenRequired refuses an API key where only a user's own sign-in counts,
// or one that lacks the scope (contract 8.2).
func UserTokenRequired(scope api.Scope) *api.Error {
	if scope == "" {
		return api.Refuse(api.CodeUserTokenRequired, "Neither an API key nor a run's token can do this; sign in as a user.")
	}
	return api.Refuse(api.CodeForbidden, "This API key doesn't have the scope “"+string(scope)+"”.")
}
