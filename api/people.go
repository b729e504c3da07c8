package api

import "net/url"

// WorkspaceMember is a person in a workspace.
type WorkspaceMember struct {
	UserID   UserID `json:"userId"`
	Name     string `json:"name"`
	Login    string `json:"login,omitzero"` // the name to sign in with; empty while there is none
	Role     Role   `json:"role"`
	JoinedAt Time   `json:"joinedAt"`
}

// RoleInput gives a member another role.
type RoleInput struct {
	Role Role `json:"role"`
}

// MemberRemoved answers a removal: what ended with the membership.
type MemberRemoved struct {
	Sessions int `json:"cancelledSessions"`
	Workers  int `json:"deletedWorkers"`
	Agents   int `json:"pausedAgents"` // that ran as the member
}

// Invitation is an open offer of a role in a workspace.
type Invitation struct {
	ID        InviteID `json:"id"`
	Role      Role     `json:"role"`
	Note      string   `json:"note,omitzero"`
	InvitedBy string   `json:"invitedBy"`
	CreatedAt Time     `json:"createdAt"`
	ExpiresAt Time     `json:"expiresAt"`

	// Code and Link are in the answer to its creation and nowhere else. The code is in the
	// link's fragment, which browsers don't send.
	Code string `json:"code,omitzero"`
	Link string `json:"link,omitzero"`
}

// InvitationInput offers a role; Note says for whom.
type InvitationInput struct {
	Role Role   `json:"role"`
	Note string `json:"note,omitzero"`
}

// LoginInput is how a person wants to sign in. Current is the present password, if there is
// one and the browser signed in with it.
type LoginInput struct {
	Login    string `json:"login,omitzero"` // empty = unchanged
	Name     string `json:"name,omitzero"`  // what others see; empty = unchanged
	Current  string `json:"current,omitzero"`
	Password string `json:"password"`
}

// Account is the caller's own account.
type Account struct {
	UserID      UserID `json:"userId"`
	Name        string `json:"name"`
	Login       string `json:"login,omitzero"`
	PasswordSet Time   `json:"passwordSetAt,omitzero"`

	Identities []Identity `json:"identities,omitzero"` // at external providers, by which they sign in
}

// Identity is an account at an external provider that is linked to a user.
type Identity struct {
	ID         IdentityID `json:"id"`
	Issuer     string     `json:"issuer"`
	Label      string     `json:"label"` // what the provider calls them
	LinkedAt   Time       `json:"linkedAt"`
	LastUsedAt Time       `json:"lastUsedAt,omitzero"`
}

// SignIn is a browser or program that is signed in as the caller.
type SignIn struct {
	ID         TokenID `json:"id"`
	Kind       string  `json:"kind"` // browser, token
	Label      string  `json:"label"`
	Address    string  `json:"address,omitzero"`
	CreatedAt  Time    `json:"createdAt"`
	LastUsedAt Time    `json:"lastUsedAt,omitzero"`
	ExpiresAt  Time    `json:"expiresAt"`
	Current    bool    `json:"current"` // it makes this request
}

// SignedOut answers "sign out everywhere": how many sign-ins ended.
type SignedOut struct {
	Ended int `json:"ended"`
}

// WorkspaceInput makes or renames a workspace; the slug never changes.
type WorkspaceInput struct {
	Slug string `json:"slug,omitzero"`
	Name string `json:"name,omitzero"`
}

// Scope is what an API key is good for.
type Scope string

// The scopes of API keys.
const (
	ScopeRead    Scope = "read"    // lists, sessions, output, events
	ScopeTrigger Scope = "trigger" // run an agent, retry a session
	ScopeCancel  Scope = "cancel"  // cancel, stop
	ScopeTasks   Scope = "tasks"   // make, change, claim and dispatch tasks

	ScopeCalendar Scope = "calendar" // the calendar of coming runs; alone, the key makes an address
)

// Scopes lists every scope.
var Scopes = []Scope{ScopeRead, ScopeTrigger, ScopeCancel, ScopeTasks, ScopeCalendar}

// Key is an API key as lists show it. The key itself is in the answer to its creation and
// nowhere else.
type Key struct {
	ID         KeyID   `json:"id"`
	Name       string  `json:"name"`
	Scopes     []Scope `json:"scopes"`
	UserID     UserID  `json:"userId"`
	User       string  `json:"user"` // the name of the user it acts for
	Hint       string  `json:"hint"` // the key's last four characters
	CreatedAt  Time    `json:"createdAt"`
	ExpiresAt  Time    `json:"expiresAt"`
	LastUsedAt Time    `json:"lastUsedAt,omitzero"`
	Key        string  `json:"key,omitzero"`

	CalendarURL string `json:"calendarUrl,omitzero"` // of a new key that is good for a calendar alone
}

// ForCalendar reports whether the calendar is all that a key's scopes are good for.
func ForCalendar(scopes []Scope) bool { return len(scopes) == 1 && scopes[0] == ScopeCalendar }

// Calendar is the address that programs subscribe to with a new key, below a server's own; ""
// of a key that is good for anything else, or that isn't in the answer any more.
func (k Key) Calendar(home, workspace string) string {
	if k.Key == "" || !ForCalendar(k.Scopes) {
		return ""
	}
	return home + "/api/v1/workspaces/" + url.PathEscape(workspace) + "/calendar.ics?key=" + url.QueryEscape(k.Key)
}

// KeyInput creates an API key. Without an expiry it is valid for 90 days, one for a calendar
// alone for 366.
type KeyInput struct {
	Name      string  `json:"name"`
	Scopes    []Scope `json:"scopes"`
	ExpiresAt Time    `json:"expiresAt,omitzero"`
}

// InvitationCode accepts an invitation as the user who is signed in.
type InvitationCode struct {
	Code string `json:"code"`
}
