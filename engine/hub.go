package engine

import (
	"context"
	"sync"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	hubWindow = 1000                   // events in one read
	hubQueue  = 4 * hubWindow          // events that wait for a slow stream before it reads by itself
	hubPace   = 25 * time.Millisecond  // the least time between two rounds: a busy log is read a few dozen times a second
	hubSlice  = 32                     // streams that are woken at once
	hubEach   = 100 * time.Microsecond // what one stream may cost: many streams are served less often
	hubRetry  = time.Second            // after a read that failed
)

// hub reads the events of each commit once for all streams and hands to each what its viewer
// may see, determined once for viewers of equal rights. It waits for no stream: one that
// doesn't keep up loses its queue and continues reading by itself from where it is. What the
// hub sends is a shortcut; the table decides.
type hub struct {
	mu      sync.Mutex // guards what follows
	groups  map[viewer]map[*Stream]struct{}
	running bool
	reads   int           // so far, the streams' own among them
	empty   chan struct{} // closed when the last stream has left
}

// viewer is what decides which events somebody is sent.
type viewer struct {
	workspace api.WorkspaceID
	user      api.UserID
	role      api.Role
	client    string
	byKey     api.KeyID
	byRun     bool
}

func viewerOf(c Caller) viewer {
	return viewer{c.WorkspaceID, c.UserID, c.Role, c.Client, c.KeyID, c.Run != nil}
}

// caller is a caller with the viewer's rights. A key's scopes are left out: none of them opens
// a list that isn't open to everybody.
func (v viewer) caller() Caller {
	c := Caller{WorkspaceID: v.workspace, UserID: v.user, Role: v.role, Client: v.client, KeyID: v.byKey}
	if v.byRun {
		c.Run = &account.Run{}
	}
	return c
}

// Batch is a stretch of the log as one viewer may see it. Streams of viewers with equal rights
// share it: nothing in it may be changed.
type Batch struct {
	Events   []api.Event // oldest first; may be none
	from, to int64       // the stretch: after from, up to to
	once     sync.Once
	text     []byte
}

// Text is what encode makes of the events, made once for all who share the batch.
func (b *Batch) Text(encode func([]api.Event) []byte) []byte {
	b.once.Do(func() { b.text = encode(b.Events) })
	return b.text
}

// Stream is one reader's place in the event log. It belongs to one goroutine.
type Stream struct {
	e     *Engine
	ready chan struct{} // holds at most one wake

	mu      sync.Mutex // guards what follows
	viewer  viewer
	at      int64 // everything up to here was taken
	queue   []*Batch
	queued  int  // events in queue
	behind  bool // it must read by itself
	reading bool // it does, and what comes meanwhile is queued whatever it follows
}

// Follow opens a stream of what happened after a sequence number and the caller may see. Close
// it.
func (e *Engine) Follow(c Caller, after int64) *Stream {
	s := &Stream{e: e, ready: make(chan struct{}, 1), viewer: viewerOf(c), at: after, behind: true}
	s.wake()
	h := &e.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.join(s)
	if !h.running {
		h.running, h.empty = true, make(chan struct{})
		go e.runHub(h.empty)
	}
	return s
}

// Close takes the stream out of the hub.
func (s *Stream) Close() {
	h := &s.e.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave(s)
	if len(h.groups) == 0 && h.running {
		h.running = false
		close(h.empty)
	}
}

func (h *hub) join(s *Stream) {
	if h.groups == nil {
		h.groups = map[viewer]map[*Stream]struct{}{}
	}
	if h.groups[s.viewer] == nil {
		h.groups[s.viewer] = map[*Stream]struct{}{}
	}
	h.groups[s.viewer][s] = struct{}{}
}

func (h *hub) leave(s *Stream) {
	delete(h.groups[s.viewer], s)
	if len(h.groups[s.viewer]) == 0 {
		delete(h.groups, s.viewer)
	}
}

// Ready wakes when there may be something to take.
func (s *Stream) Ready() <-chan struct{} { return s.ready }

func (s *Stream) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Take returns the next events for the caller, whose rights may have changed since the last
// time; nil when there are none now. Errors: those of a read.
func (s *Stream) Take(ctx context.Context, c Caller) (*Batch, error) {
	s.become(viewerOf(c))
	for {
		b, behind := s.next()
		if behind {
			var err error
			if b, err = s.catchUp(ctx); err != nil {
				return nil, err
			}
		}
		if b == nil || len(b.Events) > 0 {
			return b, nil
		}
	}
}

// become moves the stream to another viewer's group. What was queued for the old one is not
// for the new one.
func (s *Stream) become(v viewer) {
	if s.viewer == v { // which only this goroutine changes
		return
	}
	h := &s.e.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave(s)
	s.mu.Lock()
	s.viewer = v
	s.fall()
	s.mu.Unlock()
	h.join(s)
}

// fall has the stream read by itself.
func (s *Stream) fall() { s.queue, s.queued, s.behind = nil, 0, true }

// next takes the oldest batch out of the queue.
func (s *Stream) next() (b *Batch, behind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.behind && len(s.queue) > 0 {
		b := s.queue[0]
		s.queue = s.queue[1:]
		s.queued -= len(b.Events)
		switch {
		case b.to <= s.at: // the stream's own read has already returned it
		case b.from > s.at:
			s.fall()
		default:
			b = b.after(s.at)
			s.at = b.to
			return b, false
		}
	}
	return nil, s.behind
}

// after is the batch without what is already known.
func (b *Batch) after(at int64) *Batch {
	if b.from == at {
		return b
	}
	out := &Batch{from: at, to: b.to}
	for _, ev := range b.Events {
		if ev.Seq > at {
			out.Events = append(out.Events, ev)
		}
	}
	return out
}

// catchUp continues reading by itself. The stream counts as caught up before the read, so that
// what the hub hands out meanwhile is queued and nothing falls in between.
func (s *Stream) catchUp(ctx context.Context) (*Batch, error) {
	s.mu.Lock()
	s.queue, s.queued, s.behind, s.reading = nil, 0, false, true
	v, after := s.viewer, s.at
	s.mu.Unlock()
	var out *Batch
	var more bool
	err := s.e.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, to, err := s.e.hub.window(ctx, tx, after)
		if err != nil {
			return err
		}
		more = len(rows) == hubWindow
		out, err = shownTo(ctx, newVisibilityCache(tx), v, rows, after, to)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = false
	if err != nil {
		s.fall()
		return nil, err
	}
	s.at = out.to
	if more {
		s.fall()
	}
	return out, nil
}

// offer hands a batch to a stream of a viewer and reports whether it was woken.
func (s *Stream) offer(v viewer, b *Batch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	follows := s.at
	if n := len(s.queue); n > 0 {
		follows = s.queue[n-1].to
	}
	switch {
	case s.behind || s.viewer != v || b.to <= s.at:
		return false
	case !s.reading && b.from > follows, s.queued+len(b.Events) > hubQueue:
		s.fall()
	case !s.reading && len(s.queue) == 0 && len(b.Events) == 0:
		s.at = b.to // nothing for its viewer: it sleeps on
		return false
	default:
		s.queue = append(s.queue, b)
		s.queued += len(b.Events)
	}
	s.wake()
	return true
}

// window reads the next events of the whole log, and returns how far it read.
func (h *hub) window(ctx context.Context, tx *db.ReadTx, after int64) (rows []queries.Event, to int64, err error) {
	h.mu.Lock()
	h.reads++
	h.mu.Unlock()
	newest, err := tx.Counter(ctx, "event")
	if err != nil || newest <= after {
		return nil, after, err
	}
	rows, err = tx.EventsForAll(ctx, queries.EventsForAllParams{After: after, N: hubWindow})
	if err != nil {
		return nil, after, err
	}
	if n := len(rows); n == hubWindow {
		newest = rows[n-1].Seq
	}
	return rows, newest, nil
}

// shownTo returns what one viewer may see of events.
func shownTo(ctx context.Context, known *visibilityCache, v viewer, rows []queries.Event, from, to int64) (*Batch, error) {
	y := &visibility{known, v.caller()}
	out := &Batch{from: from, to: to}
	for _, r := range rows {
		ev, seen, err := y.shown(ctx, r)
		if err != nil {
			return nil, err
		}
		if seen {
			out.Events = append(out.Events, ev)
		}
	}
	return out, nil
}
