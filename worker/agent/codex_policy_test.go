package agent_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// asks is a request of Codex.
func asks(id any, method string, params obj) obj {
	params["threadId"] = "th"
	return obj{"id": id, "method": method, "params": params}
}

// replyTo waits for the adapter's answer to a request.
func replyTo(p *peer, id any) line {
	return p.HearUntil(func(l line) bool { return l["id"] == id && l["method"] == nil })
}

func TestCodex_ThePolicyDecides(t *testing.T) {
	dir := t.TempDir()
	command := func(c string) obj { return obj{"itemId": "c", "command": "/bin/bash -lc '" + c + "'", "cwd": dir} }
	everything := []agent.Rule{{Area: agent.Shell, Ruling: agent.Allow}, {Area: agent.Filesystem, Ruling: agent.Allow}, {Area: agent.Network, Pattern: "example.com", Ruling: agent.Allow}}
	for name, c := range map[string]struct {
		policy      agent.Policy
		permissions agent.Permissions
		method      string
		params      obj
		approve     bool
		want        string // the reply's decision or action
		asked       string // the question's text
		denied      agent.Ruling
		failure     string
	}{
		"approved":           {agent.Policy{}, "", "item/commandExecution/requestApproval", command("touch /x"), true, "accept", "touch /x", "", ""},
		"declined":           {agent.Policy{}, "", "item/commandExecution/requestApproval", command("touch /x"), false, "decline", "touch /x", "", ""},
		"refused":            {agent.Policy{Rules: []agent.Rule{{Area: agent.Shell, Pattern: "touch *", Ruling: agent.Deny}}}, "", "item/commandExecution/requestApproval", command("touch /x"), true, "decline", "", agent.Deny, ""},
		"ends it":            {agent.Policy{Rules: []agent.Rule{{Area: agent.Shell, Pattern: "touch *", Ruling: agent.DenyStop}}}, "", "item/commandExecution/requestApproval", command("touch /x"), true, "cancel", "", agent.DenyStop, agent.CodePolicy},
		"nobody there":       {agent.Policy{Unattended: true}, "", "item/commandExecution/requestApproval", command("touch /x"), true, "cancel", "", agent.DenyStop, agent.CodePolicy},
		"autonomous":         {agent.Policy{}, agent.Autonomous, "item/commandExecution/requestApproval", command("touch /x"), true, "decline", "", agent.Deny, ""},
		"command alone":      {agent.Policy{Rules: everything[:1]}, "", "item/commandExecution/requestApproval", command("touch /x"), true, "accept", "touch /x", "", ""},
		"to a host":          {agent.Policy{Rules: everything[2:]}, "", "item/commandExecution/requestApproval", obj{"networkApprovalContext": obj{"host": "example.com", "protocol": "https"}}, false, "accept", "", "", ""},
		"to another host":    {agent.Policy{Rules: everything[2:]}, "", "item/commandExecution/requestApproval", obj{"networkApprovalContext": obj{"host": "evil.test"}}, false, "decline", "Connect to evil.test (any protocol).", "", ""},
		"without a command":  {agent.Policy{}, "", "item/commandExecution/requestApproval", obj{}, false, "decline", "Something that Codex doesn't name.", "", ""},
		"a change inside":    {agent.Policy{}, "", "item/fileChange/requestApproval", obj{"itemId": "in"}, false, "accept", "", "", ""},
		"a change outside":   {agent.Policy{}, "", "item/fileChange/requestApproval", obj{"itemId": "out"}, true, "accept", "update /etc/x", "", ""},
		"an unknown change":  {agent.Policy{}, "", "item/fileChange/requestApproval", obj{"itemId": "who"}, false, "decline", "Change files.", "", ""},
		"a root":             {agent.Policy{}, "", "item/fileChange/requestApproval", obj{"itemId": "in", "grantRoot": "/"}, false, "decline", "add " + dir + "/x", "", ""},
		"a tool server":      {agent.Policy{}, "", "mcpServer/elicitation/request", obj{"serverName": "mail", "message": "Send?", "mode": "form", "requestedSchema": obj{}}, true, "accept", "Send?", "", ""},
		"its form":           {agent.Policy{}, "", "mcpServer/elicitation/request", obj{"serverName": "mail", "message": "Who?", "mode": "form", "requestedSchema": obj{"required": list{"name"}}}, true, "decline", "Who?", "", ""},
		"our own":            {agent.Policy{}, "", "mcpServer/elicitation/request", obj{"serverName": "stint", "message": "ok?"}, false, "accept", "", "", ""},
		"of an older thread": {agent.Policy{}, "", "execCommandApproval", obj{}, true, "abort", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := codexJob(dir)
			job.Policy, job.Permissions = c.policy, c.permissions
			host := &agenttest.Host{Answer: func(context.Context, agent.Question) (agent.Answer, error) {
				return agent.Answer{Approved: c.approve}, nil
			}}
			var got string
			r, err := heldCodex(t, job, host, func(p *peer) {
				meet(p)
				p.Say(
					itemStarts(obj{"type": "fileChange", "id": "in", "changes": list{obj{"path": dir + "/x", "kind": obj{"type": "add"}}}}),
					itemStarts(obj{"type": "fileChange", "id": "out", "changes": list{obj{"path": "/etc/x", "kind": obj{"type": "update"}}}}),
					asks(0, c.method, c.params),
				)
				reply := replyTo(p, 0.0)
				got = reply.Text("result", "decision") + reply.Text("result", "action")
				p.Say(turnEnds("tu", map[bool]string{true: "interrupted", false: "completed"}[got == "cancel"], nil))
				p.Wait()
			})
			seen := host.Seen()
			asked := ""
			for _, q := range seen.Asked {
				asked += q.Text
			}
			if err != nil || got != c.want || strings.TrimSpace(asked) != c.asked {
				t.Errorf("replied %q, asked %q, %v", got, asked, err)
			}
			if c.denied == "" && len(seen.Denied) > 0 || c.denied != "" && (len(seen.Denied) != 1 || seen.Denied[0].Ruling != c.denied) {
				t.Errorf("denied %+v", seen.Denied)
			}
			if c.failure == "" && r.Failure != nil || c.failure != "" && (r.Failure == nil || r.Failure.Code != c.failure) {
				t.Errorf("failure %+v", r.Failure)
			}
		})
	}
}

func TestCodex_MoreRightsAreGrantedAsAsked(t *testing.T) {
	wish := obj{"reason": "to install", "permissions": obj{"network": obj{"enabled": true}, "fileSystem": obj{"write": list{"/opt/x"}, "read": nil}}}
	for approve, want := range map[bool]string{
		true:  `{"permissions":{"fileSystem":{"read":null,"write":["/opt/x"]},"network":{"enabled":true}},"scope":"session"}`,
		false: `{"permissions":{},"scope":"turn"}`,
	} {
		host := &agenttest.Host{Answer: func(context.Context, agent.Question) (agent.Answer, error) {
			return agent.Answer{Approved: approve, ForSession: approve}, nil
		}}
		_, err := heldCodex(t, codexJob("/work"), host, func(p *peer) {
			meet(p)
			p.Say(asks("r-1", "item/permissions/requestApproval", wish))
			if got := text(replyTo(p, "r-1")["result"]); got != want {
				t.Errorf("replied %s", got)
			}
			p.Say(turnEnds("tu", "completed", nil))
			p.Wait()
		})
		if asked := host.Seen().Asked; err != nil || len(asked) != 1 || asked[0].Text != "write /opt/x\nuse the network" || asked[0].Why != "to install" {
			t.Errorf("asked %+v, %v", asked, err)
		}
	}
}

func TestCodex_QuestionsReachAPerson(t *testing.T) {
	questions := obj{"questions": list{
		obj{"id": "q1", "header": "Colour", "question": "Which?", "isOther": true, "options": list{obj{"label": "red", "description": "Like fire"}, obj{"label": "blue"}}}, obj{"id": "q2", "question": "Key?", "isSecret": true, "options": nil},
	}}
	host := &agenttest.Host{Answer: func(context.Context, agent.Question) (agent.Answer, error) {
		return agent.Answer{Choices: map[string]string{"q1": "blue", "q2": "hush"}}, nil
	}}
	_, err := heldCodex(t, codexJob("/work"), host, func(p *peer) {
		meet(p)
		p.Say(asks(0, "item/tool/requestUserInput", questions))
		if got := text(replyTo(p, 0.0).At("result", "answers")); got != `{"q1":{"answers":["blue"]},"q2":{"answers":["hush"]}}` {
			t.Errorf("replied %s", got)
		}
		p.Say(turnEnds("tu", "completed", nil))
		p.Wait()
	})
	want := []agent.Choice{{ID: "q1", Header: "Colour", Text: "Which?", Options: []string{"red", "blue"}, About: []api.OptionAbout{{Description: "Like fire"}, {}}, Other: true}, {ID: "q2", Text: "Key?", Secret: true}}
	asked := host.Seen().Asked
	if err != nil || len(asked) != 1 || asked[0].Kind != agent.AskQuestions || !slices.EqualFunc(asked[0].Choices, want, func(a, b agent.Choice) bool { return text(a) == text(b) }) {
		t.Errorf("asked %+v, %v", asked, err)
	}
}

func TestCodex_EveryRequestIsAnswered(t *testing.T) {
	_, err := heldCodex(t, codexJob("/work"), &agenttest.Host{Answer: agenttest.Approves}, func(p *peer) {
		meet(p)
		for _, c := range []struct {
			id     any
			method string
			params any
			member string
		}{
			{"a-string", "brew/coffee", obj{}, "error"},
			{0, "brew/coffee", obj{}, "error"},
			{-1.5, "brew/coffee", nil, "error"},
			{7, "account/chatgptAuthTokens/refresh", obj{}, "error"},
			{8, "attestation/generate", obj{}, "error"},
			{9, "item/tool/call", obj{"tool": "x"}, "result"},
			{10, "applyPatchApproval", obj{}, "result"},
			{11, "item/commandExecution/requestApproval", "unreadable", "error"},
			{12, "item/commandExecution/requestApproval", obj{"command": list{3}}, "error"},
			{13, "item/tool/requestUserInput", obj{}, "error"},
			{14, "item/permissions/requestApproval", obj{}, "result"},
			{15, "item/fileChange/requestApproval", obj{}, "result"},
			{16, "mcpServer/elicitation/request", obj{}, "result"},
		} {
			p.Say(obj{"id": c.id, "method": c.method, "params": c.params})
			id := c.id
			if n, ok := id.(int); ok {
				id = float64(n)
			}
			if got := replyTo(p, id); got[c.member] == nil {
				t.Errorf("%v %s: replied %v", c.id, c.method, got)
			}
		}
		// An id that doesn't fit a float is returned digit by digit.
		p.Noise(`{"id":9007199254740993,"method":"brew/coffee"}` + "\n")
		if got := p.HearUntil(func(l line) bool { return l["error"] != nil }); !strings.Contains(text(got["id"]), "9007199254740992") {
			t.Errorf("replied %v", got)
		}
		p.Noise(`{"id":17,"method":{"a":1}}` + "\n")
		replyTo(p, 17.0)
		p.Say(turnEnds("tu", "completed", nil))
		p.Wait()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCodex_AResolvedRequestIsForgotten(t *testing.T) {
	host := &agenttest.Host{Answer: agenttest.Silent}
	var late line
	r, err := heldCodex(t, codexJob("/work"), host, func(p *peer) {
		meet(p)
		p.Say(asks(0, "item/commandExecution/requestApproval", obj{"command": "x"}), tells("serverRequest/resolved", obj{"requestId": 0}), turnEnds("tu", "completed", nil))
		late = p.Hear()
	})
	if err != nil || r.Failure != nil || late != nil {
		t.Errorf("result %+v, %v; said afterwards: %v", r, err, late)
	}
}

func TestCodex_ParksAQuestionNobodyAnswers(t *testing.T) {
	r, err := heldCodex(t, codexJob("/work"), &agenttest.Host{Answer: agenttest.Parks}, func(p *peer) {
		meet(p)
		p.Say(asks(0, "item/commandExecution/requestApproval", obj{"command": "x"}))
		if got := replyTo(p, 0.0); got.Text("result", "decision") != "cancel" {
			t.Errorf("replied %v", got)
		}
		p.Say(replies(method(p, "turn/interrupt"), obj{}), turnEnds("tu", "interrupted", nil))
		p.Wait()
	})
	if !errors.Is(err, agent.ErrParked) || r.Failure != nil {
		t.Errorf("result %+v, %v", r, err)
	}
}

// hookSays runs a hook as Codex would and returns what it prints and its exit code.
func hookSays(t *testing.T, command, call string) (string, int) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Stdin = strings.NewReader(call)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Errorf("the hook: %v", err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestCodex_TheHookAsksThePolicy(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	job := codexJob(t.TempDir())
	job.Hook = []string{self, agent.HookArg}
	job.Policy.Rules = []agent.Rule{{Area: agent.Shell, Pattern: "rm *", Ruling: agent.Deny}, {Area: agent.Shell, Pattern: "make*", Ruling: agent.Ask}, {Area: agent.Filesystem, Pattern: "./secret*", Ruling: agent.Deny}, {Area: agent.Shell, Pattern: "halt*", Ruling: agent.DenyStop}}
	host := &agenttest.Host{Answer: func(_ context.Context, q agent.Question) (agent.Answer, error) {
		return agent.Answer{Approved: q.Text == "make good", Text: "no time"}, nil
	}}
	var command string
	r, err := agenttest.Converse(t.Context(), t, agent.Codex{}, job, host, func(p *peer) {
		start := meet(p)
		hooks, _ := start.At("params", "config", "hooks", "PreToolUse").([]any)
		command, _ = line{"x": hooks[0]}.At("x").(obj)["hooks"].([]any)[0].(obj)["command"].(string)
		for call, part := range map[string]string{
			`{"tool_name":"Bash","tool_input":{"command":"ls"}}`:                                                                "{}",
			`{"tool_name":"Bash","tool_input":{"command":"ls; rm x"}}`:                                                          `"deny"`,
			`{"tool_name":"Bash","tool_input":{"command":"make good"}}`:                                                         "{}",
			`{"tool_name":"Bash","tool_input":{"command":"make bad"}}`:                                                          "no time",
			`{"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Add File: secret.txt\n+x\n"}}`:            `"deny"`,
			`{"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: a\n*** Move to: secret\n"}}`: `"deny"`,
			`{"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Add File: open.txt\n+x\n"}}`:              "{}",
			`{"tool_name":"mcp__mail__send","tool_input":{"to":"x"}}`:                                                           "{}",
			`not json`:                      `"deny"`,
			`{"tool_name":7}`:               `"deny"`,
			strings.Repeat("x", 2<<20):      "",
			`{"tool_name":"Bash"}`:          `"deny"`,
			`{"tool_name":"Bash"` + "\x00}": `"deny"`,
		} {
			got, code := hookSays(t, command, call)
			if !strings.Contains(got, part) || (part == "") != (code == 2) {
				t.Errorf("%.60s: said %q with %d", call, got, code)
			}
		}
		if got, _ := hookSays(t, command, `{"tool_name":"Bash","tool_input":{"command":"halt now"}}`); !strings.Contains(got, `"deny"`) {
			t.Errorf("said %q", got)
		}
		p.Say(replies(method(p, "turn/interrupt"), obj{}), turnEnds("tu", "interrupted", nil))
		p.Wait()
	})
	if err != nil || r.Failure == nil || r.Failure.Code != agent.CodePolicy {
		t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
	}
	if seen := host.Seen(); len(seen.Asked) != 2 || len(seen.Denied) != 4 {
		t.Errorf("asked %+v, denied %+v", seen.Asked, seen.Denied)
	}
	// Outside the conversation nothing is allowed.
	if got, code := hookSays(t, command, `{"tool_name":"Bash","tool_input":{"command":"ls"}}`); code != 2 || got != "" {
		t.Errorf("afterwards: said %q with %d", got, code)
	}
}

func TestCodex_WithoutAHookThatIsSaid(t *testing.T) {
	job := codexJob("/work")
	job.Policy.Rules = []agent.Rule{{Area: agent.Shell, Pattern: "rm *", Ruling: agent.Deny}}
	cmd, err := agent.Codex{}.Command(job)
	if err != nil || len(cmd.Unheld) != 1 {
		t.Errorf("%+v, %v", cmd, err)
	}
	start, err := started(t, job)
	if err != nil || start.At("params", "config", "hooks") != nil {
		t.Errorf("started with %v, %v", start, err)
	}
	job.Hook = []string{"/usr/bin/stint", agent.HookArg}
	if cmd, err = (agent.Codex{}).Command(job); err != nil || len(cmd.Unheld) != 0 {
		t.Errorf("%+v, %v", cmd, err)
	}
}
