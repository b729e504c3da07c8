package server

import (
	"net/http"

	"stint/api"
	"stint/engine"
)

func (s *Server) listChannels(x *exchange) (response, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Channels(x.r.Context(), x.caller, page))
}

func (s *Server) createChannel(x *exchange) (response, error) {
	sent, unset := engine.DefaultChannel(), engine.DefaultChannel()
	merge, err := merging(x, unset)
	if err != nil {
		return response{}, err
	}
	if err := merge(&sent); err != nil {
		return response{}, err
	}
	c, err := s.engine.CreateChannel(x.r.Context(), x.caller, sent)
	return response{status: http.StatusCreated, body: c, location: x.under("channels", c.ID.String())}, err
}

// channel reads the channel that the path names.
func (x *exchange) channel() (id api.ChannelID, err error) {
	if id.UnmarshalText([]byte(x.vars["channel"])) != nil {
		return 0, api.Refuse(api.CodeNotFound, "There is no such channel here.")
	}
	return id, nil
}

func (s *Server) showChannel(x *exchange) (response, error) {
	id, err := x.channel()
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.Channel(x.r.Context(), x.caller, id))
}

func (s *Server) editChannel(x *exchange) (response, error) {
	id, err := x.channel()
	if err != nil {
		return response{}, err
	}
	merge, err := merging(x, engine.DefaultChannel())
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.EditChannel(x.r.Context(), x.caller, id, merge))
}

func (s *Server) deleteChannel(x *exchange) (response, error) {
	id, err := x.channel()
	if err != nil {
		return response{}, err
	}
	return done(s.engine.DeleteChannel(x.r.Context(), x.caller, id))
}

func (s *Server) testChannel(x *exchange) (response, error) {
	id, err := x.channel()
	if err != nil {
		return response{}, err
	}
	if err := x.decodeOptional(&noBody{}); err != nil {
		return response{}, err
	}
	return reply(s.engine.TestChannel(x.r.Context(), x.caller, id))
}

func (s *Server) listChannelDeliveries(x *exchange) (response, error) {
	id, err := x.channel()
	if err != nil {
		return response{}, err
	}
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.ChannelDeliveries(x.r.Context(), x.caller, id, page))
}

func (s *Server) showChannelDelivery(x *exchange) (response, error) {
	id, err := x.channel()
	if err != nil {
		return response{}, err
	}
	var delivery api.DeliveryID
	if delivery.UnmarshalText([]byte(x.vars["delivery"])) != nil {
		return response{}, api.Refuse(api.CodeNotFound, "There is no such delivery here.")
	}
	return reply(s.engine.ChannelDelivery(x.r.Context(), x.caller, id, delivery))
}
