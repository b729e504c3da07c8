package server

import (
	"net/http"

	"stint/api"
)

// The classic routes serve programs that were written for the first, smaller description of
// sessions: one list of 50, trigger, cancel while pending, in snake_case and with four words
// for the status (contract 9.1).

// classicSession is a session in that shape.
type classicSession struct {
	ID                api.SessionID `json:"id"`
	AgentID           api.AgentID   `json:"agent_id"`
	Status            api.Phase     `json:"status"`
	TriggeredBy       api.Trigger   `json:"triggered_by"`
	TriggeredByUserID *api.UserID   `json:"triggered_by_user_id"` // nil for the scheduler
	TriggeredAt       api.Time      `json:"triggered_at"`
	CreatedAt         api.Time      `json:"created_at"`
	StartedAt         *api.Time     `json:"started_at"`
	CompletedAt       *api.Time     `json:"completed_at"`
	Error             *string       `json:"error"`
}

type classicOne struct {
	Session classicSession `json:"session"`
}

type classicList struct {
	Sessions []classicSession `json:"sessions"`
}

const classicPage = 50

func classic(s *api.Session) classicSession {
	out := classicSession{
		ID: s.ID, AgentID: s.AgentID, Status: s.Phase, TriggeredBy: s.TriggeredBy, TriggeredAt: s.TriggeredAt, CreatedAt: s.CreatedAt,
	}
	if s.TriggeredByUserID != 0 {
		out.TriggeredByUserID = &s.TriggeredByUserID
	}
	if !s.StartedAt.IsZero() {
		out.StartedAt = &s.StartedAt
	}
	if !s.EndedAt.IsZero() {
		out.CompletedAt = &s.EndedAt
	}
	if s.Error != nil {
		text := s.Error.Code
		if s.Error.Message != "" {
			text += ": " + s.Error.Message
		}
		out.Error = &text
	}
	return out
}

func (s *Server) classicSessions(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	out := classicList{Sessions: []classicSession{}}
	for page := (api.Page{Limit: classicPage}); ; page.Limit = classicPage - len(out.Sessions) {
		found, err := s.engine.Sessions(x.r.Context(), x.caller, api.SessionFilter{Agent: x.vars["agent"], Archived: true}, page)
		if err != nil {
			return response{}, err
		}
		for i := range found.Items {
			out.Sessions = append(out.Sessions, classic(&found.Items[i]))
		}
		// A page may end before its limit.
		if page.Cursor = found.NextCursor; page.Cursor == "" || len(out.Sessions) == classicPage {
			return reply(out, nil)
		}
	}
}

func (s *Server) classicTrigger(x *exchange) (response, error) {
	a, err := s.createSession(x)
	if err != nil {
		return response{}, err
	}
	made, ok := a.body.(api.Session)
	if !ok {
		return a, nil
	}
	a.body = classicOne{classic(&made)}
	return a, nil
}

// classicCancel cancels a session that no worker has begun; for any other it answers 409.
func (s *Server) classicCancel(x *exchange) (response, error) {
	if err := s.sessionVerb(x, &noBody{}); err != nil {
		return response{}, err
	}
	got, err := s.engine.CancelSession(x.r.Context(), x.caller, x.session, api.CancelInput{OnlyPending: true})
	if err != nil {
		return response{}, err
	}
	if !got.Changed {
		return response{}, &api.Error{
			Code: api.CodeSessionTerminal, Status: got.Session.Status, Detail: "The session has ended: it is " + string(got.Session.Status) + ".",
		}
	}
	return response{status: http.StatusOK, body: classicOne{classic(&got.Session)}}, nil
}
