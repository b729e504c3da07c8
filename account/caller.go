package account

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Caller is who makes a call, in which workspace and with which rights. The server makes it
// once from the token; it is passed on and never looked up.
type Caller struct {
	WorkspaceID api.WorkspaceID
	Workspace   string // slug
	UserID      api.UserID
	Name        string
	Role        api.Role

	From string // network address of the call; empty for this machine
	Via  string // the key or program that the call was made with; empty for the user's own sign-in

	Client string // the program that acts for the user; "" = the user in person

	Imported bool // what they set is somebody else's words, from a file

	KeyID  api.KeyID   // of the API key that makes the call; 0 = the user's own sign-in
	Scopes []api.Scope // what that key is good for

	Run *Run // the agent's run that makes the call; nil = none
}

// Actor is who does it, as the log names them: the user, or the session whose agent does.
func (c Caller) Actor() string {
	if c.Run != nil {
		return c.Run.Session.String()
	}
	return c.UserID.String()
}

// InPerson is the user who acts here by a sign-in of their own, 0 for a program that
// registered itself, and for what they took from a file. Keys and runs don't get this far.
func (c Caller) InPerson() api.UserID {
	if c.Imported || InPerson(c.Client) != nil {
		return 0
	}
	return c.UserID
}

// Need refuses a caller below a role, and an API key whatever its scopes: the table of rights
// says what keys may do (contract 8.3).
func (c Caller) Need(role api.Role, what string) error {
	if c.KeyID != 0 || c.Run != nil {
		return UserTokenRequired("")
	}
	return c.reach(role, what)
}

func (c Caller) reach(role api.Role, what string) error {
	if c.Role.AtLeast(role) {
		return nil
	}
	return api.Refuse(api.CodeForbidden, "To "+what+" you need the role "+string(role)+" in this workspace; you are "+c.Role.Noun()+".")
}

// RoleOf is a user's role in a workspace at this moment, "" for none: what somebody created
// counts by the rights that they have when it is used.
func RoleOf(ctx context.Context, q queries.Querier, ws api.WorkspaceID, user api.UserID) (api.Role, error) {
	m, err := q.Member(ctx, queries.MemberParams{WorkspaceID: ws, UserID: user})
	if db.None(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the membership of user %s: %w", user, err)
	}
	return m.Role, nil
}
