package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stint/worker/agent"
)

func TestCodex_CommandAndConfiguration(t *testing.T) {
	user, dir, state := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "codex")
	job := codexJob(dir)
	job.StateDir, job.Env = state, []string{"HOME=/nowhere", "CODEX_HOME=" + user, "TMPDIR=/nowhere"}
	if err := os.WriteFile(filepath.Join(user, "auth.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time everything is there
		cmd, err := agent.Codex{}.Command(job)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Prepare(state); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(cmd.Argv, []string{"codex", "app-server"}) || !slices.Equal(cmd.Env, []string{"CODEX_HOME=" + state}) {
			t.Errorf("%+v", cmd)
		}
	}
	if got, err := os.Readlink(filepath.Join(state, "auth.json")); err != nil || got != filepath.Join(user, "auth.json") {
		t.Errorf("the sign-in is %q, %v", got, err)
	}
	if entries, err := os.ReadDir(state); err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	hidden := t.TempDir()
	job.Hidden = []string{hidden, "/nowhere/at/all"}
	for name, c := range map[string]struct {
		policy      agent.Policy
		permissions agent.Permissions
		approval    string
		permission  string
		search      string
		profile     []string // members that the profile has
	}{
		"ask":          {agent.Policy{}, agent.Approval, "on-request", "stint", "disabled", []string{":workspace", hidden}},
		"autonomous":   {agent.Policy{}, agent.Autonomous, "never", "stint", "disabled", []string{":workspace", hidden}},
		"no files":     {agent.Policy{Rules: []agent.Rule{{Area: agent.Filesystem, Ruling: agent.Deny}}}, agent.Approval, "on-request", "stint", "disabled", []string{":read-only"}},
		"with network": {agent.Policy{Rules: []agent.Rule{{Area: agent.Network, Ruling: agent.Allow}}}, agent.Approval, "on-request", "stint", "live", []string{":workspace", "network"}},
		"all files":    {agent.Policy{Rules: []agent.Rule{{Area: agent.Filesystem, Pattern: "*", Ruling: agent.Allow}}}, agent.Approval, "on-request", "stint", "disabled", []string{":root", hidden}},
		"everything":   {agent.Policy{Rules: []agent.Rule{{Area: agent.Filesystem, Ruling: agent.Allow}, {Area: agent.Network, Ruling: agent.Allow}, {Area: agent.Shell, Ruling: agent.Allow}}}, agent.Approval, "never", "stint", "live", []string{`":root":"write"`, hidden, "network"}},
	} {
		job.Policy, job.Permissions = c.policy, c.permissions
		start, err := started(t, job)
		if err != nil {
			t.Fatal(err)
		}
		if got := start.Text("params", "approvalPolicy"); got != c.approval {
			t.Errorf("%s: approval %s", name, got)
		}
		if got := start.Text("params", "config", "default_permissions"); got != c.permission {
			t.Errorf("%s: permissions %s", name, got)
		}
		if got := start.Text("params", "config", "web_search"); got != c.search {
			t.Errorf("%s: search %s", name, got)
		}
		profile := text(start.At("params", "config", "permissions", "stint"))
		for _, part := range c.profile {
			if !strings.Contains(profile, part) {
				t.Errorf("%s: profile %s lacks %s", name, profile, part)
			}
		}
		if strings.Contains(profile, "/nowhere/at/all") {
			t.Errorf("%s: hides what doesn't exist", name)
		}
		if start.Text("params", "config", "projects", dir, "trust_level") != "untrusted" {
			t.Errorf("%s: the folder is trusted: %v", name, start)
		}
	}
	job.Env = []string{"TMPDIR=" + filepath.Dir(state)}
	if _, err := (agent.Codex{}).Command(job); err == nil {
		t.Error("a state folder that Codex can't work from was taken")
	}
	job.Uses = agent.UsesAll
	cmd, err := agent.Codex{}.Command(job)
	if err != nil || len(cmd.Env)+len(cmd.Links)+len(cmd.Files) != 0 {
		t.Errorf("with the user's own settings: %+v, %v", cmd, err)
	}
}
