package server

import (
	"net/http"

	"stint/api"
)

func (s *Server) listAgents(x *exchange) (response, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Agents(x.r.Context(), x.caller, page))
}

func (s *Server) listSchedules(x *exchange) (response, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Schedules(x.r.Context(), x.caller, page))
}

func (s *Server) createAgent(x *exchange) (response, error) {
	in := s.engine.DefaultAgent()
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	by := x.caller
	by.Imported = x.r.Header.Get(api.ImportedHeader) != ""
	a, err := s.engine.CreateAgent(x.r.Context(), by, in)
	return response{status: http.StatusCreated, body: a, location: x.under("agents", a.ID.String())}, err
}

func (s *Server) showAgent(x *exchange) (response, error) {
	return reply(s.engine.Agent(x.r.Context(), x.caller, x.vars["agent"]))
}

// editAgent merges the body into the agent: absent = unchanged, null = cleared
// (contract 9.2).
func (s *Server) editAgent(x *exchange) (response, error) {
	merge, err := merging(x, s.engine.DefaultAgent())
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.EditAgent(x.r.Context(), x.caller, x.vars["agent"], merge))
}

func (s *Server) deleteAgent(x *exchange) (response, error) {
	return done(s.engine.DeleteAgent(x.r.Context(), x.caller, x.vars["agent"]))
}

func (s *Server) pauseAgent(x *exchange) (response, error) {
	var in struct {
		Reason string `json:"reason"`
	}
	if err := x.decodeOptional(&in); err != nil {
		return response{}, err
	}
	a, changed, err := s.engine.PauseAgent(x.r.Context(), x.caller, x.vars["agent"], in.Reason)
	return reply(api.AgentChanged{Agent: a, Changed: changed}, err)
}

func (s *Server) resumeAgent(x *exchange) (response, error) {
	if err := x.decodeOptional(&noBody{}); err != nil {
		return response{}, err
	}
	a, changed, err := s.engine.ResumeAgent(x.r.Context(), x.caller, x.vars["agent"])
	return reply(api.AgentChanged{Agent: a, Changed: changed}, err)
}

func (s *Server) skipSlots(x *exchange) (response, error) {
	var in struct {
		Until api.Time `json:"until"`
	}
	if err := x.decodeOptional(&in); err != nil {
		return response{}, err
	}
	a, changed, err := s.engine.SkipSlots(x.r.Context(), x.caller, x.vars["agent"], in.Until.Time)
	return reply(api.AgentChanged{Agent: a, Changed: changed}, err)
}

func (s *Server) keepSlots(x *exchange) (response, error) {
	if err := x.decodeOptional(&noBody{}); err != nil {
		return response{}, err
	}
	a, changed, err := s.engine.KeepSlots(x.r.Context(), x.caller, x.vars["agent"])
	return reply(api.AgentChanged{Agent: a, Changed: changed}, err)
}

func (s *Server) ledger(x *exchange) (response, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Ledger(x.r.Context(), x.caller, x.vars["agent"], page))
}

func (s *Server) preview(x *exchange) (response, error) {
	q := x.query()
	schedule, zone, from := q.text("schedule"), q.text("timeZone"), q.time("from")
	n := q.whole("n", 1, 100, 5)
	if err := q.end(); err != nil {
		return response{}, err
	}
	if zone == "" {
		zone = "UTC"
	}
	if from.IsZero() {
		from = s.engine.Now()
	}
	return reply(s.engine.Preview(x.r.Context(), schedule, zone, from, int(n)))
}

// under is a path below the caller's workspace, for Location.
func (x *exchange) under(noun, id string) string {
	return "/api/v1/workspaces/" + x.vars["workspace"] + "/" + noun + "/" + id
}
