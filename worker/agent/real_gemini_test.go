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

// geminiRuns has Gemini CLI run a command.
func geminiRuns(command string) agenttest.Call {
	return agenttest.Call{Tool: "run_shell_command", Input: obj{"command": command}}
}

// realGemini holds a conversation with the real Gemini CLI.
func realGemini(t *testing.T, edit func(*agent.Job), host *agenttest.Host, steps ...agenttest.Step) (agent.Job, *agenttest.Model, agent.Result, error) {
	t.Helper()
	m := agenttest.NewModel(t, steps...)
	job := agenttest.RealGemini(t, m)
	if edit != nil {
		edit(&job)
	}
	r, err := agenttest.Run(t.Context(), t, agent.ACP{}, job, host)
	return job, m, r, err
}

// Approved, declined with a reason, refused by a rule; stopped in the middle of a command, and
// resumed: what it repeats of the conversation isn't new.
func TestRealGemini_ApprovalsAndCancel(t *testing.T) {
	t.Parallel()
	m := agenttest.NewModel(t, geminiRuns("echo free > free"), geminiRuns("touch good"), geminiRuns("touch bad"), geminiRuns("rm good"), agenttest.Say("one"),
		agenttest.Say("told"), geminiRuns("echo begun; sleep 87654"))
	job := agenttest.RealGemini(t, m)
	job.Turn, job.System = "TURNTEXT", "SYSTEMTEXT"
	job.Policy.Rules = []agent.Rule{{Area: agent.Shell, Pattern: "echo *", Ruling: agent.Allow}, {Area: agent.Shell, Pattern: "sleep *", Ruling: agent.Allow}, {Area: agent.Shell, Pattern: "rm *", Ruling: agent.Deny}}
	host := &agenttest.Host{Turns: []string{"second"}, Answer: func(_ context.Context, q agent.Question) (agent.Answer, error) {
		return agent.Answer{Approved: strings.Contains(q.Text, "good"), Text: "because"}, nil
	}}
	stop := errors.New("cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	began := make(chan time.Time, 1)
	go func() {
		for len(running("sleep 87654")) == 0 && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		began <- time.Now()
		cancel(stop)
	}()
	r, err := agenttest.Run(ctx, t, agent.ACP{}, job, host)
	if !errors.Is(err, stop) || r.Failure != nil {
		t.Fatalf("result %+v (%+v), %v", r, r.Failure, err)
	}
	if took := time.Since(<-began); took > 10*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	if left := running("sleep 87654"); len(left) > 0 {
		t.Errorf("it still runs: %q", left)
	}
	seen := host.Seen()
	for name, want := range map[string]bool{"good": true, "free": true, "bad": false} {
		if exists(filepath.Join(job.Dir, name)) != want {
			t.Errorf("%s is there: %v", name, !want)
		}
	}
	if len(seen.Asked) != 2 || seen.Asked[0].Text != "touch good" || seen.Asked[1].Text != "touch bad" || len(seen.Denied) != 1 {
		t.Errorf("asked %+v, denied %+v", seen.Asked, seen.Denied)
	}
	if got := seen.Transcript(api.ItemText, api.ItemTurnEnd); got != "text: one\ntext: told\nturn_end\n" {
		t.Errorf("transcript\n%s", got)
	}
	asked := m.Asked()
	if last := asked[5].Body; asked[0].Key != agenttest.Key || !strings.Contains(last, "because") || !strings.Contains(last, "SYSTEMTEXT") || !strings.Contains(last, "TURNTEXT") {
		t.Error("the model was told something else")
	}
	if r.Usage != (api.Usage{InputTokens: 66, OutputTokens: 42, Turns: 1}) {
		t.Errorf("usage %+v", r.Usage)
	}
	anotherMinute(t, variable(job.Env, "HOME"))
	job.Session, job.Turn, job.Used = seen.Began[0], "second", r.Usage
	m.Then(agenttest.Say("I do"))
	again := &agenttest.Host{}
	r, err = agenttest.Run(t.Context(), t, agent.ACP{}, job, again)
	fine(t, r, err)
	asked = m.Asked()
	if got := again.Seen().Transcript(); got != "text: I do\nturn_end\n" || !strings.Contains(asked[len(asked)-1].Body, "TURNTEXT") {
		t.Errorf("it is another conversation, or doubled: %q", got)
	}
}

// anotherMinute renames the conversations of a home's Gemini CLI: their names have the minute in
// which they were begun, and as of 0.61.0 it overwrites one that it resumes in that minute.
func anotherMinute(t *testing.T, home string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(home, ".gemini/tmp/*/chats/session-*.jsonl"))
	if err != nil || len(all) == 0 {
		t.Fatalf("conversations %q, %v", all, err)
	}
	for _, path := range all {
		name := filepath.Base(path)
		if err := os.Rename(path, filepath.Join(filepath.Dir(path), "session-2000-01-01T00-00"+name[len("session-2000-01-01T00-00"):])); err != nil {
			t.Fatal(err)
		}
	}
}
