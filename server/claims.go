package server

import (
	"context"
	"errors"
	"net/http"

	"stint/api"
	"stint/engine"
)

// claimNext returns the best eligible session's claim, or 204 when the wait ended without one
// (contract 4.2).
func (s *Server) claimNext(x *exchange) (answer, error) {
	var in api.ClaimNextRequest
	if err := x.decode(&in); err != nil {
		return answer{}, err
	}
	ctx := x.r.Context()
	if in.WaitSeconds > 0 {
		held, release, err := s.hold(x, heldWait)
		if err != nil {
			return answer{}, err
		}
		defer release()
		ctx = held
	}
	got, err := s.engine.ClaimNext(ctx, x.caller, in)
	if err != nil {
		return done(ended(ctx, err))
	}
	if got == nil {
		return done(nil)
	}
	return reply(got, nil)
}

// ended turns the end of a held request's context into the answer: nothing special at
// shutdown, 401 when the rights ended, and err otherwise.
func ended(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case !errors.Is(err, context.Canceled) && !errors.Is(err, cause):
		return err
	case errors.Is(cause, errClosing):
		return nil
	case errors.Is(cause, errRevoked):
		return api.Refuse(api.CodeUnauthenticated, "Your rights ended while the request was held.")
	}
	return err
}

func (s *Server) claim(x *exchange) (answer, error) {
	return underClaim(x, s.engine.Claim)
}

func (s *Server) renew(x *exchange) (answer, error) {
	return underClaim(x, s.engine.Renew)
}

func (s *Server) extend(x *exchange) (answer, error) {
	return underClaim(x, s.engine.Extend)
}

func (s *Server) complete(x *exchange) (answer, error) {
	return underClaim(x, s.engine.Complete)
}

func (s *Server) failSession(x *exchange) (answer, error) {
	return underClaim(x, s.engine.Fail)
}

func (s *Server) release(x *exchange) (answer, error) {
	return underClaim(x, s.engine.Release)
}

func (s *Server) addItems(x *exchange) (answer, error) {
	return underClaim(x, s.engine.AddItems)
}

func (s *Server) patchSession(x *exchange) (answer, error) {
	var in api.SessionPatch
	if err := x.decodePatch(&in); err != nil {
		return answer{}, err
	}
	return reply(s.engine.PatchSession(x.r.Context(), x.caller, x.worker, x.session, in))
}

func (s *Server) addActivity(x *exchange) (answer, error) {
	a, err := underClaim(x, s.engine.AddActivity)
	a.status = http.StatusCreated
	return a, err
}

// claimVerb is an engine verb of a worker on a session.
type claimVerb[In, Out any] func(context.Context, engine.Caller, api.WorkerID, api.SessionID, In) (Out, error)

func underClaim[In, Out any](x *exchange, verb claimVerb[In, Out]) (answer, error) {
	var in In
	if err := x.decode(&in); err != nil {
		return answer{}, err
	}
	return reply(verb(x.r.Context(), x.caller, x.worker, x.session, in))
}

func (s *Server) keepLateResult(x *exchange) (answer, error) {
	var in api.CompleteRequest
	if err := x.decode(&in); err != nil {
		return answer{}, err
	}
	return done(s.engine.KeepLateResult(x.r.Context(), x.caller, x.thread, in))
}
