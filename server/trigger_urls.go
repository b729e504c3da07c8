package server

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"stint/api"
	"stint/server/hooks"
)

// trigger starts an agent for another program, whose signature shows that it may. The
// signature is checked before anything is parsed; the payload is text for the agent and
// nothing else (contract 9.4).
func (s *Server) trigger(x *exchange) (response, error) {
	key, err := s.engine.TriggerKeyOf(x.r.Context(), strings.TrimPrefix(x.r.URL.Path, triggerPath))
	if err != nil {
		return response{}, err
	}
	if !s.triggers.allow(key.ID) {
		return response{}, &api.Error{Code: api.CodeTooMany, RetryIn: 1, Detail: "This address is called too often: at most once a second in the long run."}
	}
	sent, err := x.readBody()
	if err != nil {
		return response{}, err
	}
	defer sent.give()
	message, err := hooks.Verify(key, x.r.Header, sent.bytes())
	if err != nil {
		return response{}, api.Refuse(api.CodeUnauthenticated, "The signature is missing, wrong, or more than five minutes off.")
	}
	id, replayed, err := s.engine.Trigger(x.r.Context(), key.ID, message, bytes.Clone(sent.bytes()), s.elsewhere(x.r))
	if err != nil {
		return response{}, err
	}
	a := response{status: http.StatusAccepted, body: triggered{id}, replayed: replayed}
	if replayed {
		a.status = http.StatusOK
	}
	return a, nil
}

// paces bounds how often each trigger URL is called.
type paces struct {
	mu sync.Mutex // guards by
	by map[api.TriggerID]*rate.Limiter
}

func (p *paces) allow(id api.TriggerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.by[id]
	if l == nil {
		if len(p.by) >= maxPaces || p.by == nil {
			p.by = map[api.TriggerID]*rate.Limiter{}
		}
		l = rate.NewLimiter(1, triggerBurst)
		p.by[id] = l
	}
	return l.Allow()
}

func (s *Server) listTriggerURLs(x *exchange) (response, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.TriggerURLs(x.r.Context(), x.caller, x.vars["agent"], page))
}

func (s *Server) openTriggerURL(x *exchange) (response, error) {
	var in api.TriggerURLInput
	if err := x.decodeOptional(&in); err != nil {
		return response{}, err
	}
	t, err := s.engine.OpenTriggerURL(x.r.Context(), x.caller, x.vars["agent"], in)
	t.URL = s.reached(x.r) + t.Path
	return response{status: http.StatusCreated, body: t}, err
}

func (s *Server) closeTriggerURL(x *exchange) (response, error) {
	var id api.TriggerID
	if id.UnmarshalText([]byte(x.vars["trigger"])) != nil {
		return response{}, api.Refuse(api.CodeNotFound, "There is no such address here.")
	}
	return done(s.engine.CloseTriggerURL(x.r.Context(), x.caller, x.vars["agent"], id))
}

const (
	triggerPath = "/hooks/"

	// A trigger URL accepts this many calls at once, and then one a second.
	triggerBurst = 60
)

// triggered answers a caller that started an agent through an address.
type triggered struct {
	SessionID api.SessionID `json:"sessionId"`
}

const maxPaces = 10_000 // addresses that are remembered; beyond that all are forgotten
