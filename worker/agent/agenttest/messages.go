package agenttest

import (
	"fmt"
	"net/http"
)

// messages is the Messages API, as Claude Code uses it.
type messages struct{}

// The tokens that each answer claims to have used.
const (
	tokensIn  = 11
	tokensOut = 7
)

func (m messages) say(w http.ResponseWriter, number int, text string) {
	s := m.begin(w, number)
	m.text(s, 0, text)
	m.end(s, "end_turn")
}

func (m messages) call(w http.ResponseWriter, number int, c Call) {
	s := m.begin(w, number)
	index := 0
	if c.Before != "" {
		m.text(s, index, c.Before)
		index++
	}
	for i, c := range append([]Call{c}, c.Also...) {
		s.send("content_block_start", map[string]any{"index": index + i, "content_block": map[string]any{
			"type": "tool_use", "id": callID("toolu", number, i), "name": c.Tool, "input": map[string]any{},
		}})
		s.send("content_block_delta", map[string]any{"index": index + i, "delta": map[string]any{
			"type": "input_json_delta", "partial_json": string(must(c.Input)),
		}})
		s.send("content_block_stop", map[string]any{"index": index + i})
	}
	m.end(s, "tool_use")
}

func (messages) begin(w http.ResponseWriter, number int) stream {
	s := newStream(w)
	s.send("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%d", number), "type": "message", "role": "assistant", "model": "scripted", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": tokensIn, "output_tokens": 1},
	}})
	return s
}

func (messages) text(s stream, index int, text string) {
	s.send("content_block_start", map[string]any{"index": index, "content_block": map[string]any{"type": "text", "text": ""}})
	s.send("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": "text_delta", "text": text}})
	s.send("content_block_stop", map[string]any{"index": index})
}

func (messages) end(s stream, reason string) {
	s.send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": tokensOut},
	})
	s.send("message_stop", map[string]any{})
}

func (messages) fail(w http.ResponseWriter, b Break) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(b.Status)
	_, _ = w.Write(must(map[string]any{"type": "error", "error": map[string]any{"type": b.Type, "message": b.Text}}))
}

func (m messages) aside(w http.ResponseWriter, streamed bool) {
	if streamed {
		m.say(w, 0, "aside")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(must(map[string]any{
		"id": "msg_aside", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "end_turn", "stop_sequence": nil,
		"content": []any{map[string]any{"type": "text", "text": "aside"}},
		"usage":   map[string]any{"input_tokens": 1, "output_tokens": 1},
	}))
}
