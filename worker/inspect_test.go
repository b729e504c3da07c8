package worker

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stint/api"
	"stint/worker/workflow"
)

// Where the owner's file says nothing, the record's own way of working is used, and shown.
func TestInspect_ShowsTheRecordsWorkspaces(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	repo := w.repository()
	record := api.Agent{AgentInput: api.AgentInput{Slug: "branchy", Type: api.TypeCommand, Run: api.Run{
		Command: []string{"true"}, WorkFolder: repo, Workspace: workflow.ModeWorktree, BaseBranch: "main",
	}}}
	i := Inspect(t.Context(), o.StateDir, record, "branchy", os.Environ())
	if i.Mode != workflow.ModeWorktree || i.Root == "" || i.Git == "" {
		t.Errorf("it shows %+v", i)
	}
	record.Run.BaseBranch = "missing"
	i = Inspect(t.Context(), o.StateDir, record, "branchy", os.Environ())
	for _, c := range i.Checks {
		if c.Name == "repository" && c.Detail != "" {
			return
		}
	}
	t.Errorf("a base branch that isn't there is shown as %+v", i.Checks)
}

// Fields of a workflow file that have no effect for a plain command are reported like other
// fields without effect, to the owner and in the log.
func TestInspect_TellsWhatHasNoEffectOnACommand(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	var log strings.Builder
	o.Log = slog.New(slog.NewTextHandler(&locked{to: &log}, nil))
	a := w.agent("plain", "true")
	flow := filepath.Join(t.TempDir(), "WORKFLOW.md")
	w.must(os.WriteFile(flow, []byte("---\nagent:\n  max_turns: 3\ncodex:\n  command: codex app-server\n  read_timeout_ms: 100\n  turn_timeout_ms: 60000\n---\nx\n"), 0o600))
	w.owns(o, "plain", "workflow = '"+flow+"'\n")
	got := Inspect(t.Context(), o.StateDir, a, "plain", os.Environ()).Workflow.Ignored
	if len(got) != 3 || !strings.HasPrefix(got[0], "agent.max_turns: ") || !strings.HasPrefix(got[1], "codex.command: ") || !strings.HasPrefix(got[2], "codex.read_timeout_ms: ") {
		t.Errorf("it tells %q", got)
	}
	a.Type = api.TypeCodex
	if got := Inspect(t.Context(), o.StateDir, a, "plain", os.Environ()).Workflow.Ignored; len(got) > 0 {
		t.Errorf("of one that converses it tells %q", got)
	}
	g := w.start(o)
	for range 2 {
		w.untilStatus(w.trigger(a, ""), api.Complete)
	}
	g.end()
	if n := strings.Count(log.String(), "field=agent.max_turns"); n != 1 {
		t.Errorf("the log tells it %d times", n)
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	to io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}
