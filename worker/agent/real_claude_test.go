//go:build agents

package agent_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

func bash(command string) agenttest.Call {
	return agenttest.Call{Tool: "Bash", Input: obj{"command": command, "description": "a command"}}
}

// realClaude holds a conversation with the real Claude Code.
func realClaude(t *testing.T, edit func(*agent.Job), host *agenttest.Host, steps ...agenttest.Step) (agent.Job, *agenttest.Model, agent.Result, error) {
	t.Helper()
	m := agenttest.NewModel(t, steps...)
	job := agenttest.RealClaude(t, m)
	if edit != nil {
		edit(&job)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := agenttest.Run(ctx, t, agent.Claude{}, job, host)
	return job, m, r, err
}

func fine(t *testing.T, r agent.Result, err error) {
	t.Helper()
	if err != nil || r.Failure != nil {
		t.Fatalf("result %+v (%+v), %v", r, r.Failure, err)
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func TestRealClaude_PlainTurns(t *testing.T) {
	host := &agenttest.Host{Turns: []string{"And now the second."}}
	_, m, r, err := realClaude(t, func(j *agent.Job) { j.System = "SYSTEMTEXT"; j.Turn = "TURNTEXT" }, host, agenttest.Say("one"), agenttest.Say("two"))
	fine(t, r, err)
	seen := host.Seen()
	if got := seen.Transcript(api.ItemText); got != "text: one\ntext: two\n" || r.Text != "two" {
		t.Errorf("transcript %q, last words %q", got, r.Text)
	}
	if r.Usage.InputTokens != 22 || r.Usage.OutputTokens != 14 || r.Usage.Turns != 2 {
		t.Errorf("usage %+v", r.Usage)
	}
	asked := m.Asked()
	if len(asked) != 2 || !strings.Contains(asked[0].Body, "SYSTEMTEXT") || !strings.Contains(asked[0].Body, "TURNTEXT") || asked[0].Key != agenttest.Key {
		t.Errorf("asked %d times", len(asked))
	}
	system := asked[0].Body[strings.Index(asked[0].Body, `"system":`):]
	if !strings.Contains(system, "SYSTEMTEXT") || strings.Contains(system, "TURNTEXT") {
		t.Error("the trusted text isn't where the trusted text belongs")
	}
}

func TestRealClaude_ApprovedAndDeclined(t *testing.T) {
	for name, approve := range map[string]bool{"approved": true, "declined": false} {
		t.Run(name, func(t *testing.T) {
			host := &agenttest.Host{Answer: func(_ context.Context, q agent.Question) (agent.Answer, error) {
				return agent.Answer{Approved: approve, Text: "because"}, nil
			}}
			job, m, r, err := realClaude(t, func(j *agent.Job) {
				j.Policy.Rules = []agent.Rule{{Area: agent.Shell, Ruling: agent.Ask}}
			}, host, bash("touch made"), agenttest.Say("end"))
			fine(t, r, err)
			seen := host.Seen()
			if exists(filepath.Join(job.Dir, "made")) != approve || len(seen.Asked) != 1 || seen.Asked[0].Text != "touch made" {
				t.Errorf("asked %+v; transcript\n%s", seen.Asked, seen.Transcript())
			}
			if !approve && !strings.Contains(m.Asked()[1].Body, "because") {
				t.Error("the model wasn't told why")
			}
		})
	}
}

func TestRealClaude_QuestionAnswered(t *testing.T) {
	ask := agenttest.Call{Tool: "AskUserQuestion", Input: obj{"questions": list{obj{
		"question": "Which colour?", "header": "Colour", "multiSelect": false,
		"options": list{obj{"label": "red", "description": "r"}, obj{"label": "blue", "description": "b"}},
	}}}}
	host := &agenttest.Host{Answer: agenttest.Approves}
	_, m, r, err := realClaude(t, nil, host, ask, agenttest.Say("end"))
	fine(t, r, err)
	if asked := host.Seen().Asked; len(asked) != 1 || asked[0].Choices[0].Text != "Which colour?" || len(asked[0].Choices[0].Options) != 2 {
		t.Errorf("asked %+v", asked)
	}
	if !strings.Contains(m.Asked()[1].Body, `Which colour?\"=\"blue\"`) {
		t.Errorf("the model was told %s", last(m))
	}
}

func last(m *agenttest.Model) string {
	body := m.Asked()[len(m.Asked())-1].Body
	return body[max(0, len(body)-600):]
}

func TestRealClaude_Interrupted(t *testing.T) {
	for name, step := range map[string]agenttest.Step{"the model is silent": agenttest.Hang{}, "a command runs": bash("tail -f /dev/null"), "it asks": bash("touch x")} {
		t.Run(name, func(t *testing.T) {
			m := agenttest.NewModel(t, step)
			job := agenttest.RealClaude(t, m)
			host := &agenttest.Host{Answer: agenttest.Silent}
			if name == "it asks" {
				job.Policy.Rules = []agent.Rule{{Area: agent.Shell, Ruling: agent.Ask}}
			} else {
				job.Policy.Rules = []agent.Rule{{Area: agent.Shell, Ruling: agent.Allow}}
			}
			stop := errors.New("cancelled")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var began time.Time
			go func() {
				<-m.Waiting()
				if name != "the model is silent" {
					within(t, "the tool call", func() bool {
						return host.Seen().Transcript(api.ItemToolCall) != "" && (name != "it asks" || len(host.Seen().Asked) > 0)
					})
				}
				began = time.Now()
				cancel(stop)
			}()
			r, err := agenttest.Run(ctx, t, agent.Claude{}, job, host)
			if !errors.Is(err, stop) || r.Failure != nil {
				t.Fatalf("result %+v, %v", r, err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// within waits for something that should come soon.
func within(t *testing.T, what string, ok func() bool) {
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("never: %s", what)
			return
		}
	}
}

func TestRealClaude_KilledAndResumed(t *testing.T) {
	m := agenttest.NewModel(t, agenttest.Say("remember me"), agenttest.Hang{}, agenttest.Say("I do"))
	job := agenttest.RealClaude(t, m)
	host := &agenttest.Host{Turns: []string{"second"}}
	p := agenttest.Start(t, agent.Claude{}, job)
	go func() {
		<-m.Waiting()
		<-m.Waiting()
		p.Kill()
	}()
	r, err := agent.Claude{}.Converse(t.Context(), p.Pipes, job, host)
	if err != nil || r.Failure == nil || r.Failure.Code != agent.CodeCrashed || !r.Retriable {
		t.Fatalf("result %+v (%+v), %v", r, r.Failure, err)
	}
	job.Session, job.Begin, job.Turn = host.Seen().Began[0], "", "third"
	again := &agenttest.Host{}
	r, err = agenttest.Run(t.Context(), t, agent.Claude{}, job, again)
	fine(t, r, err)
	if r.Text != "I do" || !strings.Contains(m.Asked()[2].Body, "remember me") {
		t.Errorf("last words %q", r.Text)
	}
	t.Logf("usage before %+v, after %+v", host.Seen().Usages, again.Seen().Usages)
	job.Session = agent.NewID()
	r, err = agenttest.Run(t.Context(), t, agent.Claude{}, job, &agenttest.Host{})
	if err != nil || !r.Unknown || r.Failure == nil {
		t.Errorf("an unknown session: %+v, %v", r, err)
	}
}

func TestRealClaude_FailuresOfTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		step  agenttest.Step
		code  string
		again bool
	}{
		"401":     {agenttest.Break{Status: 401, Type: "authentication_error", Text: "invalid x-api-key"}, agent.CodeNotSignedIn, false},
		"429":     {agenttest.Break{Status: 429, Type: "rate_limit_error", Text: "slow down"}, agent.CodeUsageLimit, true},
		"500":     {agenttest.Break{Status: 500, Type: "api_error", Text: "oops"}, agent.CodeCrashed, true},
		"cut off": {agenttest.Break{}, agent.CodeCrashed, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, r, err := realClaude(t, nil, &agenttest.Host{}, c.step)
			if err != nil || r.Failure == nil || r.Failure.Code != c.code || r.Retriable != c.again {
				t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
			}
		})
	}
	t.Run("not signed in", func(t *testing.T) {
		_, _, r, err := realClaude(t, func(j *agent.Job) {
			j.Env = append(j.Env, "ANTHROPIC_API_KEY=")
		}, &agenttest.Host{})
		if err != nil || r.Failure == nil || r.Failure.Code != agent.CodeNotSignedIn {
			t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
		}
	})
}

func TestRealClaude_EveryRefusalHolds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	reached := make(chan struct{}, 100)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			_ = c.Close()
		}
	}()
	outside, hidden := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(hidden+"/secret", "TOPSECRET")
	connect := "bash -c 'echo > /dev/tcp/127.0.0.1/" + strings.TrimPrefix(ln.Addr().String(), "127.0.0.1:") + "'"
	rule := func(area agent.Area, pattern string, r agent.Ruling) []agent.Rule {
		return []agent.Rule{{Area: area, Pattern: pattern, Ruling: r}}
	}
	for name, c := range map[string]struct {
		rules   []agent.Rule
		step    agenttest.Step
		witness func(dir string, told string) bool // that it happened
		silent  bool                               // no denial is told: a sandbox stops it
		failure string
	}{
		"a command":             {rule(agent.Shell, "touch *", agent.Deny), bash("cd . && touch made"), func(dir, _ string) bool { return exists(dir + "/made") }, false, ""},
		"a command, for good":   {rule(agent.Shell, "touch *", agent.DenyStop), bash("touch made"), func(dir, _ string) bool { return exists(dir + "/made") }, false, agent.CodePolicy},
		"all commands":          {rule(agent.Shell, "", agent.Deny), bash("touch made"), func(dir, _ string) bool { return exists(dir + "/made") }, false, ""},
		"a file":                {rule(agent.Filesystem, "./made*", agent.Deny), agenttest.Call{Tool: "Write", Input: obj{"file_path": "made", "content": "x"}}, func(dir, _ string) bool { return exists(dir + "/made") }, false, ""},
		"all files, by command": {rule(agent.Filesystem, "", agent.Deny), bash("touch made"), func(dir, _ string) bool { return exists(dir + "/made") }, true, ""},
		"a file outside":        {nil, agenttest.Call{Tool: "Write", Input: obj{"file_path": outside + "/made", "content": "x"}}, func(string, string) bool { return exists(outside + "/made") }, false, agent.CodePolicy},
		"outside, by command":   {nil, bash("touch " + outside + "/made"), func(string, string) bool { return exists(outside + "/made") }, true, ""},
		"the network":           {rule(agent.Network, "", agent.Deny), bash(connect), func(string, string) bool { return len(reached) > 0 }, true, ""},
		"a commit":              {rule(agent.SideEffects, "git commit*", agent.Deny), bash("git init -q . && git commit --allow-empty -m x"), func(dir, _ string) bool { return exists(dir + "/.git") }, false, ""},
		"a hidden file":         {nil, agenttest.Call{Tool: "Read", Input: obj{"file_path": hidden + "/secret"}}, func(_, told string) bool { return strings.Contains(told, "TOPSECRET") }, false, ""},
		"hidden, by command":    {nil, bash("cat " + hidden + "/secret"), func(_, told string) bool { return strings.Contains(told, "TOPSECRET") }, false, ""},
		"hidden, by stealth":    {nil, bash("cd " + filepath.Dir(hidden) + "; cat */secret; cat $(echo " + filepath.Base(hidden) + ")/secret"), func(_, told string) bool { return strings.Contains(told, "TOPSECRET") }, true, ""},
		"the model's key":       {nil, bash("env; cat /proc/self/environ"), func(_, told string) bool { return strings.Contains(told, agenttest.Key) }, true, ""},
		"out of the sandbox":    {nil, agenttest.Call{Tool: "Bash", Input: obj{"command": "touch " + outside + "/made", "dangerouslyDisableSandbox": true}}, func(string, string) bool { return exists(outside + "/made") }, false, agent.CodePolicy},
	} {
		t.Run(name, func(t *testing.T) {
			host := &agenttest.Host{}
			job, m, r, err := realClaude(t, func(j *agent.Job) {
				j.Policy = agent.Policy{Rules: c.rules, Unattended: true}
				j.Hidden = []string{hidden}
			}, host, c.step, agenttest.Say("end"))
			if err != nil || c.failure == "" && r.Failure != nil || c.failure != "" && (r.Failure == nil || r.Failure.Code != c.failure) {
				t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
			}
			asked := m.Asked()
			if c.witness(job.Dir, asked[len(asked)-1].Body) {
				t.Error("it happened")
			}
			seen := host.Seen()
			if !c.silent && len(seen.Denied) == 0 || c.silent && len(seen.Denied) > 0 {
				t.Errorf("denied %+v", seen.Denied)
			}
			if t.Failed() {
				t.Logf("transcript\n%s", seen.Transcript())
			}
		})
	}
}
