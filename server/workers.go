package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/engine"
)

func (s *Server) listWorkers(x *exchange) (response, error) { return s.workerPage(x, "") }

func (s *Server) agentWorkers(x *exchange) (response, error) { return s.workerPage(x, x.vars["agent"]) }

func (s *Server) workerPage(x *exchange, agent string) (response, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Workers(x.r.Context(), x.caller, agent, page))
}

// registerWorker answers 201 when the record is new, 200 when it was found.
func (s *Server) registerWorker(x *exchange) (response, error) {
	var in api.WorkerInput
	if err := x.decodeFacts(&in); err != nil {
		return response{}, err
	}
	r, err := s.engine.RegisterWorker(x.r.Context(), x.caller, x.vars["agent"], in)
	a, err := reply(r, err)
	if err == nil && r.Worker.CreatedAt.Equal(r.ServerTime.Time) {
		a.status = http.StatusCreated
		a.location = x.under("agents", r.Worker.AgentID.String()) + "/workers/" + r.Worker.ID.String()
	}
	return a, err
}

// decodeFacts reads what a worker says about itself. An unknown fact, such as a host's or a
// person's name, breaks the rule that facts are coarse: it is refused as such, by its name
// (contract 5.2).
func (x *exchange) decodeFacts(v any) error {
	b, err := x.readBody()
	if err != nil {
		return err
	}
	defer b.give()
	err = decodeJSON(b.bytes(), v)
	var refused *api.Error
	if !errors.As(err, &refused) || len(refused.Fields) != 1 || !unknownMember(b.bytes(), v) {
		return err
	}
	var bad api.Invalid
	bad.Add(refused.Fields[0].Field, "is nothing that a worker reports about itself: only platform and version are")
	return bad.Err()
}

// unknownMember reports whether the only thing wrong with a body is a name that v doesn't
// have.
func unknownMember(b []byte, v any) bool {
	return errors.Is(json.Unmarshal(b, v, strict), json.ErrUnknownName)
}

// showWorker shows the record; with wait it is held until the pending signal is another than
// the one in signal, or, where landing is given, what is asked to be landed is another than
// that (contract 5.3, 16.3).
func (s *Server) showWorker(x *exchange) (response, error) {
	q := x.query()
	var known engine.Known
	q.id("signal", &known.Signal)
	switch text := q.text("landing"); text {
	case "":
	case noLanding:
		known.Lands = true
	default:
		known.Lands = true
		q.id("landing", &known.Landing)
	}
	instance, wait := q.text("instanceId"), q.wait()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return waiting(x, wait, func(ctx context.Context, wait time.Duration) (api.Worker, error) {
		return s.engine.AwaitSignal(ctx, x.caller, x.worker, instance, known, wait)
	})
}

// noLanding says that a worker knows of no request to land.
const noLanding = "none"

// poll lists what the worker may claim, and returns the pending signal; with wait it is held
// until there is either (contract 5.3, 5.4).
func (s *Server) poll(x *exchange) (response, error) {
	look, wait, err := x.polling()
	if err != nil {
		return response{}, err
	}
	return waiting(x, wait, look.Wait)
}

// polling reads the request. It isn't inlined: what it needs would lie on the stack of every
// worker that waits.
//
//go:noinline
func (x *exchange) polling() (look *engine.Polling, wait time.Duration, err error) {
	seen, instance, wait, err := x.pollQuery()
	if err != nil {
		return nil, 0, err
	}
	return x.server.engine.Polling(x.caller, x.worker, instance, seen), wait, nil
}

// pollQuery is what a waiting worker says: the signal that it knows, its instance, and for how
// long it may be held.
func (x *exchange) pollQuery() (seen api.SignalID, instance string, wait time.Duration, err error) {
	q := x.query()
	q.id("signal", &seen)
	instance, wait = q.text("instanceId"), q.wait()
	return seen, instance, wait, q.end()
}

// editWorker merges the body into the record: absent = unchanged, null = cleared.
func (s *Server) editWorker(x *exchange) (response, error) {
	merge, err := merging(x, api.WorkerEdit{MaxConcurrent: 1})
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.EditWorker(x.r.Context(), x.caller, x.worker, merge))
}

func (s *Server) signalWorker(x *exchange) (response, error) {
	var in api.SignalRequest
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.SignalWorker(x.r.Context(), x.caller, x.worker, in.Signal))
}

func (s *Server) acknowledgeSignal(x *exchange) (response, error) {
	var in api.SignalAck
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.AcknowledgeSignal(x.r.Context(), x.caller, x.worker, in))
}

func (s *Server) deleteWorker(x *exchange) (response, error) {
	return done(s.engine.DeleteWorker(x.r.Context(), x.caller, x.worker))
}

func (s *Server) listApprovals(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Approvals(x.r.Context(), x.caller, x.worker))
}

func (s *Server) reportApprovals(x *exchange) (response, error) {
	var in api.ApprovalsReport
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	return done(s.engine.ReportApprovals(x.r.Context(), x.caller, x.worker, in))
}

func (s *Server) removeApproval(x *exchange) (response, error) {
	return reply(s.engine.RemoveApproval(x.r.Context(), x.caller, x.worker, x.vars["approval"]))
}

func (s *Server) beat(x *exchange) (response, error) {
	var in api.Beat
	if err := x.decodeFacts(&in); err != nil {
		return response{}, err
	}
	return reply(s.engine.Beat(x.r.Context(), x.caller, x.worker, in))
}
