package agent

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// rpc is our end of a conversation in JSON-RPC: the requests of ours that are open. One
// goroutine owns it; a request that nobody answers in time is handed over by late.
type rpc struct {
	wire    *wire
	version string // of the protocol's envelope, "" where it has none

	open map[int64]rpcCall // requests that haven't been answered yet
	last int64             // our last request's id
	late chan int64        // requests that timed out
	lost error             // the first message that couldn't be sent
}

// rpcCall is a request of ours. If then fails, the conversation ends.
type rpcCall struct {
	method string
	said   string      // by people, that the request hands over; its id
	timer  *time.Timer // nil = it may take as long as it likes
	then   func(jsontext.Value) error
}

// rpcMessage is a request, an answer or a notification.
type rpcMessage struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  *rpcError      `json:"error"`
}

type rpcError struct {
	Code    int64          `json:"code"`
	Message string         `json:"message"`
	Data    jsontext.Value `json:"data"`
}

func newRPC(w *wire, version string) *rpc {
	return &rpc{wire: w, version: version, open: map[int64]rpcCall{}, late: make(chan int64)}
}

// end stops the timers.
func (r *rpc) end() {
	for _, c := range r.open {
		if c.timer != nil {
			c.timer.Stop()
		}
	}
}

// call sends a request and returns its id. then, if there is one, is called with the result of
// the answer. After limit it is late; 0 = never.
func (r *rpc) call(method string, params any, limit time.Duration, then func(jsontext.Value) error) int64 {
	r.last++
	id := r.last
	c := rpcCall{method: method, then: then}
	if limit > 0 {
		c.timer = time.AfterFunc(limit, func() {
			select {
			case r.late <- id:
			case <-r.wire.shut:
			}
		})
	}
	r.open[id] = c
	r.send(map[string]any{"id": id, "method": method, "params": params})
	return id
}

// notify sends a notification; params may be nil.
func (r *rpc) notify(method string, params any) {
	message := map[string]any{"method": method}
	if params != nil {
		message["params"] = params
	}
	r.send(message)
}

// reply answers a request of the program, whose id is JSON and goes back as it came.
func (r *rpc) reply(id string, result map[string]any) {
	r.send(map[string]any{"id": jsontext.Value(id), "result": result})
}

func (r *rpc) refuse(id, why string) {
	r.send(map[string]any{"id": jsontext.Value(id), "error": map[string]any{"code": -32601, "message": why}})
}

func (r *rpc) send(message map[string]any) {
	if r.version != "" {
		message["jsonrpc"] = r.version
	}
	if err := r.wire.send(message); err != nil && r.lost == nil {
		r.lost = err
	}
}

// answered finds the request that a message answers, and forgets it.
func (r *rpc) answered(m rpcMessage) (c rpcCall, ours bool) {
	var id int64
	if json.Unmarshal(m.ID, &id) != nil {
		return c, false
	}
	if c, ours = r.open[id]; !ours {
		return c, false
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	delete(r.open, id)
	return c, true
}

// hasID reports whether a message is a request or an answer.
func (m rpcMessage) hasID() bool { return len(m.ID) > 0 && m.ID.Kind() != 'n' }

// unreadable answers a request in an unknown form, so that the program doesn't wait for ever.
// What isn't a request is noise.
func (r *rpc) unreadable(raw []byte) {
	var bare struct {
		ID     jsontext.Value `json:"id"`
		Method jsontext.Value `json:"method"`
	}
	if json.Unmarshal(raw, &bare, lenient) == nil && len(bare.ID) > 0 && len(bare.Method) > 0 && bare.ID.Kind() != 'n' {
		r.refuse(string(bare.ID), "this request can't be read")
	}
}
