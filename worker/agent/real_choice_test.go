//go:build agents

package agent_test

import (
	"path/filepath"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// generous allows whatever plan mode must refuse all the same.
func generous(j *agent.Job) {
	j.PlanMode = true
	j.Policy.Rules = []agent.Rule{
		{Area: agent.Filesystem, Ruling: agent.Allow}, {Area: agent.Shell, Ruling: agent.Allow}, {Area: agent.Network, Ruling: agent.Allow}, {Area: agent.SideEffects, Ruling: agent.Allow},
	}
}

func onlyPlanned(t *testing.T, dir string, m *agenttest.Model, said string, host *agenttest.Host) {
	t.Helper()
	for _, name := range []string{"by-command", "by-tool"} {
		if exists(filepath.Join(dir, name)) {
			t.Errorf("%s was made; transcript\n%s", name, host.Seen().Transcript())
		}
	}
	asked := m.Asked()
	if !strings.Contains(asked[0].Body, "This run only plans.") || !strings.Contains(asked[len(asked)-1].Body, controlSays) || said != "the plan" {
		t.Errorf("asked %d times, %q; transcript\n%s", len(asked), said, host.Seen().Transcript())
	}
	if len(host.Seen().Asked) > 0 {
		t.Errorf("people were asked %+v", host.Seen().Asked)
	}
}

func TestRealClaude_ModelEffortAndPlanMode(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{Answer: agenttest.Approves}
	job, m, r, err := realClaude(t, func(j *agent.Job) {
		generous(j)
		j.Model, j.Effort = "claude-opus-4-5", "low"
	}, host, bash("touch by-command; "+control), write("by-tool"), agenttest.Call{Tool: "ExitPlanMode", Input: obj{"plan": "x"}}, write("by-tool"), agenttest.Say("the plan"))
	fine(t, r, err)
	onlyPlanned(t, job.Dir, m, r.Text, host)
	body := m.Asked()[0].Body
	if !strings.Contains(body, `"model":"claude-opus-4-5`) || !strings.Contains(body, `"effort":"low"`) {
		t.Errorf("the model was asked by %.300s", body)
	}
}

func TestRealCodex_ModelEffortAndPlanMode(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{Answer: agenttest.Approves}
	job, m, r, err := realCodex(t, func(j *agent.Job) {
		generous(j)
		j.Model, j.Effort = "gpt-5-codex", "low"
	}, host, sh("touch by-command; "+control), beyond("touch by-command"), patch("*** Add File: by-tool\n+x"), agenttest.Say("the plan"))
	fine(t, r, err)
	onlyPlanned(t, job.Dir, m, r.Text, host)
	body := m.Asked()[0].Body
	if !strings.Contains(body, `"model":"gpt-5-codex"`) || !strings.Contains(body, `"effort":"low"`) {
		t.Errorf("the model was asked by %.300s", body)
	}
}

func TestRealOpencode_PlanMode(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{Answer: agenttest.Approves}
	job, m, r, err := realOpencode(t, generous, host, opencodeRuns("touch by-command"), opencodeRuns("ls; "+control),
		agenttest.Call{Tool: "write", Input: obj{"filePath": "by-tool", "content": "x"}}, agenttest.Say("the plan"))
	fine(t, r, err)
	for _, name := range []string{"by-command", "by-tool"} {
		if exists(filepath.Join(job.Dir, name)) {
			t.Errorf("%s was made; transcript\n%s", name, host.Seen().Transcript())
		}
	}
	if body := m.Asked()[0].Body; !strings.Contains(body, "This run only plans.") {
		t.Error("it was not told that it only plans")
	}
	if len(host.Seen().Asked) > 0 || r.Text == "" {
		t.Errorf("people were asked %+v", host.Seen().Asked)
	}
	_, _, r, err = realOpencode(t, func(j *agent.Job) { j.Effort = "enormous" }, host)
	if err != nil || r.Failure == nil || !strings.Contains(r.Failure.Message, "does not offer the effort") {
		t.Errorf("with an effort that it doesn't have: %+v, %v", r.Failure, err)
	}
}
