package server

import (
	"context"
	"errors"
	"time"

	"stint/api"
	"stint/engine"
)

const maxWait = 60 // seconds that a request may be held (contract 4.2)

// Why a held request ended early.
var (
	errClosing = errors.New("the server is shutting down")
	errRevoked = errors.New("the rights of the caller ended")
)

type heldKind int

const (
	heldWait   heldKind = iota // a long poll
	heldStream                 // a live stream
)

// waiting answers with what look finds within wait; look ends with its context, and at once when
// it is given no wait. If the server shuts down meanwhile, the answer is what there is then.
func waiting[T any](x *exchange, wait time.Duration, look func(ctx context.Context, wait time.Duration) (T, error)) (response, error) {
	found, closing, err := held(x, wait, look)
	if closing {
		found, err = look(x.r.Context(), 0)
	}
	return reply(found, err)
}

// held runs a verb that waits for up to wait, under the limits of what is held. closing says that
// the server shut down before the verb found anything.
func held[T any](x *exchange, wait time.Duration, verb func(ctx context.Context, wait time.Duration) (T, error)) (found T, closing bool, err error) {
	ctx := x.r.Context()
	if wait > 0 {
		held, release, err := x.server.hold(x, heldWait)
		if err != nil {
			return found, false, err
		}
		defer release()
		ctx = held
	}
	found, err = verb(ctx, wait)
	closing, err = endOf(ctx, err)
	return found, closing, err
}

// endOf says why a held verb ended that was given ctx.
func endOf(ctx context.Context, err error) (closing bool, _ error) {
	switch cause := context.Cause(ctx); {
	case !errors.Is(err, context.Canceled) && !errors.Is(err, cause):
		return false, err
	case errors.Is(cause, errClosing):
		return true, nil
	case errors.Is(cause, errRevoked):
		return false, api.Refuse(api.CodeUnauthenticated, "Your rights ended while the request was held.")
	}
	return false, err
}

// hold makes the context of a request that waits. It ends with the client's connection, with
// errClosing at shutdown, and with errRevoked soon after the caller's rights end (contract
// 9.3). Errors: too_many_requests. Call the func when the wait is over.
func (s *Server) hold(x *exchange, kind heldKind) (context.Context, func(), error) {
	held, user, from := s.held[kind], x.grant.who.UserID, netOf(s.clientOf(x.r))
	if err := held.take(user, from); err != nil {
		// A connection on which nothing is held must not stay open for another minute.
		x.Header().Set("Connection", "close")
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(x.r.Context())
	unhook := context.AfterFunc(s.closing, func() { cancel(errClosing) })
	ready := make(chan *time.Timer, 1)
	look := time.AfterFunc(s.recheck, func() {
		again := <-ready
		defer func() { ready <- again }()
		if ctx.Err() != nil {
			return
		}
		if s.rightsEnded(ctx, x) {
			cancel(errRevoked)
			return
		}
		again.Reset(s.recheck)
	})
	ready <- look
	return ctx, func() {
		look.Stop()
		unhook()
		cancel(nil)
		held.give(user, from)
	}, nil
}

// rightsEnded reports whether the token or the membership is gone. A store that can't be read
// now proves nothing.
func (s *Server) rightsEnded(ctx context.Context, x *exchange) bool {
	_, err := s.again(ctx, x)
	var refused *api.Error
	return errors.As(err, &refused) && (refused.Code == api.CodeUnauthenticated || refused.Code == api.CodeNotFound)
}

// again returns what the caller may do now; a held request asks each time before it sends
// anything.
func (s *Server) again(ctx context.Context, x *exchange) (engine.Caller, error) {
	g, err := s.signedIn(ctx, x.r)
	if err != nil {
		return engine.Caller{}, err
	}
	return s.rights.caller(ctx, g, x.vars["workspace"])
}
