package server

import (
	"context"
	"net/http"
	"time"

	"stint/api"
)

// showPrompt shows a prompt, open or closed; with wait it is held until somebody has answered
// or the prompt is closed otherwise. The worker whose claim the header names also gets secret
// answers.
func (s *Server) showPrompt(x *exchange) (response, error) {
	q := x.query()
	wait := q.wait()
	if err := q.end(); err != nil {
		return response{}, err
	}
	var id api.PromptID
	if id.UnmarshalText([]byte(x.vars["prompt"])) != nil {
		return response{}, api.Refuse(api.CodeNotFound, "There is no such prompt here.")
	}
	var claim api.ClaimID
	if err := claim.UnmarshalText([]byte(x.r.Header.Get(api.ClaimHeader))); err != nil {
		return response{}, err
	}
	if err := s.sessionHere(x.r.Context(), x); err != nil {
		return response{}, err
	}
	return waiting(x, wait, func(ctx context.Context, wait time.Duration) (api.Prompt, error) {
		return s.engine.AwaitAnswer(ctx, x.caller, x.session, id, claim, wait)
	})
}

// postMessage answers 200 with the message in a session that continues, and 201 with the new
// session when the conversation had ended.
func (s *Server) postMessage(x *exchange) (response, error) {
	var in api.MessageInput
	if err := x.decodeOf(maxFilled, &in); err != nil {
		return response{}, err
	}
	if err := s.sessionHere(x.r.Context(), x); err != nil {
		return response{}, err
	}
	posted, err := s.engine.PostMessage(x.r.Context(), x.caller, x.session, in)
	if err != nil || posted.Message != nil {
		return reply(posted, err)
	}
	return response{status: http.StatusCreated, body: posted, location: x.under("sessions", posted.Session.ID.String())}, nil
}

// messages lists what people wrote; with wait the request is held until there is something.
func (s *Server) messages(x *exchange) (response, error) {
	q := x.query()
	var after api.MessageID
	q.id("after", &after)
	wait := q.wait()
	if err := q.end(); err != nil {
		return response{}, err
	}
	if err := s.sessionHere(x.r.Context(), x); err != nil {
		return response{}, err
	}
	return waiting(x, wait, func(ctx context.Context, wait time.Duration) (api.Messages, error) {
		return s.engine.AwaitMessages(ctx, x.caller, x.session, after, wait)
	})
}

func (s *Server) showThread(x *exchange) (response, error) {
	return reply(s.engine.Thread(x.r.Context(), x.caller, x.thread))
}

func (s *Server) patchThread(x *exchange) (response, error) {
	var in api.ThreadPatch
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.PatchThread(x.r.Context(), x.caller, x.thread, in))
}

func (s *Server) inbox(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	view, err := s.engine.Inbox(x.r.Context(), x.caller)
	return reply(api.Inbox{Items: view.Items}, err)
}
