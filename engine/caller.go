package engine

import (
	"stint/api"
)

// Caller is who makes a call, in which workspace and with which rights. The
// server makes it once from the token; it is passed on and never looked up.
type Caller struct {
	WorkspaceID api.WorkspaceID
	Workspace   string // slug
	UserID      api.UserID
	Name        string
	Role        api.Role

	From string // network address of the call; empty for this machine
	Via  string // the key or program that the call was made with; empty for the user's own sign-in

	Client string // the program that acts for the user; "" = he himself

	KeyID  api.KeyID   // of the API key that makes the call; 0 = the user's own sign-in
	Scopes []api.Scope // what that key is good for

	Run *Run // the agent's run that makes the call; nil = none
}

// actor is who does it, as the log names them: the user, or the session whose
// agent does.
func (c Caller) actor() string {
	if c.Run != nil {
		return c.Run.Session.String()
	}
	return c.UserID.String()
}

// inPerson is the user who acts here by a sign-in of his own, 0 for a program that
// registered itself. Keys and runs don't get so far.
func (c Caller) inPerson() api.UserID {
	if inPerson(c.Client) != nil {
		return 0
	}
	return c.UserID
}

// need refuses a caller below a role, and an API key whatever its scopes: what
// keys may do stands in the table of rights (contract 8.3).
func (c Caller) need(role api.Role, what string) error {
	if c.KeyID != 0 || c.Run != nil {
		return UserTokenRequired("")
	}
	return c.reach(role, what)
}

func (c Caller) reach(role api.Role, what string) error {
	if c.Role.AtLeast(role) {
		return nil
	}
	return api.Refuse(api.CodeForbidden, "To "+what+" you need the role "+string(role)+" in this workspace; you are "+string(c.Role)+".")
}

// sees reports whether the caller may know of a session: a local one is its
// owner's alone (contract 8.3).
func (c Caller) sees(s *sessionRow) bool {
	if c.Run != nil && !c.Run.reads(s) {
		return false
	}
	return s.WorkspaceID == c.WorkspaceID && (s.Mode == api.Cloud || s.OwnerUserID == c.UserID)
}

// runs reports whether the caller may act as this worker.
func (c Caller) runs(w *workerRow) bool {
	if w.WorkspaceID != c.WorkspaceID {
		return false
	}
	if c.Run != nil {
		return w.ID == c.Run.Worker
	}
	if w.Mode == api.Local {
		return w.OwnerUserID == c.UserID
	}
	return c.Role.AtLeast(api.Admin)
}
