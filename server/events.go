package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/engine"
)

const writeLimit = 10 * time.Second // for a reader to take a batch

// events returns a page of the event log, ascending, or the live stream.
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

// audit returns a page of who did what, newest first.
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

// stream follows the event log for one reader (contract 9.3). The reader's place is a sequence
// number; what is sent comes only from the table, so a lost wake-up, a slow connection or a
// restart loses nothing.
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
	place, reset, err := s.startOf(x.r, after) // a stream that begins during shutdown is still opened
	if err != nil {
		return answer{}, err
	}
	out := openStream(x)
	if reset {
		out.reset(place)
	}
	if out.send() {
		s.follow(ctx, out, place)
	}
	return answer{written: true}, nil
}

// startOf finds the place to start from: the last event that the reader has, else the end.
// Reset says that events after the reader's place are no longer kept, or that the place isn't
// in this log, as after a restored backup: what the reader knows is void.
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

// follow sends one event after another until the reader, its rights or the server are gone.
// During long silence it sends comments, so that proxies keep the connection.
func (s *Server) follow(ctx context.Context, out *eventStream, place int64) {
	in, err := s.again(ctx, out.x)
	if err != nil {
		return
	}
	events := s.engine.Follow(in, place)
	defer events.Close()
	silence := time.NewTimer(s.heartbeat)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-silence.C:
			out.comment()
			if !out.send() || s.rightsEnded(ctx, out.x) {
				return
			}
		case <-events.Ready():
			told, err := s.tell(ctx, out, events)
			if err != nil {
				return // the reader reconnects and starts where it was
			}
			if !told {
				continue
			}
		}
		silence.Reset(s.heartbeat)
	}
}

// tell sends what there is and the caller may see now.
func (s *Server) tell(ctx context.Context, out *eventStream, events *engine.Stream) (told bool, err error) {
	for {
		in, err := s.again(ctx, out.x)
		if err != nil {
			return told, err
		}
		batch, err := events.Take(ctx, in)
		if err != nil || batch == nil {
			return told, err
		}
		if !out.write(batch.Text(s.eventsText)) {
			return told, errReaderGone
		}
		told = true
	}
}

var errReaderGone = errors.New("the reader is gone or too slow")

// eventsText is events as server-sent ones.
func (s *Server) eventsText(events []api.Event) []byte {
	var buf bytes.Buffer
	for _, e := range events {
		buf.WriteString("id: " + strconv.FormatInt(e.Seq, 10) + "\ndata: ")
		if err := json.MarshalWrite(&buf, e, lenient); err != nil {
			s.log.Error("write an event", "seq", e.Seq, "error", err)
			buf.WriteString("null")
		}
		buf.WriteString("\n\n")
	}
	return buf.Bytes()
}

// eventStream writes server-sent events. A reader that doesn't take a batch in time is cut
// off; it reconnects with the id of the last event that it has.
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

// send writes what was gathered; false when the reader is gone or too slow.
func (o *eventStream) send() bool {
	defer o.buf.Reset()
	return o.write(o.buf.Bytes())
}

func (o *eventStream) write(text []byte) bool {
	late := time.AfterFunc(writeLimit, func() {
		_ = o.rc.SetWriteDeadline(time.Unix(1, 0)) // in the past: the write below ends at once
	})
	defer late.Stop()
	_, err := o.x.Write(text)
	return err == nil && o.rc.Flush() == nil
}
