package server

import (
	"stint/api"
)

func (s *Server) showAccount(x *exchange) (response, error) {
	return reply(s.accounts.Account(x.r.Context(), x.grant.who))
}

func (s *Server) setLogin(x *exchange) (response, error) {
	var in api.LoginInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return reply(s.accounts.SetLogin(x.r.Context(), x.grant.who, in, s.from(x.r)))
}

func (s *Server) acceptInvitation(x *exchange) (response, error) {
	var in api.InvitationCode
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return reply(s.accounts.JoinAs(x.r.Context(), x.grant.who, in.Code))
}

func (s *Server) listSignIns(x *exchange) (response, error) {
	page, err := x.page()
	if err != nil {
		return response{}, err
	}
	return reply(s.accounts.SignIns(x.r.Context(), x.grant.who, page))
}

func (s *Server) endSignIn(x *exchange) (response, error) {
	var id api.TokenID
	if err := x.pathID("signin", &id); err != nil {
		return response{}, err
	}
	return done(s.accounts.EndSignIn(x.r.Context(), x.grant.who, id))
}

func (s *Server) signOutEverywhere(x *exchange) (response, error) {
	if err := x.decodeOptional(&noBody{}); err != nil {
		return response{}, err
	}
	return reply(s.accounts.SignOutEverywhere(x.r.Context(), x.grant.who))
}

func (s *Server) unlink(x *exchange) (response, error) {
	var id api.IdentityID
	if err := x.pathID("identity", &id); err != nil {
		return response{}, err
	}
	return done(s.accounts.Unlink(x.r.Context(), x.grant.who, id))
}
