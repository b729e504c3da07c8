package server

import (
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"stint/account"
	"stint/api"
)

// register stores an unknown program, so that people can sign it in (RFC 7591). It only works
// if the operator allows it.
func (s *Server) register(x *exchange) (response, error) {
	if !s.registers {
		return response{}, errNoRoute
	}
	in, err := x.registration()
	if err != nil {
		return x.oauthRefusal(err)
	}
	c, err := s.accounts.Register(x.r.Context(), in, s.from(x.r))
	if err != nil {
		return x.oauthRefusal(err)
	}
	return response{status: http.StatusCreated, body: api.OAuthRegistration{
		ClientID: c.ID, IssuedAt: c.Registered.Unix(), Name: c.Name, RedirectURIs: c.Redirects, AuthMethod: "none",
		GrantTypes: []string{api.GrantCode, api.GrantRefresh}, ResponseTypes: []string{"code"}, Scope: api.ScopeUser,
	}}, nil
}

// registration reads what a program says about itself. Unlike elsewhere, unknown fields are
// ignored, as the standard requires.
func (x *exchange) registration() (out account.Registration, err error) {
	if err := checkType(x.r); err != nil {
		return out, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, x.r.Body, maxForm))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return out, api.Refuse(api.CodeTooLarge, "A registration has at most 8 KiB.")
	}
	if err != nil {
		return out, api.Refuse(api.CodeMalformed, "The body can't be read.")
	}
	var in struct {
		Name          string   `json:"client_name"`
		Redirects     []string `json:"redirect_uris"`
		ResponseTypes []string `json:"response_types"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return out, &account.OAuthError{Code: "invalid_client_metadata", Detail: "The body is not the JSON of a registration."}
	}
	for _, t := range in.ResponseTypes {
		if t != "code" {
			return out, &account.OAuthError{Code: "invalid_client_metadata", Detail: "The one response type is “code”."}
		}
	}
	return account.Registration{Name: in.Name, Redirects: in.Redirects}, nil
}

func (s *Server) listRegistrations(x *exchange) (response, error) {
	page, err := x.page()
	if err != nil {
		return response{}, err
	}
	return reply(s.accounts.Registrations(x.r.Context(), x.grant.who, page))
}

func (s *Server) revokeRegistration(x *exchange) (response, error) {
	var id api.ClientID
	if err := x.pathID("program", &id); err != nil {
		return response{}, err
	}
	return done(s.accounts.RevokeRegistration(x.r.Context(), x.grant.who, id))
}
