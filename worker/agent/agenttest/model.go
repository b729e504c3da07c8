// Package agenttest is the base of tests of agents: a scripted model on loopback that the real
// programs take for theirs, protocol peers that behave and misbehave on command, a host that
// records its calls, and a way to start the real programs. It uses nothing outside this
// machine.
package agenttest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Step is what the model does with one request: a [Say], a [Call], a [Break] or [Hang].
type Step any

// Say is a text as the turn's end.
type Say string

// Call is a tool call.
type Call struct {
	Tool      string
	Namespace string // of Codex's tool servers
	Input     any
	Before    string // text said first
	Also      []Call // further calls in the same answer, as they are
}

// callID names a call of an answer.
func callID(kind string, number, i int) string {
	if i == 0 {
		return fmt.Sprintf("%s_%d", kind, number)
	}
	return fmt.Sprintf("%s_%d_%d", kind, number, i)
}

// Break is an error as the answer: an HTTP status with the API's own error object, or, with
// status 0, a stream that is cut off.
type Break struct {
	Status int
	Type   string
	Text   string
}

// Hang gives no answer until the program gives up or the model is closed.
type Hang struct{}

// Asked is one request for the model's next words.
type Asked struct {
	Path string
	Body string // as received
	Key  string // the key or token that was sent
}

// Model answers the requests of the programs by a script, one step per request. Requests
// outside the conversation, such as for a title, are answered separately and use no step.
type Model struct {
	URL string

	srv    *httptest.Server
	closed chan struct{}
	asked  chan struct{} // a token for each request of the conversation

	mu    sync.Mutex
	steps []Step
	seen  []Asked
	cut   bool // the last answer was cut off
	sent  int  // answers, including repeated ones
	last  Step // what was answered last
	torn  int  // commands in the conversation so far whose sandbox could not be built
}

// NewModel serves until the test ends. After its last step it says "done".
func NewModel(t testing.TB, steps ...Step) *Model {
	t.Helper()
	m := &Model{steps: steps, closed: make(chan struct{}), asked: make(chan struct{}, 10_000)}
	m.srv = httptest.NewServer(http.HandlerFunc(m.serve))
	m.URL = m.srv.URL
	t.Cleanup(func() {
		close(m.closed)
		m.srv.CloseClientConnections()
		m.srv.Close()
	})
	return m
}

// Then appends steps.
func (m *Model) Then(steps ...Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = append(m.steps, steps...)
}

// Asked returns the conversation's requests so far.
func (m *Model) Asked() []Asked {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Asked(nil), m.seen...)
}

// Waiting yields a value whenever a request of the conversation has come.
func (m *Model) Waiting() <-chan struct{} { return m.asked }

func (m *Model) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var ask struct {
		Tools  []jsontext.Value `json:"tools"`
		Stream bool             `json:"stream"`
		Config struct {
			Schema map[string]any `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	_ = json.Unmarshal(body, &ask)
	var dialect dialect
	whole := true // all of its requests are part of the conversation
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		dialect, whole = messages{}, false
	case strings.HasSuffix(r.URL.Path, "/responses"):
		dialect = responses{}
	case strings.Contains(r.URL.Path, "enerateContent"):
		ask.Stream = strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
		dialect, whole = gemini{ask.Stream, ask.Config.Schema}, false
	default:
		http.Error(w, `{"type":"error","error":{"type":"not_found_error","message":"no such route"}}`, http.StatusNotFound)
		return
	}
	m.mu.Lock()
	again := m.cut && len(ask.Tools) > 0 && !ask.Stream
	m.mu.Unlock()
	if again { // a stream that was cut off is requested again in one piece
		panic(http.ErrAbortHandler)
	}
	if !whole && (len(ask.Tools) == 0 || !ask.Stream) {
		dialect.aside(w, ask.Stream)
		return
	}
	m.mu.Lock()
	m.sent++
	number, step := m.sent, m.next(Asked{Path: r.URL.Path, Body: string(body), Key: key(r)})
	broken, failing := step.(Break)
	m.cut = failing && broken.Status == 0
	m.mu.Unlock()
	m.asked <- struct{}{}
	switch step := step.(type) {
	case Say:
		dialect.say(w, number, string(step))
	case Call:
		dialect.call(w, number, step)
	case Break:
		if step.Status == 0 {
			cutOff(w)
			return
		}
		dialect.fail(w, step)
	case Hang:
		select {
		case <-r.Context().Done():
		case <-m.closed:
		}
	default:
		panic(fmt.Sprintf("a model can't %T", step))
	}
}

// tornSandbox is what bubblewrap prints when a file that it hides was replaced while it built
// the sandbox. Claude Code replaces its .claude.json at any time, so now and then a command
// doesn't start.
const tornSandbox = "Unable to remount destination"

// next records a request and returns the step that answers it. A command whose sandbox could
// not be built is requested once more, as any model would, and that request is not part of the
// script.
func (m *Model) next(asked Asked) Step {
	torn := strings.Count(asked.Body, tornSandbox)
	_, called := m.last.(Call)
	again := called && torn > m.torn
	m.torn = torn
	if again {
		return m.last
	}
	m.seen = append(m.seen, asked)
	step := Step(Say("done"))
	if len(m.steps) > 0 {
		step, m.steps = m.steps[0], m.steps[1:]
	}
	m.last = step
	return step
}

func key(r *http.Request) string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if k := r.Header.Get(name); k != "" {
			return k
		}
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// cutOff begins a stream and closes the connection in the middle of it.
func cutOff(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, "event: ping\ndata: {\"type\": \"ping\"}\n\n")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// dialect is one of the model APIs.
type dialect interface {
	say(w http.ResponseWriter, number int, text string)
	call(w http.ResponseWriter, number int, c Call)
	fail(w http.ResponseWriter, b Break)
	aside(w http.ResponseWriter, stream bool)
}

// stream writes server-sent events, each named by its type member.
type stream struct{ w http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return stream{w}
}

func (s stream) send(event string, members map[string]any) {
	members["type"] = event
	_, _ = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, must(members))
	_ = http.NewResponseController(s.w).Flush()
}

func must(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
