package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"stint/api"
	"stint/engine"
)

// Why a held request ended before its time.
var (
	errClosing = errors.New("the server is shutting down")
	errRevoked = errors.New("the rights of the caller ended")
)

// holder is who holds requests: one user with one kind of patience, so that a
// browser full of tabs can't take the workers' places.
type holder struct {
	user   api.UserID
	stream bool
}

// holds counts held requests and streams, each user by himself.
type holds struct {
	most int
	mu   sync.Mutex // guards by
	by   map[holder]int
}

func (h *holds) take(who holder) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[who] >= h.most {
		return false
	}
	h.by[who]++
	return true
}

func (h *holds) give(who holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[who]--; h.by[who] == 0 {
		delete(h.by, who)
	}
}

// hold makes the context of a request that waits. It ends with the client's
// connection, with errClosing at shutdown, and with errRevoked soon after the
// caller's rights end (contract 9.3). Call the func when the wait is over.
func (s *Server) hold(x *exchange, kind heldKind) (context.Context, func(), error) {
	who := holder{user: x.grant.who.UserID, stream: kind == heldStream}
	if !s.held.take(who) {
		return nil, nil, &api.Error{
			Code: api.CodeTooMany, RetryIn: 5,
			Detail: "Too many of your requests are being held. Wait for some to end.",
		}
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
		s.held.give(who)
	}, nil
}

type heldKind int

const (
	heldWait   heldKind = iota // a long poll
	heldStream                 // a live stream
)

// rightsEnded reports whether the token or the membership is gone. A store that
// can't be read now proves nothing.
func (s *Server) rightsEnded(ctx context.Context, x *exchange) bool {
	_, err := s.again(ctx, x)
	var refused *api.Error
	return errors.As(err, &refused) && (refused.Code == api.CodeUnauthenticated || refused.Code == api.CodeNotFound)
}

// again answers what the caller may do now; a held request asks before each
// thing that it tells.
func (s *Server) again(ctx context.Context, x *exchange) (engine.Caller, error) {
	g, err := s.signedIn(ctx, x.r)
	if err != nil {
		return engine.Caller{}, err
	}
	return s.rights.caller(ctx, g, x.vars["workspace"])
}
