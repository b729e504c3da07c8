package server

import (
	"context"
	"net/http"

	"stint/api"
	"stint/engine"
)

func (s *Server) listWebhooks(x *exchange) (response, error) {
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Webhooks(x.r.Context(), x.caller, page))
}

func (s *Server) createWebhook(x *exchange) (response, error) {
	in := engine.DefaultWebhook()
	if err := x.decode(&in); err != nil {
		return response{}, err
	}
	w, err := s.engine.CreateWebhook(x.r.Context(), x.caller, in)
	return response{status: http.StatusCreated, body: w, location: x.under("webhooks", w.ID.String())}, err
}

// webhook reads the webhook that the path names.
func (x *exchange) webhook() (id api.WebhookID, err error) {
	if id.UnmarshalText([]byte(x.vars["webhook"])) != nil {
		return 0, api.Refuse(api.CodeNotFound, "There is no such webhook here.")
	}
	return id, nil
}

func (s *Server) showWebhook(x *exchange) (response, error) {
	id, err := x.webhook()
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.Webhook(x.r.Context(), x.caller, id))
}

func (s *Server) editWebhook(x *exchange) (response, error) {
	id, err := x.webhook()
	if err != nil {
		return response{}, err
	}
	merge, err := merging(x, engine.DefaultWebhook())
	if err != nil {
		return response{}, err
	}
	return reply(s.engine.EditWebhook(x.r.Context(), x.caller, id, merge))
}

func (s *Server) deleteWebhook(x *exchange) (response, error) {
	id, err := x.webhook()
	if err != nil {
		return response{}, err
	}
	return done(s.engine.DeleteWebhook(x.r.Context(), x.caller, id))
}

func (s *Server) rotateWebhook(x *exchange) (response, error) {
	return onWebhook(x, s.engine.RotateWebhook)
}

func (s *Server) testWebhook(x *exchange) (response, error) {
	return onWebhook(x, s.engine.TestWebhook)
}

// onWebhook calls a verb whose only body is {}.
func onWebhook[T any](x *exchange, verb func(context.Context, engine.Caller, api.WebhookID) (T, error)) (response, error) {
	id, err := x.webhook()
	if err != nil {
		return response{}, err
	}
	if err := x.decodeOptional(&noBody{}); err != nil {
		return response{}, err
	}
	return reply(verb(x.r.Context(), x.caller, id))
}

func (s *Server) listDeliveries(x *exchange) (response, error) {
	id, err := x.webhook()
	if err != nil {
		return response{}, err
	}
	q := x.query()
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Deliveries(x.r.Context(), x.caller, id, page))
}

func (s *Server) redeliver(x *exchange) (response, error) {
	return onWebhook(x, func(ctx context.Context, c engine.Caller, id api.WebhookID) (api.Delivery, error) {
		var delivery api.DeliveryID
		if delivery.UnmarshalText([]byte(x.vars["delivery"])) != nil {
			return api.Delivery{}, api.Refuse(api.CodeNotFound, "There is no such delivery here.")
		}
		return s.engine.Redeliver(ctx, c, id, delivery)
	})
}
