package agenttest

import "net/http"

// gemini is the Gemini API, as Gemini CLI uses it.
type gemini struct {
	stream bool
	schema map[string]any // of the answer that is asked for, nil for any text
}

func (g gemini) say(w http.ResponseWriter, _ int, text string) {
	g.answer(w, map[string]any{"text": text})
}

func (g gemini) call(w http.ResponseWriter, _ int, c Call) {
	var parts []map[string]any
	if c.Before != "" {
		parts = append(parts, map[string]any{"text": c.Before})
	}
	g.answer(w, append(parts, map[string]any{"functionCall": map[string]any{"name": c.Tool, "args": c.Input}})...)
}

func (g gemini) answer(w http.ResponseWriter, parts ...map[string]any) {
	answer := must(map[string]any{
		"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": map[string]any{"promptTokenCount": tokensIn, "candidatesTokenCount": tokensOut, "totalTokenCount": tokensIn + tokensOut},
	})
	if !g.stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte("data: " + string(answer) + "\n\n"))
}

func (gemini) fail(w http.ResponseWriter, b Break) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(b.Status)
	_, _ = w.Write(must(map[string]any{"error": map[string]any{"code": b.Status, "status": b.Type, "message": b.Text}}))
}

// aside answers what Gemini CLI asks beside the conversation: which model to take, and after 30 calls
// of a turn whether it goes in circles. An answer of another form it asks for again and again, with
// pauses of half a minute in all.
func (g gemini) aside(w http.ResponseWriter, _ bool) {
	if g.schema == nil {
		g.say(w, 0, "aside")
		return
	}
	g.say(w, 0, string(must(least(g.schema))))
}

// least is the least value that fits a schema.
func least(schema map[string]any) any {
	if all, _ := schema["enum"].([]any); len(all) > 0 {
		return all[0]
	}
	switch schema["type"] {
	case "object":
		out := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for name, of := range properties {
			if of, ok := of.(map[string]any); ok {
				out[name] = least(of)
			}
		}
		return out
	case "array":
		return []any{}
	case "number", "integer":
		if n, ok := schema["minimum"].(float64); ok {
			return n
		}
		return 0
	case "boolean":
		return false
	}
	return "aside"
}
