package agent_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// decided is what the adapter answers to a tool call: to the hook, then to the request.
func decided(t *testing.T, job agent.Job, host *agenttest.Host, tool string, input any) (hookSaid, decision string, r agent.Result) {
	t.Helper()
	r, err := heldClaude(t, job, host, func(p *peer) {
		greet(p)
		p.Say(hook("h", tool, input))
		hooked := answer(p, "h")
		hookSaid = hooked.Text("response", "response", "hookSpecificOutput", "permissionDecision")
		if hookSaid != "deny" {
			p.Say(canUse("q", tool, input))
			decision = answer(p, "q").Text("response", "response", "behavior")
		}
		p.Say(result(nil))
		p.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	return hookSaid, decision, r
}

func TestClaude_ThePolicyDecides(t *testing.T) {
	dir := t.TempDir()
	rules := func(r ...agent.Rule) agent.Policy { return agent.Policy{Rules: r} }
	bash := func(c string) obj { return obj{"command": c} }
	for name, c := range map[string]struct {
		policy      agent.Policy
		permissions agent.Permissions
		tool        string
		input       obj
		hook        string // deny, ask or nothing
		decision    string // allow or deny, from a host that approves nothing
		asked       int
		denied      agent.Ruling
		failure     string
	}{
		"asks by itself":             {agent.Policy{}, agent.Approval, "Bash", bash("make"), "", "deny", 1, "", ""},
		"an allowed command":         {rules(agent.Rule{Area: agent.Shell, Pattern: "make*", Ruling: agent.Allow}), agent.Approval, "Bash", bash("make test"), "", "allow", 0, "", ""},
		"allowed and more":           {rules(agent.Rule{Area: agent.Shell, Pattern: "make*", Ruling: agent.Allow}), agent.Approval, "Bash", bash("make test; rm -rf /"), "", "deny", 1, "", ""},
		"refused":                    {rules(agent.Rule{Area: agent.Shell, Pattern: "rm *", Ruling: agent.Deny}), agent.Approval, "Bash", bash("cd x && rm -rf y"), "deny", "", 0, agent.Deny, ""},
		"refused although allowed":   {rules(agent.Rule{Area: agent.Shell, Ruling: agent.Allow}, agent.Rule{Area: agent.Shell, Pattern: "rm *", Ruling: agent.Deny}), agent.Approval, "Bash", bash("sudo rm x"), "deny", "", 0, agent.Deny, ""},
		"ends the session":           {rules(agent.Rule{Area: agent.SideEffects, Pattern: "git push*", Ruling: agent.DenyStop}), agent.Approval, "Bash", bash("git push origin"), "deny", "", 0, agent.DenyStop, agent.CodePolicy},
		"a rule to ask":              {rules(agent.Rule{Area: agent.Shell, Pattern: "ls*", Ruling: agent.Ask}), agent.Approval, "Bash", bash("ls"), "ask", "deny", 1, "", ""},
		"nobody to ask":              {agent.Policy{Unattended: true}, agent.Approval, "Bash", bash("make"), "", "deny", 0, agent.DenyStop, agent.CodePolicy},
		"nobody to ask, goes on":     {agent.Policy{Unattended: true, Otherwise: agent.Deny}, agent.Approval, "Bash", bash("make"), "", "deny", 0, agent.Deny, ""},
		"autonomous without sandbox": {agent.Policy{}, agent.Autonomous, "Bash", bash("make"), "", "deny", 0, agent.Deny, ""},
		"a file of the folder":       {agent.Policy{}, agent.Approval, "Write", obj{"file_path": dir + "/x"}, "", "allow", 0, "", ""},
		"a file beside it":           {agent.Policy{}, agent.Approval, "Write", obj{"file_path": dir + "/../x"}, "", "deny", 1, "", ""},
		"its git configuration":      {agent.Policy{}, agent.Approval, "Edit", obj{"file_path": dir + "/.git/config"}, "", "deny", 1, "", ""},
		"no files at all":            {rules(agent.Rule{Area: agent.Filesystem, Ruling: agent.Deny}), agent.Approval, "Write", obj{"file_path": dir + "/x"}, "deny", "", 0, agent.Deny, ""},
		"the web":                    {agent.Policy{}, agent.Approval, "WebFetch", obj{"url": "https://example.com/"}, "", "deny", 1, "", ""},
		"no network":                 {rules(agent.Rule{Area: agent.Network, Ruling: agent.Deny}), agent.Approval, "Bash", bash("curl https://example.com"), "deny", "", 0, agent.Deny, ""},
		"a tool server":              {agent.Policy{}, agent.Approval, "mcp__mail__send", obj{"to": "x"}, "", "deny", 1, "", ""},
		"triggering an agent":        {rules(agent.Rule{Area: agent.Workspace, Pattern: "trigger*", Ruling: agent.Deny}), agent.Approval, "mcp__stint__trigger_run", obj{}, "deny", "", 0, agent.Deny, ""},
		"its own session":            {agent.Policy{}, agent.Approval, "mcp__stint__list_runs", obj{}, "", "allow", 0, "", ""},
		"what is hidden":             {rules(agent.Rule{Area: agent.Filesystem, Ruling: agent.Allow}), agent.Approval, "Read", obj{"file_path": "/srv/stint/stint.db"}, "deny", "", 0, agent.Deny, ""},
		"what is hidden, by cat":     {rules(agent.Rule{Area: agent.Shell, Ruling: agent.Allow}), agent.Approval, "Bash", bash("cat /srv/stint/stint.db"), "deny", "", 0, agent.Deny, ""},
		"a new tool":                 {agent.Policy{}, agent.Approval, "Teleport", obj{"to": "moon"}, "", "deny", 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := claudeJob(dir)
			job.Policy, job.Permissions, job.Hidden = c.policy, c.permissions, []string{"/srv/stint"}
			host := &agenttest.Host{}
			hooked, decision, r := decided(t, job, host, c.tool, c.input)
			seen := host.Seen()
			if hooked != c.hook || decision != c.decision || len(seen.Asked) != c.asked {
				t.Errorf("hook %q, decision %q, questions %+v", hooked, decision, seen.Asked)
			}
			if c.denied == "" && len(seen.Denied) != 0 || c.denied != "" && (len(seen.Denied) != 1 || seen.Denied[0].Ruling != c.denied) {
				t.Errorf("denied %+v", seen.Denied)
			}
			if c.failure == "" && r.Failure != nil || c.failure != "" && (r.Failure == nil || r.Failure.Code != c.failure) {
				t.Errorf("failure %+v", r.Failure)
			}
		})
	}
}

func TestClaude_ApprovalsForTheSessionAreRemembered(t *testing.T) {
	host := &agenttest.Host{Answer: func(context.Context, agent.Question) (agent.Answer, error) {
		return agent.Answer{Approved: true, ForSession: true}, nil
	}}
	_, err := heldClaude(t, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		for _, id := range []string{"one", "two", "three"} {
			command := map[bool]string{true: "make other", false: "make"}[id == "three"]
			p.Say(canUse(id, "Bash", obj{"command": command}))
			got := answer(p, id)
			if got.Text("response", "response", "behavior") != "allow" || got.Text("response", "response", "updatedInput", "command") != command {
				t.Errorf("%s: %v", id, got)
			}
		}
		p.Say(result(nil))
		p.Wait()
	})
	if asked := host.Seen().Asked; err != nil || len(asked) != 2 || asked[0].Text != "make" || asked[0].Kind != agent.AskApproval {
		t.Errorf("asked %+v, %v", asked, err)
	}
}

func TestClaude_QuestionsReachAPerson(t *testing.T) {
	questions := obj{"questions": list{
		obj{"question": "Which colour?", "options": list{obj{"label": "red"}, obj{"label": "blue"}}},
		obj{"question": "How many?", "options": list{}},
	}}
	host := &agenttest.Host{Answer: func(_ context.Context, q agent.Question) (agent.Answer, error) {
		return agent.Answer{Choices: map[string]string{q.Choices[0].ID: "blue", q.Choices[1].ID: "three"}}, nil
	}}
	_, err := heldClaude(t, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		p.Say(canUse("q", "AskUserQuestion", questions))
		got := answer(p, "q")
		if got.Text("response", "response", "updatedInput", "answers", "Which colour?") != "blue" || got.Text("response", "response", "updatedInput", "answers", "How many?") != "three" {
			t.Errorf("answered %v", got)
		}
		p.Say(canUse("bad", "AskUserQuestion", obj{"questions": "none"}))
		if got := answer(p, "bad"); got.Text("response", "response", "behavior") != "deny" {
			t.Errorf("answered %v", got)
		}
		p.Say(result(nil))
		p.Wait()
	})
	asked := host.Seen().Asked
	if err != nil || len(asked) != 1 || asked[0].Kind != agent.AskQuestions || len(asked[0].Choices) != 2 || !asked[0].Choices[0].Other {
		t.Errorf("asked %+v, %v", asked, err)
	}
}

// What the agent says about its options reaches people, and they may take several.
func TestClaude_QuestionsWhole(t *testing.T) {
	questions := obj{"questions": list{obj{"question": "Which colours?", "header": "Colours", "multiSelect": true, "options": list{
		obj{"label": "red", "description": "Like fire", "preview": "#f00\n"}, obj{"label": "blue"}, obj{"label": "green"},
	}}}}
	host := &agenttest.Host{Answer: func(_ context.Context, q agent.Question) (agent.Answer, error) {
		return agent.Answer{Choices: map[string]string{q.Choices[0].ID: "red\nblue"}}, nil
	}}
	_, err := heldClaude(t, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		p.Say(canUse("q", "AskUserQuestion", questions))
		if got := answer(p, "q"); got.Text("response", "response", "updatedInput", "answers", "Which colours?") != "red, blue" {
			t.Errorf("answered %v", got)
		}
		p.Say(result(nil))
		p.Wait()
	})
	want := agent.Choice{
		ID: "Which colours?", Header: "Colours", Text: "Which colours?", Options: []string{"red", "blue", "green"}, Several: true, Other: true,
		About: []api.OptionAbout{{Description: "Like fire", Preview: "#f00\n"}, {}, {}},
	}
	if asked := host.Seen().Asked; err != nil || len(asked) != 1 || !reflect.DeepEqual(asked[0].Choices, []agent.Choice{want}) {
		t.Errorf("asked %+v, %v", asked, err)
	}
}

// A question may be longer than its id; the model can shorten one that fits nowhere, and the
// session goes on.
func TestClaude_LongQuestions(t *testing.T) {
	long, tooLong := strings.Repeat("Why? ", 100), strings.Repeat("Why? ", 1000)
	ask := func(text, option string) obj {
		return obj{"questions": list{obj{"question": text, "options": list{obj{"label": option}}}}}
	}
	host := &agenttest.Host{Answer: func(_ context.Context, q agent.Question) (agent.Answer, error) {
		if id := q.Choices[0].ID; id == "" || len(id) > 200 {
			t.Errorf("the id has %d bytes", len(id))
		}
		return agent.Answer{Choices: map[string]string{q.Choices[0].ID: "because"}}, nil
	}}
	_, err := heldClaude(t, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		p.Say(canUse("long", "AskUserQuestion", ask(long, "so")))
		if got := answer(p, "long"); got.Text("response", "response", "updatedInput", "answers", long) != "because" {
			t.Errorf("answered %v", got)
		}
		for name, in := range map[string]obj{"text": ask(tooLong, "so"), "option": ask("Why?", tooLong)} {
			p.Say(canUse(name, "AskUserQuestion", in))
			if got := answer(p, name); got.Text("response", "response", "behavior") != "deny" {
				t.Errorf("%s: answered %v", name, got)
			}
		}
		p.Say(result(nil))
		p.Wait()
	})
	if asked := host.Seen().Asked; err != nil || len(asked) != 1 {
		t.Errorf("asked %d, %v", len(asked), err)
	}
}

func TestClaude_EveryRequestIsAnswered(t *testing.T) {
	_, err := heldClaude(t, claudeJob("/work"), &agenttest.Host{Answer: agenttest.Approves}, func(p *peer) {
		greet(p)
		for name, m := range map[string]struct {
			request obj
			subtype string
		}{
			"unknown":            {obj{"type": "control_request", "request_id": "a", "request": obj{"subtype": "brew_coffee"}}, "error"},
			"no subtype":         {obj{"type": "control_request", "request_id": "b", "request": obj{}}, "error"},
			"another form":       {obj{"type": "control_request", "request_id": "c", "request": "please"}, "error"},
			"wrong types":        {obj{"type": "control_request", "request_id": "d", "subtype": 7, "request": obj{"subtype": "can_use_tool"}}, "error"},
			"no tool":            {obj{"type": "control_request", "request_id": "e", "request": obj{"subtype": "can_use_tool", "input": obj{}}}, "error"},
			"no input":           {obj{"type": "control_request", "request_id": "f", "request": obj{"subtype": "can_use_tool", "tool_name": "Bash"}}, "error"},
			"an unreadable hook": {obj{"type": "control_request", "request_id": "g", "request": obj{"subtype": "hook_callback", "input": 3}}, "error"},
			"input of no form":   {canUse("h", "Bash", list{1, 2}), "success"},
			"number as id":       {obj{"type": "control_request", "request_id": 0, "request": obj{"subtype": "brew_coffee"}}, "error"},
			"an elicitation":     {obj{"type": "control_request", "request_id": "i", "request": obj{"subtype": "elicitation", "message": "name?"}}, "success"},
		} {
			p.Say(m.request)
			id := m.request["request_id"]
			if n, ok := id.(int); ok {
				id = float64(n)
			}
			got := answer(p, id)
			if got.Text("response", "subtype") != m.subtype {
				t.Errorf("%s: answered %v", name, got)
			}
		}
		p.Say(result(nil))
		p.Wait()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestClaude_AWithdrawnQuestionIsForgotten(t *testing.T) {
	come := make(chan struct{})
	asked := make(chan struct{})
	host := &agenttest.Host{Answer: func(ctx context.Context, _ agent.Question) (agent.Answer, error) {
		close(asked)
		<-come // the answer comes after the question was withdrawn
		return agent.Answer{Approved: true}, nil
	}}
	var late line
	r, err := agenttest.Converse(t.Context(), t, agent.Claude{}, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		p.Say(canUse("q", "Bash", obj{"command": "make"}))
		<-asked
		p.Say(obj{"type": "control_cancel_request", "request_id": "q"})
		p.Say(canUse("r", "Write", obj{"file_path": "/work/x"}))
		answer(p, "r") // so the withdrawal was read
		close(come)
		p.Say(result(nil))
		late = p.Hear()
	})
	if err != nil || r.Failure != nil || late != nil {
		t.Errorf("result %+v, %v; said afterwards: %v", r, err, late)
	}
}

func TestClaude_IsInterruptedByItsOwnMeans(t *testing.T) {
	stop := errors.New("cancelled")
	for name, c := range map[string]struct {
		play func(*peer, context.CancelCauseFunc)
		most time.Duration
	}{
		"while the model thinks": {func(p *peer, cancel context.CancelCauseFunc) {
			greet(p)
			cancel(stop)
			interruption(p)
			p.Say(result(obj{"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming"}))
			p.Wait()
		}, time.Second},
		"while it asks": {func(p *peer, cancel context.CancelCauseFunc) {
			greet(p)
			p.Say(canUse("q", "Bash", obj{"command": "make"}))
			time.Sleep(time.Minute)
			cancel(stop)
			interruption(p)
			p.Say(obj{"type": "control_cancel_request", "request_id": "q"})
			p.Say(canUse("late", "Bash", obj{"command": "make"}))
			if got := answer(p, "late"); got.Text("response", "response", "behavior") != "deny" {
				t.Errorf("answered %v", got)
			}
			p.Say(result(obj{"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_tools"}))
			p.Wait()
		}, 61 * time.Second},
		"in vain": {func(p *peer, cancel context.CancelCauseFunc) {
			greet(p)
			cancel(stop)
			p.Wait()
		}, 5 * time.Second},
		"before it has started": {func(p *peer, cancel context.CancelCauseFunc) {
			cancel(stop)
			p.Wait()
		}, 5 * time.Second},
		"and ends": {func(p *peer, cancel context.CancelCauseFunc) {
			greet(p)
			cancel(stop)
			interruption(p)
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				job := claudeJob("/work")
				job.Grace = 5 * time.Second
				var took time.Duration
				r, err := agenttest.Converse(ctx, t, timed{agent.Claude{}, &took, time.Now()}, job, &agenttest.Host{Answer: agenttest.Silent}, func(p *peer) { c.play(p, cancel) })
				if !errors.Is(err, stop) || r.Failure != nil || took > c.most {
					t.Errorf("result %+v, %v, after %v", r, err, took)
				}
			})
		})
	}
}

func interruption(p *peer) {
	p.HearUntil(func(l line) bool { return l.Text("request", "subtype") == "interrupt" })
}

func TestClaude_ParksAQuestionNobodyAnswers(t *testing.T) {
	var told line
	r, err := heldClaude(t, claudeJob("/work"), &agenttest.Host{Answer: agenttest.Parks}, func(p *peer) {
		greet(p)
		p.Say(canUse("q", "Bash", obj{"command": "make"}))
		told = answer(p, "q")
		interruption(p)
		p.Say(result(obj{"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_tools"}))
		p.Wait()
	})
	if !errors.Is(err, agent.ErrParked) || r.Failure != nil {
		t.Errorf("result %+v, %v", r, err)
	}
	if told.Text("response", "response", "behavior") != "deny" || !strings.Contains(told.Text("response", "response", "message"), "Ask again") {
		t.Errorf("the agent got %v", told)
	}
}

func TestClaude_WhatIsProgress(t *testing.T) {
	host := &agenttest.Host{}
	_, err := heldClaude(t, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		sync := func(id string) int {
			p.Say(obj{"type": "control_request", "request_id": id, "request": obj{"subtype": "x"}})
			answer(p, id)
			return host.Seen().Alive
		}
		before := sync("one")
		p.Say(
			obj{"type": "system", "subtype": "api_retry", "attempt": 3}, obj{"type": "keep_alive"}, obj{"type": "tool_progress", "elapsed_time_seconds": 30},
			obj{"type": "stream_event", "event": obj{"type": "ping"}}, obj{"type": "rate_limit_event", "rate_limit_info": obj{"status": "allowed"}},
		)
		if after := sync("two"); after != before+1 { // the request itself is output
			t.Errorf("%d signs of life for none", after-before-1)
		}
		p.Say(obj{"type": "stream_event", "event": obj{"type": "content_block_delta"}})
		if after := sync("three"); after != before+3 {
			t.Errorf("%d signs of life in all", after-before)
		}
		p.Say(result(nil))
		p.Wait()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestClaude_PlansAreToldAsTheyGrow(t *testing.T) {
	host := &agenttest.Host{}
	created := func(id, task string) obj {
		m := returns(id, "ok", false)
		m["tool_use_result"] = obj{"task": obj{"id": task}}
		return m
	}
	_, err := heldClaude(t, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		p.Say(
			calls("a", "TodoWrite", obj{"todos": list{obj{"content": "one", "status": "completed"}, obj{"content": "two", "status": "in_progress"}, obj{"content": "three", "status": "pending"}}}),
			calls("b", "TodoWrite", obj{"todos": list{}}),
			calls("c", "TaskCreate", obj{"subject": "dig\nhere"}), created("c", "1"),
			calls("d", "TaskCreate", obj{"subject": "fill"}), created("d", "2"),
			calls("e", "TaskUpdate", obj{"taskId": "1", "status": "completed"}), returns("e", "ok", false),
			calls("f", "TaskUpdate", obj{"taskId": "9", "status": "completed"}), returns("f", "none", true),
			calls("g", "TaskUpdate", obj{"taskId": "1", "status": "deleted"}), returns("g", "ok", false),
			result(nil),
		)
		p.Wait()
	})
	want := "- [x] one\n- [ ] two (in progress)\n- [ ] three\n||- [ ] dig here\n|- [ ] dig here\n- [ ] fill\n|- [x] dig here\n- [ ] fill\n|- [ ] fill\n"
	if got := strings.Join(host.Seen().Plans, "|"); err != nil || got != want {
		t.Errorf("plans %q, %v; want %q", got, err, want)
	}
}

func TestClaude_RefusalsOfTheProgramAreShown(t *testing.T) {
	host := &agenttest.Host{}
	_, err := heldClaude(t, claudeJob("/work"), host, func(p *peer) {
		greet(p)
		p.Say(
			obj{"type": "system", "subtype": "permission_denied", "tool_name": "Read", "tool_use_id": "a", "decision_reason": "a rule"},
			result(obj{"permission_denials": list{
				obj{"tool_name": "Read", "tool_use_id": "a"}, obj{"tool_name": "Bash", "tool_use_id": "b", "tool_input": obj{"command": "make"}}, obj{"tool_name": "Read", "tool_use_id": "a"},
			}}),
		)
		p.Wait()
	})
	seen := host.Seen()
	want := []agenttest.Denial{
		{Action: agent.Action{Area: agent.SideEffects, What: "a rule", Tool: "Read"}, Ruling: agent.Deny},
		{Action: agent.Action{Area: agent.Shell, What: "make", Tool: "Bash"}, Ruling: agent.Deny},
	}
	if err != nil || !slices.Equal(seen.Denied, want) {
		t.Errorf("denied %+v, %v", seen.Denied, err)
	}
	if got := seen.Transcript(api.ItemTurnEnd); got != "turn_end: 3 tool calls of this turn were refused: Read, Bash.\n" {
		t.Errorf("turn's end %q", got)
	}
}
