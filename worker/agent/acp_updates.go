package agent

import (
	"bytes"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// acpUpdate is something that the program tells of a turn.
type acpUpdate struct {
	Kind      string         `json:"sessionUpdate"`
	MessageID string         `json:"messageId"`
	Content   jsontext.Value `json:"content"` // of a message one block, of a tool call a list
	Entries   []acpStep      `json:"entries"`
	Cost      *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
}

// acpPiece bounds, in bytes, how much of a text is gathered before it is shown.
const acpPiece = 16 << 10

// updated takes what the program tells of a session. What it repeats of the conversation so far,
// what is about another session and what comes when no turn runs is passed over, but for the
// cost, which is the whole session's.
func (t *acpTalk) updated(params jsontext.Value) {
	var n struct {
		Session string         `json:"sessionId"`
		Update  jsontext.Value `json:"update"`
	}
	var u acpUpdate
	if json.Unmarshal(params, &n, lenient) != nil || json.Unmarshal(n.Update, &u, lenient) != nil {
		return
	}
	if t.replays && t.quiet != nil {
		t.quiet = time.After(acpQuiet)
	}
	if n.Session != t.session || t.session == "" || t.replays {
		return
	}
	if u.Kind == "usage_update" && u.Cost != nil {
		t.costs(u.Cost.Amount, u.Cost.Currency)
		return
	}
	if !t.turning {
		return
	}
	switch u.Kind {
	case "agent_message_chunk":
		t.piece(api.ItemText, u)
	case "agent_thought_chunk":
		t.piece(api.ItemThinking, u)
	case "tool_call", "tool_call_update":
		var c acpCallUpdate
		if json.Unmarshal(n.Update, &c, lenient) == nil && c.ID != "" {
			t.acted(c, u.Kind == "tool_call")
		}
	case "plan":
		t.alive()
		t.host.Plan(acpPlan(u.Entries))
	}
}

// acpStep is a line of the program's plan.
type acpStep struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

func acpPlan(steps []acpStep) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(taskLine(s.Content, s.Status == "completed", s.Status == "in_progress"))
	}
	return b.String()
}

// round counts another round with the model where it speaks or acts after a tool has ended.
func (t *acpTalk) round() {
	if t.acting {
		t.acting = false
		t.rounds++
	}
}

// piece takes a piece of a text.
func (t *acpTalk) piece(kind api.ItemKind, u acpUpdate) {
	t.round()
	if t.said.kind != kind || t.said.id != u.MessageID {
		t.flush()
		t.said.kind, t.said.id = kind, u.MessageID
	}
	text := acpBlock(u.Content)
	t.said.text.WriteString(text)
	if t.stopping == nil && text != "" {
		t.host.Alive()
	}
	if t.said.text.Len() >= acpPiece {
		t.show()
	}
}

// flush shows what was said; it is whole.
func (t *acpTalk) flush() {
	t.show()
	t.said = acpText{}
}

func (t *acpTalk) show() {
	text := t.said.text.String()
	t.said.text.Reset()
	if strings.TrimSpace(text) == "" {
		return
	}
	if t.said.kind == api.ItemText {
		t.result.Text = text
	}
	t.host.Item(Item{Kind: t.said.kind, Text: text})
}

// acpBlock is what people see of a part of a message.
func acpBlock(block jsontext.Value) string {
	var b struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		URI      string `json:"uri"`
		Resource struct {
			URI  string `json:"uri"`
			Text string `json:"text"`
		} `json:"resource"`
	}
	if json.Unmarshal(block, &b, lenient) != nil {
		return ""
	}
	switch b.Type {
	case "text":
		return b.Text
	case "resource":
		return or(b.Resource.Text, b.Resource.URI)
	case "resource_link":
		return b.URI
	case "":
		return ""
	}
	return "(" + b.Type + ")"
}

// acted takes what the program says of a tool call.
func (t *acpTalk) acted(u acpCallUpdate, begins bool) {
	c := t.calls[u.ID]
	if c == nil || begins && c.ended {
		t.round()
		c = &acpCall{id: u.ID}
		if t.calls[u.ID] == nil {
			t.order = append(t.order, u.ID)
		}
		t.calls[u.ID] = c
	}
	if c.ended {
		return
	}
	if c.merge(u) {
		t.alive() // a tool that merely says again that it runs shows no progress
	}
	if c.status != "" && c.status != "pending" {
		t.begin(c)
	}
	if c.status == "completed" || c.status == "failed" {
		t.finish(c, c.failed(), c.result())
		if in := c.in(); c.status == "completed" && len(in.Todos) > 0 { // opencode tells its plan as a tool call alone
			t.host.Plan(acpPlan(in.Todos))
		}
	}
}

// begin puts a tool call into the transcript, once.
func (t *acpTalk) begin(c *acpCall) {
	if c.begun {
		return
	}
	c.begun = true
	t.flush()
	t.host.Item(Item{Kind: api.ItemToolCall, Tool: c.tool(), CallID: c.id, Text: c.text()})
}

func (t *acpTalk) finish(c *acpCall, failed bool, text string) {
	t.begin(c)
	c.ended, t.acting = true, true
	t.host.Item(Item{Kind: api.ItemToolResult, Tool: c.tool(), CallID: c.id, Failed: failed, Text: text})
}

// closeCalls ends the tool calls that the turn has left open, and returns those that were
// commands: they may go on until the program ends.
func (t *acpTalk) closeCalls() (running []string) {
	for _, id := range t.order {
		c := t.calls[id]
		if c.ended {
			continue
		}
		if c.kind == "execute" && c.begun && c.status != "pending" {
			running = append(running, or(c.command(), c.title))
		}
		t.finish(c, true, "(the turn ended before this did)")
	}
	clear(t.calls)
	t.order = nil
	return running
}

// acpUsage is what a turn has used, as far as the program says.
type acpUsage struct {
	Input   int64 `json:"inputTokens"`
	Output  int64 `json:"outputTokens"`
	Thought int64 `json:"thoughtTokens"`
	Read    int64 `json:"cachedReadTokens"`
	Written int64 `json:"cachedWriteTokens"`
	Total   int64 `json:"totalTokens"`
}

// acpMeta is how Gemini CLI reports the same.
type acpMeta struct {
	Quota struct {
		Tokens struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"token_count"`
	} `json:"quota"`
}

// tokens are what went in and came out. Programs differ in whether what was read from a cache is
// part of what went in; it is part of the total in any case.
func (u acpUsage) tokens() (in, out int64) {
	out = atLeast0(u.Output) + atLeast0(u.Thought)
	if u.Total > 0 {
		return atLeast0(u.Total - out), out
	}
	return atLeast0(u.Input) + atLeast0(u.Read) + atLeast0(u.Written), out
}

func atLeast0(n int64) int64 { return min(max(n, 0), api.MaxUsage) }

// acpSpent is what the agent session has cost.
type acpSpent struct {
	before api.Usage // by earlier conversations, as far as they told
	known  bool      // the program has told of costs in this conversation
	apart  bool      // … and they don't include those of earlier ones
}

// account adds what a turn has used.
func (t *acpTalk) account(u acpUsage, meta acpMeta) {
	in, out := u.tokens()
	if in == 0 && out == 0 {
		in, out = atLeast0(meta.Quota.Tokens.Input), atLeast0(meta.Quota.Tokens.Output)
	}
	t.result.Usage.InputTokens += in
	t.result.Usage.OutputTokens += out
	t.host.Usage(t.result.Usage)
}

// costs takes what the session has cost so far. A program that has forgotten what it cost before
// it was ended begins at nothing again: then the first figure is below the last one.
func (t *acpTalk) costs(amount float64, currency string) {
	if !strings.EqualFold(currency, "USD") {
		if !t.rich {
			t.rich = true
			t.host.Notice(t.name + " reports its costs in " + clip(or(currency, "no currency"), 20) + ", which is not counted.")
		}
		return
	}
	if math.IsNaN(amount) || amount < 0 {
		return
	}
	micros := int64(min(amount*1e6, api.MaxUsage) + 0.5)
	if !t.spent.known {
		t.spent.known, t.spent.apart = true, micros < t.spent.before.CostMicros
	}
	if t.spent.apart {
		micros += t.spent.before.CostMicros
	}
	t.result.Usage.CostMicros = max(t.result.Usage.CostMicros, min(micros, api.MaxUsage))
	t.host.Usage(t.result.Usage)
}

// same reports whether two JSON values are written alike.
func same(a, b jsontext.Value) bool { return bytes.Equal(a, b) }
