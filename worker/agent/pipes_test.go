package agent

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// An agent can put a pipe where the worker reads before the next session's program starts.
func TestFiles_APipeKeepsNoSessionWaiting(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".git", ".mcp.json", "AGENTS.md", "opencode.json"} {
		if out, err := exec.Command("mkfifo", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		untrusted(dir)
		claudeServersOf(Job{Dir: dir})
		opencodeServers(dir)
		firstOf(dir, "AGENTS.md")
		folderInstructions(dir, "AGENTS.md")
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("it waits for a pipe")
	}
}
