package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/engine"
	"stint/web/sse"
)

const retryIn = 2 * time.Second // for a reader of the stream that lost its connection

// events returns a page of the event log, ascending, or the live stream.
func (s *Server) events(x *exchange) (response, error) {
	if acceptsStream(x.r) && x.r.Method == http.MethodGet {
		return s.stream(x)
	}
	q := x.query()
	after := q.whole("after", 0, 1<<63-1, 0)
	limit := q.limit()
	if err := q.end(); err != nil {
		return response{}, err
	}
	if limit == 0 {
		limit = 50
	}
	found, err := s.engine.Events(x.r.Context(), x.caller, after, limit)
	return reply(api.List[api.Event]{Items: found}, err)
}

// audit returns a page of who did what, newest first.
func (s *Server) audit(x *exchange) (response, error) {
	q := x.query()
	f := api.AuditFilter{
		Actor: q.text("actor"), Type: q.text("type"), Agent: q.text("agent"),
		Since: api.Time{Time: q.time("since")}, Until: api.Time{Time: q.time("until")},
	}
	q.id("session", &f.Session)
	page := q.page()
	if err := q.end(); err != nil {
		return response{}, err
	}
	return reply(s.engine.Audit(x.r.Context(), x.caller, f, page))
}

func acceptsStream(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// stream follows the event log for one reader (contract 9.3). The reader's place is a sequence
// number; what is sent comes only from the table, so a lost wake-up, a slow connection or a
// restart loses nothing.
func (s *Server) stream(x *exchange) (response, error) {
	q := x.query()
	after := q.whole("after", 0, 1<<63-1, -1)
	if err := q.end(); err != nil {
		return response{}, err
	}
	ctx, release, err := s.hold(x, heldStream)
	if err != nil {
		return response{}, err
	}
	defer release()
	place, reset, err := s.startOf(x.r, after) // a stream that begins during shutdown is still opened
	if err != nil {
		return response{}, err
	}
	first := sse.AppendRetry(nil, retryIn)
	if reset {
		first = sse.AppendEvent(first, strconv.FormatInt(place, 10), "reset", []byte("{}"))
	}
	out := sse.Open(x)
	if out.Send(first) == nil {
		s.follow(ctx, x, out, place)
	}
	return response{written: true}, nil
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
func (s *Server) follow(ctx context.Context, x *exchange, out *sse.Stream, place int64) {
	in, err := s.again(ctx, x)
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
			if out.Beat() != nil || s.rightsEnded(ctx, x) {
				return
			}
		case <-events.Ready():
			told, err := s.tell(ctx, x, out, events)
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
func (s *Server) tell(ctx context.Context, x *exchange, out *sse.Stream, events *engine.Stream) (told bool, err error) {
	for {
		in, err := s.again(ctx, x)
		if err != nil {
			return told, err
		}
		batch, err := events.Take(ctx, in)
		if err != nil || batch == nil {
			return told, err
		}
		if err := out.Send(batch.Text(s.eventsText)); err != nil {
			return told, err
		}
		told = true
	}
}

// eventsText is events as server-sent ones.
func (s *Server) eventsText(events []api.Event) (lines []byte) {
	for _, e := range events {
		text, err := json.Marshal(e, lenient)
		if err != nil {
			s.log.Error("write an event", "seq", e.Seq, "error", err)
			text = []byte("null")
		}
		lines = sse.AppendEvent(lines, strconv.FormatInt(e.Seq, 10), "", text)
	}
	return lines
}
