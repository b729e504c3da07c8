package agent_test

import (
	"context"
	"encoding/json"
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

func codexJob(dir string) agent.Job {
	return agent.Job{Dir: dir, StateDir: "/nowhere/codex", Turn: "do it", System: "be kind", Env: []string{"PATH=/nowhere"}}
}

// method waits for a request or notification of the adapter.
func method(p *peer, name string) line {
	return p.HearUntil(func(l line) bool { return l.Text("method") == name })
}

func replies(request line, result any) obj { return obj{"id": request["id"], "result": result} }

func tells(name string, params obj) obj {
	params["threadId"] = "th"
	return obj{"method": name, "params": params, "emittedAtMs": 1}
}

// meet plays the beginning that every conversation has, and returns how the thread was
// started.
func meet(p *peer) line {
	p.Say(replies(method(p, "initialize"), obj{"userAgent": "x"}))
	start := p.HearUntil(func(l line) bool { return strings.HasPrefix(l.Text("method"), "thread/") })
	p.Say(replies(start, obj{"thread": obj{"id": "th"}}))
	takeTurn(p, "tu")
	return start
}

func takeTurn(p *peer, id string) line {
	turn := method(p, "turn/start")
	p.Say(replies(turn, obj{"turn": obj{"id": id, "status": "inProgress"}}), tells("turn/started", obj{"turn": obj{"id": id}}))
	return turn
}

func turnEnds(id, status string, e any) obj {
	return tells("turn/completed", obj{"turn": obj{"id": id, "status": status, "error": e}})
}

func itemStarts(i obj) obj { return tells("item/started", obj{"item": i}) }

func itemEnds(i obj) obj { return tells("item/completed", obj{"item": i}) }

// heldCodex plays a conversation in a synctest bubble and returns how it went.
func heldCodex(t *testing.T, job agent.Job, host *agenttest.Host, play func(*peer)) (agent.Result, error) {
	t.Helper()
	var r agent.Result
	var err error
	synctest.Test(t, func(t *testing.T) {
		r, err = agenttest.Converse(t.Context(), t, agent.Codex{}, job, host, play)
	})
	return r, err
}

func TestCodex_ATurnBecomesATranscript(t *testing.T) {
	host := &agenttest.Host{Turns: []string{"and now this"}}
	var start, second line
	r, err := heldCodex(t, codexJob("/work"), host, func(p *peer) {
		start = meet(p)
		command := obj{"type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'ls -a'", "status": "inProgress", "cwd": "/work"}
		p.Say(
			tells("something/new", obj{"x": list{1}}), tells("item/agentMessage/delta", obj{"delta": "I"}),
			itemEnds(obj{"type": "userMessage", "id": "u", "content": list{}}),
			itemEnds(obj{"type": "reasoning", "id": "r", "summary": list{"hm"}, "content": list{}}),
			itemStarts(obj{"type": "agentMessage", "id": "m1", "text": ""}), itemEnds(obj{"type": "agentMessage", "id": "m1", "text": "I look."}),
			itemStarts(command), itemStarts(command),
			itemEnds(obj{"type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'ls -a'", "status": "completed", "exitCode": 0, "aggregatedOutput": "a\nb"}),
			itemEnds(obj{"type": "commandExecution", "id": "c2", "command": "false", "status": "failed", "exitCode": 1}), // never started
			itemStarts(obj{"type": "fileChange", "id": "f", "status": "inProgress", "changes": list{obj{"path": "/work/x", "kind": obj{"type": "add"}, "diff": "hello\n"}}}),
			itemEnds(obj{"type": "fileChange", "id": "f", "status": "declined", "changes": list{obj{"path": "/work/x", "kind": obj{"type": "add"}, "diff": "hello\n"}}}),
			itemStarts(obj{"type": "mcpToolCall", "id": "t", "server": "stint", "tool": "list", "arguments": obj{"n": 1}}),
			itemEnds(obj{"type": "mcpToolCall", "id": "t", "server": "stint", "tool": "list", "status": "completed", "result": obj{"content": list{obj{"type": "text", "text": "none"}}}}),
			itemStarts(obj{"type": "webSearch", "id": "w", "query": "cats"}),
			tells("turn/plan/updated", obj{"plan": list{obj{"step": "one", "status": "completed"}, obj{"step": "two", "status": "inProgress"}, obj{"step": "three", "status": "pending"}}}),
			tells("thread/tokenUsage/updated", obj{"tokenUsage": obj{"total": obj{"inputTokens": 10, "outputTokens": 3}, "last": obj{"inputTokens": 99}}}),
			obj{"method": "thread/tokenUsage/updated", "params": obj{"threadId": "helper", "tokenUsage": obj{"total": obj{"inputTokens": 1, "outputTokens": 1}}}},
			turnEnds("another", "failed", nil), turnEnds("tu", "completed", nil),
		)
		second = takeTurn(p, "tu2")
		p.Say(itemEnds(obj{"type": "agentMessage", "id": "m2", "text": "Done."}), turnEnds("tu2", "completed", nil))
		p.Wait()
	})
	if err != nil || r.Failure != nil || r.Text != "Done." {
		t.Fatalf("result %+v (%+v), %v", r, r.Failure, err)
	}
	if start.Text("method") != "thread/start" || start.Text("params", "developerInstructions") != "be kind" || start.Text("params", "cwd") != "/work" {
		t.Errorf("started with %v", start)
	}
	if got := second.At("params", "input"); !reflect.DeepEqual(got, list{obj{"type": "text", "text": "and now this"}}) {
		t.Errorf("second turn %v", second)
	}
	want := "thinking: hm\ntext: I look.\ntool_call shell: ls -a\ntool_result shell: a\nb\ntool_call shell: false\ntool_result shell failed\n" +
		"tool_call edit: add /work/x\nhello\ntool_result edit failed: (declined)\ntool_call stint__list: {\"n\":1}\ntool_result stint__list: none\n" +
		"tool_call web_search: cats\ntool_result web_search failed: (the turn ended before this did)\nturn_end\ntext: Done.\nturn_end\n"
	seen := host.Seen()
	if got := seen.Transcript(); got != want {
		t.Errorf("transcript\n%s\nwant\n%s", got, want)
	}
	if !slices.Equal(seen.Began, []string{"th"}) || !slices.Equal(seen.Plans, []string{"- [x] one\n- [ ] two (in progress)\n- [ ] three\n"}) {
		t.Errorf("began %v, plans %q", seen.Began, seen.Plans)
	}
	if r.Usage != (api.Usage{InputTokens: 11, OutputTokens: 4, Turns: 2}) || seen.Usages[len(seen.Usages)-1] != r.Usage {
		t.Errorf("usage %+v", r.Usage)
	}
}

// A command that is still running when the turn is over ends with the program, and the result
// says so.
func TestCodex_WhatStillRunsWhenTheLastTurnEnds(t *testing.T) {
	host := &agenttest.Host{Turns: []string{"more"}}
	r, err := heldCodex(t, codexJob("/work"), host, func(p *peer) {
		meet(p)
		p.Say(itemStarts(obj{"type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'sleep 60'", "status": "inProgress", "cwd": "/work"}), turnEnds("tu", "completed", nil))
		takeTurn(p, "tu2")
		p.Say(itemStarts(obj{"type": "commandExecution", "id": "c2", "command": "/bin/bash -lc 'make test'", "status": "inProgress", "cwd": "/work"}))
		p.Say(itemStarts(obj{"type": "webSearch", "id": "w", "query": "cats"}), turnEnds("tu2", "completed", nil))
		p.Wait()
	})
	if err != nil || r.Failure != nil || !slices.Equal(r.Running, []string{"make test"}) {
		t.Errorf("still running %q; %+v, %v", r.Running, r.Failure, err)
	}
}

func TestCodex_NoTurnBeforeTheSessionIsKnown(t *testing.T) {
	no := errors.New("the disk is full")
	var last line
	_, err := heldCodex(t, codexJob("/work"), &agenttest.Host{Refuses: no}, func(p *peer) {
		p.Say(replies(method(p, "initialize"), obj{}))
		p.Say(replies(method(p, "thread/start"), obj{"thread": obj{"id": "th"}}))
		last = p.Hear()
	})
	if !errors.Is(err, no) || last != nil {
		t.Errorf("error %v; said afterwards %v", err, last)
	}
}

func TestCodex_ResumesWithTheSameRights(t *testing.T) {
	job := codexJob("/work")
	fresh, err := started(t, job)
	if err != nil {
		t.Fatal(err)
	}
	job.Session = "th"
	again, err := started(t, job)
	if err != nil || again.Text("method") != "thread/resume" || again.Text("params", "threadId") != "th" {
		t.Fatalf("resumed by %v, %v", again, err)
	}
	for _, name := range []string{"cwd", "approvalPolicy", "config", "developerInstructions"} {
		if !reflect.DeepEqual(fresh.At("params", name), again.At("params", name)) {
			t.Errorf("%s: %v, then %v", name, fresh.At("params", name), again.At("params", name))
		}
	}
	r, err := heldCodex(t, job, &agenttest.Host{}, func(p *peer) {
		p.Say(replies(method(p, "initialize"), obj{}))
		p.Say(obj{"id": method(p, "thread/resume")["id"], "error": obj{"code": -32600, "message": "no rollout found for thread id th"}})
		p.Wait()
	})
	if err != nil || !r.Unknown || r.Failure == nil || r.Failure.Code != agent.CodeCrashed {
		t.Errorf("an unknown session: %+v, %v", r, err)
	}
}

// started is how an adapter begins a thread.
func started(t *testing.T, job agent.Job) (line, error) {
	t.Helper()
	var start line
	_, err := heldCodex(t, job, &agenttest.Host{}, func(p *peer) {
		start = meet(p)
		p.Say(turnEnds("tu", "completed", nil))
		p.Wait()
	})
	return start, err
}

func TestCodex_FailuresOfTurns(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	for name, c := range map[string]struct {
		before []any
		e      any
		code   string
		again  bool
		reset  time.Time
	}{
		"key refused":       {nil, obj{"message": "no", "codexErrorInfo": obj{"httpConnectionFailed": obj{"httpStatusCode": 401}}}, agent.CodeNotSignedIn, false, time.Time{}},
		"signed out":        {nil, obj{"message": "no", "codexErrorInfo": "unauthorized"}, agent.CodeNotSignedIn, false, time.Time{}},
		"limit":             {[]any{tells("account/rateLimits/updated", obj{"rateLimits": obj{"primary": obj{"usedPercent": 100, "resetsAt": 1_800_000_000}}})}, obj{"message": "limit", "codexErrorInfo": "usageLimitExceeded"}, agent.CodeUsageLimit, true, at},
		"limit in words":    {nil, obj{"message": "You've hit your usage limit. try again in 2 hours 3 minutes.", "codexErrorInfo": "usageLimitExceeded"}, agent.CodeUsageLimit, true, time.Date(2000, 1, 1, 2, 3, 0, 0, time.UTC)},
		"too many":          {nil, obj{"message": "slow", "codexErrorInfo": obj{"responseTooManyFailedAttempts": obj{"httpStatusCode": 429}}}, agent.CodeUsageLimit, true, time.Time{}},
		"oops":              {nil, obj{"message": "oops", "codexErrorInfo": "internalServerError"}, agent.CodeCrashed, true, time.Time{}},
		"bad":               {nil, obj{"message": "bad", "codexErrorInfo": "badRequest"}, agent.CodeCrashed, false, time.Time{}},
		"budget":            {nil, obj{"message": "spent", "codexErrorInfo": "sessionBudgetExceeded"}, agent.CodeSpendLimit, false, time.Time{}},
		"of a form to come": {nil, obj{"message": "new", "codexErrorInfo": list{1}}, agent.CodeCrashed, true, time.Time{}},
		"none given":        {nil, nil, agent.CodeCrashed, true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := heldCodex(t, codexJob("/work"), &agenttest.Host{}, func(p *peer) {
				meet(p)
				p.Say(c.before...)
				p.Say(turnEnds("tu", "failed", c.e))
				p.Wait()
			})
			if err != nil || r.Failure == nil || r.Failure.Code != c.code || r.Retriable != c.again || !r.ResetAt.Equal(c.reset) {
				t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
			}
		})
	}
}

func TestCodex_BadPeers(t *testing.T) {
	long := strings.Repeat("x", 10<<20-400)
	for name, c := range map[string]struct {
		play func(*peer)
		part string // of the failure's message; "" = it ends well
		most time.Duration
	}{
		"says nothing at all": {func(p *peer) { p.Wait() }, "did not answer initialize within 30s", 31 * time.Second},
		"ends at once":        {func(*peer) {}, "without a result", time.Second},
		"ends after the thread's start": {func(p *peer) {
			p.Say(replies(method(p, "initialize"), obj{}))
			p.Say(replies(method(p, "thread/start"), obj{"thread": obj{"id": "th"}}))
		}, "without a result", time.Second},
		"no answer to the thread's start": {func(p *peer) { p.Say(replies(method(p, "initialize"), obj{})); p.Wait() }, "did not answer thread/start", 31 * time.Second},
		"no answer to the turn's start": {func(p *peer) {
			p.Say(replies(method(p, "initialize"), obj{}))
			p.Say(replies(method(p, "thread/start"), obj{"thread": obj{"id": "th"}}))
			p.Wait()
		}, "did not answer turn/start", 31 * time.Second},
		"refuses the thread": {func(p *peer) {
			p.Say(replies(method(p, "initialize"), obj{}))
			p.Say(obj{"id": method(p, "thread/start")["id"], "error": obj{"code": -32600, "message": "failed to load configuration"}})
			p.Wait()
		}, "refused thread/start: failed to load", time.Second},
		"a thread of another form": {func(p *peer) {
			p.Say(replies(method(p, "initialize"), obj{}))
			p.Say(replies(method(p, "thread/start"), obj{"thread": 3}))
			p.Wait()
		}, "can't be read", time.Second},
		"a turn's end of another form": {func(p *peer) { meet(p); p.Say(obj{"method": "turn/completed", "params": list{}}); p.Wait() }, "can't be read", time.Second},
		"ends in a turn":               {func(p *peer) { meet(p) }, "without a result", time.Second},
		"breaks off by itself":         {func(p *peer) { meet(p); p.Say(turnEnds("tu", "interrupted", nil)); p.Wait() }, "broke off", time.Second},
		"stops listening":              {func(p *peer) { p.Deaf(); time.Sleep(time.Hour) }, "does not listen", time.Minute},
		"starts slowly": {func(p *peer) {
			time.Sleep(29 * time.Second)
			meet(p)
			p.Say(turnEnds("tu", "completed", nil))
			p.Wait()
		}, "", 30 * time.Second},
		"noise between": {func(p *peer) {
			meet(p)
			p.Noise("Warning\n\n{\"id\":\n[]\nnull\n\x00\xff\n{\"method\":7}\n{\"id\":999,\"result\":1}\n{\"id\":\"x\",\"result\":1}\n")
			p.Say(obj{"method": "item/started", "params": obj{"item": 3, "threadId": "th"}}, obj{"method": "item/started", "params": "x"}, turnEnds("tu", "completed", nil))
			p.Wait()
		}, "", time.Second},
		"an answer given twice": {func(p *peer) {
			meet(p)
			p.Say(obj{"id": 2, "result": obj{"thread": obj{"id": "other"}}}, turnEnds("tu", "completed", nil))
			p.Wait()
		}, "", time.Second},
		"10 MB in a line": {func(p *peer) {
			meet(p)
			p.Say(itemEnds(obj{"type": "agentMessage", "id": "m", "text": long}), turnEnds("tu", "completed", nil))
			p.Wait()
		}, "", time.Second},
		"more in a line": {func(p *peer) {
			meet(p)
			p.Noise(long + long + "\n")
			p.Say(turnEnds("tu", "completed", nil))
			p.Wait()
		}, "", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var took time.Duration
				r, err := agenttest.Converse(t.Context(), t, timed{agent.Codex{}, &took, time.Now()}, codexJob("/work"), &agenttest.Host{}, c.play)
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

func TestCodex_IsInterruptedByItsOwnMeans(t *testing.T) {
	stop := errors.New("cancelled")
	interrupted := func(p *peer) line {
		l := method(p, "turn/interrupt")
		if l.Text("params", "turnId") != "tu" || l.Text("params", "threadId") != "th" {
			t.Errorf("interrupted by %v", l)
		}
		return l
	}
	for name, c := range map[string]struct {
		play func(*peer, context.CancelCauseFunc)
		most time.Duration
	}{
		"in a turn": {func(p *peer, cancel context.CancelCauseFunc) {
			meet(p)
			p.Say(itemStarts(obj{"type": "commandExecution", "id": "c", "command": "x"}), obj{"id": 5, "method": "item/commandExecution/requestApproval", "params": obj{"command": "x"}})
			time.Sleep(time.Minute)
			cancel(stop)
			p.Say(replies(interrupted(p), obj{}), obj{"id": 6, "method": "item/commandExecution/requestApproval", "params": obj{}}, turnEnds("tu", "interrupted", nil))
			p.Wait()
		}, 61 * time.Second},
		"while it begins": {func(p *peer, cancel context.CancelCauseFunc) {
			p.Say(replies(method(p, "initialize"), obj{}))
			p.Say(replies(method(p, "thread/start"), obj{"thread": obj{"id": "th"}}))
			turn := method(p, "turn/start")
			cancel(stop)
			time.Sleep(time.Second)
			p.Say(replies(turn, obj{"turn": obj{"id": "tu"}}))
			p.Say(replies(interrupted(p), obj{}), turnEnds("tu", "interrupted", nil))
			p.Wait()
		}, 2 * time.Second},
		"in vain": {func(p *peer, cancel context.CancelCauseFunc) { meet(p); cancel(stop); p.Wait() }, 5 * time.Second},
		"too late": {func(p *peer, cancel context.CancelCauseFunc) {
			meet(p)
			cancel(stop)
			p.Say(obj{"id": interrupted(p)["id"], "error": obj{"code": -32600, "message": "no active turn to interrupt"}}, turnEnds("tu", "completed", nil))
			p.Wait()
		}, time.Second},
		"before it has started": {func(p *peer, cancel context.CancelCauseFunc) { cancel(stop); p.Wait() }, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				job := codexJob("/work")
				job.Grace = 5 * time.Second
				var took time.Duration
				r, err := agenttest.Converse(ctx, t, timed{agent.Codex{}, &took, time.Now()}, job, &agenttest.Host{Answer: agenttest.Silent}, func(p *peer) { c.play(p, cancel) })
				if !errors.Is(err, stop) || r.Failure != nil || took > c.most {
					t.Errorf("result %+v (%+v), %v, after %v", r, r.Failure, err, took)
				}
			})
		})
	}
}

func TestCodex_WhatIsProgress(t *testing.T) {
	host := &agenttest.Host{}
	_, err := heldCodex(t, codexJob("/work"), host, func(p *peer) {
		meet(p)
		seen := func(id int) int {
			p.Say(obj{"id": id, "method": "x/y", "params": obj{}})
			p.HearUntil(func(l line) bool { return l["id"] == float64(id) })
			return host.Seen().Alive
		}
		before := seen(1000)
		for range 5 {
			p.Say(tells("error", obj{"willRetry": true, "error": obj{"message": "Reconnecting... 2/5"}}), tells("thread/status/changed", obj{}), tells("warning", obj{"message": "waiting for network"}))
		}
		if got := host.Seen().Transcript(api.ItemStatus); strings.Count(got, "Reconnecting... 2/5") != 1 {
			t.Errorf("people see %q", got)
		}
		if after := seen(1001); after != before+1 { // the request itself is output
			t.Errorf("%d signs of life for none", after-before-1)
		}
		p.Say(tells("item/commandExecution/outputDelta", obj{"delta": "x"}))
		if after := seen(1002); after != before+3 {
			t.Errorf("%d signs of life in all", after-before)
		}
		p.Say(turnEnds("tu", "completed", nil))
		p.Wait()
	})
	if err != nil {
		t.Error(err)
	}
}

// text is a value as JSON.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// A turn may take so many rounds with the model and no more; another thread's, and a repeated
// report, don't count.
func TestCodex_RoundsAreBounded(t *testing.T) {
	for most, told := range map[int]string{3: "", 4: "completed"} {
		job := codexJob(t.TempDir())
		job.MaxTurns = most
		r, err := heldCodex(t, job, &agenttest.Host{}, func(p *peer) {
			meet(p)
			for i := range 4 {
				usage := tells("thread/tokenUsage/updated", obj{"tokenUsage": obj{"total": obj{"inputTokens": 10 * i, "outputTokens": i + 1}}})
				p.Say(usage, usage, obj{"method": "thread/tokenUsage/updated", "params": obj{"threadId": "helper", "tokenUsage": obj{"total": obj{"outputTokens": i + 1}}}})
			}
			p.Say(turnEnds("tu", "completed", nil))
			p.Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		if over := r.Failure != nil && r.Failure.Code == agent.CodeTurnTimeout; over == (told == "completed") {
			t.Errorf("of 4 rounds where %d are allowed it says %+v", most, r.Failure)
		}
	}
}
