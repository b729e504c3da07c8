package server

import (
	"context"
	"net/http"
	"time"

	"stint/api"
)

// reportChanges takes in what a worker found in its session's workspace.
func (s *Server) reportChanges(x *exchange) (response, error) {
	var in api.ChangesReport
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.ReportChanges(x.r.Context(), x.caller, x.worker, x.session, in))
}

func (s *Server) showChanges(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Changes(x.r.Context(), x.caller, x.session))
}

func (s *Server) requestLanding(x *exchange) (response, error) {
	var in api.LandInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	l, err := s.engine.RequestLanding(x.r.Context(), x.caller, x.session, in)
	if err != nil {
		return response{}, err
	}
	return response{status: http.StatusCreated, body: l, location: x.under("sessions", l.SessionID.String()) + "/landings/" + l.ID.String()}, nil
}

// showLanding shows a request; with wait it is held until the worker has answered it.
func (s *Server) showLanding(x *exchange) (response, error) {
	q := x.query()
	wait := q.wait()
	if err := q.end(); err != nil {
		return response{}, err
	}
	id, err := x.landing()
	if err != nil {
		return response{}, err
	}
	return waiting(x, wait, func(ctx context.Context, wait time.Duration) (api.Landing, error) {
		return s.engine.AwaitLanding(ctx, x.caller, x.session, id, wait)
	})
}

func (s *Server) withdrawLanding(x *exchange) (response, error) {
	id, err := x.landing()
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.WithdrawLanding(x.r.Context(), x.caller, x.session, id))
}

// answerLanding takes in what a worker says came of a request.
func (s *Server) answerLanding(x *exchange) (response, error) {
	var in api.LandReport
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	id, err := x.landing()
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.AnswerLanding(x.r.Context(), x.caller, x.worker, id, in))
}

func (x *exchange) landing() (id api.LandingID, err error) {
	if err := id.UnmarshalText([]byte(x.vars["landing"])); err != nil || id == 0 {
		return 0, api.Refuse(api.CodeNotFound, "There is no such request to land.")
	}
	return id, nil
}

func (s *Server) listReview(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Review(x.r.Context(), x.caller, x.session))
}

func (s *Server) commentOnChanges(x *exchange) (response, error) {
	var in api.ReviewInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	c, err := s.engine.CommentOnChanges(x.r.Context(), x.caller, x.session, in)
	if err != nil {
		return response{}, err
	}
	return response{status: http.StatusCreated, body: c}, nil
}

func (s *Server) dropComment(x *exchange) (response, error) {
	var id api.ReviewID
	if err := id.UnmarshalText([]byte(x.vars["comment"])); err != nil || id == 0 {
		return response{}, api.Refuse(api.CodeNotFound, "There is no such comment.")
	}
	return done(s.engine.DropComment(x.r.Context(), x.caller, x.session, id))
}

// sendReview answers as a message to the agent does.
func (s *Server) sendReview(x *exchange) (response, error) {
	var in api.ReviewSend
	if err := x.decodeOptional(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.SendReview(x.r.Context(), x.caller, x.session, in))
}
