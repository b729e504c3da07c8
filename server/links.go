package server

import (
	"net/http"

	"stint/api"
)

// newSignInLink makes a one-time link for the caller's own browser: `stint open`
// asks for it with the owner's token and hands it over in a file that posts it
// (contract 8.1).
func (s *Server) newSignInLink(x *exchange) (answer, error) {
	if err := x.decodeOptional(&noBody{}); err != nil {
		return answer{}, err
	}
	link, err := s.engine.NewLink(x.r.Context(), x.grant.who)
	return answer{status: http.StatusCreated, body: api.SignInLink{Link: link}}, err
}
