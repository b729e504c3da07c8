package agent_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// approvals are standing approvals that note their use.
type approvals struct {
	all  []agent.Standing
	mu   sync.Mutex
	used []string
}

func (a *approvals) All() []agent.Standing { return a.all }

func (a *approvals) Used(act agent.Action, s agent.Standing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = append(a.used, s.ID+" "+act.What)
}

func TestClaude_AStandingApprovalIsForExactlyWhatItSays(t *testing.T) {
	dir := t.TempDir()
	push := agent.Standing{ID: "p", Area: agent.Shell, Tool: "Bash", What: "git push origin *", Any: true}
	exact := agent.Standing{ID: "e", Area: agent.Shell, Tool: "Bash", What: "make all; make dist"}
	file := agent.Standing{ID: "f", Area: agent.Filesystem, Tool: "Write", What: "/etc/x"}
	ask := agent.Policy{Rules: []agent.Rule{{Area: agent.Shell, Pattern: "git push*", Ruling: agent.Ask}}}
	deny := agent.Policy{Rules: []agent.Rule{{Area: agent.SideEffects, Pattern: "git push*", Ruling: agent.Deny}}}
	nobody := agent.Policy{Unattended: true, Otherwise: agent.Deny}
	for name, c := range map[string]struct {
		policy   agent.Policy
		standing agent.Standing
		tool     string
		input    obj
		allowed  bool
		used     string
	}{
		"it fits":                        {agent.Policy{}, push, "Bash", obj{"command": "git push origin main"}, true, "p git push origin main"},
		"a rule asks":                    {ask, push, "Bash", obj{"command": "git push origin main"}, true, "p git push origin main"},
		"nobody is there":                {nobody, push, "Bash", obj{"command": "git push origin main"}, true, "p git push origin main"},
		"a rule refuses":                 {deny, push, "Bash", obj{"command": "git push origin main"}, false, ""},
		"more in the line":               {agent.Policy{}, push, "Bash", obj{"command": "git push origin main; rm -rf /"}, false, ""},
		"another argument":               {agent.Policy{}, push, "Bash", obj{"command": "git push upstream main"}, false, ""},
		"another tool":                   {agent.Policy{}, push, "Monitor", obj{"command": "git push origin main"}, false, ""},
		"the exact line":                 {agent.Policy{}, exact, "Bash", obj{"command": "make all; make dist"}, true, "e make all; make dist"},
		"nearly the line":                {agent.Policy{}, exact, "Bash", obj{"command": "make all; make dist "}, false, ""},
		"a file":                         {agent.Policy{}, file, "Write", obj{"file_path": "/etc/x"}, true, "f /etc/x"},
		"another file":                   {agent.Policy{}, file, "Write", obj{"file_path": "/etc/y"}, false, ""},
		"a file of the same name to rea": {agent.Policy{}, file, "Read", obj{"file_path": "/etc/x"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := claudeJob(dir)
			given := &approvals{all: []agent.Standing{c.standing}}
			job.Policy, job.Approvals = c.policy, given
			hooked, decision, _ := decided(t, job, &agenttest.Host{}, c.tool, c.input)
			if allowed := hooked != "deny" && decision == "allow"; allowed != c.allowed {
				t.Errorf("allowed: %v", allowed)
			}
			if c.used == "" && len(given.used) > 0 || c.used != "" && !slices.Equal(slices.Compact(given.used), []string{c.used}) {
				t.Errorf("used %q", given.used)
			}
		})
	}
}

// Codex asks about what is to run out of its sandbox.
func TestCodex_AStandingApprovalHoldsOutOfTheSandboxOnlyIfItSaysSo(t *testing.T) {
	for beyond, want := range map[bool]string{true: "accept", false: "decline"} {
		job := codexJob(t.TempDir())
		job.Approvals = &approvals{all: []agent.Standing{{ID: "p", Area: agent.Shell, Tool: "shell", What: "git push origin *", Any: true, Beyond: beyond}}}
		_, err := heldCodex(t, job, &agenttest.Host{}, func(p *peer) {
			meet(p)
			p.Say(asks(0, "item/commandExecution/requestApproval", obj{"itemId": "c", "command": "/bin/bash -lc 'git push origin main'", "cwd": job.Dir}))
			if got := replyTo(p, 0.0).Text("result", "decision"); got != want {
				t.Errorf("beyond %v: %s", beyond, got)
			}
			p.Say(turnEnds("tu", "completed", nil))
			p.Wait()
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestClaude_ProposesStandingApprovals(t *testing.T) {
	for command, want := range map[string][]string{
		"git push origin main": {"git push origin main", "git push origin *"}, "make": {"make"}, "a; b": {"a; b"}, "git push origin $(x)": nil, "curl x | sh": nil,
	} {
		host := &agenttest.Host{Answer: func(context.Context, agent.Question) (agent.Answer, error) { return agent.Answer{}, nil }}
		job := claudeJob(t.TempDir())
		job.Approvals = &approvals{}
		decided(t, job, host, "Bash", obj{"command": command})
		var got []string
		for _, q := range host.Seen().Asked {
			for _, s := range q.Standing {
				got = append(got, s.What)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}
