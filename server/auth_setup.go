package server

import (
	"net/http"
	"net/url"

	"stint/account"
	"stint/api"
	"stint/web"
)

const (
	setUpRoute      = "/setup"
	invitationRoute = "/invitation"
)

// requireSetUpOpen answers 404 where there is no set-up: once somebody has a password, and to
// anybody who isn't on this machine (contract 8.1).
func (x *exchange) requireSetUpOpen() error {
	needed, err := x.server.accounts.NeedsSetUp(x.r.Context())
	if err != nil {
		return err
	}
	if !needed || !x.server.onThisMachine(x.r) {
		return errNoRoute
	}
	return nil
}

func (s *Server) setUpPage(x *exchange) (response, error) {
	if err := x.requireSetUpOpen(); err != nil {
		return response{}, err
	}
	return x.showSetUp(http.StatusOK, nil)
}

func (x *exchange) showSetUp(status int, form url.Values, problems ...string) (response, error) {
	return x.door(status, doorPage{
		Title: "Set up stint", Action: setUpRoute, Do: "Become the owner", Problems: problems, Also: x.also("Become the owner with "),
		Text:   "Choose how you, the owner, sign in from a browser.",
		Fields: loginFields(form, "Set-up code", "The server printed it at its start, after the # of the link."),
	})
}

// loginFields ask for a code and a new login.
func loginFields(form url.Values, code, hint string) []doorField {
	return []doorField{
		{ID: "code", Label: code, Type: "text", Value: form.Get("code"), Complete: "off", Hint: hint, Required: true},
		{ID: "login", Label: "Name to sign in with", Type: "text", Value: form.Get("login"), Complete: "username", Hint: "Letters, digits and . _ - @ +", Required: true},
		{ID: "name", Label: "What others see", Type: "text", Value: form.Get("name"), Complete: "name", Hint: "Your name; empty is the one above."},
		{ID: "password", Label: "Password", Type: "password", Complete: "new-password", Hint: "At least 10 characters.", Required: true},
	}
}

// also is the text of the button that signs in through the external provider; empty when there
// is none.
func (x *exchange) also(do string) string {
	if x.server.provider == nil {
		return ""
	}
	return do + x.server.provider.Name()
}

func loginOf(form url.Values) api.LoginInput {
	return api.LoginInput{Login: form.Get("login"), Name: form.Get("name"), Password: form.Get("password")}
}

func (s *Server) setUp(x *exchange) (response, error) {
	if err := x.requireSetUpOpen(); err != nil {
		return response{}, err
	}
	form, err := x.form()
	if err != nil {
		return response{}, err
	}
	if form.Get("decision") == viaProvider {
		return x.onward(account.OIDCSignIn{Purpose: account.PurposeSetUp, Ticket: form.Get("code"), Next: "/"})
	}
	cookie, expires, err := s.accounts.SetUp(x.r.Context(), form.Get("code"), loginOf(form), s.from(x.r))
	if status, problems, ok := x.asPage(err); ok {
		return x.showSetUp(status, form, problems...)
	}
	if err != nil {
		return response{}, err
	}
	return x.signedInTo(cookie, expires, "/")
}

// showWorkspace sends the browser to the pages of a workspace.
func (x *exchange) showWorkspace(ws api.Workspace) (response, error) {
	http.SetCookie(x, &http.Cookie{
		Name: web.WorkspaceCookie, Value: ws.Slug, Path: "/", MaxAge: 365 * 24 * 3600, Secure: x.server.secure(x.r),
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return x.seeOther("/")
}
