package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// moment is when the coordinator is killed. Exactly one of its fields is set.
type moment struct {
	answers int64         // this many answers were read
	sent    int64         // this many writes were sent; it is killed within linger after that
	linger  time.Duration // of sent
	unread  int64         // this many writes were answered, and the last answer was not read
	events  int64         // this many events came on the stream
}

func (m moment) String() string {
	switch {
	case m.answers > 0:
		return fmt.Sprintf("after %d answers", m.answers)
	case m.sent > 0:
		return fmt.Sprintf("%v after write %d was sent", m.linger, m.sent)
	case m.unread > 0:
		return fmt.Sprintf("at the answer to write %d, unread", m.unread)
	}
	return fmt.Sprintf("at event %d", m.events)
}

// someMoment picks a random moment for the kill.
func someMoment(r *rand.Rand) moment {
	n := 1 + r.Int64N(160)
	switch r.IntN(4) {
	case 0:
		return moment{answers: n}
	case 1:
		return moment{sent: n, linger: time.Duration(r.IntN(3000)) * time.Microsecond}
	case 2:
		return moment{unread: n}
	}
	return moment{events: n}
}

// wire is the transport of all clients between two kills of the coordinator, and kills it at
// the chosen moment.
type wire struct {
	kill func()
	base *http.Transport

	at    atomic.Pointer[moment] // nil = not yet chosen
	over  chan struct{}          // closed before the kill
	fatal sync.Once

	answers, sent, written, events atomic.Int64
}

func newWire(kill func()) *wire {
	return &wire{kill: kill, base: &http.Transport{MaxIdleConnsPerHost: 64}, over: make(chan struct{})}
}

// end kills the coordinator, once.
func (w *wire) end() {
	w.fatal.Do(func() {
		close(w.over)
		w.kill()
	})
}

// isOver reports whether the coordinator was killed.
func (w *wire) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// is reports whether the chosen moment has come, according to a count of its kind.
func (w *wire) is(count *atomic.Int64, wanted func(moment) int64) bool {
	m := w.at.Load()
	return m != nil && wanted(*m) > 0 && count.Add(1) == wanted(*m)
}

// sawEvent counts an event of the stream.
func (w *wire) sawEvent() {
	if w.is(&w.events, func(m moment) int64 { return m.events }) {
		w.end()
	}
}

// lostAnswer is an answer that was thrown away: the coordinator gave it, and its client
// doesn't know.
type lostAnswer struct {
	status int
	body   []byte
}

func (l *lostAnswer) Error() string { return fmt.Sprintf("the answer %d was lost", l.status) }

// RoundTrip is part of http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	write := r.Method != http.MethodGet
	if write {
		ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
			if w.is(&w.sent, func(m moment) int64 { return m.sent }) {
				time.AfterFunc(w.at.Load().linger, w.end)
			}
		}})
		r = r.WithContext(ctx)
	}
	resp, err := w.base.RoundTrip(r)
	if err != nil || strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if write && w.is(&w.written, func(m moment) int64 { return m.unread }) {
		w.end()
		return nil, &lostAnswer{resp.StatusCode, body}
	}
	if w.is(&w.answers, func(m moment) int64 { return m.answers }) {
		w.end() // this one is still read
	}
	return resp, nil
}

// verdict is what a client knows of its call.
type verdict int

const (
	told    verdict = iota // it was done, and the client knows
	refused                // it was not
	unread                 // it was done, and the client doesn't know
	unknown                // no answer came
)

// serverRun is the coordinator between a start and a kill.
type serverRun struct {
	testing.TB
	wire   *wire
	client *api.Client
	tally  *tally
}

// tally counts how calls turned out. It may be used from any goroutine.
type tally struct {
	mu sync.Mutex
	by map[string]int
}

func (t *tally) add(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[what]++
}

func (t *tally) count(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[what]
}

// ask makes one call and returns what its client then knows. A refusal that is not among the
// acceptable ones fails the test, and so does silence while the coordinator runs. An unread
// answer is decoded for the journal.
func ask[T any](l *serverRun, verb string, fair []api.Code, call func(context.Context) (T, error)) (out T, v verdict) {
	out, err := call(l.Context())
	lost := (*lostAnswer)(nil)
	no := (*api.Error)(nil)
	switch {
	case err == nil:
		v = told
	case errors.As(err, &lost) && lost.status/100 == 2:
		v = unread
		if len(lost.body) > 0 {
			if err := json.Unmarshal(lost.body, &out); err != nil {
				l.Errorf("%s: an unread answer is not readable: %v", verb, err)
			}
		}
	case errors.As(err, &lost):
		no = new(api.Error)
		_ = json.Unmarshal(lost.body, no) // what can't be read has no acceptable code
		v = judge(l, verb, fair, no)
	case errors.As(err, &no):
		v = judge(l, verb, fair, no)
	default:
		v = unknown
		if !l.wire.isOver() {
			l.Errorf("%s: no answer of a coordinator that lives: %v", verb, err)
			l.wire.end()
		}
	}
	l.tally.add(verb + " " + [...]string{"told", "refused", "unread", "unknown"}[v])
	return out, v
}

func judge(l *serverRun, verb string, fair []api.Code, no *api.Error) verdict {
	for _, code := range fair {
		if no.Code == code {
			return refused
		}
	}
	l.Errorf("%s: refused: %v", verb, no)
	return refused
}

// done makes a call without an answer's body look like one with.
func done(err error) (struct{}, error) { return struct{}{}, err }
