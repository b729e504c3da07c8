package server

import (
	"net/http"
	"net/url"

	"stint/account"
)

func (s *Server) invitationPage(x *exchange) (response, error) {
	return x.showInvitation(http.StatusOK, nil)
}

// showInvitation asks for a new login, or only for a yes from somebody who is signed in.
func (x *exchange) showInvitation(status int, form url.Values, problems ...string) (response, error) {
	p := doorPage{
		Title: "Join a workspace", Action: invitationRoute, Do: "Join", Problems: problems,
		Fields: loginFields(form, "Invitation code", "It stands after the # of the link that you were sent."), Also: x.also("Join with "),
	}
	if g, err := x.server.signedIn(x.r.Context(), x.r); err == nil && g.who.Person() {
		p.Text = "You join as " + g.who.Name + ", as whom you are signed in here."
		p.Fields, p.Also = p.Fields[:1], ""
	}
	return x.door(status, p)
}

func (s *Server) joinByInvitation(x *exchange) (response, error) {
	form, err := x.form()
	if err != nil {
		return response{}, err
	}
	if g, err := s.signedIn(x.r.Context(), x.r); err == nil && g.who.Person() {
		ws, err := s.accounts.JoinAs(x.r.Context(), g.who, form.Get("code"))
		if status, problems, ok := x.asPage(err); ok {
			return x.showInvitation(status, form, problems...)
		}
		if err != nil {
			return response{}, err
		}
		return x.showWorkspace(ws)
	}
	if form.Get("decision") == viaProvider {
		return x.onward(account.OIDCSignIn{Purpose: account.PurposeJoin, Ticket: form.Get("code"), Next: "/"})
	}
	cookie, expires, err := s.accounts.Join(x.r.Context(), form.Get("code"), loginOf(form), s.from(x.r))
	if status, problems, ok := x.asPage(err); ok {
		return x.showInvitation(status, form, problems...)
	}
	if err != nil {
		return response{}, err
	}
	return x.signedInTo(cookie, expires, "/")
}
