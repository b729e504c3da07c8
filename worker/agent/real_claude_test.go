//go:build agents

package agent_test

import (
	"context"
	"errors"
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
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	r, err := agenttest.Run(ctx, t, agent.Claude{}, job, host)
	return job, m, r, err
}

func TestRealClaude_PlainTurns(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{Turns: []string{"And now the second."}}
	job, m, r, err := realClaude(t, func(j *agent.Job) { j.System = "SYSTEMTEXT"; j.Turn = "TURNTEXT" }, host, agenttest.Say("one"), agenttest.Say("two"))
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
	// Resumed, it gets the current instructions, and keeps counting.
	job.Session, job.System = seen.Began[0], "NEWSYSTEM"
	r, err = agenttest.Run(t.Context(), t, agent.Claude{}, job, &agenttest.Host{})
	fine(t, r, err)
	body := m.Asked()[2].Body
	if !strings.Contains(body, "NEWSYSTEM") || strings.Contains(body, "SYSTEMTEXT") || !strings.Contains(body, "TURNTEXT") || r.Usage.InputTokens != 33 {
		t.Errorf("resumed with usage %+v", r.Usage)
	}
}

func TestRealClaude_ApprovedAndDeclined(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{Answer: func(_ context.Context, q agent.Question) (agent.Answer, error) {
		return agent.Answer{Approved: q.Text == "touch good", Text: "because"}, nil
	}}
	job, m, r, err := realClaude(t, func(j *agent.Job) {
		j.Policy.Rules = []agent.Rule{{Area: agent.Shell, Ruling: agent.Ask}}
	}, host, bash("touch good"), bash("touch bad"), agenttest.Say("end"))
	fine(t, r, err)
	seen := host.Seen()
	if !exists(filepath.Join(job.Dir, "good")) || exists(filepath.Join(job.Dir, "bad")) || len(seen.Asked) != 2 || seen.Asked[0].Text != "touch good" || seen.Asked[0].Why != "a command" {
		t.Errorf("asked %+v; transcript\n%s", seen.Asked, seen.Transcript())
	}
	if !strings.Contains(m.Asked()[2].Body, "because") || len(seen.Denied) != 0 {
		t.Error("the model wasn't told why")
	}
}

func TestRealClaude_QuestionAnswered(t *testing.T) {
	t.Parallel()
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
	if body := m.Asked()[1].Body; !strings.Contains(body, `Which colour?\"=\"blue\"`) {
		t.Errorf("the model got %s", body)
	}
}

func TestRealClaude_Interrupted(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]agenttest.Step{"a command runs": bash("tail -f /dev/null"), "it asks": bash("touch x")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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

func TestRealClaude_KilledAndResumed(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	for name, c := range map[string]struct {
		step  agenttest.Step
		code  string
		again bool
	}{
		"429":     {agenttest.Break{Status: 429, Type: "rate_limit_error", Text: "slow down"}, agent.CodeUsageLimit, true},
		"cut off": {agenttest.Break{}, agent.CodeCrashed, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, r, err := realClaude(t, nil, &agenttest.Host{}, c.step)
			if err != nil || r.Failure == nil || r.Failure.Code != c.code || r.Retriable != c.again {
				t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
			}
		})
	}
	t.Run("not signed in", func(t *testing.T) {
		t.Parallel()
		_, _, r, err := realClaude(t, func(j *agent.Job) {
			if err := os.Remove(filepath.Join(variable(j.Env, "HOME"), ".claude", ".credentials.json")); err != nil {
				t.Fatal(err)
			}
		}, &agenttest.Host{})
		if err != nil || r.Failure == nil || r.Failure.Code != agent.CodeNotSignedIn {
			t.Errorf("result %+v (%+v), %v", r, r.Failure, err)
		}
	})
}

func TestRealClaude_EveryRefusalHolds(t *testing.T) {
	t.Parallel()
	w := newProbes(t)
	refusals(t, w, []refused{
		{name: "narrow rules", rules: w.narrow(), acts: []act{
			{what: "a command", step: bash("cd . && touch one"), happened: w.made("one"), denied: true},
			{what: "a file", step: write("made.txt"), happened: w.made("made.txt"), denied: true},
			{what: "outside, by command", step: bash("touch " + w.outside + "/two"), happened: w.there("two")},
			{what: "a hidden file", step: agenttest.Call{Tool: "Read", Input: obj{"file_path": w.hidden + "/secret"}}, happened: w.told("TOPSECRET"), denied: true},
			{what: "a hidden file by command", step: bash("cat " + w.hidden + "/secret"), happened: w.told("TOPSECRET"), denied: true},
			{what: "a hidden file by stealth", step: bash("cd " + filepath.Dir(w.hidden) + " && cat */secret"), happened: w.told("TOPSECRET")},
			{what: "the model's key", step: bash("env; cat /proc/self/environ /proc/1/environ"), happened: w.told(agenttest.Key)},
			{what: "a connection", step: bash(w.connect()), happened: w.reached},
			{what: "a command out of the sandbox", step: agenttest.Call{Tool: "Bash", Input: obj{"command": "touch " + w.outside + "/three", "dangerouslyDisableSandbox": true}}, happened: w.there("three"), denied: true},
			{what: "a file outside", step: write(w.outside + "/four"), happened: w.there("four"), denied: true},
			{what: "a commit", step: bash("git init -q . ; git commit -qm x --allow-empty"), happened: w.made(".git/HEAD"), denied: true},
		}},
		{name: "for good", rules: []agent.Rule{{Area: agent.Shell, Pattern: "touch *", Ruling: agent.DenyStop}}, acts: []act{{what: "a command", step: bash("touch five"), happened: w.made("five"), denied: true}}, failure: agent.CodePolicy},
		{name: "no files", rules: []agent.Rule{{Area: agent.Filesystem, Ruling: agent.Deny}}, acts: []act{
			{what: "a command", step: bash("touch six"), happened: w.made("six")}, {what: "a file", step: write("seven"), happened: w.made("seven"), denied: true},
		}},
	}, bash, realClaude)
}

func write(name string) agenttest.Call {
	return agenttest.Call{Tool: "Write", Input: obj{"file_path": name, "content": "x"}}
}
