package server

import (
	"net/http"
	"time"

	"stint/api"
)

const maxWait = 60 // seconds that a request may be held (contract 4.2)

func (s *Server) listWorkers(x *exchange) (answer, error) { return s.workerPage(x, "") }

func (s *Server) agentWorkers(x *exchange) (answer, error) { return s.workerPage(x, x.vars["agent"]) }

func (s *Server) workerPage(x *exchange, agent string) (answer, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return answer{}, err
	}
	return reply(s.engine.Workers(x.r.Context(), x.caller, agent, page))
}

// registerWorker answers 201 when the record is new, 200 when it was found.
func (s *Server) registerWorker(x *exchange) (answer, error) {
	var in api.WorkerInput
	if err := x.decode(&in); err != nil {
		return answer{}, err
	}
	r, err := s.engine.RegisterWorker(x.r.Context(), x.caller, x.vars["agent"], in)
	a, err := reply(r, err)
	if err == nil && r.Worker.CreatedAt.Equal(r.ServerTime.Time) {
		a.status = http.StatusCreated
		a.location = x.under("agents", r.Worker.AgentID.String()) + "/workers/" + r.Worker.ID.String()
	}
	return a, err
}

func (s *Server) showWorker(x *exchange) (answer, error) {
	return reply(s.engine.Worker(x.r.Context(), x.caller, x.worker))
}

func (s *Server) deleteWorker(x *exchange) (answer, error) {
	return done(s.engine.DeleteWorker(x.r.Context(), x.caller, x.worker))
}

func (s *Server) beat(x *exchange) (answer, error) {
	var in api.Beat
	if err := x.decode(&in); err != nil {
		return answer{}, err
	}
	return reply(s.engine.Beat(x.r.Context(), x.caller, x.worker, in))
}

// poll lists what the worker may claim; with wait it is held until there is
// something (contract 5.4).
func (s *Server) poll(x *exchange) (answer, error) {
	q := x.query()
	instance := q.text("instanceId")
	wait := time.Duration(q.whole("wait", 0, maxWait, 0)) * time.Second
	if err := q.end(); err != nil {
		return answer{}, err
	}
	ctx := x.r.Context()
	if wait > 0 {
		held, release, err := s.hold(x, heldWait)
		if err != nil {
			return answer{}, err
		}
		defer release()
		ctx = held
	}
	found, err := s.engine.Poll(ctx, x.caller, x.worker, instance, wait)
	if err != nil {
		if err = ended(ctx, err); err != nil {
			return answer{}, err
		}
	}
	return reply(api.List[api.Claimable]{Items: found}, nil)
}
