package server

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/engine"
)

const (
	eventBatch = 200              // events of one look
	writeLimit = 10 * time.Second // for a reader to take a batch
)

// events answers a page of the event log, ascending, or the live stream.
func (s *Server) events(x *exchange) (answer, error) {
	if acceptsStream(x.r) && x.r.Method == http.MethodGet {
		return s.stream(x)
	}
	q := x.query()
	after := q.whole("after", 0, 1<<63-1, 0)
	limit := q.limit()
	if err := q.end(); err != nil {
		return answer{}, err
	}
	if limit == 0 {
		limit = 50
	}
	found, err := s.engine.Events(x.r.Context(), x.caller, after, limit)
	return reply(api.List[api.Event]{Items: found}, err)
}

// audit answers a page of who did what, newest first.
func (s *Server) audit(x *exchange) (answer, error) {
	q := x.query()
	f := api.AuditFilter{
		Actor: q.text("actor"), Type: q.text("type"), Agent: q.text("agent"),
		Since: api.Time{Time: q.time("since")}, Until: api.Time{Time: q.time("until")},
	}
	q.id("session", &f.Session)
	page := q.page()
	if err := q.end(); err != nil {
		return answer{}, err
	}
	return reply(s.engine.Audit(x.r.Context(), x.caller, f, page))
}

func acceptsStream(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// stream follows the event log for one reader (contract 9.3). The reader's place
// is a sequence number; what it is told comes from the table alone, so a lost
// wake-up, a slow connection or a restart loses nothing.
func (s *Server) stream(x *exchange) (answer, error) {
	q := x.query()
	after := q.whole("after", 0, 1<<63-1, -1)
	if err := q.end(); err != nil {
		return answer{}, err
	}
	ctx, release, err := s.hold(x, heldStream)
	if err != nil {
		return answer{}, err
	}
	defer release()
	place, reset, err := s.startOf(x.r, after) // a stream that shutdown meets at its start is still opened
	if err != nil {
		return answer{}, err
	}
	out := openStream(x)
	if reset {
		out.reset(place)
	}
	if out.send() {
		s.follow(ctx, x, out, place)
	}
	return answer{written: true}, nil
}

// startOf finds the place to start from: the last event that the reader has,
// else the end. Reset says that events after the reader's place are no longer
// kept, or that the place isn't one of this log, as after a restored backup: what
// the reader knows is void.
func (s *Server) startOf(r *http.Request, after int64) (place int64, reset bool, err error) {
	oldest, newest, err := s.engine.EventRange(r.Context())
	if err != nil {
		return 0, false, err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		n, bad := strconv.ParseInt(id, 10, 64)
		if bad != nil || n < 0 {
			return newest, true, nil
		}
		after = n
	}
	switch {
	case after < 0:
		return newest, false, nil
	case after > newest, after < oldest-1:
		return newest, true, nil
	}
	return after, false, nil
}

// follow tells one event after another until the reader, its rights or the
// server are gone.
func (s *Server) follow(ctx context.Context, x *exchange, out *eventStream, place int64) {
	silence := time.NewTimer(s.heartbeat)
	defer silence.Stop()
	for {
		changed := s.engine.Changed() // taken before the look
		in, err := s.again(ctx, x)
		if err != nil {
			return
		}
		found, next, err := s.look(ctx, in, place)
		if err != nil {
			return // the reader comes back and starts where it was
		}
		for _, e := range found {
			out.event(e)
		}
		place = next
		if len(found) > 0 {
			if !out.send() {
				return
			}
			silence.Reset(s.heartbeat)
			if len(found) == eventBatch {
				continue
			}
		}
		if !s.wait(ctx, changed, silence, out) {
			return
		}
	}
}

// look reads the next events that the caller may see, and the place after them.
// A stretch of events that others' sessions made is passed over for good.
func (s *Server) look(ctx context.Context, in engine.Caller, place int64) ([]api.Event, int64, error) {
	last, err := s.engine.LastEvent(ctx)
	if err != nil {
		return nil, 0, err
	}
	if last <= place {
		return nil, place, nil
	}
	found, err := s.engine.Events(ctx, in, place, eventBatch)
	if err != nil {
		return nil, 0, err
	}
	switch n := len(found); {
	case n == eventBatch:
		return found, found[n-1].Seq, nil
	case n > 0:
		return found, max(found[n-1].Seq, last), nil
	}
	return nil, last, nil
}

// wait sleeps until there may be something new, and comments on long silence so
// that proxies keep the connection. A busy log is looked at a few dozen times a
// second, not at every commit.
func (s *Server) wait(ctx context.Context, changed <-chan struct{}, silence *time.Timer, out *eventStream) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-silence.C:
			out.comment()
			if !out.send() {
				return false
			}
			silence.Reset(s.heartbeat)
			if s.rightsEnded(ctx, out.x) {
				return false
			}
		case <-changed:
			pace := time.NewTimer(s.pace)
			defer pace.Stop()
			select {
			case <-ctx.Done():
				return false
			case <-pace.C:
				return true
			}
		}
	}
}

// eventStream writes server-sent events. A reader that doesn't take a batch in
// time is cut off; it comes back with the id of the last event that it has.
type eventStream struct {
	x   *exchange
	rc  *http.ResponseController
	buf bytes.Buffer
}

func openStream(x *exchange) *eventStream {
	out := &eventStream{x: x, rc: http.NewResponseController(x.ResponseWriter)}
	_ = out.rc.SetWriteDeadline(time.Time{}) // each batch has its own; a writer without deadlines is a test's
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	x.WriteHeader(http.StatusOK)
	out.buf.WriteString("retry: 2000\n\n")
	return out
}

func (o *eventStream) comment() { o.buf.WriteString(":\n\n") }

func (o *eventStream) reset(place int64) {
	o.buf.WriteString("id: " + strconv.FormatInt(place, 10) + "\nevent: reset\ndata: {}\n\n")
}

func (o *eventStream) event(e api.Event) {
	o.buf.WriteString("id: " + strconv.FormatInt(e.Seq, 10) + "\ndata: ")
	if err := json.MarshalWrite(&o.buf, e, lenient); err != nil {
		o.x.server.log.Error("write an event", "seq", e.Seq, "error", err)
		o.buf.WriteString("null")
	}
	o.buf.WriteString("\n\n")
}

// send writes what was gathered; false when the reader is gone or too slow.
func (o *eventStream) send() bool {
	late := time.AfterFunc(writeLimit, func() {
		_ = o.rc.SetWriteDeadline(time.Unix(1, 0)) // in the past: the write below ends at once
	})
	defer late.Stop()
	_, err := o.x.Write(o.buf.Bytes())
	o.buf.Reset()
	return err == nil && o.rc.Flush() == nil
}
