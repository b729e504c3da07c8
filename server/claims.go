package server

import (
	"context"
	"net/http"
	"time"

	"stint/api"
	"stint/engine"
)

// claimNext returns the best eligible session's claim, or 204 when the wait ended without one
// (contract 4.2).
func (s *Server) claimNext(x *exchange) (response, error) {
	var in api.ClaimNextRequest
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	got, _, err := held(x, time.Duration(in.WaitSeconds)*time.Second, func(ctx context.Context, _ time.Duration) (*api.Claim, error) {
		return s.engine.ClaimNext(ctx, x.caller, in)
	})
	if err != nil || got == nil {
		return done(err)
	}
	return reply(got, nil)
}

func (s *Server) claim(x *exchange) (response, error) {
	return underClaim(x, s.engine.Claim)
}

func (s *Server) renew(x *exchange) (response, error) {
	return underClaim(x, s.engine.Renew)
}

func (s *Server) extend(x *exchange) (response, error) {
	return underClaim(x, s.engine.Extend)
}

func (s *Server) complete(x *exchange) (response, error) {
	return underClaim(x, s.engine.Complete)
}

func (s *Server) failSession(x *exchange) (response, error) {
	return underClaim(x, s.engine.Fail)
}

func (s *Server) release(x *exchange) (response, error) {
	return underClaim(x, s.engine.Release)
}

func (s *Server) addItems(x *exchange) (response, error) {
	return underClaim(x, s.engine.AddItems)
}

func (s *Server) patchSession(x *exchange) (response, error) {
	var in api.SessionPatch
	if err := x.decodePatch(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.PatchSession(x.r.Context(), x.caller, x.worker, x.session, in))
}

func (s *Server) addActivity(x *exchange) (response, error) {
	a, err := underClaim(x, s.engine.AddActivity)
	a.status = http.StatusCreated
	return a, err
}

// claimVerb is an engine verb of a worker on a session.
type claimVerb[In, Out any] func(context.Context, engine.Caller, api.WorkerID, api.SessionID, In) (Out, error)

func underClaim[In, Out any](x *exchange, verb claimVerb[In, Out]) (response, error) {
	var in In
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return reply(verb(x.r.Context(), x.caller, x.worker, x.session, in))
}

func (s *Server) keepLateResult(x *exchange) (response, error) {
	var in api.CompleteRequest
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return done(s.engine.KeepLateResult(x.r.Context(), x.caller, x.thread, in))
}
