package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stint/api"
	"stint/server/servertest"
)

// The first version of the protocol without a handshake, and an older one with.
const (
	stateless = "2026-07-28"
	handshake = "2025-06-18"
)

// assistant is a program that speaks the Model Context Protocol.
type assistant struct {
	*sdk.ClientSession
	tb      testing.TB
	outputs map[string]*jsonschema.Resolved // by tool
	tools   []*sdk.Tool
}

// bearer sends a token with each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// assistantOf connects a program to a server's endpoint.
func assistantOf(tb testing.TB, s *servertest.Server, version string) *assistant {
	tb.Helper()
	return assist(tb, &sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer{s.Token}}, DisableStandaloneSSE: true}, version)
}

func assist(tb testing.TB, transport sdk.Transport, version string) *assistant {
	tb.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "assistant", Version: "1"}, nil)
	session, err := client.Connect(tb.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != version {
		tb.Fatalf("the server speaks %s, not %s", got, version)
	}
	a := &assistant{ClientSession: session, tb: tb, outputs: map[string]*jsonschema.Resolved{}}
	list, err := session.ListTools(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	a.tools = list.Tools
	for _, t := range a.tools {
		var schema jsonschema.Schema
		text := must(json.Marshal(t.OutputSchema))
		if err := json.Unmarshal(text, &schema); err != nil {
			tb.Fatalf("%s: %v", t.Name, err)
		}
		if a.outputs[t.Name], err = schema.Resolve(nil); err != nil {
			tb.Fatalf("%s: %v", t.Name, err)
		}
	}
	return a
}

// call calls a tool and returns the body of its answer, which fulfils the tool's schema.
func (a *assistant) call(tool string, args m) string {
	a.tb.Helper()
	r, err := a.CallTool(a.tb.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.tb.Fatalf("%s %v: %v", tool, args, err)
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		a.tb.Fatalf("%s %v is refused: %s", tool, args, text)
	}
	if err := a.outputs[tool].Validate(r.StructuredContent); err != nil {
		a.tb.Errorf("%s %v doesn't fit its schema: %v\n%s", tool, args, err, text)
	}
	var plain any
	if err := json.Unmarshal([]byte(text), &plain); err != nil || !bytes.Equal(must(json.Marshal(plain)), must(json.Marshal(r.StructuredContent))) {
		a.tb.Errorf("%s %v: the text is not the structured content: %s", tool, args, text)
	}
	return text
}

// called decodes the answer of a tool.
func called[T any](a *assistant, tool string, args m) (out T) {
	a.tb.Helper()
	if err := json.Unmarshal([]byte(a.call(tool, args)), &out); err != nil {
		a.tb.Fatalf("%s: %v", tool, err)
	}
	return out
}

// refused calls a tool that refuses, and returns what it says. The refusal is the structured
// content, too, and fulfils the tool's schema.
func (a *assistant) refused(code api.Code, tool string, args m) string {
	a.tb.Helper()
	r, err := a.CallTool(a.tb.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.tb.Fatalf("%s %v: %v", tool, args, err)
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if refusal, _ := r.StructuredContent.(m); !r.IsError || !strings.HasPrefix(text, string(code)+": ") || refusal["code"] != string(code) {
		a.tb.Errorf("%s %v is answered %s and %v", tool, args, text, r.StructuredContent)
	}
	if err := a.outputs[tool].Validate(r.StructuredContent); err != nil {
		a.tb.Errorf("%s %v: the refusal doesn't fit the schema: %v", tool, args, err)
	}
	return text
}

// still is a clock that stands.
func still() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }

func TestMCP_AnswersAreThoseOfTheAPI(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		t.Run(version, func(t *testing.T) {
			empty := servertest.New(t, servertest.Options{Clock: still})
			assistantOf(t, empty, version).readAll(empty, nil)
			d := newFixture(t, servertest.Options{Clock: still})
			d.mixed()
			d.addSession()
			d.addSession()
			c := d.running()
			d.addItems(c, m{"kind": "text", "text": "<b>I & you</b> \u2028 say \"hi\"\x1b[1m"})
			servertest.Must[api.Session](d.Server, 200, "PATCH", d.at(c.SessionID, ""), with(proof(c), m{"status": "awaiting_input", "prompt": m{"kind": "text", "text": "Which?"}}))
			assistantOf(t, d.Server, version).readAll(d.Server, m{"session": c.SessionID.String()})
		})
	}
}

// mixed makes an agent of another make with a schedule, and a failed session.
func (d *fixture) mixed() {
	d.tb.Helper()
	servertest.Must[api.Agent](d.Server, 201, "POST", "agents", m{"slug": "nightly", "mode": "local", "run": m{"command": []string{"true"}}, "schedule": "0 5 * * *"})
	c := d.running()
	servertest.Must[api.Finished](d.Server, 200, "POST", d.at(c.SessionID, "/fail"), with(proof(c), m{"code": "AGENT_CRASHED", "message": "It fell over."}))
}

// readAll calls every tool that changes nothing and compares with the API.
func (a *assistant) readAll(s *servertest.Server, one m) {
	a.tb.Helper()
	type call struct {
		tool string
		args m
		path string
	}
	calls := []call{
		{"list_agents", m{"limit": 1}, "agents?limit=1"},
		{"list_agents", nil, "agents"},
		{"list_sessions", m{"status": []string{"queued", "active", "awaiting_input"}, "q": "hello & more", "archived": true}, "sessions?status=queued,active,awaiting_input&q=hello+%26+more&archived=true"},
		{"list_sessions", m{}, "sessions"},
		{"list_inbox", nil, "inbox"},
		{"list_schedules", nil, "schedules"},
		{"preview_schedule", m{"schedule": "0 5 * * *", "timeZone": "Europe/Berlin", "n": 3}, "schedules/preview?schedule=0+5+*+*+*&timeZone=Europe/Berlin&n=3"},
		{"list_workers", nil, "workers"},
		{"status", nil, "status"},
	}
	if one != nil {
		at := "sessions/" + one["session"].(string)
		calls = append(calls, call{"get_session", one, at}, call{"wait_session", one, at}, call{"read_output", one, at + "/output"})
	}
	for _, c := range calls {
		got, want := a.call(c.tool, c.args), string(s.Do("GET", c.path, nil).Body)
		if got != want {
			a.tb.Errorf("%s answers\n%s\nand the API\n%s", c.tool, got, want)
		}
		if one == nil && strings.Contains(got, "null") {
			a.tb.Errorf("%s answers null: %s", c.tool, got)
		}
	}
}

func TestMCP_ToolsSayWhatTheyTakeAndDo(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	a := assistantOf(t, d.Server, stateless)
	if len(a.tools) < 16 {
		t.Fatalf("there are %d tools", len(a.tools))
	}
	for _, tool := range a.tools {
		in := tool.InputSchema.(m)
		if in["additionalProperties"] != false || strings.Contains(fmt.Sprint(in), "$ref") || tool.OutputSchema.(m)["type"] != "object" {
			t.Errorf("%s takes %v", tool.Name, in)
		}
		if h := tool.Annotations; h == nil || h.DestructiveHint == nil || h.OpenWorldHint == nil || h.Title == "" || h.ReadOnlyHint && (*h.DestructiveHint || !h.IdempotentHint) || tool.Description == "" {
			t.Errorf("%s says of itself %+v", tool.Name, h)
		}
		if said := a.refused(api.CodeMalformed, tool.Name, m{"colour": "red"}); !strings.Contains(said, "- colour is no argument of this tool") {
			t.Errorf("%s says of an unknown argument: %s", tool.Name, said)
		}
	}
	for args, said := range map[string]string{
		`{"agent": 7}`: "agent", `{"agent": ""}`: "agent", `{"agent": "tidy", "priority": "high"}`: "priority", `{"prompt": "x"}`: "- agent is missing",
		`{"agent": "tidy", "agent": "x"}`: "no name twice", `[]`: "one JSON object", `"tidy"`: "one JSON object", `{"agent": "tidy", "idempotencyKey": "a b"}`: "idempotencyKey",
	} {
		r, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_agent", Arguments: json.RawMessage(args)})
		if err != nil {
			if args[0] == '{' {
				t.Errorf("%s: %v", args, err)
			}
			continue
		}
		if text := r.Content[0].(*sdk.TextContent).Text; !r.IsError || !strings.HasPrefix(text, "malformed: ") || !strings.Contains(text, said) {
			t.Errorf("%s is answered %s", args, text)
		}
	}
	if _, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "drop_everything"}); err == nil {
		t.Error("an unknown tool is no error")
	}
}

func TestMCP_AgentsAreRun(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		t.Run(version, func(t *testing.T) {
			d := newFixture(t, servertest.Options{})
			d.agent = servertest.Must[api.Agent](d.Server, 201, "POST", "agents", m{"slug": "talker", "type": "claude_code", "run": m{"workFolder": "/tmp"}})
			d.worker = servertest.Must[api.Registered](d.Server, 201, "POST", "agents/talker/workers", m{"name": "t", "instanceId": instance, "types": []string{"claude_code"}, "maxConcurrent": 9}).Worker
			a := assistantOf(t, d.Server, version)
			args := m{"agent": "talker", "prompt": "Say <hello>.", "title": "Greet", "priority": 3, "idempotencyKey": "k-1"}
			s := called[api.Session](a, "run_agent", args)
			if s.Prompt != "Say <hello>." || s.Priority != 3 || s.Title != "Greet" || s.Status != api.Queued {
				t.Errorf("it made %+v", s)
			}
			for range 5 {
				if again := called[api.Session](a, "run_agent", args); again.ID != s.ID {
					t.Error("the same key made another session")
				}
			}
			a.refused(api.CodeIdempotencyReuse, "run_agent", with(args, m{"prompt": "x"}))
			one := m{"session": s.ID.String()}
			c := d.claim(s.ID)
			if got := called[api.Session](a, "wait_session", with(one, m{"wait": 1})); got.Status != api.Active {
				t.Errorf("after a second it is %s", got.Status)
			}
			a.refused(api.CodeMalformed, "wait_session", with(one, m{"wait": 51}))
			if got := called[api.Posted](a, "say", with(one, m{"text": "And be brief."})); got.Message == nil || got.Message.Text != "And be brief." {
				t.Errorf("say answers %+v", got)
			}
			asked := servertest.Must[api.Session](d.Server, 200, "PATCH", d.at(s.ID, ""), with(proof(c), m{"status": "awaiting_input", "prompt": m{
				"kind": "questions", "text": "Two things", "choices": []m{{"id": "a", "text": "Colour?", "options": []string{"red", "blue"}}},
			}}))
			answer := with(one, m{"promptId": asked.Prompted.ID.String(), "choices": m{"a": "red"}})
			a.refused(api.CodeInvalid, "answer_prompt", with(answer, m{"choices": m{"a": "green"}}))
			if got := called[api.Session](a, "answer_prompt", answer); got.Status != api.Active {
				t.Errorf("after the answer it is %s", got.Status)
			}
			if said := a.refused(api.CodePromptClosed, "answer_prompt", answer); !strings.Contains(said, "Holder: owner") || !strings.Contains(said, "Next: ") {
				t.Errorf("a second answer is told %s", said)
			}
			a.refused(api.CodeSessionRunning, "cancel_session", with(one, m{"onlyPending": true}))
			if got := called[api.Changed](a, "stop_session", one); got.Session.StopRequestedAt.IsZero() {
				t.Errorf("stop answers %+v", got)
			}
			if got := called[api.Changed](a, "cancel_session", with(one, m{"reason": "enough"})); got.Session.Status != api.Cancelled {
				t.Errorf("cancel answers %+v", got)
			}
			if got := called[api.Retried](a, "retry_session", one); got.RetryOf != s.ID || !got.Changed {
				t.Errorf("retry answers %+v", got)
			}
		})
	}
}

// A program approves nothing, whoever signed it in and however it asks.
func TestMCP_NoApprovals(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	a := assistantOf(t, d.Server, stateless)
	c := d.running()
	asked := servertest.Must[api.Session](d.Server, 200, "PATCH", d.at(c.SessionID, ""), with(proof(c), m{"status": "awaiting_input", "prompt": m{
		"kind": "approval", "text": "May I?", "action": m{"area": "shell", "what": "rm -rf /", "tool": "Bash"},
	}}))
	one := m{"session": c.SessionID.String(), "promptId": asked.Prompted.ID.String()}
	for _, more := range []m{{}, {"text": "yes"}, {"approved": true}, {"approved": false}, {"forSession": true}, {"choices": m{"approved": "true"}}} {
		said := a.refused(api.CodeUserTokenRequired, "answer_prompt", with(one, more))
		if !strings.Contains(said, "A program approves nothing") || !strings.Contains(said, strings.Replace(d.URL, "127.0.0.1", "stint.localhost", 1)+"/sessions/"+c.SessionID.String()) {
			t.Errorf("%v is told %s", more, said)
		}
	}
	if s := servertest.Must[api.Session](d.Server, 200, "GET", "sessions/"+c.SessionID.String(), nil); s.Prompted == nil {
		t.Error("the approval is not open any more")
	}
	d.stranger()
	foreign := assistantOf(t, d.As(d.AddUser("elsewhere", api.Owner)), stateless)
	foreign.refused(api.CodeNotFound, "answer_prompt", with(one, m{"text": "yes"}))
}

func TestMCP_Output(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	a := assistantOf(t, d.Server, stateless)
	c := d.running()
	for i := range 6 {
		d.addItems(c, m{"kind": "text", "text": strings.Repeat(fmt.Sprint(i, " "), 30000)})
	}
	var all strings.Builder
	args := m{"session": c.SessionID.String()}
	for {
		part := called[api.Output](a, "read_output", args)
		all.WriteString(part.Text)
		if args["cursor"] = part.Cursor; !part.More {
			break
		}
	}
	uri := "stint://sessions/" + c.SessionID.String() + "/output"
	r, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	text, rest, _ := strings.Cut(r.Contents[0].Text, "\n… the rest: read_output with the cursor ")
	if len(text) != 256<<10 || !strings.HasPrefix(all.String(), text) {
		t.Errorf("the resource has %d bytes of %d", len(text), all.Len())
	}
	if part := called[api.Output](a, "read_output", m{"session": args["session"], "cursor": rest}); !strings.HasPrefix(all.String()[len(text):], part.Text) {
		t.Errorf("at %s it doesn't go on", rest)
	}
	for _, uri := range []string{"stint://sessions/ses_0000000001/output", "stint://sessions/x/output", "stint://agents/tidy"} {
		if _, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s is there", uri)
		}
	}
}
