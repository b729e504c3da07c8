package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

func TestMain(m *testing.M) {
	agent.HookMain()
	agenttest.ServerMain()
	agenttest.AsOrdinaryUser()
	os.Exit(m.Run())
}

type (
	peer = agenttest.Peer
	line = agenttest.Line
	obj  = map[string]any
	list = []any
)

const someID = "0b0fb4e4-7f4e-4d52-9d53-7d3c5e1c0001"

func claudeJob(dir string) agent.Job {
	return agent.Job{Dir: dir, Begin: someID, Turn: "do it", Env: []string{"PATH=/nowhere"}}
}

// greet plays the beginning that every conversation has, up to the first turn.
func greet(p *peer) {
	hello := p.HearUntil(func(l line) bool { return l.Text("type") == "control_request" })
	p.Say(obj{"type": "control_response", "response": obj{"subtype": "success", "request_id": hello["request_id"], "response": obj{}}})
	p.HearUntil(func(l line) bool { return l.Text("type") == "user" })
	p.Say(obj{"type": "system", "subtype": "init", "session_id": someID})
}

func says(blocks ...any) obj {
	return obj{"type": "assistant", "parent_tool_use_id": nil, "message": obj{
		"id": "m1", "role": "assistant", "content": blocks, "usage": obj{"input_tokens": 5, "output_tokens": 2},
	}}
}

func calls(id, tool string, input any) obj {
	return says(obj{"type": "tool_use", "id": id, "name": tool, "input": input})
}

func returns(id, text string, failed bool) obj {
	return obj{"type": "user", "message": obj{"role": "user", "content": list{
		obj{"type": "tool_result", "tool_use_id": id, "is_error": failed, "content": text},
	}}}
}

// result is a turn's good end, with the given changes.
func result(members obj) obj {
	out := obj{
		"type": "result", "subtype": "success", "is_error": false, "result": "fine", "num_turns": 1, "stop_reason": "end_turn", "terminal_reason": "completed",
		"total_cost_usd": 0.25, "modelUsage": obj{"m": obj{"inputTokens": 10, "cacheReadInputTokens": 5, "outputTokens": 3}},
	}
	for k, v := range members {
		out[k] = v
	}
	return out
}

func canUse(id, tool string, input any) obj {
	return obj{"type": "control_request", "request_id": id, "request": obj{"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t-" + id}}
}

func hook(id, tool string, input any) obj {
	return obj{"type": "control_request", "request_id": id, "request": obj{
		"subtype": "hook_callback", "callback_id": "policy", "input": obj{"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input},
	}}
}

// answer waits for the adapter's answer to a request.
func answer(p *peer, id any) line {
	return p.HearUntil(func(l line) bool { return l.Text("type") == "control_response" && l.At("response", "request_id") == id })
}

// heldClaude plays a conversation in a synctest bubble and returns how it went.
func heldClaude(t *testing.T, job agent.Job, host *agenttest.Host, play func(*peer)) (agent.Result, error) {
	t.Helper()
	var r agent.Result
	var err error
	synctest.Test(t, func(t *testing.T) {
		r, err = agenttest.Converse(t.Context(), t, agent.Claude{}, job, host, play)
	})
	return r, err
}

func TestClaude_ATurnBecomesATranscript(t *testing.T) {
	host := &agenttest.Host{Turns: []string{"and now this"}}
	var second string
	r, err := heldClaude(t, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		p.Say(
			obj{"type": "something_new", "x": 1}, obj{"type": "system", "subtype": "also_new"},
			says(obj{"type": "thinking", "thinking": "hm"}, obj{"type": "text", "text": "I look."}),
			calls("c1", "Bash", obj{"command": "ls"}), returns("c1", "a\nb", false),
			calls("c2", "Read", obj{"file_path": "/work/x"}), returns("c2", "no such file", true),
			result(nil),
		)
		next := p.HearUntil(func(l line) bool { return l.Text("type") == "user" })
		second = next.Text("message", "content")
		p.Say(says(obj{"type": "text", "text": "Done."}), result(obj{"result": "Done.", "total_cost_usd": 0.5}))
		p.Wait()
	})
	if err != nil || r.Failure != nil {
		t.Fatalf("result %+v, %v", r, err)
	}
	if second != "and now this" || r.Text != "Done." {
		t.Errorf("second turn %q, last words %q", second, r.Text)
	}
	want := "thinking: hm\ntext: I look.\ntool_call Bash: ls\ntool_result Bash: a\nb\ntool_call Read: {\n\t\"file_path\": \"/work/x\"\n}\n" +
		"tool_result Read failed: no such file\nturn_end\ntext: Done.\nturn_end\n"
	seen := host.Seen()
	if got := seen.Transcript(); got != want {
		t.Errorf("transcript\n%s\nwant\n%s", got, want)
	}
	if !slices.Equal(seen.Began, []string{someID}) {
		t.Errorf("began %v", seen.Began)
	}
	if last := seen.Usages[len(seen.Usages)-1]; last != (api.Usage{InputTokens: 15, OutputTokens: 3, CostMicros: 500_000, Turns: 2}) || r.Usage != last {
		t.Errorf("usage %+v, in the result %+v", last, r.Usage)
	}
}

func TestClaude_NothingIsSentBeforeTheSessionIsKnown(t *testing.T) {
	no := errors.New("the disk is full")
	heard := false
	_, err := heldClaude(t, claudeJob("/work"), &agenttest.Host{Refuses: no}, func(p *peer) { heard = p.Hear() != nil })
	if !errors.Is(err, no) || heard {
		t.Errorf("error %v; something was said: %v", err, heard)
	}
}

func TestClaude_SuccessMayBeNone(t *testing.T) {
	until := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC) // soon, in virtual time
	for name, c := range map[string]struct {
		before []any
		result obj
		code   string
		part   string // of the message
		again  bool
		reset  time.Time
	}{
		"not signed in":      {nil, obj{"is_error": true, "result": "Not logged in · Please run /login"}, agent.CodeNotSignedIn, "/login", false, time.Time{}},
		"key refused":        {nil, obj{"is_error": true, "result": "API Error", "api_error_status": 401, "terminal_reason": "api_error"}, agent.CodeNotSignedIn, "signed in", false, time.Time{}},
		"limit with a time":  {nil, obj{"is_error": true, "result": fmt.Sprintf("Claude AI usage limit reached|%d", until.Unix())}, agent.CodeUsageLimit, "limit", true, until},
		"limit by an event":  {[]any{obj{"type": "rate_limit_event", "rate_limit_info": obj{"status": "rejected", "resetsAt": until.Unix()}}}, obj{"is_error": true, "result": "You've hit your session limit", "api_error_status": 429}, agent.CodeUsageLimit, "limit", true, until},
		"limit without time": {nil, obj{"is_error": true, "result": "API Error: 429", "api_error_status": 429}, agent.CodeUsageLimit, "429", true, time.Time{}},
		"overloaded":         {nil, obj{"is_error": true, "result": "API Error: 529 overloaded", "api_error_status": 529, "terminal_reason": "api_error"}, agent.CodeCrashed, "529", true, time.Time{}},
		"bad request":        {nil, obj{"is_error": true, "result": "API Error: 400", "api_error_status": 400}, agent.CodeCrashed, "400", false, time.Time{}},
		"cut off":            {nil, obj{"is_error": true, "result": "Connection closed", "api_error_status": nil, "terminal_reason": "api_error"}, agent.CodeCrashed, "closed", true, time.Time{}},
		"within a tool call": {nil, obj{"stop_reason": "tool_use"}, agent.CodeCrashed, "tool call", true, time.Time{}},
		"too many rounds":    {nil, obj{"subtype": "error_max_turns", "is_error": true}, agent.CodeTurnTimeout, "200 rounds", false, time.Time{}},
		"too much money":     {nil, obj{"subtype": "error_max_budget_usd", "is_error": true}, agent.CodeSpendLimit, "limit", false, time.Time{}},
		"in execution":       {nil, obj{"subtype": "error_during_execution", "is_error": true, "errors": list{"boom"}, "result": nil}, agent.CodeCrashed, "boom", true, time.Time{}},
		"success, aborted":   {nil, obj{"terminal_reason": "aborted_tools"}, agent.CodeCrashed, "aborted", true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := heldClaude(t, claudeJob("/work"), &agenttest.Host{}, func(p *peer) {
				greet(p)
				p.Say(c.before...)
				p.Say(result(c.result))
				p.Wait()
			})
			if err != nil || r.Failure == nil || r.Failure.Code != c.code || !strings.Contains(r.Failure.Message, c.part) {
				t.Fatalf("failure %+v, error %v", r.Failure, err)
			}
			if r.Retriable != c.again || !r.ResetAt.Equal(c.reset) {
				t.Errorf("retriable %v until %v", r.Retriable, r.ResetAt)
			}
		})
	}
}

func TestClaude_UnknownSessionIsSaid(t *testing.T) {
	job := claudeJob("/work")
	job.Session = someID
	r, err := heldClaude(t, job, &agenttest.Host{}, func(p *peer) {
		greet(p)
		p.Say(result(obj{"subtype": "error_during_execution", "is_error": true, "errors": list{"No conversation found with session ID: x"}}))
	})
	if err != nil || !r.Unknown || r.Failure == nil || r.Failure.Code != agent.CodeCrashed || r.Retriable {
		t.Errorf("result %+v, %v", r, err)
	}
}

func TestClaude_BadPeers(t *testing.T) {
	long := strings.Repeat("x", 10<<20-200)
	for name, c := range map[string]struct {
		play func(*peer)
		part string // of the failure's message; "" = it ends well
		most time.Duration
	}{
		"says nothing at all":   {func(p *peer) { p.Wait() }, "did not answer within 30s", 31 * time.Second},
		"ends at once":          {func(*peer) {}, "without a result", time.Second},
		"no result":             {func(p *peer) { greet(p); p.Say(says(obj{"type": "text", "text": "hi"})) }, "without a result", time.Second},
		"refuses the handshake": {func(p *peer) { refuseHello(p) }, "refused the handshake: no", time.Second},
		"result of another form": {
			func(p *peer) { greet(p); p.Say(obj{"type": "result", "num_turns": "many"}); p.Wait() },
			"can't be read", time.Second,
		},
		"starts slowly": {func(p *peer) { time.Sleep(25 * time.Second); greet(p); p.Say(result(nil)); p.Wait() }, "", 26 * time.Second},
		"noise between": {func(p *peer) {
			greet(p)
			p.Noise("Warning: something\n\n{\"type\":\n[1,2]\n\x00\xff\xfe\nnull\n\"x\"\n{\"type\":7}\n")
			p.Say(obj{"type": "assistant", "message": 3}, obj{"type": "user", "message": obj{"content": list{3, obj{"type": "tool_result", "tool_use_id": "never called"}}}}, result(nil))
			p.Wait()
		}, "", time.Second},
		"10 MB in a line":    {func(p *peer) { greet(p); p.Say(says(obj{"type": "text", "text": long}), result(nil)); p.Wait() }, "", time.Second},
		"more in a line":     {func(p *peer) { greet(p); p.Noise(long + long + "\n"); p.Say(result(nil)); p.Wait() }, "", time.Second},
		"stops listening":    {func(p *peer) { p.Deaf(); time.Sleep(time.Hour) }, "does not listen", time.Minute},
		"ends within a line": {func(p *peer) { greet(p); p.Noise(`{"type":"result","subt`) }, "without a result", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				host := &agenttest.Host{}
				var took time.Duration
				job := claudeJob("/work")
				r, err := agenttest.Converse(t.Context(), t, timed{agent.Claude{}, &took, began}, job, host, c.play)
				if err != nil {
					t.Fatal(err)
				}
				if c.part == "" && r.Failure != nil || c.part != "" && (r.Failure == nil || r.Failure.Code != agent.CodeCrashed || !strings.Contains(r.Failure.Message, c.part)) {
					t.Errorf("failure %+v", r.Failure)
				}
				if took > c.most {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func refuseHello(p *peer) {
	hello := p.Hear()
	p.Say(obj{"type": "control_response", "response": obj{"subtype": "error", "request_id": hello["request_id"], "error": "no"}})
	p.Wait()
}

// timed measures how long a conversation took.
type timed struct {
	agent.Agent
	took  *time.Duration
	began time.Time
}

func (a timed) Converse(ctx context.Context, pipes agent.Pipes, job agent.Job, host agent.Host) (agent.Result, error) {
	defer func() { *a.took = time.Since(a.began) }()
	return a.Agent.Converse(ctx, pipes, job, host)
}

func TestClaude_CommandIsTheOwnersAlone(t *testing.T) {
	job := claudeJob("/work")
	job.System, job.Turn, job.Model = "be kind", "--dangerously-skip-permissions", "opus"
	cmd, err := agent.Claude{}.Command(job)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"claude", "-p"},
		{"--session-id", someID},
		{"--permission-prompt-tool", "stdio"},
		{"--permission-mode", "default"},
		{"--max-turns", "200"},
		{"--setting-sources", "", "--strict-mcp-config"},
		{"--append-system-prompt", "be kind"},
		{"--model", "opus"},
	} {
		if !contains(cmd.Argv, want) {
			t.Errorf("%q isn't in %q", want, cmd.Argv)
		}
	}
	if slices.Contains(cmd.Argv, job.Turn) || slices.Contains(cmd.Argv, "--resume") {
		t.Errorf("argv %q", cmd.Argv)
	}
	job.Session, job.Uses, job.MaxTurns, job.Executable = "other", agent.UsesAll, 3, []string{"/opt/claude", "--debug"}
	cmd, err = agent.Claude{}.Command(job)
	if err != nil {
		t.Fatal(err)
	}
	if !contains(cmd.Argv, []string{"/opt/claude", "--debug", "-p"}) || !contains(cmd.Argv, []string{"--resume", "other"}) || !contains(cmd.Argv, []string{"--max-turns", "3"}) {
		t.Errorf("argv %q", cmd.Argv)
	}
	if slices.Contains(cmd.Argv, "--strict-mcp-config") || slices.Contains(cmd.Argv, "--session-id") {
		t.Errorf("argv %q", cmd.Argv)
	}
	job.Session, job.Begin = "", "x; rm -rf /"
	_, err = agent.Claude{}.Command(job)
	if refused := (*agent.Refusal)(nil); !errors.As(err, &refused) {
		t.Errorf("error %v", err)
	}
}

func contains(all, part []string) bool {
	for i := range all {
		if len(all)-i >= len(part) && slices.Equal(all[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

func TestClaude_WithoutASandboxThatIsSaid(t *testing.T) {
	bin := t.TempDir()
	job := claudeJob(t.TempDir())
	job.Env, job.Hidden = []string{"PATH=" + bin}, []string{"/srv/stint"}
	cmd, err := agent.Claude{}.Command(job)
	if err != nil {
		t.Fatal(err)
	}
	settings := cmd.Argv[slices.Index(cmd.Argv, "--settings")+1]
	if len(cmd.Unheld) == 0 || !strings.Contains(settings, `"sandbox":{"enabled":false}`) || !strings.Contains(settings, `"Read(//srv/stint/**)"`) {
		t.Errorf("unheld %q, settings %s", cmd.Unheld, settings)
	}
	for _, name := range []string{"bwrap", "socat"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if cmd, err = (agent.Claude{}).Command(job); err != nil {
		t.Fatal(err)
	}
	settings = cmd.Argv[slices.Index(cmd.Argv, "--settings")+1]
	if len(cmd.Unheld) != 0 || !strings.Contains(settings, `"failIfUnavailable":true`) || !strings.Contains(settings, `"denyRead":["/srv/stint"`) {
		t.Errorf("unheld %q, settings %s", cmd.Unheld, settings)
	}
}
