package agenttest

import (
	"fmt"
	"net/http"
)

// responses is the Responses API, as Codex uses it.
type responses struct{}

func (r responses) say(w http.ResponseWriter, number int, text string) {
	s := r.begin(w, number)
	r.message(s, number, text)
	r.end(s, number)
}

func (r responses) call(w http.ResponseWriter, number int, c Call) {
	s := r.begin(w, number)
	if c.Before != "" {
		r.message(s, number, c.Before)
	}
	for i, c := range append([]Call{c}, c.Also...) {
		id := callID("call", number, i)
		item := map[string]any{"type": "function_call", "id": "f" + id, "call_id": id, "name": c.Tool, "arguments": string(must(c.Input))}
		if text, custom := c.Input.(string); custom { // a tool with free text
			item = map[string]any{"type": "custom_tool_call", "id": "t" + id, "call_id": id, "name": c.Tool, "input": text}
		}
		if c.Namespace != "" {
			item["namespace"] = c.Namespace
		}
		s.send("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	r.end(s, number)
}

func (responses) begin(w http.ResponseWriter, number int) stream {
	s := newStream(w)
	s.send("response.created", map[string]any{"response": map[string]any{"id": fmt.Sprintf("resp_%d", number)}})
	return s
}

func (responses) message(s stream, number int, text string) {
	s.send("response.output_item.done", map[string]any{"output_index": 0, "item": map[string]any{
		"type": "message", "role": "assistant", "id": fmt.Sprintf("msg_%d", number),
		"content": []any{map[string]any{"type": "output_text", "text": text}},
	}})
}

func (responses) end(s stream, number int) {
	s.send("response.completed", map[string]any{"response": map[string]any{
		"id": fmt.Sprintf("resp_%d", number), "usage": map[string]any{
			"input_tokens": tokensIn, "input_tokens_details": map[string]any{"cached_tokens": 0},
			"output_tokens": tokensOut, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
			"total_tokens": tokensIn + tokensOut,
		},
	}})
}

func (responses) fail(w http.ResponseWriter, b Break) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(b.Status)
	_, _ = w.Write(must(map[string]any{"error": map[string]any{"type": b.Type, "message": b.Text}}))
}

func (r responses) aside(w http.ResponseWriter, _ bool) { r.say(w, 0, "aside") }
