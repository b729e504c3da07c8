package agent

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// claudeLine has what any line may have; the rest is read by its kind.
type claudeLine struct {
	Type      string         `json:"type"`
	Subtype   string         `json:"subtype"`
	UUID      string         `json:"uuid"`
	Replay    bool           `json:"isReplay"`
	RequestID jsontext.Value `json:"request_id"`
	Request   jsontext.Value `json:"request"`
	Message   jsontext.Value `json:"message"`
	Parent    string         `json:"parent_tool_use_id"`
	Error     jsontext.Value `json:"error"`
	ToolUse   jsontext.Value `json:"tool_use_result"`
	Event     struct {
		Type string `json:"type"`
	} `json:"event"`
	Response struct {
		Subtype   string `json:"subtype"`
		RequestID string `json:"request_id"`
		Error     string `json:"error"`
	} `json:"response"`
	RateLimit struct {
		Status   string `json:"status"`
		ResetsAt int64  `json:"resetsAt"` // Unix seconds
	} `json:"rate_limit_info"`
	Servers   claudeServers `json:"mcp_servers"`
	ToolName  string        `json:"tool_name"`
	ToolUseID string        `json:"tool_use_id"`
	Reason    string        `json:"decision_reason"`
}

// hear takes one line of the program. It skips what it can't read, unless the program waits
// for an answer.
func (t *claudeTalk) hear(raw []byte) (done bool, err error) {
	var line claudeLine
	if err := json.Unmarshal(raw, &line, lenient); err != nil {
		t.unreadable(raw)
		return false, nil
	}
	switch line.Type {
	case "control_request":
		t.alive()
		if t.cut > 0 {
			t.refuse(string(line.RequestID), tooLongToJudge)
			return false, nil
		}
		t.asked(line)
	case "control_cancel_request":
		t.questions.settled(string(line.RequestID))
	case "control_response":
		return t.greeted(line)
	case "assistant":
		t.assistant(line)
	case "user":
		if line.Replay {
			t.repeated(line.UUID)
			return false, nil
		}
		t.toolResults(line)
	case "stream_event":
		if line.Event.Type != "ping" {
			t.alive()
		}
	case "system":
		t.system(line)
	case "rate_limit_event":
		if line.RateLimit.Status == "rejected" && line.RateLimit.ResetsAt > 0 {
			t.limit = unixTime(line.RateLimit.ResetsAt)
		}
	case "result":
		return t.turned(raw)
	}
	return false, nil
}

// unreadable answers a request in an unknown form, so that the program doesn't wait for ever.
// What isn't a request is noise.
func (t *claudeTalk) unreadable(raw []byte) {
	var bare struct {
		Type      any            `json:"type"`
		RequestID jsontext.Value `json:"request_id"`
	}
	if json.Unmarshal(raw, &bare, lenient) == nil && bare.Type == "control_request" && len(bare.RequestID) > 0 {
		t.refuse(string(bare.RequestID), "this request can't be read")
	}
}

// asText is a JSON string's text, "" for anything else.
func asText(v jsontext.Value) string {
	var text string
	if json.Unmarshal(v, &text, lenient) != nil {
		return ""
	}
	return text
}

// greeted takes the answer to the handshake. An answer to an interrupt is not used: the result
// follows, or doesn't.
func (t *claudeTalk) greeted(line claudeLine) (done bool, err error) {
	if line.Response.RequestID != claudeHello {
		return false, nil
	}
	if line.Response.Subtype == "error" {
		return true, fail(CodeCrashed, false, "Claude Code refused the handshake: %s.", clip(line.Response.Error, 300))
	}
	if t.stopping == nil && t.blocked == nil && t.deaf != nil {
		t.deadline = nil
	}
	t.alive()
	return false, nil
}

func (t *claudeTalk) system(line claudeLine) {
	switch line.Subtype {
	case "init":
		t.alive()
		t.toolsListed(line.Servers)
	case "compact_boundary", "task_started", "task_progress", "task_notification":
		t.alive()
	case "permission_denied": // refused by the program itself: its own rules, or the hidden paths
		t.refusalsReported[line.ToolUseID] = true
		t.host.Denied(Action{Area: SideEffects, What: or(line.Reason, "refused by Claude Code's own rules"), Tool: line.ToolName}, Deny)
	}
}

// block is a part of a message.
type block struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	Thinking  string         `json:"thinking"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID string         `json:"tool_use_id"`
	IsError   bool           `json:"is_error"`
	Content   jsontext.Value `json:"content"`
}

// assistant takes what the model said.
func (t *claudeTalk) assistant(line claudeLine) {
	var m struct {
		ID      string         `json:"id"`
		Content jsontext.Value `json:"content"`
		Usage   claudeUsage    `json:"usage"`
	}
	if json.Unmarshal(line.Message, &m, lenient) != nil {
		return
	}
	if class := asText(line.Error); class != "" { // the program's own words about a failure; the result reports it
		t.cause = class
		return
	}
	for _, b := range blocks(m.Content) {
		switch {
		case b.Type == "text" && b.Text != "":
			t.item(Item{Kind: api.ItemText, Text: b.Text})
			if line.Parent == "" {
				t.result.Text = b.Text
			}
		case b.Type == "thinking" && b.Thinking != "":
			t.item(Item{Kind: api.ItemThinking, Text: b.Thinking})
		case b.Name != "" && b.ID != "": // tool_use, server_tool_use, mcp_tool_use
			t.tools[b.ID] = b.Name
			t.item(Item{Kind: api.ItemToolCall, Tool: b.Name, CallID: b.ID, Text: claudeCall(b.Name, b.Input)})
			if t.plan.called(b.ID, b.Name, b.Input) {
				t.host.Plan(t.plan.markdown())
			}
		case b.ToolUseID != "": // the result of a tool that ran on the model's side
			t.toolResult(b, nil)
		}
	}
	t.alive()
	if m.ID != "" {
		t.spend(m.ID, m.Usage.totals())
	}
}

// toolResults takes the results of tools.
func (t *claudeTalk) toolResults(line claudeLine) {
	var m struct {
		Content jsontext.Value `json:"content"`
	}
	if json.Unmarshal(line.Message, &m, lenient) != nil {
		return
	}
	for _, b := range blocks(m.Content) {
		if b.ToolUseID != "" {
			t.toolResult(b, line.ToolUse)
		}
	}
	t.alive()
}

func (t *claudeTalk) toolResult(b block, structured jsontext.Value) {
	name, open := t.tools[b.ToolUseID]
	if !open { // a resumed session may repeat some
		return
	}
	delete(t.tools, b.ToolUseID)
	t.item(Item{Kind: api.ItemToolResult, Tool: name, CallID: b.ToolUseID, Failed: b.IsError, Text: contentText(b.Content)})
	if t.plan.returned(b.ToolUseID, structured, b.IsError) {
		t.host.Plan(t.plan.markdown())
	}
}

func (t *claudeTalk) item(i Item) { t.host.Item(i) }

// blocks are the parts of a message's content, which may also be one text.
func blocks(content jsontext.Value) []block {
	var text string
	if json.Unmarshal(content, &text, lenient) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []jsontext.Value
	if json.Unmarshal(content, &list, lenient) != nil {
		return nil
	}
	var out []block
	for _, v := range list {
		var b block
		if json.Unmarshal(v, &b, lenient) == nil {
			out = append(out, b)
		}
	}
	return out
}

// contentText is what people see of a tool's result.
func contentText(content jsontext.Value) string {
	var out []string
	for _, b := range blocks(content) {
		switch {
		case b.Type == "text":
			out = append(out, b.Text)
		case b.Type != "":
			out = append(out, "("+b.Type+")")
		}
	}
	return strings.Join(out, "\n")
}

// claudeCall is what people see of a tool call: the command or the file, and the rest as JSON.
func claudeCall(name string, input jsontext.Value) string {
	var in claudeInput
	_ = json.Unmarshal(input, &in, lenient)
	if name == "Bash" && in.Command != "" {
		return in.Command
	}
	pretty := input.Clone()
	if pretty.Indent() != nil {
		return string(input)
	}
	return string(pretty)
}

// clip shortens a text for a message.
func clip(s string, most int) string {
	s = strings.TrimSpace(s)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("… (%d bytes more)", len(s)-most)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
