package server

import (
	"stint/api"
	"stint/web"
)

// attachments lists the files that came with a session's prompt and its messages.
func (s *Server) attachments(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	if err := s.sessionHere(x.r.Context(), x); err != nil {
		return response{}, err
	}
	files, err := s.engine.Attachments(x.r.Context(), x.caller, x.session)
	return reply(api.Attachments{Items: files}, err)
}

// attachment answers a file's bytes.
func (s *Server) attachment(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	var id api.AttachmentID
	if id.UnmarshalText([]byte(x.vars["attachment"])) != nil {
		id = 0 // what is no id names no file, of a session that the caller sees
	}
	if err := s.sessionHere(x.r.Context(), x); err != nil {
		return response{}, err
	}
	file, data, err := s.engine.Attachment(x.r.Context(), x.caller, x.session, id)
	if err != nil {
		return response{}, err
	}
	web.SendFile(x, file, data)
	return response{written: true}, nil
}
