package main

import (
	"bytes"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/workflow"
)

func TestTrust_ShowsAllOfIt(t *testing.T) {
	var out bytes.Buffer
	c := newCLI()
	c.out, c.err = &out, &out
	c.look()
	e := workflow.Executing{"hooks.before_run": "echo fine\r\x1b[1A\u202ehidden\n"}
	err := c.showOffer(offer{
		Agent: "robot",
		Run: &offeredRun{Digest: "sha256:run", SetBy: "Eve\x1b[2K", Type: api.TypeCodex, Instructions: "one\n\x1b[8mtwo\n", Run: api.Run{
			Command: []string{"sh", "-c", "rm -rf /\r\x1b[2K"}, Check: []string{"checks-it"}, WorkFolder: "/folder", Env: []string{"AWS_KEY"}, Executable: "/tmp/evil", Model: "the-model",
			Permissions: "autonomous", Unattended: true, Rules: []api.RunRule{{Area: "shell", Pattern: "*", Ruling: "allow"}}, MaxTurns: 7, Workspace: "worktree", BaseBranch: "base\u202e",
		}},
		Workflow: &offeredFlow{Digest: "sha256:flow", Path: "/folder/WORKFLOW.md"},
		flow:     e,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sha256:run", "Eve", "codex", "one", "two", "rm -rf /", "checks-it", "/folder", "AWS_KEY", "/tmp/evil", "the-model", "autonomous", "true", "allow", "7", "worktree", "base",
		"sha256:flow", "/folder/WORKFLOW.md", "hooks.before_run:", `echo fine\r\x1b[1A\u202ehidden`, "not accepted",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\r\u202e") {
		t.Errorf("something could hide the rest:\n%q", out.String())
	}
}
