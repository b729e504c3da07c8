package worker

import (
	"context"
	"time"

	"stint/worker/proc"
)

// converse is one try at a session of an agent that converses. An agent session that the
// program no longer knows costs no try: a new one continues, with what was said so far.
// contract 2.6
func (s *session) converse(ctx context.Context, p plan, try int, life proc.Record) (o outcome, again bool) {
	if err := s.again(ctx); err != nil {
		return s.ended(err, ""), false
	}
	c := newConversation(s, p, try)
	o, again = c.run(ctx, life)
	if !c.gone || ctx.Err() != nil {
		return o, again
	}
	forgotten := s.persist("forget the agent session", func() error {
		return s.p.state.forgetAgentSession(s.addr.Session, c.begun, s.claim.Session.AgentSessionID)
	})
	if !forgotten {
		return released(reasonStopped), false
	}
	next := newConversation(s, p, try)
	next.before.unknown = true
	return next.run(ctx, proc.NewRecord(s.addr.Session.String()))
}

// freshWords tells people why a new agent session continues the conversation.
func (c *conversation) freshWords() string {
	switch {
	case c.moved:
		return "The agent session of the earlier run was held in another folder than this one works in; a new one goes on, told what was said so far."
	case c.before.unknown:
		return "The program does not know the agent session of this conversation any more; a new one goes on, told what was said so far."
	}
	return "The agent session of the earlier run lives on another worker, or is gone; a new one goes on, told what was said so far."
}

// limitedUntil is when a session resumes that hit its account's usage limit: when the limit
// ends, if that was named; otherwise, or if that has just passed, after a pause that grows
// with how often in a row the session was given back. contract 10.9
func limitedUntil(named, now time.Time, before int64) time.Time {
	pause := min(limitFirst<<min(max(before, 0), 10), limitMost)
	if !named.IsZero() {
		pause = limitLeast << min(max(before, 0), 6) // it should be over, or nearly so
	}
	if at := now.Add(pause); named.Before(at) {
		return at
	}
	return named
}

const (
	limitLeast = 15 * time.Second
	limitFirst = 5 * time.Minute
	limitMost  = time.Hour
)
