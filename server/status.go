package server

import "stint/api"

// overviewLimit bounds how many agents and workers an overview holds.
const overviewLimit = 1000

func (s *Server) overview(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	ctx := x.r.Context()
	o := api.Overview{URL: s.here(x.r), Version: s.version, User: x.grant.who.Name}
	var err error
	if o.Sessions, err = s.engine.SessionCounts(ctx, x.caller, api.SessionFilter{}); err != nil {
		return response{}, err
	}
	if o.Agents, err = newest(func(p api.Page) (api.List[api.Agent], error) { return s.engine.Agents(ctx, x.caller, p) }); err != nil {
		return response{}, err
	}
	if o.Workers, err = newest(func(p api.Page) (api.List[api.Worker], error) { return s.engine.Workers(ctx, x.caller, "", p) }); err != nil {
		return response{}, err
	}
	view, err := s.engine.Inbox(ctx, x.caller)
	o.Inbox = view.Items
	return reply(o, err)
}

// newest gathers the first pages of a list.
func newest[T any](page func(api.Page) (api.List[T], error)) ([]T, error) {
	all, p := []T{}, api.Page{Limit: maxLimit}
	for {
		list, err := page(p)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if p.Cursor = list.NextCursor; p.Cursor == "" || len(all) >= overviewLimit {
			return all[:min(len(all), overviewLimit)], nil
		}
	}
}
