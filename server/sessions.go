package server

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"stint/api"
	"stint/engine"
)

const maxKey = 255 // of an Idempotency-Key

func (s *Server) createSession(x *exchange) (response, error) {
	var in api.SessionInput
	key, err := x.decodeKeyedOf(maxFilled, &in, "POST sessions")
	if err != nil {
		return response{}, err
	}
	started, replayed, err := s.engine.CreateSession(x.r.Context(), x.caller, x.vars["agent"], in, key)
	if err != nil {
		return response{}, err
	}
	return made(started, x.under("sessions", started.ID.String()), replayed), nil
}

// made answers a creation, or one that was replayed.
func made(what any, location string, replayed bool) response {
	a := response{status: http.StatusCreated, body: what, location: location, replayed: replayed}
	if replayed {
		a.status = http.StatusOK
	}
	return a
}

// decodeKeyed reads a body that may be absent, and the Idempotency-Key of a request that makes
// something by a route.
func (x *exchange) decodeKeyed(in any, route string) (engine.Idempotency, error) {
	return x.decodeKeyedOf(maxBody, in, route)
}

// decodeKeyedOf is decodeKeyed for a body of another size.
func (x *exchange) decodeKeyedOf(most int64, in any, route string) (engine.Idempotency, error) {
	sent, err := x.readBodyOf(most)
	if err != nil {
		return engine.Idempotency{}, err
	}
	defer sent.give()
	if !sent.empty() {
		if err := decodeJSON(sent.bytes(), in); err != nil {
			return engine.Idempotency{}, err
		}
	}
	return x.idempotency(sent, route)
}

// idempotency reads the Idempotency-Key (contract 2.8). A key counts for one user and one agent,
// or for one user and the tasks of a workspace.
func (x *exchange) idempotency(sent body, route string) (engine.Idempotency, error) {
	keys := x.r.Header["Idempotency-Key"]
	if len(keys) == 0 {
		return engine.Idempotency{}, nil
	}
	key := keys[0]
	good := len(keys) == 1 && key != "" && len(key) <= maxKey
	for i := 0; good && i < len(key); i++ {
		good = key[i] > ' ' && key[i] <= '~'
	}
	if !good {
		return engine.Idempotency{}, &api.Error{
			Code: api.CodeInvalid, Detail: "The Idempotency-Key is not valid.",
			Fields: []api.FieldError{{Field: "Idempotency-Key", Detail: "must be one text of 1 to 255 printable ASCII characters without spaces"}},
		}
	}
	// The write may outlive this request, and with it the buffer.
	return engine.Idempotency{Key: key, Route: route, Body: bytes.Clone(sent.bytes())}, nil
}

func (s *Server) listSessions(x *exchange) (response, error) {
	q := x.query()
	f, none := q.sessions(q.text("agent"), s.engine.Now())
	return s.sessionPage(x, q, f, none)
}

func (s *Server) agentSessions(x *exchange) (response, error) {
	q := x.query()
	f, none := q.sessions(x.vars["agent"], s.engine.Now())
	return s.sessionPage(x, q, f, none)
}

func (s *Server) sessionPage(x *exchange, q *query, f api.SessionFilter, none bool) (response, error) {
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	if none {
		return reply(api.List[api.Session]{}, nil)
	}
	return reply(s.engine.Sessions(x.r.Context(), x.caller, f, page))
}

func (s *Server) countSessions(x *exchange) (response, error) {
	q := x.query()
	f, none := q.sessions(q.text("agent"), s.engine.Now())
	if err := q.end(); err != nil {
		return response{}, err
	}
	if none {
		return reply(api.NoSessions(), nil)
	}
	return reply(s.engine.SessionCounts(x.r.Context(), x.caller, f))
}

// sessionHere checks that a path which names an agent and a session names the session's own
// agent.
func (s *Server) sessionHere(ctx context.Context, x *exchange) error {
	agent, named := x.vars["agent"]
	if !named {
		return nil
	}
	one, err := s.engine.Session(ctx, x.caller, x.session)
	if err != nil {
		return err
	}
	if agent != one.AgentSlug && agent != one.AgentID.String() {
		return api.Refuse(api.CodeNotFound, "This agent has no such session.")
	}
	return nil
}

// showSession shows a session; with wait it is held until the session has ended or asks a
// person.
func (s *Server) showSession(x *exchange) (response, error) {
	q := x.query()
	wait := q.wait()
	if err := q.end(); err != nil {
		return response{}, err
	}
	if err := s.sessionHere(x.r.Context(), x); err != nil {
		return response{}, err
	}
	return waiting(x, wait, func(ctx context.Context, wait time.Duration) (api.Session, error) {
		return s.engine.AwaitSession(ctx, x.caller, x.session, wait)
	})
}

func (s *Server) cancelSession(x *exchange) (response, error) {
	var in api.CancelInput
	if err := s.sessionVerb(x, &in); err != nil {
		return response{}, err
	}
	return reply(s.engine.CancelSession(x.r.Context(), x.caller, x.session, in))
}

func (s *Server) stopSession(x *exchange) (response, error) {
	if err := s.sessionVerb(x, &noBody{}); err != nil {
		return response{}, err
	}
	return reply(s.engine.StopSession(x.r.Context(), x.caller, x.session))
}

func (s *Server) archiveSession(x *exchange) (response, error) {
	if err := s.sessionVerb(x, &noBody{}); err != nil {
		return response{}, err
	}
	return reply(s.engine.ArchiveSession(x.r.Context(), x.caller, x.session))
}

func (s *Server) keepSession(x *exchange) (response, error) {
	if err := s.sessionVerb(x, &noBody{}); err != nil {
		return response{}, err
	}
	return reply(s.engine.KeepSession(x.r.Context(), x.caller, x.session, true))
}

func (s *Server) letGoSession(x *exchange) (response, error) {
	if err := s.sessionHere(x.r.Context(), x); err != nil {
		return response{}, err
	}
	return reply(s.engine.KeepSession(x.r.Context(), x.caller, x.session, false))
}

// retrySession answers 201 with the new session of a finished one, and 200 with the same
// session when it was stale and is queued again, or with the one that an earlier retry created
// if that isn't over (contract 2.6).
func (s *Server) retrySession(x *exchange) (response, error) {
	if err := s.sessionVerb(x, &noBody{}); err != nil {
		return response{}, err
	}
	one, err := s.engine.RetrySession(x.r.Context(), x.caller, x.session)
	if err != nil || one.ID == x.session || !one.Changed {
		return reply(one, err)
	}
	return response{status: http.StatusCreated, body: one, location: x.under("sessions", one.ID.String())}, nil
}

func (s *Server) answerPrompt(x *exchange) (response, error) {
	var in api.AnswerInput
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	if err := s.sessionHere(x.r.Context(), x); err != nil {
		return response{}, err
	}
	return reply(s.engine.AnswerPrompt(x.r.Context(), x.caller, x.session, in))
}

// sessionVerb reads the body, which may be absent, and checks the path.
func (s *Server) sessionVerb(x *exchange, in any) error {
	if err := x.decodeOptional(in); err != nil {
		return err
	}
	return s.sessionHere(x.r.Context(), x)
}

func (s *Server) activities(x *exchange) (response, error) {
	page, err := s.sessionList(x)
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.Activities(x.r.Context(), x.caller, x.session, page))
}

func (s *Server) sessionEvents(x *exchange) (response, error) {
	page, err := s.sessionList(x)
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.SessionEvents(x.r.Context(), x.caller, x.session, page))
}

func (s *Server) sessionList(x *exchange) (api.Page, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return api.Page{}, err
	}
	return page, s.sessionHere(x.r.Context(), x)
}

const itemPage = 200 // items of a page when the request doesn't say

// items returns the items after or before a sequence number, ascending both ways.
func (s *Server) items(x *exchange) (response, error) {
	const end = 1<<63 - 1
	q := x.query()
	after, before := q.whole("after", 0, end, -1), q.whole("before", 0, end, -1)
	limit := int(q.whole("limit", 1, maxItems, itemPage))
	if after >= 0 && before >= 0 {
		q.bad.Add("before", "can't be given together with after")
	}
	if err := q.end(); err != nil {
		return response{}, err
	}
	ctx := x.r.Context()
	if err := s.sessionHere(ctx, x); err != nil {
		return response{}, err
	}
	if before < 0 {
		some, last, err := s.engine.Items(ctx, x.caller, x.session, max(after, 0), limit)
		return reply(api.ItemsPage{Items: some, LastSeq: last}, err)
	}
	some, err := s.engine.ItemsBefore(ctx, x.caller, x.session, before, limit)
	if err != nil {
		return response{}, err
	}
	_, last, err := s.engine.Items(ctx, x.caller, x.session, end, 1)
	return reply(api.ItemsPage{Items: some, LastSeq: last}, err)
}

const maxItems = 1000 // of one page
