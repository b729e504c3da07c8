package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stint/api"
)

// The pace at which a session is polled while somebody waits: fast while something happens,
// slow after a silence.
const (
	quickLook = 100 * time.Millisecond
	slowLook  = time.Second
)

// follower polls a session until it has ended, or until it asks a person.
type follower struct {
	c      *cli
	client *api.Client
	id     api.SessionID

	lines  func([]api.Item) error  // gets the items as they come; nil = items don't matter
	change func(api.Session) error // called with the session when it looks different; nil = not called
	after  int64                   // the sequence number of the last item seen
	asked  bool                    // a question to a person ends the wait
}

// run follows until the end and returns the session as it was then, with all its items passed
// on. It waits for a coordinator that goes away meanwhile.
func (f *follower) run(ctx context.Context) (api.Session, error) {
	var told, lost bool
	var last api.Session
	pause := quickLook
	for {
		s, busy, err := f.look(ctx)
		switch {
		case err == nil:
			if lost {
				f.c.hint("The server is back.")
			}
			lost = false
		case told && api.Retriable(err) && ctx.Err() == nil:
			if !lost {
				f.c.waits()
			}
			lost = true
		default:
			return last, err
		}
		if err == nil && (!told || news(last, s)) {
			busy = true
			if f.change != nil {
				if err := f.change(s); err != nil {
					return s, err
				}
			}
		}
		if err == nil && f.c.waitsForItself(s) {
			return s, &problem{
				code: exitConflict, what: fmt.Sprintf("cannot wait for the session %s in this run", s.ID),
				why: plain(s.WaitingFor.Sentence), next: fmt.Sprintf("it stays %s; end this run, or: stint cancel %s", s.Status, s.ID),
			}
		}
		if err == nil {
			told, last = true, s
			if s.Status.Terminal() || f.asked && s.Status == api.AwaitingInput {
				return s, nil
			}
		}
		if pause = min(2*pause, slowLook); busy {
			pause = quickLook
		}
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// waitsForItself reports whether this command runs inside a session and waits for a session
// that is held up by that one, or by one that started it.
func (c *cli) waitsForItself(s api.Session) bool {
	return s.WaitingFor != nil && s.WaitingFor.Ancestor && strings.HasPrefix(c.env("STINT_TOKEN"), api.RunTokenPrefix)
}

// look reads the session first and its items after it, so that a session seen as ended has no
// unseen items.
func (f *follower) look(ctx context.Context) (s api.Session, busy bool, err error) {
	if s, err = f.client.Session(ctx, f.id); err != nil {
		return s, false, err
	}
	if f.lines == nil {
		return s, false, nil
	}
	from := f.after
	err = f.drain(ctx)
	return s, f.after != from, err
}

// drain passes on all items that are stored by now.
func (f *follower) drain(ctx context.Context) error {
	for {
		page, err := f.client.Items(ctx, f.id, f.after, pageSize)
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			return nil
		}
		f.after = page.Items[len(page.Items)-1].Seq
		if err := f.lines(page.Items); err != nil {
			return err
		}
		if f.after >= page.LastSeq {
			return nil
		}
	}
}

// news reports whether a person would want to know of the difference.
func news(a, b api.Session) bool {
	return a.Status != b.Status || sentence(a) != sentence(b) || a.WorkerID != b.WorkerID
}

func sentence(s api.Session) string {
	if s.WaitingFor == nil {
		return ""
	}
	return s.WaitingFor.Sentence
}

// errTimeout is why a wait with --timeout ended.
var errTimeout = errors.New("--timeout ran out")

// limited is ctx with an end after limit; 0 is none.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, errTimeout)
}

// gaveUp puts into words the end of a wait that the session outlasts: it goes on, and here is
// how to end it.
func (c *cli) gaveUp(ctx context.Context, id api.SessionID) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		c.hint("%s goes on after --timeout. Cancel it with: stint cancel %s", id, id)
		return quietly(exitTimeout)
	}
	c.hint("Detached. %s goes on. Cancel it with: stint cancel %s", id, id)
	return quietly(exitInterrupted)
}
