package server

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"stint/account"
	"stint/api"
	"stint/server/provider"
)

// The way to the external provider and back (contract 8.1). Browsers leave by a link or by
// themselves, never through a form's answer: a page's policy lets forms go only to this
// server, and applies to every redirect that follows.
const (
	leaveRoute  = "/signin/provider"
	returnRoute = "/signin/provider/callback"
	linkRoute   = "/signin/provider/link"

	oidcCookie         = "stint_oidc"
	secureOIDCCookie   = "__Host-stint_oidc"
	oidcCookieLifetime = 10 * time.Minute

	viaProvider = "provider" // the choice in the forms of the set-up and of invitations
)

func (s *Server) oidcCookie(r *http.Request) string {
	if s.secure(r) {
		return secureOIDCCookie
	}
	return oidcCookie
}

// setOIDCCookie gives the browser the secret that it comes back with; empty removes it. It is
// sent when the provider's page leads here, so it can't be strict.
func (x *exchange) setOIDCCookie(secret string) {
	life := int(oidcCookieLifetime / time.Second)
	if secret == "" {
		life = -1
	}
	http.SetCookie(x, &http.Cookie{
		Name: x.server.oidcCookie(x.r), Value: secret, Path: "/", MaxAge: life, Secure: x.server.secure(x.r),
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// away begins a sign-in with the provider and returns where it leads.
func (x *exchange) away(d account.OIDCSignIn) (to string, err error) {
	if x.server.provider == nil {
		return "", errNoRoute
	}
	secret, err := x.server.accounts.StartOIDCSignIn(x.r.Context(), d, x.server.from(x.r))
	if err != nil {
		return "", err
	}
	if to, err = x.server.provider.Leave(x.r.Context(), secret, x.server.here(x.r)+returnRoute); err != nil {
		return "", err
	}
	x.setOIDCCookie(secret)
	return to, nil
}

// leave sends somebody who wants to sign in to the provider.
func (s *Server) leave(x *exchange) (response, error) {
	to, err := x.away(account.OIDCSignIn{Purpose: account.PurposeSignIn, Next: samePlace(x.r.URL.Query().Get("next"))})
	if err != nil {
		return x.oidcRefusal(account.PurposeSignIn, err)
	}
	return x.seeOther(to)
}

// onward answers a form with a page that leads to the provider by itself.
func (x *exchange) onward(d account.OIDCSignIn) (response, error) {
	to, err := x.away(d)
	if err != nil {
		return x.oidcRefusal(d.Purpose, err)
	}
	name := x.server.provider.Name()
	return x.door(http.StatusOK, doorPage{Title: "On to " + name, Text: "You sign in there and come back.", Onward: to, Provider: "Go on to " + name})
}

// linkPage asks somebody who is signed in whether to link their account at the provider.
func (s *Server) linkPage(x *exchange) (response, error) {
	if err := x.inPerson(); err != nil {
		return response{}, err
	}
	if s.provider == nil {
		return response{}, errNoRoute
	}
	return x.showLink(http.StatusOK)
}

func (x *exchange) showLink(status int, problems ...string) (response, error) {
	account, err := x.server.accounts.Account(x.r.Context(), x.grant.who)
	if err != nil {
		return response{}, err
	}
	p := doorPage{
		Title: "Link your account", Action: linkRoute, Problems: problems, Do: "Go on to " + x.server.provider.Name(),
		Text: "You sign in at " + x.server.provider.Name() + " now. From then on that account signs you in here as " + account.Name + ".",
		Back: "/settings/account",
	}
	if account.Login != "" {
		p.Fields = []doorField{{ID: "current", Label: "Password of now", Type: "password", Complete: "current-password", Required: true}}
	}
	return x.door(status, p)
}

// leaveToLink sends somebody who is signed in to the provider.
func (s *Server) leaveToLink(x *exchange) (response, error) {
	if err := x.inPerson(); err != nil {
		return response{}, err
	}
	if s.provider == nil {
		return response{}, errNoRoute
	}
	form, err := x.form()
	if err != nil {
		return response{}, err
	}
	err = s.accounts.MayLink(x.r.Context(), x.grant.who, form.Get("current"), s.from(x.r))
	if status, problems, ok := x.asPage(err); ok {
		return x.showLink(status, problems...)
	}
	if err != nil {
		return response{}, err
	}
	return x.onward(account.OIDCSignIn{Purpose: account.PurposeLink, Next: "/settings/account", Who: x.grant.who})
}

// comeBack takes the provider's answer. It is a GET that changes something, as the protocol
// requires: the secret in the browser's cookie proves that the browser asked for this.
func (s *Server) comeBack(x *exchange) (response, error) {
	if s.provider == nil {
		return response{}, errNoRoute
	}
	var secret string
	if c, err := x.r.Cookie(s.oidcCookie(x.r)); err == nil {
		secret = c.Value
	}
	told := x.r.URL.Query()
	if !provider.Belongs(secret, told) {
		return x.oidcRefusal("", errNotYours)
	}
	x.setOIDCCookie("")
	back, err := s.accounts.EndOIDCSignIn(x.r.Context(), secret)
	if err != nil {
		return x.oidcRefusal("", err)
	}
	person, err := s.provider.Return(x.r.Context(), secret, s.here(x.r)+returnRoute, told)
	if err != nil {
		return x.oidcRefusal(back.Purpose(), err)
	}
	var who account.Identity
	if g, err := s.signedIn(x.r.Context(), x.r); err == nil && x.r.Header["Authorization"] == nil {
		who = g.who
	}
	arrived, err := s.accounts.Arrive(x.r.Context(), back, person, who, s.from(x.r))
	if err != nil {
		return x.oidcRefusal(back.Purpose(), err)
	}
	if arrived.Cookie == "" {
		return x.seeOther(samePlace(arrived.Next))
	}
	return x.signedInTo(arrived.Cookie, arrived.Expires, arrived.Next)
}

var errNotYours = api.Refuse(api.CodeUnauthenticated, "This answer doesn't belong to a sign-in that this browser began, or another one was begun since. Begin anew.")

// oidcRefusal tells people why they aren't signed in, and how else to sign in.
func (x *exchange) oidcRefusal(purpose string, err error) (response, error) {
	p := doorPage{Title: "This sign-in didn’t work", Back: signInRoute}
	if purpose == account.PurposeLink {
		p.Title, p.Back = "Nothing was linked", "/settings/account"
	}
	var refused *provider.Refused
	switch status, problems, ok := x.asPage(err); {
	case ok:
		p.Problems = problems
		return x.door(status, p)
	case errors.As(err, &refused):
		x.server.log.Warn("The provider's answer was refused.", "why", refused.Why, "address", x.server.clientOf(x.r).String())
		p.Problems = []string{refused.Why}
		return x.door(http.StatusForbidden, p)
	case errors.Is(err, provider.ErrUnreachable):
		x.server.log.Warn("The provider was not reached.", "cause", err)
		p.Problems = []string{x.server.provider.Name() + " can't be reached now. Try again in a while, or sign in another way."}
		return x.door(http.StatusBadGateway, p)
	}
	return response{}, err
}

// providerLink is where a page leads to sign in through the provider, and what it says there;
// empty when there is none.
func (s *Server) providerLink(next string) (to, words string) {
	if s.provider == nil {
		return "", ""
	}
	to = leaveRoute
	if next != "" && next != "/" {
		to += "?next=" + url.QueryEscape(next)
	}
	return to, "Sign in with " + s.provider.Name()
}
