package agent

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/worker/agent/cmdline"
)

// codexItem is a part of a turn.
type codexItem struct {
	Type    string            `json:"type"`
	ID      string            `json:"id"`
	Client  string            `json:"clientId"` // of userMessage: ours
	Text    string            `json:"text"`
	Summary []string          `json:"summary"`
	Content jsontext.Value    `json:"content"` // of reasoning: texts
	Command string            `json:"command"`
	Cwd     string            `json:"cwd"`
	Output  string            `json:"aggregatedOutput"`
	Exit    *int64            `json:"exitCode"`
	Status  string            `json:"status"`
	Changes []codexFileChange `json:"changes"`
	Server  string            `json:"server"`
	Tool    string            `json:"tool"`
	Query   string            `json:"query"`
	Args    jsontext.Value    `json:"arguments"`
	Result  jsontext.Value    `json:"result"`
	Failure *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type codexFileChange struct {
	Path string `json:"path"`
	Kind struct {
		Type string `json:"type"`
		Move string `json:"move_path"`
	} `json:"kind"`
	Diff string `json:"diff"`
}

// itemStarted puts a tool call into the transcript.
func (t *codexTalk) itemStarted(i codexItem) {
	if i.ID == "" {
		return
	}
	if _, open := t.items[i.ID]; open {
		return
	}
	if tool, text := i.call(); tool != "" {
		t.items[i.ID] = i
		t.host.Item(Item{Kind: api.ItemToolCall, Tool: tool, CallID: i.ID, Text: text})
	}
}

// itemCompleted puts the result of a part of the turn into the transcript.
func (t *codexTalk) itemCompleted(i codexItem) {
	switch i.Type {
	case "userMessage":
		if i.Client != "" {
			t.host.Took(i.Client, true)
		}
		return
	case "agentMessage":
		if i.Text != "" {
			t.result.Text = i.Text
			t.host.Item(Item{Kind: api.ItemText, Text: i.Text})
		}
		return
	case "reasoning":
		var more []string
		_ = json.Unmarshal(i.Content, &more, lenient)
		if text := strings.TrimSpace(strings.Join(append(i.Summary, more...), "\n\n")); text != "" {
			t.host.Item(Item{Kind: api.ItemThinking, Text: text})
		}
		return
	case "plan":
		if i.Text != "" {
			t.host.Item(Item{Kind: api.ItemText, Text: i.Text})
		}
		return
	case "contextCompaction":
		t.host.Item(Item{Kind: api.ItemStatus, Text: "Codex has summed up the conversation so far, to have room for more."})
		return
	}
	tool, _ := i.call()
	if tool == "" || i.ID == "" {
		return
	}
	t.itemStarted(i) // where its beginning wasn't reported
	delete(t.items, i.ID)
	t.host.Item(Item{Kind: api.ItemToolResult, Tool: tool, CallID: i.ID, Failed: i.failed(), Text: i.output()})
}

// closeItems ends the tool calls that the turn has left open, and returns those that were
// commands: they continue in the background until the program ends.
func (t *codexTalk) closeItems() (running []string) {
	for id, i := range t.items {
		tool, text := i.call()
		if i.Type == "commandExecution" {
			running = append(running, text)
		}
		t.host.Item(Item{Kind: api.ItemToolResult, Tool: tool, CallID: id, Failed: true, Text: "(the turn ended before this did)"})
	}
	clear(t.items)
	slices.Sort(running)
	return running
}

// call is a tool call as people see it, "" for items that are not tool calls.
func (i codexItem) call() (tool, text string) {
	switch i.Type {
	case "commandExecution":
		return "shell", cmdline.Unwrap(i.Command)
	case "fileChange":
		return "edit", i.diffs()
	case "mcpToolCall":
		return i.Server + "__" + i.Tool, string(i.Args)
	case "dynamicToolCall", "collabAgentToolCall":
		return i.Tool, or(string(i.Args), i.Text)
	case "webSearch":
		return "web_search", i.Query
	case "imageGeneration", "imageView", "sleep":
		return i.Type, ""
	}
	return "", ""
}

func (i codexItem) failed() bool {
	return i.Status == "failed" || i.Status == "declined" || i.Failure != nil || i.Exit != nil && *i.Exit != 0
}

// output is a tool's result as people see it.
func (i codexItem) output() string {
	switch {
	case i.Failure != nil:
		return i.Failure.Message
	case i.Status == "declined":
		return "(declined)"
	case i.Type == "mcpToolCall":
		var r struct {
			Content jsontext.Value `json:"content"`
		}
		if json.Unmarshal(i.Result, &r, lenient) == nil {
			return contentText(r.Content)
		}
		return string(i.Result)
	default:
		return i.Output
	}
}

func (i codexItem) diffs() string {
	var b strings.Builder
	for _, c := range i.Changes {
		b.WriteString(or(c.Kind.Type, "change") + " " + c.Path)
		if c.Kind.Move != "" {
			b.WriteString(" -> " + c.Kind.Move)
		}
		b.WriteString("\n")
		if c.Diff != "" {
			b.WriteString(strings.TrimRight(c.Diff, "\n") + "\n")
		}
	}
	return b.String()
}
