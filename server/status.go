package server

import (
	"context"
	"time"

	"stint/api"
	"stint/engine"
)

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
	if o.Processes, err = s.engine.WorkerCount(ctx, x.caller); err != nil {
		return response{}, err
	}
	view, err := s.engine.Inbox(ctx, x.caller)
	o.Inbox = view.Items
	return reply(o, err)
}

// system answers how the coordinator itself is.
func (s *Server) system(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	out, err := s.engine.System(x.r.Context(), x.caller)
	return reply(out, err)
}

// pruneFor is how long a request removes what is old before it says that there is more.
const pruneFor = 20 * time.Second

// prune removes what is old, or says what that would be.
func (s *Server) prune(x *exchange) (response, error) {
	var in api.PruneInput
	if err := x.decodeOptional(&in); err != nil {
		return response{}, err
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), pruneFor)
	defer cancel()
	return reply(s.engine.PruneAll(ctx, x.caller, in.DryRun))
}

// examination is how long a request looks at the database: a working coordinator's readers must
// not miss the connection for longer.
var examination = engine.Looking{Rules: 3 * time.Second, Pages: 2 * time.Second}

// examine says what is wrong, one caller at a time.
func (s *Server) examine(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	ctx := x.r.Context()
	select {
	case s.examining <- struct{}{}:
		defer func() { <-s.examining }()
	case <-ctx.Done():
		return response{}, ctx.Err()
	}
	out, err := s.engine.Examine(ctx, x.caller, examination)
	if err != nil {
		return response{}, err
	}
	out.Version = s.version
	out.Add(s.lookFromOutside(ctx)...)
	return reply(out, nil)
}

// supportBundle answers what somebody who helps needs to know.
func (s *Server) supportBundle(x *exchange) (response, error) {
	if err := x.query().end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.SupportBundle(x.r.Context(), x.caller, examination))
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
