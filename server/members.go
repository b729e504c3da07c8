package server

import (
	"net/http"

	"stint/api"
)

// pathID reads an id in the path; an invalid id counts as unknown.
func (x *exchange) pathID(name string, into interface{ UnmarshalText([]byte) error }) error {
	if into.UnmarshalText([]byte(x.vars[name])) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such "+name+" here.")
	}
	return nil
}

// page reads the page of a list that has no other parameters.
func (x *exchange) page() (api.Page, error) {
	q := x.query()
	p := q.page()
	return p, q.end()
}

func (s *Server) listMembers(x *exchange) (response, error) {
	page, err := x.page()
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.Members(x.r.Context(), x.caller, page))
}

func (s *Server) setRole(x *exchange) (response, error) {
	var user api.UserID
	var in api.RoleInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	if err := x.pathID("user", &user); err != nil {
		return response{}, err
	}
	return reply(s.engine.SetRole(x.r.Context(), x.caller, user, in.Role))
}

func (s *Server) removeMember(x *exchange) (response, error) {
	var user api.UserID
	if err := x.pathID("user", &user); err != nil {
		return response{}, err
	}
	return reply(s.engine.RemoveMember(x.r.Context(), x.caller, user))
}

func (s *Server) listInvitations(x *exchange) (response, error) {
	page, err := x.page()
	if err != nil {
		return response{}, err
	}
	return reply(s.accounts.Invitations(x.r.Context(), x.caller, page))
}

func (s *Server) invite(x *exchange) (response, error) {
	var in api.InvitationInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	made, err := s.accounts.Invite(x.r.Context(), x.caller, in)
	if err != nil {
		return response{}, err
	}
	made.Link = InvitationLink(s.home(x.r), made.Code)
	return response{status: http.StatusCreated, body: made}, nil
}

// InvitationLink is the link that is sent as an invitation. The code is in the fragment, so
// that no log and no proxy sees it.
func InvitationLink(home, code string) string { return home + invitationRoute + "#" + code }

// SetUpLink is the link by which the owner sets up a sign-in.
func SetUpLink(home, code string) string { return home + setUpRoute + "#" + code }

// home is where people reach the server: its public address if it has one.
func (s *Server) home(r *http.Request) string {
	return ForBrowsers(s.reached(r))
}

func (s *Server) revokeInvitation(x *exchange) (response, error) {
	var id api.InviteID
	if err := x.pathID("invitation", &id); err != nil {
		return response{}, err
	}
	return done(s.accounts.RevokeInvitation(x.r.Context(), x.caller, id))
}

func (s *Server) createWorkspace(x *exchange) (response, error) {
	var in api.WorkspaceInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	ws, err := s.engine.CreateWorkspace(x.r.Context(), x.grant.who, in)
	return response{status: http.StatusCreated, body: ws, location: "/api/v1/workspaces/" + ws.Slug}, err
}

func (s *Server) renameWorkspace(x *exchange) (response, error) {
	var in api.WorkspaceInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	if in.Slug != "" {
		var v api.Invalid
		v.Add("slug", "can't be changed")
		return response{}, v.Err()
	}
	return reply(s.engine.RenameWorkspace(x.r.Context(), x.caller, in.Name))
}

func (s *Server) listKeys(x *exchange) (response, error) {
	page, err := x.page()
	if err != nil {
		return response{}, err
	}
	return reply(s.accounts.Keys(x.r.Context(), x.caller, page))
}

func (s *Server) createKey(x *exchange) (response, error) {
	var in api.KeyInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	key, err := s.accounts.CreateKey(x.r.Context(), x.caller, in)
	key.CalendarURL = key.Calendar(s.reached(x.r), x.caller.Workspace)
	return response{status: http.StatusCreated, body: key}, err
}

func (s *Server) revokeKey(x *exchange) (response, error) {
	var id api.KeyID
	if err := x.pathID("key", &id); err != nil {
		return response{}, err
	}
	return done(s.accounts.RevokeKey(x.r.Context(), x.caller, id))
}
