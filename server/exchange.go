package server

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/engine"
	"stint/web"
)

// exchange is one request and its answer: who asks, what the path names, and what has been
// written so far. One goroutine owns it, the request's.
type exchange struct {
	http.ResponseWriter
	r      *http.Request
	server *Server
	id     string // of this request, in its answer and in the log
	status int    // of the answer, 0 while none has begun

	grant   *grant
	caller  engine.Caller
	route   string // the path's template
	vars    map[string]string
	session api.SessionID
	worker  api.WorkerID
	thread  api.ThreadID
}

// WriteHeader notes the status for the log and adds the time to the answer.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
		if h := x.Header(); h[headTime] == nil {
			h[headTime] = []string{api.Time{Time: x.server.engine.Now()}.String()}
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

// headTime carries the server's time: of the commit if the answer to a write has it, else of
// the answer.
const headTime = "Stint-Server-Time"

// Write is part of http.ResponseWriter.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return x.ResponseWriter.Write(b)
}

// Flush sends what was written, for handlers that look for http.Flusher.
func (x *exchange) Flush() {
	_ = http.NewResponseController(x.ResponseWriter).Flush() // a writer that can't flush sends at the end
}

// Unwrap lets http.ResponseController find the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// response is what a verb sends to the client when it doesn't refuse.
type response struct {
	status   int // 0 = 200
	body     any // nil = none
	location string
	at       api.Time // the commit's time if the body has it
	replayed bool     // the answer of an earlier request with the same key
	written  bool     // the verb wrote the answer itself
}

// reply answers 200 with what an engine verb returned. It isn't inlined: what it needs, some KB,
// would lie on the stack of every request that is held.
//
//go:noinline
func reply[T any](v T, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	return response{body: v, at: committedAt(v)}, nil
}

// done answers 204.
func done(err error) (response, error) {
	return response{status: http.StatusNoContent}, err
}

// committedAt is the server's time at the commit, for the answers that carry it.
func committedAt(v any) api.Time {
	switch v := v.(type) {
	case api.Claim:
		return v.ServerTime
	case *api.Claim:
		return v.ServerTime
	case api.Lease:
		return v.ServerTime
	case api.Finished:
		return v.ServerTime
	case api.ItemsAnswer:
		return v.ServerTime
	case api.TaskHeld:
		return v.ServerTime
	case api.BeatAnswer:
		return v.ServerTime
	case api.Registered:
		return v.ServerTime
	}
	return api.Time{}
}

// What is stored may hold broken text; it is shown repaired, never refused.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.Deterministic(true))

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooledBuffer = 256 << 10 // a larger one is left to the collector

func takeBuffer() *bytes.Buffer {
	b, _ := buffers.Get().(*bytes.Buffer)
	b.Reset()
	return b
}

func giveBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooledBuffer {
		buffers.Put(b)
	}
}

// send writes an answer. An error means that nothing was written yet.
func (x *exchange) send(a response) error {
	if a.written {
		return nil
	}
	h := x.Header()
	if !a.at.IsZero() {
		h[headTime] = []string{a.at.String()}
	}
	if a.location != "" {
		h.Set("Location", web.Address(x.r.Context(), a.location))
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.body == nil {
		x.WriteHeader(a.status)
		return nil
	}
	b := takeBuffer()
	defer giveBuffer(b)
	if err := json.MarshalWrite(b, a.body, lenient); err != nil {
		return err
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = headJSON
	}
	h["Content-Length"] = []string{strconv.Itoa(b.Len())}
	x.WriteHeader(a.status)
	_, _ = x.Write(b.Bytes()) // a client that went away isn't our failure
	return nil
}

// requestIDs numbers requests: a random word of this process and a count.
type requestIDs struct {
	word string
	n    *atomic.Uint64
}

func newRequestIDs() requestIDs {
	return requestIDs{word: strings.ToLower(rand.Text()[:8]) + "-", n: new(atomic.Uint64)}
}

func (i requestIDs) next() string {
	var b [32]byte
	return string(strconv.AppendUint(append(b[:0], i.word...), i.n.Add(1), 36))
}
