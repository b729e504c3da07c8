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

func acpJob() agent.Job {
	return agent.Job{Executable: []string{"/opt/robot", "--acp"}, Dir: "/work", Turn: "do it", System: "Be kind.", Env: []string{"PATH=/nowhere"}}
}

// can are the abilities of a peer that keeps its conversations.
var can = obj{"loadSession": true, "sessionCapabilities": obj{"resume": obj{}}}

// greetACP plays the beginning up to the first prompt, and returns how the session was opened.
func greetACP(p *peer, abilities obj) line {
	p.Say(replies(method(p, "initialize"), obj{"protocolVersion": 1, "agentCapabilities": abilities}))
	open := p.HearUntil(func(l line) bool { return strings.HasPrefix(l.Text("method"), "session/") })
	p.Say(replies(open, obj{"sessionId": "s1"}))
	return open
}

// prompted takes the next prompt.
func prompted(p *peer) line { return method(p, "session/prompt") }

func acpTold(update obj) obj {
	return obj{"jsonrpc": "2.0", "method": "session/update", "params": obj{"sessionId": "s1", "update": update}}
}

func acpSays(text string) obj {
	return acpTold(obj{"sessionUpdate": "agent_message_chunk", "content": obj{"type": "text", "text": text}})
}

func acpActs(id string, fields obj) obj {
	out := obj{"sessionUpdate": "tool_call_update", "toolCallId": id}
	for name, value := range fields {
		out[name] = value
	}
	return acpTold(out)
}

func acpAsks(id any, call obj, options ...string) obj {
	if options == nil {
		options = []string{"allow_always", "allow_once", "reject_always", "reject_once"}
	}
	var all list
	for _, kind := range options {
		all = append(all, obj{"optionId": "o-" + kind, "kind": kind, "name": kind})
	}
	return obj{"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": obj{"sessionId": "s1", "toolCall": call, "options": all}}
}

func ends(prompt line, reason string) obj { return replies(prompt, obj{"stopReason": reason}) }

// acpAnswer waits for what the adapter answers to a request, in short.
func acpAnswer(p *peer, id any) string {
	l := p.HearUntil(func(l line) bool { return reflect.DeepEqual(l["id"], id) && l["method"] == nil })
	switch {
	case l == nil:
		return "nothing"
	case l["error"] != nil:
		return "error: " + l.Text("error", "message")
	case l.Text("result", "outcome", "outcome") == "selected":
		return l.Text("result", "outcome", "optionId")
	}
	return l.Text("result", "outcome", "outcome") + l.Text("result", "action")
}

func promptText(l line) string {
	parts, _ := l.At("params", "prompt").(list)
	if len(parts) != 1 {
		return ""
	}
	return line(parts[0].(obj)).Text("text")
}

// heldACP plays a conversation in a synctest bubble and returns how it went.
func heldACP(t *testing.T, job agent.Job, host *agenttest.Host, play func(*peer)) (agent.Result, error) {
	t.Helper()
	var r agent.Result
	var err error
	synctest.Test(t, func(t *testing.T) {
		r, err = agenttest.Converse(t.Context(), t, agent.ACP{}, job, host, play)
	})
	return r, err
}

func TestACP_ATurnBecomesATranscript(t *testing.T) {
	host := &agenttest.Host{Turns: []string{"/and now this"}}
	var open, first, second line
	r, err := heldACP(t, acpJob(), host, func(p *peer) {
		open = greetACP(p, obj{})
		first = prompted(p)
		p.Say(
			acpTold(obj{"sessionUpdate": "available_commands_update", "availableCommands": list{}}), acpTold(obj{"sessionUpdate": "of_a_day_to_come", "x": 1}),
			acpTold(obj{"sessionUpdate": "agent_thought_chunk", "content": obj{"type": "text", "text": "hm"}}),
			acpSays("I "), acpSays("look."),
			acpTold(obj{"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "bash", "kind": "execute", "status": "pending", "rawInput": obj{"cwd": "/work"}}),
			acpActs("c1", obj{"status": "in_progress", "title": "ls -a", "rawInput": obj{"command": "ls -a"}}),
			acpActs("c1", obj{"status": "completed", "content": list{obj{"type": "content", "content": obj{"type": "text", "text": "a\nb"}}}, "rawOutput": obj{"output": "a\nb", "metadata": obj{"exit": 0}}}),
			acpActs("c1", obj{"status": "failed"}), // it is over
			acpTold(obj{"sessionUpdate": "tool_call", "toolCallId": "c2", "title": "false", "kind": "execute", "status": "in_progress", "rawInput": obj{"command": list{"bash", "-lc", "exit 3"}}}),
			acpActs("c2", obj{"status": "completed", "rawOutput": obj{"exitCode": 3, "output": "no"}}),
			acpTold(obj{"sessionUpdate": "tool_call", "toolCallId": "c3", "title": "Write x", "kind": "edit", "status": "completed", "content": list{obj{"type": "diff", "path": "/work/x", "oldText": "one\n", "newText": "two\n"}}}),
			acpActs("c4", obj{"status": "in_progress", "title": "fetch", "kind": "fetch", "rawInput": obj{"url": "https://example.com"}}), // never ends
			acpTold(obj{"sessionUpdate": "plan", "entries": list{obj{"content": "one", "status": "completed"}, obj{"content": "two", "status": "in_progress"}, obj{"content": "three", "status": "pending"}}}),
			acpTold(obj{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "todo", "kind": "other", "status": "completed", "rawInput": obj{"todos": list{obj{"content": "other", "status": "pending"}}}}),
			acpTold(obj{"sessionUpdate": "usage_update", "used": 5, "size": 100, "cost": obj{"amount": 0.25, "currency": "USD"}}),
			acpTold(obj{"sessionUpdate": "agent_message_chunk", "messageId": "m2", "content": obj{"type": "text", "text": "Half."}}),
			replies(first, obj{"stopReason": "end_turn", "usage": obj{"inputTokens": 10, "cachedReadTokens": 5, "outputTokens": 3, "thoughtTokens": 2, "totalTokens": 20}}),
		)
		second = prompted(p)
		p.Say(acpSays("Done."), replies(second, obj{"stopReason": "end_turn", "_meta": obj{"quota": obj{"token_count": obj{"input_tokens": 7, "output_tokens": 1}}}}))
		p.Wait()
	})
	if err != nil || r.Failure != nil || r.Text != "Done." || len(r.Running) > 0 {
		t.Fatalf("result %+v (%+v), %v", r, r.Failure, err)
	}
	if open.Text("method") != "session/new" || open.Text("params", "cwd") != "/work" || !reflect.DeepEqual(open.At("params", "mcpServers"), list{}) {
		t.Errorf("opened by %v", open)
	}
	if promptText(first) != "Be kind.\n\ndo it" || promptText(second) != "To you:\n/and now this" {
		t.Errorf("prompts %q, %q", promptText(first), promptText(second))
	}
	todo := "tool_call todo: {\n\t\"todos\": [\n\t\t{\n\t\t\t\"content\": \"other\",\n\t\t\t\"status\": \"pending\"\n\t\t}\n\t]\n}\ntool_result todo\n"
	want := "thinking: hm\ntext: I look.\ntool_call bash: ls -a\ntool_result bash: a\nb\ntool_call false: exit 3\ntool_result false failed: no\n" +
		"tool_call edit: Write x\nchange /work/x\n-one\n+two\ntool_result edit: change /work/x\n-one\n+two\n" +
		"tool_call fetch: {\n\t\"url\": \"https://example.com\"\n}\n" + todo + "text: Half.\ntool_result fetch failed: (the turn ended before this did)\nturn_end\ntext: Done.\nturn_end\n"
	seen := host.Seen()
	if got := seen.Transcript(); got != want {
		t.Errorf("transcript\n%s\nwant\n%s", got, want)
	}
	if !slices.Equal(seen.Began, []string{"s1"}) || !slices.Equal(seen.Plans, []string{"- [x] one\n- [ ] two (in progress)\n- [ ] three\n", "- [ ] other\n"}) {
		t.Errorf("began %v, plans %q", seen.Began, seen.Plans)
	}
	if r.Usage != (api.Usage{InputTokens: 22, OutputTokens: 6, CostMicros: 250_000, Turns: 2}) || seen.Usages[len(seen.Usages)-1] != r.Usage {
		t.Errorf("usage %+v", r.Usage)
	}
}

// What the program is allowed goes by the rules, and by people where they leave it open; what is
// refused it is told with the reason, when its turn has ended.
func TestACP_PermissionsFollowThePolicy(t *testing.T) {
	job := acpJob()
	job.Hidden = []string{"/secret"}
	job.Policy.Rules = []agent.Rule{
		{Area: agent.Shell, Pattern: "make *", Ruling: agent.Allow},
		{Area: agent.Shell, Pattern: "rm *", Ruling: agent.Deny},
		{Area: agent.Shell, Pattern: "git status", Ruling: agent.Allow},
		{Area: agent.Network, Pattern: "https://fine.example*", Ruling: agent.Allow},
		{Area: agent.Network, Pattern: "https://evil.example*", Ruling: agent.Deny},
	}
	asked := map[string]string{}
	host := &agenttest.Host{Answer: func(_ context.Context, q agent.Question) (agent.Answer, error) {
		asked[q.Text] = string(q.Action.Area) + " " + q.Action.What
		return agent.Answer{Approved: strings.Contains(q.Text, "good"), Text: map[bool]string{false: "not on Sundays"}[strings.Contains(q.Text, "good")]}, nil
	}}
	run := func(command any) obj {
		return obj{"toolCallId": "c", "kind": "execute", "title": "git status", "rawInput": obj{"command": command}}
	}
	cases := []struct {
		call obj
		want string
		is   string // of what people are asked
	}{
		{run("make test"), "o-allow_once", ""},
		{run("make test; rm -rf x"), "o-reject_once", ""},
		{run("touch good"), "o-allow_once", "shell touch good"},
		{run("touch bad"), "o-reject_once", "shell touch bad"},
		{run(list{"bash", "-c", "rm x"}), "o-reject_once", ""},
		{obj{"toolCallId": "two", "kind": "execute", "title": "x", "rawInput": obj{"command": "make test", "cmd": "rm x"}}, "o-reject_once", ""}, // which one is run, the program knows
		{obj{"toolCallId": "2", "kind": "execute", "title": "x", "rawInput": obj{"command": list{"make", "test"}, "script": "rm x"}}, "o-reject_once", ""},
		{obj{"toolCallId": "3", "kind": "execute", "title": "x", "rawInput": obj{"command": "rm", "args": list{"x"}}}, "o-reject_once", ""},
		{obj{"toolCallId": "f2", "kind": "fetch", "title": "f", "rawInput": obj{"url": "https://fine.example", "uri": "https://evil.example"}}, "o-reject_once", ""},
		{obj{"toolCallId": "t", "kind": "execute", "title": "git status"}, "o-reject_once", "shell git status"}, // a title is no command: no rule for some of them allows it
		{obj{"toolCallId": "e1", "kind": "edit", "title": "x", "locations": list{obj{"path": "/work/x"}}}, "o-allow_once", ""},
		{obj{"toolCallId": "e2", "kind": "edit", "title": "git", "content": list{obj{"type": "diff", "path": "/work/.git/config", "newText": "x"}}}, "o-reject_once", "filesystem ./.git/config"},
		{obj{"toolCallId": "e3", "kind": "edit", "title": "nowhere"}, "o-reject_once", "filesystem /"},
		{obj{"toolCallId": "r1", "kind": "read", "title": "r", "rawInput": obj{"file_path": "/work/x"}}, "o-allow_once", ""},
		{obj{"toolCallId": "r2", "kind": "read", "title": "r", "rawInput": obj{"filePath": "/secret/token"}}, "o-reject_once", ""},
		{obj{"toolCallId": "f", "kind": "fetch", "title": "f", "rawInput": obj{"url": "https://good.example"}}, "o-allow_once", "network https://good.example"},
		{obj{"toolCallId": "m", "title": "other_tool", "rawInput": obj{"a": 1}}, "o-reject_once", `side_effects other_tool {"a":1}`},
		{obj{"toolCallId": "th", "kind": "think", "title": "think"}, "o-allow_once", ""},
	}
	got := make([]string, len(cases))
	var reasons string
	_, err := heldACP(t, job, host, func(p *peer) {
		greetACP(p, obj{})
		prompt := prompted(p)
		for i, c := range cases {
			p.Say(acpAsks(i, c.call))
			got[i] = acpAnswer(p, float64(i))
		}
		p.Say(ends(prompt, "end_turn"))
		again := prompted(p)
		reasons = promptText(again)
		p.Say(ends(again, "end_turn"))
		p.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if got[i] != c.want {
			t.Errorf("%v: %s, not %s", c.call, got[i], c.want)
		}
		var is []string
		for _, what := range asked {
			is = append(is, what)
		}
		if c.is != "" && !slices.Contains(is, c.is) {
			t.Errorf("%v: nobody was asked about %q of %q", c.call, c.is, is)
		}
	}
	if len(host.Seen().Denied) != 7 || strings.Count(reasons, "not on Sundays") != 5 || strings.Count(reasons, "The policy of this worker does not allow it") != 7 {
		t.Errorf("denied %+v; told %s", host.Seen().Denied, reasons)
	}
}

func TestACP_AnswersThatAreOffered(t *testing.T) {
	for name, c := range map[string]struct {
		rule    agent.Ruling
		options []string
		want    string
	}{
		"only for good":         {agent.Allow, []string{"allow_always", "reject_once"}, "cancelled"},
		"no refusal":            {agent.Deny, []string{"allow_once"}, "cancelled"},
		"only a lasting one":    {agent.Deny, []string{"allow_once", "reject_always"}, "cancelled"},
		"approved, for good":    {agent.Ask, []string{"allow_always", "reject_once"}, "cancelled"},
		"approved":              {agent.Ask, []string{"allow_always", "allow_once"}, "o-allow_once"},
		"of kinds of their own": {agent.Allow, []string{"maybe"}, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			job := acpJob()
			job.Policy.Rules = []agent.Rule{{Area: agent.Shell, Ruling: c.rule}}
			var got string
			_, err := heldACP(t, job, &agenttest.Host{Answer: agenttest.Approves}, func(p *peer) {
				greetACP(p, obj{})
				prompt := prompted(p)
				p.Say(acpAsks("q", obj{"toolCallId": "c", "kind": "execute", "rawInput": obj{"command": "x"}}, c.options...))
				got = acpAnswer(p, "q")
				p.Say(ends(prompt, "end_turn"))
				if c.rule == agent.Deny {
					p.Say(ends(prompted(p), "end_turn"))
				}
				p.Wait()
			})
			if err != nil || got != c.want {
				t.Errorf("answered %s, %v", got, err)
			}
		})
	}
}

func TestACP_DenyStopEndsTheSession(t *testing.T) {
	job := acpJob()
	job.Policy.Rules = []agent.Rule{{Area: agent.Shell, Pattern: "rm *", Ruling: agent.DenyStop}}
	var told string
	r, err := heldACP(t, job, &agenttest.Host{}, func(p *peer) {
		greetACP(p, obj{})
		prompt := prompted(p)
		p.Say(acpAsks(1, obj{"toolCallId": "c", "kind": "execute", "rawInput": obj{"command": "rm x"}}))
		told = acpAnswer(p, 1.0)
		method(p, "session/cancel")
		p.Say(ends(prompt, "cancelled"))
		p.Wait()
	})
	if err != nil || r.Failure == nil || r.Failure.Code != agent.CodePolicy || told != "o-reject_once" {
		t.Errorf("told %s; %+v (%+v), %v", told, r, r.Failure, err)
	}
}

// Who cancels has the program's turn ended by its own means; what it asks then nobody decides.
func TestACP_CancelledInMidCommand(t *testing.T) {
	var first, late string
	host := &agenttest.Host{Answer: agenttest.Silent}
	stop := errors.New("cancelled")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r, err := agenttest.Converse(ctx, t, agent.ACP{}, acpJob(), host, func(p *peer) {
			greetACP(p, obj{})
			prompt := prompted(p)
			p.Say(acpActs("c", obj{"status": "in_progress", "kind": "execute", "rawInput": obj{"command": "sleep 99"}}), acpAsks(1, obj{"toolCallId": "c", "kind": "execute", "rawInput": obj{"command": "x"}}))
			time.Sleep(time.Second)
			cancel(stop)
			first = acpAnswer(p, 1.0)
			method(p, "session/cancel")
			p.Say(acpAsks(2, obj{"toolCallId": "d", "kind": "execute", "rawInput": obj{"command": "y"}}))
			late = acpAnswer(p, 2.0)
			p.Say(ends(prompt, "cancelled"))
			p.Wait()
		})
		if !errors.Is(err, stop) || r.Failure != nil || first != "cancelled" || late != "cancelled" {
			t.Errorf("answered %s, %s; %+v, %v", first, late, r, err)
		}
	})
	if got := host.Seen().Transcript(api.ItemToolResult); got != "tool_result execute failed: (the turn ended before this did)\n" {
		t.Errorf("results %q", got)
	}
}

func TestACP_ACancelThatIsIgnored(t *testing.T) {
	stop := errors.New("cancelled")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		_, err := agenttest.Converse(ctx, t, agent.ACP{}, acpJob(), &agenttest.Host{}, func(p *peer) {
			greetACP(p, obj{})
			prompted(p)
			cancel(stop)
			p.Wait()
		})
		if took := time.Since(begin); !errors.Is(err, stop) || took != 10*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestACP_Parked(t *testing.T) {
	var told string
	_, err := heldACP(t, acpJob(), &agenttest.Host{Answer: agenttest.Parks}, func(p *peer) {
		greetACP(p, obj{})
		prompt := prompted(p)
		p.Say(acpAsks(1, obj{"toolCallId": "c", "kind": "execute", "rawInput": obj{"command": "x"}}))
		told = acpAnswer(p, 1.0)
		method(p, "session/cancel")
		p.Say(ends(prompt, "cancelled"))
		p.Wait()
	})
	if !errors.Is(err, agent.ErrParked) || told != "cancelled" {
		t.Errorf("told %s; %v", told, err)
	}
}

// A conversation that is resumed isn't doubled: by a program that repeats it before its answer or
// after, and by one that doesn't.
func TestACP_Resumed(t *testing.T) {
	repeated := []any{
		acpTold(obj{"sessionUpdate": "user_message_chunk", "content": obj{"type": "text", "text": "old"}}), acpSays("old words"),
		acpTold(obj{"sessionUpdate": "tool_call", "toolCallId": "c1", "status": "completed", "title": "old"}),
	}
	for name, c := range map[string]struct {
		can    obj
		method string
	}{
		"without repetition": {can, "session/resume"},
		"repeated":           {obj{"loadSession": true}, "session/load"},
	} {
		t.Run(name, func(t *testing.T) {
			job := acpJob()
			job.Session, job.Used = "s1", api.Usage{InputTokens: 100, OutputTokens: 10, CostMicros: 50, Turns: 7}
			host := &agenttest.Host{}
			var open line
			r, err := heldACP(t, job, host, func(p *peer) {
				p.Say(replies(method(p, "initialize"), obj{"protocolVersion": 1, "agentCapabilities": c.can}))
				open = p.HearUntil(func(l line) bool { return strings.HasPrefix(l.Text("method"), "session/") })
				p.Say(repeated...)
				p.Say(replies(open, obj{}))
				if c.method == "session/load" {
					time.Sleep(400 * time.Millisecond)
					p.Say(repeated...)
				}
				prompt := prompted(p)
				p.Say(acpSays("new words"), acpTold(obj{"sessionUpdate": "usage_update", "cost": obj{"amount": 0.00001, "currency": "USD"}}),
					replies(prompt, obj{"stopReason": "end_turn", "usage": obj{"inputTokens": 5, "outputTokens": 1}}))
				p.Wait()
			})
			if err != nil || r.Failure != nil {
				t.Fatalf("%+v, %v", r.Failure, err)
			}
			if open.Text("method") != c.method || open.Text("params", "sessionId") != "s1" {
				t.Errorf("opened by %v", open)
			}
			if got := host.Seen().Transcript(); got != "text: new words\nturn_end\n" && (c.method == "session/load" || !strings.HasSuffix(got, "text: new words\nturn_end\n")) {
				t.Errorf("transcript\n%s", got)
			}
			if r.Usage != (api.Usage{InputTokens: 105, OutputTokens: 11, CostMicros: 60, Turns: 1}) {
				t.Errorf("usage %+v", r.Usage)
			}
		})
	}
}

func TestACP_ASessionThatIsGone(t *testing.T) {
	for name, abilities := range map[string]obj{"can't resume": {}, "doesn't know it": can} {
		t.Run(name, func(t *testing.T) {
			job := acpJob()
			job.Session = "s1"
			r, err := heldACP(t, job, &agenttest.Host{}, func(p *peer) {
				p.Say(replies(method(p, "initialize"), obj{"protocolVersion": 1, "agentCapabilities": abilities}))
				if len(abilities) > 0 {
					p.Say(obj{"id": method(p, "session/resume")["id"], "error": obj{"code": -32603, "message": "Internal error: service failure"}})
				}
				p.Wait()
			})
			if err != nil || !r.Unknown || r.Failure == nil {
				t.Errorf("%+v (%+v), %v", r, r.Failure, err)
			}
		})
	}
}

func TestACP_ModelAndMode(t *testing.T) {
	newer := obj{"sessionId": "s1", "configOptions": list{
		obj{"id": "m", "category": "model", "currentValue": "a", "options": list{obj{"value": "a"}, obj{"name": "more", "options": list{obj{"value": "b"}}}}},
		obj{"id": "mode", "category": "mode", "currentValue": "yolo", "options": list{obj{"value": "default"}, obj{"value": "yolo"}}},
	}}
	older := obj{
		"sessionId": "s1", "models": obj{"currentModelId": "a", "availableModels": list{obj{"modelId": "a"}, obj{"modelId": "b"}}},
		"modes": obj{"currentModeId": "yolo", "availableModes": list{obj{"id": "default"}, obj{"id": "yolo"}}},
	}
	for name, c := range map[string]struct {
		session     obj
		model, want string
	}{
		"newer":    {newer, "b", "session/set_config_option mode default, session/set_config_option m b"},
		"older":    {older, "b", "session/set_mode  default, session/set_model  b"},
		"as it is": {newer, "a", "session/set_config_option mode default"},
		"not had":  {newer, "c", `does not offer the model "c" here. It offers: a, b.`},
		"none":     {obj{"sessionId": "s1"}, "b", "offers none to choose from"},
	} {
		t.Run(name, func(t *testing.T) {
			job := acpJob()
			job.Model = c.model
			var set []string
			r, err := heldACP(t, job, &agenttest.Host{}, func(p *peer) {
				p.Say(replies(method(p, "initialize"), obj{"protocolVersion": 1}))
				p.Say(replies(method(p, "session/new"), c.session))
				for l := p.Hear(); l != nil; l = p.Hear() {
					if l.Text("method") == "session/prompt" {
						p.Say(ends(l, "end_turn"))
						continue
					}
					if strings.HasPrefix(l.Text("method"), "session/set") {
						set = append(set, l.Text("method")+" "+l.Text("params", "configId")+" "+l.Text("params", "value")+l.Text("params", "modeId")+l.Text("params", "modelId"))
						p.Say(replies(l, obj{}))
					}
				}
			})
			got := strings.Join(set, ", ")
			if r.Failure != nil {
				got = r.Failure.Message
			}
			if err != nil || !strings.Contains(got, c.want) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestACP_AsksPeopleByForm(t *testing.T) {
	form := func(fields obj) obj {
		return obj{"id": 1, "method": "elicitation/create", "params": obj{"sessionId": "s1", "mode": "form", "message": "Which?", "requestedSchema": obj{"type": "object", "properties": fields}}}
	}
	for name, c := range map[string]struct {
		say    obj
		alone  bool
		answer string
	}{
		"a choice":       {form(obj{"colour": obj{"type": "string", "enum": list{"red", "blue"}}}), false, "accept"},
		"several":        {form(obj{"colour": obj{"type": "array", "items": obj{"anyOf": list{obj{"const": "red", "title": "Like fire"}, obj{"const": "blue"}}}}}), false, "accept"},
		"any texts":      {form(obj{"colour": obj{"type": "array", "items": obj{"type": "string"}}}), false, "decline"},
		"nobody there":   {form(obj{"colour": obj{"type": "string"}}), true, "decline"},
		"not only texts": {form(obj{"n": obj{"type": "number"}}), false, "decline"},
		"no fields":      {form(obj{}), false, "decline"},
		"a web page":     {obj{"id": 1, "method": "elicitation/create", "params": obj{"mode": "url", "url": "https://example.com"}}, false, "cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			job := acpJob()
			job.Policy.Unattended = c.alone
			host := &agenttest.Host{Answer: agenttest.Approves}
			var reply line
			_, err := heldACP(t, job, host, func(p *peer) {
				greetACP(p, obj{})
				prompt := prompted(p)
				p.Say(c.say)
				reply = p.HearUntil(func(l line) bool { return l["id"] == 1.0 })
				p.Say(ends(prompt, "end_turn"))
				p.Wait()
			})
			if err != nil || reply.Text("result", "action") != c.answer || c.answer == "accept" && !slices.Contains([]string{`"blue"`, `["blue"]`}, text(reply.At("result", "content", "colour"))) {
				t.Errorf("answered %v, %v", reply, err)
			}
		})
	}
}

func TestACP_FailuresOfTurns(t *testing.T) {
	refuses := func(code int, message string) func(line) obj {
		return func(l line) obj { return obj{"id": l["id"], "error": obj{"code": code, "message": message}} }
	}
	stops := func(reason string) func(line) obj { return func(l line) obj { return ends(l, reason) } }
	at := time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		end   func(line) obj
		code  string
		again bool
		reset time.Time
	}{
		"key refused":       {refuses(-32603, "Internal error: invalid x-api-key"), agent.CodeNotSignedIn, false, time.Time{}},
		"signed out":        {refuses(-32000, "no"), agent.CodeNotSignedIn, false, time.Time{}},
		"limit":             {refuses(-32603, "429 rate limit, try again in 2 hours"), agent.CodeUsageLimit, true, at},
		"out of credit":     {refuses(-32603, "Your credit balance is too low"), agent.CodeUsageLimit, false, time.Time{}},
		"oops":              {refuses(-32603, "Internal error: overloaded"), agent.CodeCrashed, true, time.Time{}},
		"of its provider":   {refuses(500, `{"error":{"code":500,"message":"oops","status":"INTERNAL"}}`), agent.CodeCrashed, true, time.Time{}},
		"its provider's no": {refuses(401, `{"error":{"code":401,"message":"API key not valid.","status":"UNAUTHENTICATED"}}`), agent.CodeNotSignedIn, false, time.Time{}},
		"bad parameters":    {refuses(-32602, "what?"), agent.CodeCrashed, false, time.Time{}},
		"tokens":            {stops("max_tokens"), agent.CodeCrashed, false, time.Time{}},
		"rounds":            {stops("max_turn_requests"), agent.CodeTurnTimeout, false, time.Time{}},
		"the model's no":    {stops("refusal"), agent.CodeCrashed, false, time.Time{}},
		"by itself":         {stops("cancelled"), agent.CodeCrashed, true, time.Time{}},
		"of days to come":   {stops("who_knows"), agent.CodeCrashed, true, time.Time{}},
		"no reason":         {stops(""), agent.CodeCrashed, true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := heldACP(t, acpJob(), &agenttest.Host{}, func(p *peer) {
				greetACP(p, obj{})
				p.Say(c.end(prompted(p)))
				p.Wait()
			})
			if err != nil || r.Failure == nil || r.Failure.Code != c.code || r.Retriable != c.again || !r.ResetAt.Equal(c.reset) {
				t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
			}
		})
	}
}

// A program that goes on and on is ended, though the protocol doesn't count its rounds.
func TestACP_RoundsAreBounded(t *testing.T) {
	job := acpJob()
	job.MaxTurns = 3
	host := &agenttest.Host{}
	r, err := heldACP(t, job, host, func(p *peer) {
		greetACP(p, obj{})
		prompted(p)
		for range 50 {
			p.Say(acpTold(obj{"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress"}), acpActs("c", obj{"status": "failed"}))
		}
		p.Wait()
	})
	if err != nil || r.Failure == nil || r.Failure.Code != agent.CodeTurnTimeout {
		t.Errorf("%+v, %v", r.Failure, err)
	}
	if got := strings.Count(host.Seen().Transcript(), "tool_call "); got != 4 { // the last one shows that it goes on
		t.Errorf("%d rounds were shown", got)
	}
}

func TestACP_BadPeers(t *testing.T) {
	long := strings.Repeat("x", 10<<20-400)
	for name, c := range map[string]struct {
		play func(*peer)
		part string // of the failure's message; "" = it ends well
		most time.Duration
	}{
		"says nothing at all": {func(p *peer) { p.Wait() }, "did not answer initialize in time", 121 * time.Second},
		"ends at once":        {func(*peer) {}, "without a result", time.Second},
		"another version":     {func(p *peer) { p.Say(replies(method(p, "initialize"), obj{"protocolVersion": 2})); p.Wait() }, "speaks version 2 of", time.Second},
		"no version":          {func(p *peer) { p.Say(replies(method(p, "initialize"), obj{})); p.Wait() }, "speaks version unknown", time.Second},
		"a version in words":  {func(p *peer) { p.Say(replies(method(p, "initialize"), obj{"protocolVersion": "2025-11-25"})); p.Wait() }, "speaks version", time.Second},
		"an answer in words":  {func(p *peer) { p.Say(replies(method(p, "initialize"), "hello")); p.Wait() }, "doesn't know", time.Second},
		"refuses to initialize": {func(p *peer) {
			p.Say(obj{"id": method(p, "initialize")["id"], "error": obj{"code": -32601, "message": "no such method"}})
			p.Wait()
		}, "refused initialize: no such", time.Second},
		"no answer to the session": {func(p *peer) { p.Say(replies(method(p, "initialize"), obj{"protocolVersion": 1})); p.Wait() }, "did not answer session/new", 121 * time.Second},
		"a session without id": {func(p *peer) {
			p.Say(replies(method(p, "initialize"), obj{"protocolVersion": 1}))
			p.Say(replies(method(p, "session/new"), obj{"sessionId": ""}))
			p.Wait()
		}, "can't be read", time.Second},
		"ends in a turn":               {func(p *peer) { greetACP(p, obj{}); prompted(p) }, "without a result", time.Second},
		"stops listening":              {func(p *peer) { p.Deaf(); time.Sleep(time.Hour) }, "does not listen", time.Minute},
		"a turn's end of another form": {func(p *peer) { greetACP(p, obj{}); p.Say(replies(prompted(p), list{3})); p.Wait() }, "can't be read", time.Second},
		"starts slowly": {func(p *peer) {
			time.Sleep(100 * time.Second)
			greetACP(p, obj{})
			p.Say(ends(prompted(p), "end_turn"))
			p.Wait()
		}, "", 101 * time.Second},
		"garbage between": {func(p *peer) {
			greetACP(p, obj{})
			prompt := prompted(p)
			p.Noise("Loaded cached credentials.\n\n{\"id\":\n[]\nnull\n\x00\xff\n{\"method\":7}\n{\"id\":999,\"result\":1}\n{\"id\":\"x\",\"result\":1}\n")
			p.Say(obj{"method": "session/update", "params": 3}, acpTold(obj{"sessionUpdate": 7}), acpActs("", obj{"status": "completed"}),
				acpTold(obj{"sessionUpdate": "tool_call", "toolCallId": "c", "status": "completed", "content": "x", "rawOutput": list{}, "locations": 3}), ends(prompt, "end_turn"))
			p.Wait()
		}, "", time.Second},
		"updates before the session": {func(p *peer) {
			p.Say(acpSays("early"), replies(method(p, "initialize"), obj{"protocolVersion": 1}), acpSays("early"))
			p.Say(replies(method(p, "session/new"), obj{"sessionId": "s1"}))
			p.Say(ends(prompted(p), "end_turn"))
			p.Wait()
		}, "", time.Second},
		"updates after the end": {func(p *peer) {
			greetACP(p, obj{})
			p.Say(ends(prompted(p), "end_turn"), acpSays("late"), acpActs("c", obj{"status": "completed"}), acpAsks(1, obj{"toolCallId": "c"}))
			p.Wait()
		}, "", time.Second},
		"an answer given twice": {func(p *peer) {
			greetACP(p, obj{})
			prompt := prompted(p)
			p.Say(ends(prompt, "end_turn"), ends(prompt, "refusal"))
			p.Wait()
		}, "", time.Second},
		"10 MB in a line": {func(p *peer) {
			greetACP(p, obj{})
			prompt := prompted(p)
			p.Say(acpSays(long), ends(prompt, "end_turn"))
			p.Wait()
		}, "", time.Second},
		"more in a line": {func(p *peer) {
			greetACP(p, obj{})
			prompt := prompted(p)
			p.Say(acpSays(long+long), ends(prompt, "end_turn"))
			p.Wait()
		}, "", time.Second},
		"no JSON in it": {func(p *peer) {
			greetACP(p, obj{})
			prompt := prompted(p)
			p.Noise(long + long + "\n")
			p.Say(ends(prompt, "end_turn"))
			p.Wait()
		}, "", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var took time.Duration
				host := &agenttest.Host{}
				r, err := agenttest.Converse(t.Context(), t, timed{agent.ACP{}, &took, time.Now()}, acpJob(), host, c.play)
				if err != nil {
					t.Fatal(err)
				}
				if c.part == "" && r.Failure != nil || c.part != "" && (r.Failure == nil || r.Failure.Code != agent.CodeCrashed || !strings.Contains(r.Failure.Message, c.part)) {
					t.Errorf("failure %+v", r.Failure)
				}
				if took > c.most {
					t.Errorf("took %v", took)
				}
				if got := host.Seen().Transcript(); strings.Contains(got, "early") || strings.Contains(got, "late") {
					t.Errorf("transcript\n%s", got)
				}
			})
		})
	}
}

// Every request is answered, also one that nobody here offers, knows or can read.
func TestACP_AnswersEveryRequest(t *testing.T) {
	var answers []string
	_, err := heldACP(t, acpJob(), &agenttest.Host{}, func(p *peer) {
		greetACP(p, obj{})
		prompt := prompted(p)
		for i, request := range []obj{
			{"method": "fs/read_text_file", "params": obj{"path": "/etc/passwd"}},
			{"method": "fs/write_text_file", "params": obj{"path": "/work/x", "content": "x"}},
			{"method": "terminal/create", "params": obj{"command": "id"}},
			{"method": "of/days/to/come"},
			{"method": list{}},
			{"method": "session/request_permission", "params": 3},
			{"method": "elicitation/create", "params": list{}},
		} {
			request["id"] = i + 1
			p.Say(request)
			answers = append(answers, acpAnswer(p, float64(i+1)))
		}
		p.Noise(`{"id":100,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"rawInput":{"command":"` + strings.Repeat("x", 11<<20) + "\"}}}}\n")
		answers = append(answers, acpAnswer(p, 100.0))
		p.Say(ends(prompt, "end_turn"))
		p.Wait()
	})
	unknown := "error: this request is unknown here: "
	want := []string{
		unknown + "fs/read_text_file", unknown + "fs/write_text_file", unknown + "terminal/create", unknown + "of/days/to/come", "error: this request can't be read",
		"error: the parameters can't be read", "cancel", "error: this request is too long to be judged: ask for less at once",
	}
	if err != nil || !slices.Equal(answers, want) {
		t.Errorf("answers %q, %v", answers, err)
	}
}

func TestACP_ToolsOfStint(t *testing.T) {
	job := acpJob()
	job.Tools = []string{"/opt/stint", "mcp", "--run"}
	job.Env = append(job.Env, "STINT_URL=http://127.0.0.1:1", "OTHER=x")
	job.Policy.Rules = []agent.Rule{{Area: agent.Workspace, Pattern: "delete_*", Ruling: agent.Deny}}
	var open line
	var got []string
	_, err := heldACP(t, job, &agenttest.Host{}, func(p *peer) {
		open = greetACP(p, obj{})
		prompt := prompted(p)
		for i, name := range []string{"stint_list_tasks", "stint_delete_task", "witness_act"} {
			p.Say(acpAsks(i, obj{"toolCallId": name, "title": name, "kind": "other", "rawInput": obj{}}))
			got = append(got, acpAnswer(p, float64(i)))
		}
		p.Say(ends(prompt, "end_turn"))
		p.Say(ends(prompted(p), "end_turn"))
		p.Wait()
	})
	want := list{obj{"name": "stint", "command": "/opt/stint", "args": list{"mcp", "--run"}, "env": list{
		obj{"name": "PATH", "value": "/nowhere"}, obj{"name": "STINT_URL", "value": "http://127.0.0.1:1"},
	}}}
	if err != nil || !reflect.DeepEqual(open.At("params", "mcpServers"), want) {
		t.Errorf("servers %v, %v", open.At("params", "mcpServers"), err)
	}
	if !slices.Equal(got, []string{"o-allow_once", "o-reject_once", "o-reject_once"}) {
		t.Errorf("answers %q", got)
	}
}

// opencode is set up to ask about everything, whatever its user's settings say, and gets the
// trusted text in its system prompt; a program that nobody knows is started as it is written.
func TestACP_Command(t *testing.T) {
	job := acpJob()
	job.Executable, job.StateDir = []string{"/opt/opencode"}, "/state"
	job.Env = append(job.Env, `OPENCODE_CONFIG_CONTENT={"model":"mine","instructions":["one.md"]}`)
	c, err := agent.ACP{}.Command(job)
	if err != nil || !slices.Equal(c.Argv, []string{"/opt/opencode", "acp"}) || len(c.Files) != 1 || len(c.Unheld) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	var file string
	for name, text := range c.Files {
		if file = name; text != job.System {
			t.Errorf("the trusted text is %q", text)
		}
	}
	if got := variableOf(c.Env, "OPENCODE_CONFIG_CONTENT"); got != `{"autoupdate":false,"instructions":["one.md","/state/`+file+`"],"model":"mine","share":"disabled"}` {
		t.Errorf("settings %s", got)
	}
	for _, tool := range []string{"*", "bash", "edit", "read", "webfetch"} {
		if !strings.Contains(variableOf(c.Env, "OPENCODE_PERMISSION"), `"`+tool+`":"ask"`) {
			t.Errorf("it doesn't ask about %s: %q", tool, c.Env)
		}
	}
	if variableOf(c.Env, "OPENCODE_DISABLE_PROJECT_CONFIG") != "1" {
		t.Errorf("it reads settings in the work folder: %q", c.Env)
	}
	job.Executable = []string{"/opt/robot", "--acp"}
	if c, err := (agent.ACP{}).Command(job); err != nil || !slices.Equal(c.Argv, job.Executable) || len(c.Env) > 0 || len(c.Files) > 0 || len(c.Unheld) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := (agent.ACP{}).Command(agent.Job{}); err == nil {
		t.Error("no program is started")
	}
}

func variableOf(env []string, name string) string {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
